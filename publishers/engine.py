"""The thread that talks to the broker: sends what is handed over, listens, and connects again when it must."""

import logging
import os
import random
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from delayctl.publishers import blame, frames
from delayctl.publishers.connection import ClosedByBroker, Connection
from delayctl.publishers.delivery import Teller
from delayctl.publishers.errors import PublisherClosed
from delayctl.publishers.frames import Frame
from delayctl.publishers.outbox import Outbox
from delayctl.publishers.patience import Patience
from delayctl.publishers.window import Entry
from delayctl.topology.access import Access
from delayctl.topology.errors import DelayctlError, Unreachable

_LOG = logging.getLogger("delayctl.publisher")
_SEND_AT_ONCE = 1 << 18
_LEAVE_WITHIN_S = 3.0  # A broker that does not answer keeps nobody from closing.
_SETTLED_AFTER = 3  # Heartbeats: one that is silent is dropped before.
_ANSWERS = (frames.ACK, frames.NACK)
_CLOSES = (frames.CLOSE_CONNECTION, frames.CLOSE_CHANNEL)

Returned = tuple[str, str, str]  # Reason, exchange and key of a message that is being given back.


class Engine:
    """Owns the connection. `hand_over` and `close` are for any thread, everything else is for its own."""

    def __init__(
        self,
        brokers: Sequence[Access],
        outbox: Outbox,
        *,
        name: str,
        heartbeat_s: int,
        give_up_after_s: float,
        prepare: Callable[[Connection], None],
    ) -> None:
        self._brokers = brokers
        self._outbox = outbox
        self._name = name
        self._heartbeat_s = heartbeat_s
        self._patience = Patience(give_up_after_s)
        self._is_answered = True  # Something was, since the connection was last lost.
        self.is_blocked = False  # The broker has too little memory or disk, and asked for silence.
        self._sending = memoryview(b"")
        self._returned: Returned | None = None
        self._heard = self._spoke = 0.0
        self._connection = self._connect_once(prepare)
        self._since = time.monotonic()  # When it was connected.
        self._began_idle = True  # Nothing waited then.
        self.frame_max = self._connection.frame_max
        self._wake_out, self._wake_in = socket.socketpair()
        self._wake_out.setblocking(False)
        self._process = os.getpid()
        self._thread = Teller(self._run, outbox.holds, name=name)
        self._thread.start()

    # For any thread.

    def hand_over(self, entry: Entry) -> None:
        """Have a message sent; waits while too many are unanswered."""
        if self.is_inherited:
            raise PublisherClosed(
                "the publisher was made before a fork: the thread that sends is in the process that made it",
                fix="make a publisher in each process, after forking",
                message_id=entry.message_id,
            )
        if self._outbox.put(entry):
            self._wake()

    def close(self) -> None:
        """Stop the thread; what is unanswered fails."""
        self._outbox.close()
        self._wake()
        self._thread.join(_LEAVE_WITHIN_S)
        self._outbox.fail_all(blame.left_behind)  # The thread may be still about to connect.

    @property
    def is_inherited(self) -> bool:
        """Whether a fork has left the thread behind: nobody would send anything, and locks may be held for good."""
        return os.getpid() != self._process

    @property
    def is_current_thread(self) -> bool:
        """Whether the caller is called back by the engine, and must not wait for it."""
        return threading.current_thread() is self._thread

    def _wake(self) -> None:
        try:
            self._wake_in.send(b"!")
        except OSError:
            return  # The thread is gone, and has told everybody.

    # The thread's own.

    def _run(self) -> None:
        self._outbox.claim()
        try:
            while self._outbox.is_open:
                try:
                    self._talk()
                except ClosedByBroker as closed:
                    self._closed(closed)
                except (OSError, ValueError, struct.error) as error:
                    self._lost(error)
            self._leave()
        finally:
            self._outbox.close()  # Also where something unforeseen ended the thread: nobody waits for it in vain.
            self._outbox.fail_all(blame.left_behind)
            self._wake_in.close()
            self._wake_out.close()

    def _leave(self) -> None:
        if self._sending:
            self._connection.abort()  # In the middle of a frame there is no way to say goodbye.
        else:
            self._connection.close()

    def _talk(self) -> None:
        """Send and listen over a new channel for as long as it lasts."""
        poller = select.poll()
        poller.register(self._wake_out, select.POLLIN)
        poller.register(self._connection.fileno(), select.POLLIN)
        self._connection.socket.setblocking(False)
        self._heard = self._spoke = time.monotonic()
        self._listen()  # Something may have come while the channel was opened.
        while self._outbox.is_open:
            self._turn(poller)

    def _turn(self, poller: select.poll) -> None:
        """Send what there is, then wait for whatever comes first."""
        self._send()
        is_idle = self._outbox.fall_asleep() or self.is_blocked
        poller.modify(self._connection.fileno(), select.POLLIN | (select.POLLOUT if self._sending else 0))
        patience_ms = self._connection.heartbeat_s * 250 if is_idle or self._sending else 0
        for number, event in poller.poll(patience_ms):
            if number == self._wake_out.fileno():
                self._wake_out.recv(4096)
            elif event & ~select.POLLOUT:
                self._listen()
        self._keep_alive()

    def _send(self) -> None:
        if not self._sending:
            batch = [] if self.is_blocked else self._outbox.next_batch(_SEND_AT_ONCE)
            if not batch:
                return
            self._sending = memoryview(b"".join(batch))
        try:
            count = self._connection.socket.send(self._sending)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return
        self._spoke = time.monotonic()
        self._sending = self._sending[count:]

    def _listen(self) -> None:
        received = self._connection.received()
        if received:
            self._heard = time.monotonic()
        closing: Frame | None = None
        for frame in received:
            kind, _, payload = frame
            if kind == frames.METHOD:
                method = class_id, method_id = frames.METHOD_ID.unpack_from(payload)
                if class_id == frames.BASIC and method_id in _ANSWERS:
                    self._is_answered = True
                    tag, bits = struct.unpack_from(">QB", payload, 4)
                    self._outbox.answered(tag, is_ack=method_id == frames.ACK, multiple=bool(bits & 1))
                elif method in _CLOSES:
                    closing = frame
                else:
                    self._other(method, payload)
            elif kind == frames.HEADER and self._returned:
                reason, exchange, key = self._returned
                message_id = frames.decode_properties(payload).message_id or ""
                self._outbox.returned(message_id, exchange, key, reason)
                self._returned = None
        if closing is not None:  # Only now: what came behind it may be about the whole connection.
            begun, self._sending = self._sending, memoryview(b"")
            raise self._connection.closed(closing, begun=begun)

    def _other(self, method: tuple[int, int], payload: bytes) -> None:
        if method == (frames.BASIC, frames.RETURN):
            reason, at = frames.read_short_string(payload, 6)
            exchange, at = frames.read_short_string(payload, at)
            key, _ = frames.read_short_string(payload, at)
            self._returned = reason, exchange, key
        elif method in (frames.BLOCKED, frames.UNBLOCKED):
            self.is_blocked = method == frames.BLOCKED
            if self.is_blocked:
                reason = frames.read_short_string(payload, 4)[0]
                _LOG.warning("the broker takes no messages for now (%s); they wait here", reason)
            else:
                _LOG.warning("the broker takes messages again")

    def _keep_alive(self) -> None:
        now, interval = time.monotonic(), self._connection.heartbeat_s
        if now - self._spoke > interval / 2 and not self._sending:
            self._sending = memoryview(frames.HEARTBEAT_FRAME)
        if now - self._heard > 2 * interval:
            raise TimeoutError(f"the broker was silent for {2 * interval} s")

    # Trouble.

    def _closed(self, closed: ClosedByBroker) -> None:
        """The broker closed the channel over one message, or the connection over something else."""
        judge, last_resort = partial(blame.guilty, closed.code, closed.text), partial(blame.refused, closed.text)
        if not closed.is_channel:
            if blame.is_fault(closed.code):
                self._is_answered |= self._outbox.blame(lambda _: None, last_resort)
            self._lost(ConnectionResetError(closed.text))
            return
        self._outbox.blame(judge, last_resort)
        self._returned = None
        try:
            self._connection.open_channel(confirms=True)
        except (OSError, ClosedByBroker, ValueError, struct.error) as error:
            self._lost(error)

    def _lost(self, error: Exception) -> None:
        """Connect again, and send again what was not confirmed; what takes too long fails."""
        self._connection.abort()
        self._outbox.send_again()
        self._sending, self._returned, self.is_blocked = memoryview(b""), None, False
        _LOG.warning("the connection was lost: %s", error)
        if self._was_well():
            self._patience.restore(time.monotonic())
        elif self._began_idle:  # What is here now has not waited since the loss before.
            self._patience.extend(time.monotonic())
        while self._outbox.is_open:
            if self._patience.is_over(time.monotonic()):
                self._outbox.fail_all(blame.lost_by(error))
                self._patience.extend(time.monotonic())
            self._outbox.pause(self._patience.next_pause_s() * random.uniform(0.5, 1))  # noqa: S311 (spreads clients, keeps no secret)
            try:
                self._connect_again()
                return
            except DelayctlError as again:
                error = again

    def _was_well(self) -> bool:
        """Whether the connection that was lost was of use: the broker answered, or it lasted."""
        was_answered, self._is_answered = self._is_answered, False
        return was_answered or time.monotonic() - self._since > _SETTLED_AFTER * self._heartbeat_s

    def _connect_again(self) -> None:
        self._connection = self._connect_once(self._check_frame_max)
        self._since, self._began_idle = time.monotonic(), not self._outbox.count
        _LOG.warning("connected again")

    def _check_frame_max(self, connection: Connection) -> None:
        if connection.frame_max < self.frame_max:  # Messages are cut into frames when they are handed over.
            raise DelayctlError(
                f"the broker takes frames of {connection.frame_max:,} bytes, the one before took {self.frame_max:,}",
                fix="give all brokers the same frame_max",
            )

    def _connect_once(self, prepare: Callable[[Connection], None]) -> Connection:
        """Try every broker once, in a new order each time."""
        trouble: Exception = ValueError("no broker is named")
        for access in random.sample(self._brokers, len(self._brokers)):
            if not self._outbox.is_open:
                break
            try:
                return self._connect_to(access, prepare)
            except (DelayctlError, OSError, ClosedByBroker, ValueError, struct.error) as error:
                trouble = error
        if isinstance(trouble, DelayctlError):
            raise trouble
        raise Unreachable(
            f"the connection broke while it was opened: {trouble}", fix="check the broker's log"
        ) from trouble

    def _connect_to(self, access: Access, prepare: Callable[[Connection], None]) -> Connection:
        connection = Connection(access, name=self._name, heartbeat_s=self._heartbeat_s)
        try:
            connection.open_channel(confirms=False)
            prepare(connection)
            connection.open_confirms()
        except BaseException:
            connection.abort()
            raise
        return connection
