"""The sockets of the simulated broker: quiet, rest, and what goes wrong on our own side."""

import socket
import threading
from collections.abc import Iterator

import pytest
from delayctl.testing.sockets import Peer, Sockets

from testbed.wait import until


class Echo:
    """Sends back what comes; `!` makes it fail."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.is_gone = False

    def received(self, data: bytes) -> None:
        """Answer."""
        if data == b"!":
            raise LookupError("a fault of ours")
        self._peer.send(data)

    def gone(self) -> None:
        """Note it."""
        self.is_gone = True


@pytest.fixture
def sessions() -> list[Echo]:
    """Those that were opened."""
    return []


@pytest.fixture
def sockets(sessions: list[Echo]) -> Iterator[Sockets]:
    """A port that echoes."""

    def welcome(peer: Peer) -> Echo:
        sessions.append(Echo(peer))
        return sessions[-1]

    found = Sockets(threading.Condition(threading.RLock()), welcome)
    yield found
    found.close()


def client(sockets: Sockets) -> socket.socket:
    """Somebody who connects."""
    return socket.create_connection(("127.0.0.1", sockets.port), 5)


def test_it_comes_to_rest_when_all_is_said(sockets: Sockets) -> None:
    """What was sent before is dealt with by then."""
    with client(sockets) as peer:
        peer.sendall(b"hello")

        assert sockets.await_rest(lambda: True, 5)
        peer.setblocking(False)
        assert peer.recv(100) == b"hello"


def test_it_does_not_come_to_rest_before_it_is_told_so(sockets: Sockets) -> None:
    """However quiet it is."""
    assert not sockets.await_rest(lambda: False, 0.05)


def test_our_own_fault_is_kept_and_ends_the_waiting(sockets: Sockets, sessions: list[Echo]) -> None:
    """The client's connection is cut; others go on."""
    with client(sockets) as peer, client(sockets) as other:
        peer.sendall(b"!")

        until(lambda: sockets.trouble is not None, 5, every=0.01)
        assert repr(sockets.trouble) == "LookupError('a fault of ours')"
        assert not sockets.await_rest(lambda: True, 60)
        with pytest.raises(ConnectionResetError):
            peer.recv(100)
        other.sendall(b"hello")
        assert other.recv(100) == b"hello"
        assert sorted(session.is_gone for session in sessions) == [False, True]


def test_whoever_is_dropped_is_told_by_a_reset(sockets: Sockets, sessions: list[Echo]) -> None:
    """And what it said no longer counts."""
    with client(sockets) as peer:
        peer.sendall(b"hello")
        assert peer.recv(100) == b"hello"

        sockets.drop()

        with pytest.raises(ConnectionResetError):
            peer.recv(100)
    assert [session.is_gone for session in sessions] == [True]
    assert sockets.peers == []


def test_while_it_is_away_nobody_gets_in(sockets: Sockets) -> None:
    """And then they do."""
    sockets.is_away = True
    with pytest.raises(ConnectionResetError), client(sockets) as peer:
        peer.recv(100)

    sockets.is_away = False
    with client(sockets) as peer:
        peer.sendall(b"hello")
        assert peer.recv(100) == b"hello"
