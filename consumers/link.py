"""One connection while it lasts: deliveries go out to the workers, and what they finish is told to the broker."""

import heapq
import logging
import select
import struct
import time
from collections.abc import Callable, Sequence

from delayctl.consumers.acks import Acks
from delayctl.consumers.finished import Finished
from delayctl.consumers.inbox import Delivery, Inbox
from delayctl.consumers.recorder import Recorder
from delayctl.publishers import frames
from delayctl.publishers.connection import Connection
from delayctl.publishers.frames import CHANNEL, Frame
from delayctl.topology.wording import quoted

_LOG = logging.getLogger("delayctl.consumer")
_DELIVER = (frames.BASIC, frames.DELIVER)
_CLOSES = (frames.CLOSE_CONNECTION, frames.CLOSE_CHANNEL)
# Both give a message back. A quorum queue takes what is rejected for failed: it counts it, and may let it wait.
_NACK, _REQUEUE = (frames.BASIC, frames.NACK), 2
_REJECT, _REQUEUE_REJECTED = (frames.BASIC, 90), 1
_LOOK_UP_EVERY_S = 0.1  # While it drains: there is an end to that, too.
_GIVE_BACK_AFTER_S = 1.0  # A message that can't be dealt with now is not offered again at once.

HandOut = Callable[[int, Sequence[Delivery]], None]


class Link:
    """A connection that consumes `queues`; its number tells its deliveries from those of an earlier one."""

    def __init__(
        self,
        number: int,
        connection: Connection,
        queues: Sequence[str],
        *,
        prefetch: int,
        finished: Finished,
        clock: Callable[[], int],
        recorder: Recorder | None = None,
    ) -> None:
        self._number = number
        self._connection = connection
        self._queues = queues
        self._finished = finished
        self._clock = clock
        self._recorder = recorder
        self._inbox = Inbox()
        self._acks = Acks(max(1, prefetch // 4))
        self._in_hand = 0
        self._later: list[tuple[float, int]] = []  # To be given back to the broker, and when.
        self.gone: set[str] = set()  # Queues that the broker has taken away.
        self._heard = self._spoke = time.monotonic()
        self._is_draining = False

    def serve(self, hand_out: HandOut, is_over: Callable[[], bool]) -> None:
        """Listen until it is over and everything in hand is finished; raises OSError or ClosedByBroker when lost."""
        self._connection.socket.setblocking(False)
        poller = select.poll()
        poller.register(self._connection.fileno(), select.POLLIN)
        poller.register(self._finished.fileno(), select.POLLIN)
        self._listen(hand_out)  # Deliveries may have come while the consumers were added.
        while True:
            patience_ms = self._patience_ms() if self._finished.announce(self._acks.wanted) else 0
            ready = {number for number, _ in poller.poll(patience_ms)}
            if self._connection.fileno() in ready:
                self._listen(hand_out)
            if self._finished.fileno() in ready:
                self._finished.hush()
            self._settle()
            self._keep_alive()
            if is_over() and self._is_drained():
                return

    @property
    def in_hand(self) -> int:
        """How many deliveries are not finished."""
        return self._in_hand

    def close(self) -> None:
        """Say goodbye."""
        self._connection.close()

    def abort(self) -> None:
        """Drop the connection without a word."""
        self._connection.abort()

    def _is_drained(self) -> bool:
        if not self._is_draining:
            self._is_draining = True
            self._send(b"".join(self._connection.cancel_frame(name) for name in self._queues if name not in self.gone))
            self._settle()
        return self._in_hand == 0

    def _patience_ms(self) -> int:
        patience = self._connection.heartbeat_s / 4 if not self._is_draining else _LOOK_UP_EVERY_S
        now = time.monotonic()
        if (gathering := self._acks.patience_s(now)) is not None:
            patience = min(patience, gathering)
        if self._later:
            patience = min(patience, self._later[0][0] - now)
        return max(0, int(1000 * patience) + 1)

    def _listen(self, hand_out: HandOut) -> None:
        deliveries: list[Delivery] = []
        received_ms = self._clock()
        for frame in self._connection.received():
            kind, _, payload = frame
            if kind == frames.METHOD:
                method = frames.METHOD_ID.unpack_from(payload)
                if method != _DELIVER:
                    self._other(frame, method)
                    continue
            elif kind == frames.HEARTBEAT:
                continue
            if delivery := self._inbox.take(frame):
                delivery.received_ms = received_ms
                deliveries.append(delivery)
        self._heard = time.monotonic()
        if deliveries and not self._is_draining:
            self._in_hand += len(deliveries)
            hand_out(self._number, deliveries)

    def _other(self, frame: Frame, method: tuple[int, ...]) -> None:
        if method in _CLOSES:
            raise self._connection.closed(frame)
        if method == frames.CANCEL:
            name, _ = frames.read_short_string(frame[2], 4)
            # The connection is still there, and what is in hand of other queues need not come again.
            _LOG.warning("the queue %s is gone; what is in hand is finished, then it is looked for", quoted(name))
            self.gone.add(name)

    def _settle(self) -> None:
        """Say what is finished, as soon as that is worth it."""
        now = time.monotonic()
        done = []
        rejected = b""
        for number, tag, answer in self._finished.take():
            if number != self._number:
                continue  # Of an earlier connection: the broker gives it again anyway.
            if answer == "done":
                done.append(tag)
            elif answer == "again":
                rejected += self._answer(tag, _REJECT, _REQUEUE_REJECTED)
            else:
                heapq.heappush(self._later, (now + _GIVE_BACK_AFTER_S, tag))
        self._in_hand -= len(done)
        self._acks.add(done, now)
        acknowledged = self._acks.take(now, all_of_them=self._is_draining)
        # Rejections come first: an acknowledgement may be of all up to a point.
        said = rejected + acknowledged + self._give_back(now)
        if said and self._recorder is not None:
            self._recorder.flush()  # Before the broker hears of it: what was not recorded comes again.
        self._send(said)

    def _give_back(self, now: float) -> bytes:
        said = b""
        while self._later and (self._later[0][0] <= now or self._is_draining):
            _, tag = heapq.heappop(self._later)
            said += self._answer(tag, _NACK, _REQUEUE)
        return said

    def _answer(self, tag: int, method: tuple[int, int], flags: int) -> bytes:
        """A frame about one delivery, which is out of our hands then."""
        self._acks.settle(tag)
        self._in_hand -= 1
        return frames.method_frame(CHANNEL, method, struct.pack(">QB", tag, flags))

    def _send(self, data: bytes) -> None:
        if data:
            self._connection.send_now(data)
            self._spoke = time.monotonic()

    def _keep_alive(self) -> None:
        now, interval = time.monotonic(), self._connection.heartbeat_s
        if now - self._spoke > interval / 2:
            self._send(frames.HEARTBEAT_FRAME)
        if now - self._heard > 2 * interval:
            raise TimeoutError(f"the broker was silent for {2 * interval} s")
