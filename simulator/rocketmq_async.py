"""Asynchronous delivery of a level (`enableScheduleAsyncDeliver`): put now, look at the results every ten milliseconds."""

from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from delayctl.simulator.clock import Timer, VirtualClock
from delayctl.simulator.rocketmq_codes import PutMessageStatus
from delayctl.simulator.rocketmq_faults import Faults, JavaException
from delayctl.simulator.rocketmq_message import MessageExt
from delayctl.simulator.rocketmq_profiles import Profile
from delayctl.simulator.rocketmq_timeup import Ending, time_up

DELAY_FOR_A_SLEEP = 10
FIRST_LOOK = 1_000
MAX_PENDING_LIMIT = 2_000
MAX_RESEND_NUM_TO_BLOCKED = 3
MAX_RESEND_OF_LOST = 6
LONGEST_PAUSE = 60_000


class Outcome(Enum):
    """What is known of a put."""

    RUNNING = auto()
    SUCCESS = auto()
    FAILED = auto()


class PutProcess:
    """A message that was put, and has not been reported done."""

    __slots__ = ("message", "outcome", "resends")

    def __init__(self, message: MessageExt) -> None:
        self.message = message
        self.outcome = Outcome.RUNNING
        self.resends = 0


def accepts(pending: int, head_resends: int) -> bool:
    """Whether a level takes another message: not with too many under way, nor behind one that fails again and again."""
    return pending <= MAX_PENDING_LIMIT and head_resends <= MAX_RESEND_NUM_TO_BLOCKED


class Target(Protocol):
    """The broker, as far as it is needed here."""

    clock: VirtualClock
    profile: Profile
    faults: Faults

    def append(self, message: MessageExt, wall: int, *, waits: bool = True) -> PutMessageStatus:
        """Append a message to its queue, at a time of the wall clock."""


class AsyncDeliver:
    """The puts under way, level by level; offsets are recorded in order, whatever is done first."""

    def __init__(self, broker: Target, record: Callable[[int, int], None]) -> None:
        self._broker = broker
        self._clock = broker.clock
        self._record = record
        self._pending: dict[int, deque[PutProcess]] = {}
        self._looks: dict[int, Timer] = {}
        self._first_look = self._clock.now + FIRST_LOOK

    def deliver(self, level: int, message: MessageExt) -> Ending | None:
        """Put a message and don't wait; a level that takes no more says so as a failed put does."""
        pending = self._pending.setdefault(level, deque())
        if not accepts(len(pending), pending[0].resends if pending else 0):
            return Ending.PUT_FAILED
        process = PutProcess(message)
        pending.append(process)
        self._put(process)
        self._look_later(level, 0)
        return None

    def stop(self) -> None:
        """Forget everything that is under way."""
        for timer in self._looks.values():
            self._clock.cancel(timer)
        self._pending.clear()

    def _put(self, process: PutProcess) -> None:
        try:
            status = self._broker.append(time_up(process.message), self._clock.wall, waits=False)
        except JavaException:
            process.outcome = Outcome.FAILED
            return
        outcome = Outcome.SUCCESS if status is PutMessageStatus.PUT_OK else Outcome.FAILED
        takes = self._broker.faults.put_takes
        if takes is None or (wait := takes(process.message)) == 0:
            process.outcome = outcome
        else:
            process.outcome = Outcome.RUNNING
            self._clock.after(wait, lambda: setattr(process, "outcome", outcome))

    def _look_later(self, level: int, wait: int) -> None:
        """Look at a level's results at the next of the ten-millisecond ticks, or after a longer wait."""
        timer = self._looks.get(level)
        if timer is not None and timer.is_pending:
            return
        time = max(self._clock.now + wait, self._first_look)
        time += -(time - self._first_look) % DELAY_FOR_A_SLEEP
        self._looks[level] = self._clock.at(time, lambda: self._look(level))

    def _look(self, level: int) -> None:
        """Take what is done off the head of the line; a failed put is repeated after a pause that grows."""
        pending = self._pending[level]
        while pending and pending[0].outcome is Outcome.SUCCESS:
            self._record(level, pending.popleft().message.queue_offset + 1)
        if not pending:
            return
        head = pending[0]
        if head.outcome is Outcome.RUNNING:
            self._look_later(level, DELAY_FOR_A_SLEEP)
            return
        pause = min((head.resends + self._broker.profile.first_resend_pause) * 100, LONGEST_PAUSE)
        self._clock.after(pause, lambda: self._resend(level, head))

    def _resend(self, level: int, process: PutProcess) -> None:
        pending = self._pending.get(level)
        if not pending or pending[0] is not process:
            return
        process.resends += 1
        lookup = self._broker.faults.lookup
        if lookup is not None and not lookup(process.message):
            # The message itself can't be found: tried a few times more, then given up.
            if process.resends > MAX_RESEND_OF_LOST:
                pending.popleft()
        else:
            self._put(process)
        self._look_later(level, 0)
