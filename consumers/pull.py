"""Messages of one queue, taken so many at a time and held until each is answered; what is given back keeps its place.

Each block is taken by a consumer of its own, whose prefetch is the size of the block, and which is cancelled when the
block is there: so no more are taken than were asked for, however many are held, and none comes a second time. Asking
for them one by one (basic.get) would be simpler, but quorum queues put back in any order what was taken in that way.
"""

import select
import struct
import time
from collections.abc import Iterable
from types import TracebackType

from delayctl.consumers.acks import Acks
from delayctl.consumers.back import await_back
from delayctl.consumers.blocks import MOST_BYTES
from delayctl.consumers.inbox import Delivery, Inbox
from delayctl.consumers.refusal import refusal
from delayctl.consumers.uninterrupted import uninterrupted
from delayctl.publishers import frames
from delayctl.publishers.connection import ClosedByBroker, Connection
from delayctl.publishers.frames import CHANNEL, Frame
from delayctl.topology.access import Access
from delayctl.topology.errors import NotPermitted, Refused, Unreachable
from delayctl.topology.wording import quoted

_DELIVER, _CANCEL_OK = (frames.BASIC, frames.DELIVER), (frames.BASIC, 31)
_CLOSES = (frames.CLOSE_CONNECTION, frames.CLOSE_CHANNEL)
_NACK = (frames.BASIC, frames.NACK)
_REQUEUE, _ALL_OF_THEM = 2, 1
_SILENCE_S, _SILENCES = 0.1, 50  # A queue that has messages and gives none for so long gives them to somebody else.
_LOOK_AGAIN_S = 0.02
_READ_AT_MOST = 1 << 20  # Bytes, before they are looked at: a fast broker would fill the memory.
_LOST = (OSError, ValueError, struct.error)


