"""The sockets of a simulated broker: one thread that listens, receives and sends, and knows when all is quiet."""

import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Protocol

from delayctl.publishers.frames import HEARTBEAT_FRAME

_READ_AT_ONCE = 1 << 18
_QUIET_S = 0.005  # Nothing has come for so long: whoever had something to say has said it.
_LOOK_UP_EVERY_S = 1.0
_AT_ONCE = struct.pack("ii", 1, 0)  # Closing discards what is unsent, and tells the other end by a reset.


class Session(Protocol):
    """Whoever understands what a client says. Called with the lock held."""

    def received(self, data: bytes) -> None:
        """Take in what has come."""

    def gone(self) -> None:
        """The client is gone."""


class Peer:
    """The connection of one client; used with the lock held."""

    def __init__(self, opened: socket.socket) -> None:
        self.socket = opened
        self.session: Session | None = None
        self.is_paused = False  # What it sends stays in the socket.
        self.is_leaving = False  # It is closed when all is sent.
        self.is_gone = False
        self.heartbeat_s = 0
        self._out = bytearray()
        self._spoke = time.monotonic()

    def send(self, data: bytes) -> None:
        """Have this sent."""
        self._out += data

    @property
    def is_sending(self) -> bool:
        """Whether there is something to be sent."""
        return bool(self._out)

    @property
    def interest(self) -> int:
        """What its socket is watched for."""
        reading = 0 if self.is_paused or self.is_leaving else selectors.EVENT_READ
        return reading | (selectors.EVENT_WRITE if self._out else 0)

    def flush(self) -> None:
        """Send what the socket takes."""
        if self.heartbeat_s and not self._out and time.monotonic() - self._spoke > self.heartbeat_s / 2:
            self._out += HEARTBEAT_FRAME
        if self._out:
            self._spoke = time.monotonic()
            try:
                del self._out[: self.socket.send(self._out)]
            except BlockingIOError:
                return


class Sockets:
    """A port on loopback, and the clients that came to it. All that clients cause happens in one thread, under `lock`."""

    def __init__(self, lock: threading.Condition, welcome: Callable[[Peer], Session]) -> None:
        self.lock = lock
        self.is_away = False  # Whoever comes is sent away.
        self.trouble: Exception | None = None  # What went wrong on our side, the first of it.
        self.peers: list[Peer] = []
        self._welcome = welcome
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self.port: int = self._listening.getsockname()[1]
        self._ear, self._bell = socket.socketpair()
        self._ear.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._ear, selectors.EVENT_READ)
        self._is_closing = False
        self._watchers = self._sweeps = 0
        self._thread = threading.Thread(target=self._run, name="simulated RabbitMQ", daemon=True)
        self._thread.start()

    # For any thread.

    @property
    def is_sending(self) -> bool:
        """Whether there is something to be sent."""
        return any(peer.is_sending for peer in self.peers)

    def wake(self) -> None:
        """Have done at once what there is to do."""
        try:
            self._bell.send(b"!")
        except OSError:
            return  # It is closed.

    def drop(self) -> None:
        """Cut every connection without a word."""
        with self.lock:
            for peer in list(self.peers):
                self._drop(peer)

    def close(self) -> None:
        """Cut every connection, and listen no more."""
        with self.lock:
            self._is_closing = True
        self.wake()
        self._thread.join()

    def await_rest(self, is_at_rest: Callable[[], bool], patience_s: float) -> bool:
        """Wait until everything is sent, nothing comes in, and `is_at_rest`; says whether that came true in time."""
        deadline = time.monotonic() + patience_s
        with self.lock:
            self._watchers += 1
            try:
                while time.monotonic() < deadline and self.trouble is None:
                    if self._is_quiet_before(deadline) and is_at_rest():
                        return True
                return False
            finally:
                self._watchers -= 1

    def _is_quiet_before(self, deadline: float) -> bool:
        sweeps = self._sweeps
        self.wake()
        while self._sweeps == sweeps:
            if not self.lock.wait(deadline - time.monotonic()):
                return False
        return True

    # The thread's own.

    def _run(self) -> None:
        while not self._is_closing:
            ready = self._selector.select(_QUIET_S if self._watchers else _LOOK_UP_EVERY_S)
            with self.lock:
                for key, _ in ready:
                    self._serve(key)
                for peer in list(self.peers):
                    self._attempt(peer, self._send)
                if not ready and not self.is_sending:
                    self._sweeps += 1
                self.lock.notify_all()
        self._end()

    def _end(self) -> None:
        self.drop()
        self._selector.close()
        for each in (self._listening, self._ear, self._bell):
            each.close()

    def _serve(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._listening:
            self._accept()
        elif key.fileobj is self._ear:
            self._ear.recv(4096)
        elif not key.data.is_gone:
            self._attempt(key.data, self._receive)

    def _accept(self) -> None:
        try:
            opened, _ = self._listening.accept()
        except OSError:
            return  # It changed its mind.
        if self.is_away:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            opened.close()
            return
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(opened)
        peer.session = self._welcome(peer)
        self.peers.append(peer)
        self._selector.register(opened, selectors.EVENT_READ, peer)

    def _attempt(self, peer: Peer, action: Callable[[Peer], None]) -> None:
        """Do something with a client; what goes wrong costs its connection, and is told if it was our fault."""
        try:
            action(peer)
        except OSError:
            self._drop(peer)
        except Exception as error:
            self.trouble = self.trouble or error
            self._drop(peer)

    def _receive(self, peer: Peer) -> None:
        if peer.is_paused or peer.is_leaving:
            return  # It is watched for room to send only.
        try:
            data = peer.socket.recv(_READ_AT_ONCE)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError("the client closed the connection")
        assert peer.session is not None
        peer.session.received(data)

    def _send(self, peer: Peer) -> None:
        peer.flush()
        if peer.is_leaving and not peer.is_sending:
            self._drop(peer)
            return
        self._watch(peer)

    def _watch(self, peer: Peer) -> None:
        is_watched = peer.socket in self._selector.get_map()
        if peer.interest and is_watched:
            self._selector.modify(peer.socket, peer.interest, peer)
        elif peer.interest:
            self._selector.register(peer.socket, peer.interest, peer)
        elif is_watched:
            self._selector.unregister(peer.socket)

    def _drop(self, peer: Peer) -> None:
        if peer.is_gone:
            return
        peer.is_gone = True
        self.peers.remove(peer)
        if peer.socket in self._selector.get_map():
            self._selector.unregister(peer.socket)
        if not peer.is_leaving:
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        peer.socket.close()
        assert peer.session is not None
        try:
            peer.session.gone()
        except Exception as error:
            self.trouble = self.trouble or error
