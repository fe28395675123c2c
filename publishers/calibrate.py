"""Fills a queue of its own, step by step, and reads what a waiting message takes of the broker; then removes it.

Nothing else is touched: the queue has no dead-letter exchange, so what is in it goes with it; and where this process is
killed, the broker removes it by itself when it has been idle for long enough.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from delayctl.publishers.choice import Way, Ways
from delayctl.publishers.clock import epoch_ms
from delayctl.publishers.errors import NotConfirmed
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.access import Access
from delayctl.topology.amqp import AmqpSession
from delayctl.topology.arguments import LAZY
from delayctl.topology.calibration import FEWEST, Budget, Calibration, Reading
from delayctl.topology.duration import Duration
from delayctl.topology.effective import effective
from delayctl.topology.errors import BrokerError, DelayctlError
from delayctl.topology.footprint import Shape, footprint_of
from delayctl.topology.gauge import Gauge, NodeRoom, read_gauge, read_rooms
from delayctl.topology.live import Live
from delayctl.topology.management import Management
from delayctl.topology.model import Queue, Settings
from delayctl.topology.names import Names
from delayctl.topology.wording import plural

_WAIT = Duration.parse("1d")  # Messages carry the moment they expire, as they do in a delay; none comes to it.
_IDLE_MS = 15_000  # How long the queue outlives the time that a calibration may take, where nobody removes it.
_AT_ONCE = 1_000
_CONFIRM_S = 10.0
_FILLING_SHARE = 0.6  # Of the time; the rest is for the figures to come to rest.
_LOOK_S = 0.5
_STEADY_LOOKS = 3
_SETTLING_S = 20.0
_MOST_OF_ROOM = 0.25  # A calibration takes no more of what a node has left.
_NO_EXCHANGE = Ways("amq.direct", ())  # Messages go to the queue by its name.

Tell = Callable[[str], None]


def calibrate(
    access: Access, management: Management, shape: Shape, *, body: int, budget: Budget, prefix: str, tell: Tell
) -> Calibration:
    """Measure what a message with a body of so many bytes takes in a queue of this shape, or raise with the reason."""
    steps, version = budget.steps(body), management.version()
    if not steps:
        raise DelayctlError(
            f"{plural(budget.messages, 'message')} of {body:,} bytes are not enough to measure anything",
            fix=f"allow at least {FEWEST} (--calibrate-messages), or measure with smaller bodies (--size)",
        )
    check_room(read_rooms(management), steps[-1], footprint_of(shape, version).disk_of(body) * 2)
    with _temporary_queue(access, management, shape, prefix, budget) as queue:
        filling = _Filling(access, management, queue, body, budget.seconds, tell)
        node = filling.run(steps)
    readings = tuple(filling.readings)
    is_whole = readings[-1].messages == steps[-1]
    if readings[-1].messages < FEWEST:
        raise DelayctlError(
            f"time was up after {plural(readings[-1].messages, 'message')}, too few to measure anything",
            fix="allow more time: --calibrate-time",
        )
    return Calibration(shape, version, node, body, readings, filling.filling_s, filling.is_settled, is_whole)


def check_room(rooms: tuple[NodeRoom, ...], messages: int, each: int) -> None:
    """Raise where a node has an alarm, or too little room for so many messages."""
    for room in rooms:
        if room.has_alarm:
            raise DelayctlError(
                f"node {room.name} has an alarm: it is short of memory or disk and takes no messages",
                fix="let consumers catch up, or give it more; then calibrate",
            )
        left, what = min((room.memory_left, "memory"), (room.disk_left, "disk"))
        if messages * each > left * _MOST_OF_ROOM:
            raise DelayctlError(
                f"node {room.name} has {left:,} bytes of {what} left: too little to try {messages:,} messages on it",
                fix=f"try fewer: --calibrate-messages {int(left * _MOST_OF_ROOM) // each}",
            )


@contextmanager
def _temporary_queue(
    access: Access, management: Management, shape: Shape, prefix: str, budget: Budget
) -> Iterator[str]:
    settings = Settings(
        type="quorum" if shape == "quorum" else "classic",
        ttl=_WAIT,
        # Publishing is no use in the broker's eyes: it counts from the beginning, so this is how long it has.
        expires=Duration(int(budget.seconds * 1000) + _IDLE_MS),
    )
    queue = Queue(Names(prefix).calibration(secrets.token_hex(4)), settings, extra=(LAZY,) if shape == "lazy" else ())
    check_policies(queue, management.read(prefix))
    with AmqpSession(access) as session:
        session.put(queue)
        try:
            yield queue.name
        finally:
            # What ended the run says more than that the queue, which goes by itself, could not be removed at once.
            with suppress(BrokerError):
                session.delete_queue(queue.name, guarded=False)


def check_policies(queue: Queue, live: Live) -> None:
    """Raise where a policy would have a say: what it pushes out of the queue would come out among real messages."""
    found = effective(queue, live.policies, live.operator_policies)
    if found.settings != queue.settings:
        names = [policy.name for policy in (found.policy, found.operator_policy) if policy]
        raise DelayctlError(
            f"the queue to calibrate with, {queue.name}, would not be as it has to: by the policy {' and '.join(names)}",
            fix="narrow the pattern of the policy, or calibrate in another virtual host (--vhost)",
        )


@dataclass
class _Filling:
    """A queue that is being filled, and what was read meanwhile."""

    access: Access
    management: Management
    queue: str
    body: int
    seconds: float
    tell: Tell
    readings: list[Reading] = field(default_factory=list)
    filling_s: float = 0.0
    is_settled: bool = True
    last: "Rest | None" = None

    def run(self, steps: tuple[int, ...]) -> str:
        """Read, fill, read again, until all steps are made or time is up; gives the node of the queue."""
        started = time.monotonic()
        deadline, enough = started + self.seconds, started + self.seconds * _FILLING_SHARE
        publisher = DelayPublisher(self.access, topology=_NO_EXCHANGE, name="delayctl capacity", give_up_after_s=10)
        try:
            self._read(0, deadline)
            for count in steps:
                self._read(self._fill(publisher, count, enough), deadline)
                if time.monotonic() > enough:
                    break
        finally:
            with suppress(NotConfirmed):
                publisher.close(0)
        assert self.last is not None
        return self.last.gauge.node

    def _fill(self, publisher: DelayPublisher, count: int, enough: float) -> int:
        """Publish until so many wait, or time is up for it; gives how many wait."""
        waiting, started = self.readings[-1].messages, time.monotonic()
        way, content = Way("", "calibration", _WAIT.ms), b"x" * self.body
        while waiting < count and time.monotonic() < enough:
            batch = min(count - waiting, _AT_ONCE)
            for _ in range(batch):
                publisher.send(content, way, key=self.queue, due_ms=epoch_ms() + _WAIT.ms)
            self._confirm(publisher)
            waiting += batch
        self.filling_s += time.monotonic() - started
        return waiting

    def _confirm(self, publisher: DelayPublisher) -> None:
        try:
            publisher.flush(_CONFIRM_S)
        except NotConfirmed as error:
            why = "it is short of memory or disk" if publisher.is_blocked else error.what
            raise DelayctlError(
                f"the broker does not take the messages to calibrate with: {why}",
                fix="look at its alarms and its log, allow more time (--calibrate-time), or try fewer messages",
            ) from error

    def _read(self, count: int, deadline: float) -> None:
        seconds = min(_SETTLING_S, max(0.0, deadline - time.monotonic()))
        found = read_at_rest(self.management, self.queue, count, seconds, before=self.last)
        if found is None:
            raise DelayctlError(
                f"the management API says nothing of {plural(count, 'message')} in {self.queue}",
                fix="allow more time (--calibrate-time); a policy or a consumer on this queue would be another reason",
            )
        self.last, last = found, found.gauge.reading
        self.is_settled = self.is_settled and found.is_at_rest
        self.readings.append(last)
        self.tell(f"{count:,} wait: queue {last.queue:,} bytes, node {last.held:,} bytes for messages")


@dataclass(frozen=True, slots=True)
class Rest:
    """The last figures of a queue, and whether they had come to rest."""

    gauge: Gauge
    is_at_rest: bool


def read_at_rest(
    management: Management, queue: str, count: int, seconds: float, *, before: Rest | None = None
) -> Rest | None:
    """Wait until the figures speak of so many messages and no longer move; None where they never spoke of them.

    `before` is what this gave for fewer messages: since then a classic queue must have slept again.
    """
    end, steady = time.monotonic() + seconds, 0
    last: Gauge | None = None
    while steady < _STEADY_LOOKS:
        found = read_gauge(management, queue)
        if found and found.reading.messages == count:
            is_steady = last is not None and found.reading.is_steady_after(last.reading)
            steady = steady + 1 if is_steady and _has_slept(found, before) else 0
            last = found
        if time.monotonic() > end:
            break
        time.sleep(_LOOK_S)
    return Rest(last, steady >= _STEADY_LOOKS) if last else None


def _has_slept(found: Gauge, before: Rest | None) -> bool:
    if found.never_sleeps or before is None:  # One that is new has nothing to give back.
        return True
    return found.fell_asleep not in ("", before.gauge.fell_asleep)
