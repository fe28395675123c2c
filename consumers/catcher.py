"""A queue at the exit of a topology that catches canaries: one run at a time, and never in anybody's way.

It is no exclusive queue: those are gone with their connection, and a canary that comes out later would be parked among
the messages of others. This one stays while canaries are at large, and removes itself when it was unused for longer than any
of them can wait. One that an earlier run has left stays too: nobody knows what is still on its way to it.
"""

import select
import struct
import time

from delayctl.consumers.inbox import Delivery, Inbox
from delayctl.publishers import frames
from delayctl.publishers.connection import ClosedByBroker, Connection
from delayctl.publishers.frames import Frame, encode_table, short_string
from delayctl.topology.access import Access
from delayctl.topology.duration import MAX_TTL_MS, Duration
from delayctl.topology.errors import BrokerError, Locked, NotPermitted, Refused, Unreachable
from delayctl.topology.names import Names
from delayctl.topology.wording import argument, command

_A_DAY, _SLACK = Duration.parse("1d"), Duration.parse("1h")
_QUEUE_DECLARE, _QUEUE_DECLARE_OK = (50, 10), (50, 11)
_QUEUE_BIND, _QUEUE_BIND_OK = (50, 20), (50, 21)
_QUEUE_DELETE, _QUEUE_DELETE_OK = (50, 40), (50, 41)
_CONSUME, _CONSUME_OK = (60, 20), (60, 21)
_DURABLE = b"\x02"
_ALONE_WITHOUT_ACKS = b"\x06"
_NOTHING = b"\x00\x00\x00\x00"  # An empty table.
_TICKET = b"\x00\x00"
_DELIVER = (frames.BASIC, frames.DELIVER)
_ACCESS_REFUSED, _PRECONDITION_FAILED = 403, 406
_EXPIRES = "x-expires"


def stays_for(longest: Duration) -> Duration:
    """How long a catcher outlives its last use, where no canary waits longer than this."""
    return Duration(min(MAX_TTL_MS, max(_A_DAY.ms, longest.ms + _SLACK.ms)))


class Catcher:
    """Catches what comes out of the exit with the key of a canary."""

    def __init__(self, access: Access, prefix: str, *, file: str, longest: Duration) -> None:
        """Begin to catch; no canary waits longer than the `longest`."""
        self._access = access
        self._names = Names(prefix)
        self._file = file
        self._stays_for = stays_for(longest)
        self._was_there = True
        self._inbox = Inbox()
        self._connection = Connection(access, name="delayctl verify")
        try:
            self._begin()
        except ClosedByBroker as closed:
            self._connection.abort()
            raise self._refusal(closed) from closed
        except (OSError, ValueError, struct.error) as error:
            self._connection.abort()
            raise _lost(error) from error
        except BaseException:
            self._connection.abort()
            raise
        self._connection.socket.setblocking(False)
        self._spoke = self._heard = time.monotonic()

    def _begin(self) -> None:
        connection, names, queue = self._connection, self._names, short_string(self._names.verify_queue())
        connection.open_channel(confirms=False)
        self._was_there = self._is_there()
        self._declare(queue)
        way_in = short_string(names.exit()) + short_string(names.verify_pattern())
        connection.call(_QUEUE_BIND, _TICKET + queue + way_in + b"\x00" + _NOTHING, _QUEUE_BIND_OK)
        connection.call(_CONSUME, _TICKET + queue + queue + _ALONE_WITHOUT_ACKS + _NOTHING, _CONSUME_OK)

    def _is_there(self) -> bool:
        try:
            self._connection.check_queue(self._names.verify_queue())
        except NotPermitted:
            return True  # Who may not know has nothing to remove.
        except Refused:
            return False
        return True

    def _declare(self, queue: bytes) -> None:
        kept = encode_table({"x-queue-type": "classic", _EXPIRES: self._stays_for.ms})
        try:
            self._connection.call(_QUEUE_DECLARE, _TICKET + queue + _DURABLE + kept, _QUEUE_DECLARE_OK)
        except ClosedByBroker as closed:
            if not (self._was_there and closed.code == _PRECONDITION_FAILED and f"'{_EXPIRES}'" in closed.text):
                raise
            # It was declared when the longest wait was another one; it is taken as it is, with what may come to it.
            self._connection.open_channel(confirms=False)

    def _refusal(self, closed: ClosedByBroker) -> BrokerError | Locked:
        queue = self._names.verify_queue()
        if "exclusive use" in closed.text:
            return Locked(
                "another delayctl verify is at work on this topology",
                fix=f"wait until it is done; see who consumes {queue} if there is none",
            )
        if closed.code == _ACCESS_REFUSED:
            return NotPermitted(
                f"user '{self._access.credentials.username}' may not catch canaries: {closed.text}",
                fix=f"see what it needs: delayctl permissions {argument(self._file)} --role verifier",
            )
        if closed.code == _PRECONDITION_FAILED:
            delete = command("rabbitmqctl", "delete_queue", "-p", self._access.vhost or "/", queue)
            fix = f"delete it, nothing but canaries is in it: {delete}"
            return Refused(f"{queue} is there, and is another queue: {closed.text}", code=closed.code, fix=fix)
        return Refused(
            closed.text, code=closed.code, fix=f"declare the topology: delayctl apply {argument(self._file)}"
        )

    def close(self, *, keep: bool) -> None:
        """Disconnect; the queue is removed unless it shall stay for those that are still on their way, or was there before."""
        try:
            if not keep and not self._was_there:
                name = short_string(self._names.verify_queue())
                self._connection.call(_QUEUE_DELETE, _TICKET + name + b"\x00", _QUEUE_DELETE_OK)
        except ClosedByBroker as closed:
            raise self._refusal(closed) from closed
        except (OSError, ValueError, struct.error) as error:
            raise _lost(error) from error
        finally:
            self._connection.close()

    def caught(self, patience_s: float) -> list[Delivery]:
        """What has come; waits so long for the first. Raises Unreachable where the connection is lost."""
        poller = select.poll()
        poller.register(self._connection.fileno(), select.POLLIN)
        poller.poll(max(0.0, patience_s) * 1000)
        try:
            received = self._connection.received()
            self._keep_alive(heard=bool(received))
            return [delivery for frame in received if (delivery := self._take(frame))]
        except ClosedByBroker as closed:
            raise self._refusal(closed) from closed
        except (OSError, ValueError, struct.error) as error:
            raise _lost(error) from error

    def _take(self, frame: Frame) -> Delivery | None:
        kind, _, payload = frame
        if kind == frames.HEARTBEAT:
            return None
        method = frames.METHOD_ID.unpack_from(payload) if kind == frames.METHOD else None
        if method in (frames.CLOSE_CONNECTION, frames.CLOSE_CHANNEL):
            raise self._connection.closed(frame)
        if method == frames.CANCEL:
            raise ConnectionResetError("its queue was deleted")
        return self._inbox.take(frame) if method is None or method == _DELIVER else None

    def _keep_alive(self, *, heard: bool) -> None:
        now, interval = time.monotonic(), self._connection.heartbeat_s
        self._heard = now if heard else self._heard
        if now - self._spoke > interval / 2:
            self._connection.send_now(frames.HEARTBEAT_FRAME)
            self._spoke = now
        if now - self._heard > 2 * interval:
            raise TimeoutError(f"the broker was silent for {2 * interval} s")


def _lost(error: Exception) -> Unreachable:
    return Unreachable(f"the connection that catches canaries was lost: {error}", fix="run it again")
