"""When a level's deliver task runs. Idle polls change nothing, so only the run that finds work is planned."""

from collections.abc import Sequence
from typing import Protocol

from delayctl.simulator.clock import Timer, VirtualClock
from delayctl.simulator.rocketmq_levels import wrapped
from delayctl.simulator.rocketmq_store import ConsumeQueue

FIRST_DELAY_TIME = 1_000
DELAY_FOR_A_WHILE = 100


class LevelTask:
    """One level: its queue, the offset at which the next run begins, and when that may be."""

    __slots__ = ("delay", "is_dead", "level", "next_poll", "offset", "planned", "queue", "set_to", "timer")

    def __init__(self, level: int, delay: int, queue: ConsumeQueue, offset: int, first_run: int) -> None:
        self.level = level
        self.delay = delay
        self.queue = queue
        self.offset = offset
        self.next_poll = first_run
        self.planned = self.set_to = first_run
        self.timer: Timer | None = None
        self.is_dead = False

    @property
    def head_due(self) -> int | None:
        """When the message at the offset is due; None where the offset points at none."""
        index = self.offset - self.queue.base
        messages = self.queue.messages
        return messages[index].tags_code if 0 <= index < len(messages) else None


def is_due(deliver_timestamp: int, now: int, delay: int) -> bool:
    """Whether a message is delivered now: it is due, or due later than its level can explain (`correctDeliverTimestamp`)."""
    return not now < deliver_timestamp <= wrapped(now + delay)


def _poll_after(first: int, time: int) -> int:
    """The first poll strictly after a time, of polls every 100 ms from a first one on."""
    if time < first:
        return first
    return time - (time - first) % DELAY_FOR_A_WHILE + DELAY_FOR_A_WHILE


class Pace(Protocol):
    """When the next run of a task is that finds something to do."""

    def time(self) -> int:
        """The time on the clock that runs are planned by."""

    def ran(self, task: LevelTask, wait: int) -> None:
        """A run has ended; the next one is so many milliseconds away."""

    def next_run(self, task: LevelTask) -> int:
        """The virtual time of the next run that matters."""

    def wall_set(self, tasks: Sequence[LevelTask], before: int, after: int, next_write: int) -> None:
        """The wall clock was set; `next_write` is when the offsets would have been written next."""


class GridPace:
    """Since 4.9.3: polls every 100 ms on a clock that nobody can set; a message waits for the poll after its due time."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def time(self) -> int:
        """Virtual time."""
        return self._clock.now

    def ran(self, task: LevelTask, wait: int) -> None:
        """Poll again after the wait."""
        task.next_poll = self._clock.now + wait

    def next_run(self, task: LevelTask) -> int:
        """The next poll, or the first one at which the head is due."""
        now = self._clock.now
        ahead = self._clock.wall - now
        poll = _poll_after(task.next_poll, now)
        due = task.head_due
        if due is None or is_due(due, poll + ahead, task.delay):
            return poll
        return _poll_after(poll, due - ahead - 1)

    def wall_set(self, tasks: Sequence[LevelTask], before: int, after: int, next_write: int) -> None:
        """Polls go on as before; what is due at them is worked out anew."""


class CountdownPace:
    """Up to 4.9.2: `java.util.Timer`. A head that is not due sets a timer to the millisecond, on the wall clock."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._asleep_until = clock.now  # Virtual time; later than now only after the wall clock was set.

    def time(self) -> int:
        """What the wall clock shows."""
        return self._clock.wall

    def ran(self, task: LevelTask, wait: int) -> None:
        """The timer is set to the wall clock's time after the wait."""
        task.next_poll = self._clock.wall + wait

    def next_run(self, task: LevelTask) -> int:
        """The poll that first sees the head, or the head's due time if that is later."""
        wall = self._clock.wall
        task.next_poll = poll = _poll_after(task.next_poll, wall)
        due = task.head_due
        task.planned = poll if due is None or is_due(due, poll, task.delay) else due
        return self._clock.now + task.planned - wall

    def wall_set(self, tasks: Sequence[LevelTask], before: int, after: int, next_write: int) -> None:
        """Every timer keeps its time of day, so after a step back all of them are late.

        The one thread sleeps until the earliest of them would have come, or the writing of offsets, which it does too; only
        then can it see a step forward.
        """
        pending = [self._pending(task, before) for task in tasks]
        now = self._clock.now
        if now >= self._asleep_until:
            self._asleep_until = now + min([*pending, next_write]) - before
        wakes_up = after + self._asleep_until - now
        for task, time in zip(tasks, pending, strict=True):
            task.set_to = time
            task.next_poll = max(time, wakes_up)

    def _pending(self, task: LevelTask, wall: int) -> int:
        """The time of day to which a task's timer is set."""
        if self._clock.now < self._asleep_until:
            return task.set_to
        if task.timer is None:
            return _poll_after(task.next_poll, wall)
        return task.next_poll if wall < task.next_poll else task.planned
