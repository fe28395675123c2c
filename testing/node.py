"""The broker that clients connect to: the model behind sockets, its time, and the faults it can be told to have."""

import threading
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.parse import quote

from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rabbitmq import Broker
from delayctl.testing.channel import Channel
from delayctl.testing.errors import BrokerFailed
from delayctl.testing.host import Host
from delayctl.testing.rest import Rest
from delayctl.testing.returns import Returns
from delayctl.testing.session import Session
from delayctl.testing.sockets import Peer, Sockets
from delayctl.testing.turns import Turns


class Node:
    """A model that listens on loopback. Time passes in `advance` only, and never while a client is busy."""

    def __init__(
        self,
        model: Broker,
        clock: VirtualClock,
        *,
        vhost: str,
        login: tuple[str, str],
        version: str,
        in_turn: bool,
        patience_s: float,
        retried: Set[str] = frozenset(),
    ) -> None:
        self.model = model
        self.lock = threading.Condition(threading.RLock())  # Guards the model and all that hangs on it.
        self.time = clock
        self.host = Host(model, vhost, login, Turns(in_turn=in_turn), returns=Returns(time.monotonic), version=version)
        self._faults = self.host.faults
        self._sockets = Sockets(self.lock, self._welcome)
        self._rest = Rest(self.host, self._sockets, patience_s, retried)
        userinfo = ":".join(quote(part, safe="") for part in login)
        self.url = f"amqp://{userinfo}@127.0.0.1:{self._sockets.port}/{quote(vhost, safe='')}"

    def _welcome(self, peer: Peer) -> Session:
        session = Session(peer, self.host, lambda session, number: Channel(session, number, self.host))
        self.host.sessions.append(session)
        return session

    # Time.

    def advance(self, span: int, settle: Callable[[], None] | None) -> None:
        """Let milliseconds pass, from one thing that happens to the next; after each, clients are let settle."""
        target = self.time.now + span
        while (moment := self._next_until(target)) is not None:
            if self._go_to(moment) and settle is not None:
                settle()
        self._go_to(target)

    def _next_until(self, target: int) -> int | None:
        with self.lock:
            moment = self.time.next_time
        return moment if moment is not None and moment <= target else None

    def _go_to(self, moment: int) -> bool:
        """Let everything happen that is planned up to a moment; says whether clients hear of it."""
        with self.lock:
            if moment > self.time.now:
                self.host.returns.clear()
            self.time.run_until(moment)
            self.host.forget_consumers()
            is_heard = self._sockets.is_sending
        self._sockets.wake()
        return is_heard

    def settle(self, pending: Callable[[], int], check: Callable[[], None]) -> None:
        """Wait until clients have dealt with all they got, and nothing of theirs is on its way."""
        self._rest.come(pending, lambda: self._check_both(check))

    def _check_both(self, check: Callable[[], None]) -> None:
        self.check()
        check()

    def check(self) -> None:
        """Raise what went wrong in the simulation itself."""
        if self._sockets.trouble is not None:
            raise BrokerFailed(
                f"the simulated broker failed: {self._sockets.trouble!r}", fix="report it together with the test"
            ) from self._sockets.trouble

    # Faults.

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Change something that clients are told of."""
        with self.lock:
            yield
        self._sockets.wake()

    def block(self, reason: str) -> None:
        """Take no messages: a connection that begins to publish is told, and not listened to."""
        with self.lock:
            self._faults.blocked_for = reason

    def unblock(self) -> None:
        """Go on."""
        with self.changing():
            self._faults.blocked_for = None
            for session in list(self.host.sessions):
                session.unblock()

    def refuse(self, count: int) -> None:
        """Refuse so many messages that come next."""
        with self.lock:
            self._faults.refusals_left = count

    def hold_answers(self, *, is_held: bool) -> None:
        """Keep silent about what is published from now on, or say all that was held back."""
        with self.changing():
            self._faults.is_holding_answers = is_held
            if not is_held:
                self._faults.release_answers()

    def drop_connections(self) -> None:
        """Cut every connection without a word."""
        self._sockets.drop()

    def go_away(self) -> None:
        """Cut every connection, and take no new ones."""
        with self.lock:
            self._sockets.is_away = True
            self._sockets.drop()

    def come_back(self) -> None:
        """Take connections again."""
        with self.lock:
            self._sockets.is_away = False

    def awaited(self, unanswered: int) -> int:
        """How many answers to so many messages are still to come, the faults being what they are."""
        return 0 if self._sockets.is_away else max(0, unanswered - self._faults.held)

    def heal(self) -> None:
        """End every fault."""
        self.come_back()
        self.unblock()
        self.refuse(0)
        self.hold_answers(is_held=False)

    def close(self) -> None:
        """End."""
        self._sockets.close()

    def wall(self) -> int:
        """The time in milliseconds since 1970."""
        return self.time.wall

    def now(self) -> datetime:
        """The time."""
        return datetime.fromtimestamp(self.time.wall / 1000, UTC)