class Pull:
    """A connection that takes messages out of one queue. `with` gives back what was not acknowledged, and closes it."""

    def __init__(self, access: Access, queue: str, *, name: str) -> None:
        self.queue = queue
        self._timeout_s = access.timeout_s
        self._user = access.credentials.username
        self.withheld = 0  # Messages that the queue had and did not give, when it was last asked for more.
        self._blocks = 0
        self._inbox = Inbox()
        self._acks = Acks(0)
        self._held: set[int] = set()
        self._connection = Connection(access, name=name)
        self._spoke = self._heard = time.monotonic()
        try:
            self._connection.open_channel(confirms=False)
            self.ready = self._count()  # When it began.
        except BaseException:
            self._connection.abort()
            raise
        self._connection.socket.setblocking(False)
        self._poller = select.poll()
        self._poller.register(self._connection.fileno(), select.POLLIN)

    def _count(self) -> int:
        """How many messages are ready."""
        try:
            ready = self._connection.check_queue(self.queue)
            self._connection.socket.setblocking(False)
            return ready
        except (ClosedByBroker, *_LOST) as error:
            raise self._lost(error) from error
        except Refused as error:
            if error.code != 404:
                raise
            fix = "check the name, --vhost and --url; delayctl apply declares what the file describes"
            raise Refused(f"there is no queue {quoted(self.queue)}", code=404, fix=fix) from error

    def __enter__(self) -> "Pull":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, Unreachable | Refused | NotPermitted):
            self._connection.abort()  # It is gone, and the broker has put everything back.
            return
        try:
            self.give_back()
        finally:
            self._connection.close()

    def take(self, most: int) -> list[Delivery]:
        """Take so many messages and hold them: fewer where the queue has no more, or where these are large enough."""
        self._blocks += 1
        tag = f"delayctl {self._blocks}"
        found: list[Delivery] = []
        try:
            self._connection.prefetch(most)
            self._connection.consume(self.queue, tag)
            self._connection.socket.setblocking(False)
            behind = self._collect(found, most)
            if behind is None:
                self._connection.cancel(tag)
                self._connection.socket.setblocking(False)
            else:
                self._turn_away(tag, behind)
        except ClosedByBroker as closed:
            raise self._ended(closed) from closed
        except _LOST as error:
            raise self._lost(error) from error
        self._spoke = time.monotonic()
        for delivery in found:
            delivery.queue = self.queue  # It knows its consumer alone.
            self._held.add(delivery.tag)
        return found

    def _collect(self, found: list[Delivery], most: int) -> list[Frame] | None:
        """Wait until all have come, or until the queue says again and again that it has no more.

        Gives the frames behind what is large enough; None where that is not the case.
        """
        size, silences, self.withheld = 0, 0, 0
        while len(found) < most and silences < _SILENCES:
            came = self._received(_SILENCE_S)
            for number, frame in enumerate(came, 1):
                if delivery := self._inbox.take(frame):
                    found.append(delivery)
                    size += len(delivery.body)
                    if size >= MOST_BYTES and len(found) < most:
                        return came[number:]
            self._beat()
            self.withheld = 0 if came else self._count()
            if came:
                silences = 0
            elif self.withheld:  # There are more, and they are slow to come, or others have them.
                silences += 1
            else:
                silences += _SILENCES // 2
        return None

    def _turn_away(self, tag: str, frames: list[Frame]) -> None:
        """End a consumer that gives more than can be held; what is on its way is given back, and none of it is kept."""
        self._send(self._connection.cancel_frame(tag, is_answered=True))
        surplus: list[int] = []
        until = time.monotonic() + self._timeout_s
        while not _is_over(frames):
            surplus += [delivery.tag for frame in frames if (delivery := self._inbox.take(frame))]
            if frames:
                until = time.monotonic() + self._timeout_s
            elif time.monotonic() > until:
                raise TimeoutError(f"the broker did not end a consumer within {self._timeout_s:g} s")
            frames = self._received(_SILENCE_S)
            self._beat()
        surplus += [delivery.tag for frame in frames[:-1] if (delivery := self._inbox.take(frame))]
        for each in surplus:
            self._acks.settle(each)
        self._send(b"".join(_nack(each, _REQUEUE) for each in surplus))

    def acknowledge(self, tags: Iterable[int]) -> None:
        """Have these removed from the queue."""
        done = set(tags)
        self._held -= done
        now = time.monotonic()
        self._acks.add(done, now)
        self._send(self._acks.take(now, all_of_them=True))

    def give_back(self) -> None:
        """Put all that is held back into its place; when this returns, the broker has done so."""
        held = len(self._held)
        if not held:
            return
        with uninterrupted():  # A broker that is given the same message twice hangs up.
            self._hand_over()
        await_back(held, self._count, lambda: self.rest(_LOOK_AGAIN_S), time.monotonic)

    def _hand_over(self) -> None:
        self._send(_nack(max(self._held), _REQUEUE | _ALL_OF_THEM))
        for tag in self._held:
            self._acks.settle(tag)
        self._held.clear()

    def rest(self, seconds: float) -> None:
        """Let time pass, and keep the connection alive."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._hear(min(left, self._connection.heartbeat_s / 4))

    def keep_alive(self) -> None:
        """Say that we are here, now and then; raises Unreachable where the broker is not."""
        self._hear(0)

    def _hear(self, seconds: float) -> None:
        """Listen while nothing was asked for: heartbeats, or a goodbye."""
        self._received(seconds)
        self._beat()

    def _beat(self) -> None:
        now, interval = time.monotonic(), self._connection.heartbeat_s
        if now - self._spoke > interval / 2:
            self._send(frames.HEARTBEAT_FRAME)
        if now - self._heard > 2 * interval:
            raise self._lost(TimeoutError(f"the broker was silent for {2 * interval} s"))

    def _received(self, patience_s: float) -> list[Frame]:
        """The frames that matter, waiting for them no longer than this."""
        try:
            received = self._connection.received(_READ_AT_MOST)  # Some may have come with the answer to something else.
            if not received and self._poller.poll(patience_s * 1000):
                received = self._connection.received(_READ_AT_MOST)
        except _LOST as error:
            raise self._lost(error) from error
        if received:
            self._heard = time.monotonic()
        return [frame for frame in received if self._matters(frame)]

    def _matters(self, frame: Frame) -> bool:
        kind, _, payload = frame
        if kind != frames.METHOD:
            return kind != frames.HEARTBEAT
        method = frames.METHOD_ID.unpack_from(payload)
        if method in _CLOSES:
            raise self._ended(self._connection.closed(frame))
        return method in (_DELIVER, _CANCEL_OK)

    def _ended(self, closed: ClosedByBroker) -> Refused | NotPermitted:
        return refusal(closed.code, closed.text, queue=self.queue, user=self._user)

    def _send(self, data: bytes) -> None:
        if not data:
            return
        try:
            self._connection.send_now(data)
        except _LOST as error:
            raise self._lost(error) from error
        self._spoke = time.monotonic()

    def _lost(self, error: Exception) -> Unreachable:
        fix = "run it again; what was not acknowledged is still there"
        return Unreachable(f"the connection was lost: {error}", fix=fix)


def _is_over(frames: list[Frame]) -> bool:
    """Say whether the broker has ended the consumer: nothing comes behind that."""
    return bool(frames) and _is_cancelled(frames[-1])


def _is_cancelled(frame: Frame) -> bool:
    kind, _, payload = frame
    return kind == frames.METHOD and frames.METHOD_ID.unpack_from(payload) == _CANCEL_OK


def _nack(tag: int, flags: int) -> bytes:
    return frames.method_frame(CHANNEL, _NACK, struct.pack(">QB", tag, flags))
