"""Deliveries of one queue, as they come; what is not acknowledged goes back to the queue at the end."""

import select
import struct
import time
from collections.abc import Iterator
from types import TracebackType

from delayctl.cli.arrivals import Arrival
from delayctl.consumers.inbox import Delivery, Inbox
from delayctl.consumers.message import Message
from delayctl.publishers import frames
from delayctl.publishers.connection import ClosedByBroker, Connection
from delayctl.publishers.contract import DUE
from delayctl.publishers.frames import CHANNEL, Frame
from delayctl.topology.access import Access
from delayctl.topology.errors import NotPermitted, Refused, Unreachable
from delayctl.topology.wording import quoted

_DELIVER = (frames.BASIC, frames.DELIVER)
_INT53 = 2**53
_ACCESS_REFUSED, _IN_USE = 403, "exclusive use"
_ALL_OF_THEM = struct.pack(">QB", 0, 1 | 2)  # Every delivery there is, to be given to others.


class Tail:
    """A consumer of one queue. `with` closes it."""

    def __init__(self, access: Access, queue: str, *, prefetch: int) -> None:
        self._queue = queue
        self._inbox = Inbox()
        self._connection = Connection(access, name="delayctl consume")
        self._spoke = self._heard = time.monotonic()
        try:
            self._begin(prefetch)
        except ClosedByBroker as closed:
            self._connection.abort()
            raise self._refused(closed, access.credentials.username) from closed
        except BaseException:
            self._connection.abort()
            raise
        self._connection.socket.setblocking(False)

    def _begin(self, prefetch: int) -> None:
        self._connection.open_channel(confirms=False)
        try:
            self._connection.check_queue(self._queue)
        except Refused as error:
            if error.code != 404:
                raise
            raise Refused(
                f"there is no queue {quoted(self._queue)}", code=404, fix="check the name, --vhost and --url"
            ) from error
        self._connection.prefetch(prefetch)
        self._connection.consume(self._queue, self._queue)

    def _refused(self, closed: ClosedByBroker, user: str) -> Refused | NotPermitted:
        """The broker has one code for who may not read and for who comes second to an exclusive consumer."""
        if closed.code == _ACCESS_REFUSED and _IN_USE not in closed.text:
            fix = f"let an administrator grant read on {self._queue} (delayctl permissions shows patterns)"
            return NotPermitted(f"user '{user}' is not permitted: {closed.text}", fix=fix)
        return Refused(closed.text, code=closed.code, fix="see what else consumes the queue")

    def __enter__(self) -> "Tail":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if not isinstance(error, Refused | NotPermitted | Unreachable):
            self._give_back()
        self._connection.close()

    def _give_back(self) -> None:
        """Return what was not acknowledged; a queue that makes failed messages wait takes a closed channel for a failure."""
        try:
            self._connection.cancel(self._queue)
            self._send(frames.method_frame(CHANNEL, (frames.BASIC, frames.NACK), _ALL_OF_THEM))
        except (OSError, ValueError, struct.error, ClosedByBroker, Unreachable):
            return  # The broker gives them to others in any case.

    def deliveries(self, idle_s: float | None) -> Iterator[tuple[int, Arrival]]:
        """Number and content of each message; ends when none has come for so long."""
        poller = select.poll()
        poller.register(self._connection.fileno(), select.POLLIN)
        last = time.monotonic()
        while True:
            found = self._received()
            arrived_ms = time.time_ns() // 1_000_000
            for delivery in found:
                yield delivery.tag, self._arrival(delivery, arrived_ms)
            now = time.monotonic()
            last = now if found else last
            if idle_s is not None and now - last >= idle_s:
                return
            patience = self._connection.heartbeat_s / 4
            if idle_s is not None:
                patience = min(patience, idle_s - (now - last))
            poller.poll(patience * 1000)
            self._keep_alive()

    def acknowledge(self, tag: int) -> None:
        """Say that all up to this one are done."""
        self._send(frames.ack_frame(CHANNEL, tag, multiple=True))

    def _received(self) -> list[Delivery]:
        try:
            received = self._connection.received()
        except (OSError, ValueError) as error:
            raise self._lost(error) from error
        if received:
            self._heard = time.monotonic()
        return [delivery for frame in received if (delivery := self._take(frame))]

    def _take(self, frame: Frame) -> Delivery | None:
        kind, _, payload = frame
        if kind == frames.HEARTBEAT:
            return None
        method = frames.METHOD_ID.unpack_from(payload) if kind == frames.METHOD else None
        if method in (frames.CLOSE_CONNECTION, frames.CLOSE_CHANNEL):
            closed = self._connection.closed(frame)
            raise Refused(f"the broker ended it: {closed.text}", code=closed.code, fix="look at the broker's log")
        if method == frames.CANCEL:
            raise Refused(
                f"the queue {quoted(self._queue)} was deleted", fix="declare it: delayctl apply topology.yaml"
            )
        return self._inbox.take(frame) if method is None or method == _DELIVER else None

    def _arrival(self, delivery: Delivery, arrived_ms: int) -> Arrival:
        message = Message.of(delivery)
        due = message.headers.get(DUE)
        return Arrival(
            arrived_ms,
            due if type(due) is int and 0 < due < _INT53 else None,
            self._queue,
            message.exchange,
            message.key,
            message.message_id,
            message.attempt,
            message.redelivered,
            message.headers,
            message.body,
            message.parked,
        )

    def _keep_alive(self) -> None:
        now, interval = time.monotonic(), self._connection.heartbeat_s
        if now - self._spoke > interval / 2:
            self._send(frames.HEARTBEAT_FRAME)
        if now - self._heard > 2 * interval:
            raise self._lost(TimeoutError(f"the broker was silent for {2 * interval} s"))

    def _send(self, data: bytes) -> None:
        try:
            self._connection.socket.settimeout(self._connection.heartbeat_s)
            self._connection.socket.sendall(data)
            self._connection.socket.setblocking(False)
        except (OSError, struct.error) as error:
            raise self._lost(error) from error
        self._spoke = time.monotonic()

    def _lost(self, error: Exception) -> Unreachable:
        return Unreachable(
            f"the connection was lost: {error}", fix="run it again; what was not acknowledged is still there"
        )
