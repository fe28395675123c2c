"""RocketMQ's ScheduleMessageService: one task per level, which delivers what is due in the order in which it was stored."""

from typing import Protocol

from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rocketmq_async import AsyncDeliver
from delayctl.simulator.rocketmq_codes import PutMessageStatus
from delayctl.simulator.rocketmq_faults import Faults, JavaError, JavaException
from delayctl.simulator.rocketmq_levels import DelayLevels, queue_id_of, wrapped
from delayctl.simulator.rocketmq_log import Discarded, Event
from delayctl.simulator.rocketmq_message import HALF_TOPIC, REAL_TOPIC, SCHEDULE_TOPIC, MessageExt
from delayctl.simulator.rocketmq_offsets import DelayOffsets, corrected
from delayctl.simulator.rocketmq_pace import (
    DELAY_FOR_A_WHILE,
    FIRST_DELAY_TIME,
    CountdownPace,
    GridPace,
    LevelTask,
    Pace,
)
from delayctl.simulator.rocketmq_profiles import OnError, Profile, Recording
from delayctl.simulator.rocketmq_store import ConsumeQueue, Store
from delayctl.simulator.rocketmq_timeup import Ending, time_up

PUT_OK = PutMessageStatus.PUT_OK
DELAY_FOR_A_PERIOD = 10_000
CONSUME_QUEUE_FILE_ENTRIES = 300_000


_ON_EXCEPTION = {
    OnError.DROP_AT_ONCE: Ending.PASSED_OVER,
    OnError.BLOCK: Ending.BLOCKED,
    OnError.DROP: Ending.DROPPED,
}


class Run:
    """One run of a level's task: where it began, how far it came, and what follows the last message that it delivered."""

    __slots__ = ("delivered", "reached", "start")

    def __init__(self, start: int) -> None:
        self.start = self.reached = self.delivered = start


class Target(Protocol):
    """The broker, as far as the schedule service needs it."""

    clock: VirtualClock
    store: Store
    profile: Profile
    faults: Faults
    keeps_consumed: bool

    def append(self, message: MessageExt, wall: int, *, waits: bool = True) -> PutMessageStatus:
        """Append a message to its queue, at a time of the wall clock."""

    def note(self, event: Event) -> None:
        """Write an event to the log."""


class ScheduleMessageService:
    """Delivers what waits in SCHEDULE_TOPIC_XXXX, from the start of a broker to its end."""

    def __init__(self, broker: Target, levels: DelayLevels, flush_interval: int, *, is_async: bool = False) -> None:
        self._broker = broker
        self._clock = broker.clock
        self._faults = broker.faults
        self._profile = broker.profile
        self._pace: Pace = CountdownPace(self._clock) if self._profile.exact_countdown else GridPace(self._clock)
        self.levels = levels
        self._async = (
            AsyncDeliver(broker, self._note_offset) if is_async and not self._profile.exact_countdown else None
        )
        self.offsets = DelayOffsets(broker.store.delay_offsets, self._pace.time(), flush_interval)
        self.tasks = {level: self._task(level, delay) for level, delay in levels.table.items()}
        for task in self.tasks.values():
            self._plan(task)

    def _task(self, level: int, delay: int) -> LevelTask:
        queue = self._queue(level)
        recorded = self.offsets.recorded
        if level in recorded and self._profile.corrects_offsets:
            recorded[level] = corrected(recorded[level], queue.base, queue.max_offset)
        return LevelTask(level, delay, queue, recorded.get(level, 0), self._pace.time() + FIRST_DELAY_TIME)

    def _queue(self, level: int) -> ConsumeQueue:
        queue_id = queue_id_of(level)
        return self._broker.store.create(SCHEDULE_TOPIC, queue_id + 1)[queue_id]

    def arrived(self, level: int) -> None:
        """A message was stored in a level's queue, for which no run is planned."""
        self._plan(self.tasks[level])

    def stop(self, *, is_clean: bool) -> None:
        """End all tasks; a clean stop writes the offsets where the release does so."""
        if self._async is not None:
            self._async.stop()
        for task in self.tasks.values():
            self._unplan(task)
            task.is_dead = True
        self.offsets.catch_up(self._pace.time())
        if is_clean and self._profile.persists_at_shutdown:
            self.offsets.write()

    def wall_set(self, before: int, after: int) -> None:
        """The wall clock was set: judge anew when every level runs next."""
        if self._profile.exact_countdown:
            self.offsets.catch_up(before)
        tasks = [task for task in self.tasks.values() if not task.is_dead]
        self._pace.wall_set(tasks, before, after, self.offsets.next_write)
        for task in tasks:
            self._unplan(task)
            self._plan(task)

    def write_due(self) -> None:
        """Bring the offset file to the present, and forget what no crash can bring back."""
        if self.offsets.catch_up(self._pace.time()):
            self._trim()

    def _plan(self, task: LevelTask) -> None:
        queue = task.queue
        waiting = queue.base + len(queue.messages) - task.offset
        # An offset beyond the queue's end is moved back by a run, except where the release forgot to.
        if task.is_dead or waiting == 0 or (waiting < 0 and not self._profile.corrects_in_run):
            return
        if self._profile.records_not_due and task.level not in self.offsets.recorded:
            self._note_offset(task.level, task.offset)
        task.timer = self._clock.at(self._pace.next_run(task), lambda: self._run(task))

    def _unplan(self, task: LevelTask) -> None:
        if task.timer is not None:
            self._clock.cancel(task.timer)
            task.timer = None

    def _run(self, task: LevelTask) -> None:
        task.timer = None
        run = Run(task.offset)
        try:
            wait = self._conclude(task, run, self._walk(task, run))
        except JavaError:
            wait = self._struck(task, run)
        self._pace.ran(task, wait)
        self._plan(task)

    def _walk(self, task: LevelTask, run: Run) -> Ending:
        """Deliver from the task's offset on as long as messages are due."""
        queue = task.queue
        messages, base = queue.messages, queue.base
        if not base <= run.start <= queue.max_offset:
            run.reached = corrected(run.start, base, queue.max_offset)
            return Ending.EXHAUSTED
        wall = self._clock.wall
        horizon = wrapped(wall + task.delay)
        file_end = (run.start // CONSUME_QUEUE_FILE_ENTRIES + 1) * CONSUME_QUEUE_FILE_ENTRIES
        for index in range(run.start - base, min(len(messages), file_end - base)):
            message = messages[index]
            if wall < message.tags_code <= horizon:
                return Ending.NOT_DUE
            ending = self._deliver(task, message, wall)
            if ending is None:
                run.delivered = run.reached = message.queue_offset + 1
            elif ending is Ending.PASSED_OVER:
                run.reached = message.queue_offset + 1
            else:
                return ending
        return Ending.EXHAUSTED

    def _deliver(self, task: LevelTask, message: MessageExt, wall: int) -> Ending | None:
        """Deliver one message that is due; None if that is done."""
        if self._faults.lookup is not None and (ending := self._look_up(message)) is not None:
            return ending
        if message.properties[REAL_TOPIC] == HALF_TOPIC:
            self._broker.note(Discarded(HALF_TOPIC, message.body, "a half message must not be delayed"))
            return Ending.PASSED_OVER
        if self._async is not None:
            return self._async.deliver(task.level, message)
        try:
            status = self._broker.append(time_up(message), wall, waits=False)
        except JavaException:
            return _ON_EXCEPTION[self._profile.on_error]
        return None if status is PUT_OK else Ending.PUT_FAILED

    def _look_up(self, message: MessageExt) -> Ending | None:
        assert self._faults.lookup is not None
        try:
            is_there = self._faults.lookup(message)
        except JavaException:
            ending = _ON_EXCEPTION[self._profile.on_error]
            return Ending.BROKEN_OFF if ending is Ending.PASSED_OVER else ending
        if not is_there:
            self._broker.note(Discarded(message.topic, message.body, "the commit log no longer has it"))
        return None if is_there else Ending.PASSED_OVER

    def _conclude(self, task: LevelTask, run: Run, ending: Ending) -> int:
        """Record what the run has done and set the offset of the next; answers with the wait until then."""
        profile = self._profile
        if ending is Ending.BROKEN_OFF:
            return DELAY_FOR_A_PERIOD
        self._record(task, run, ending)
        task.offset = run.reached
        if ending is Ending.PUT_FAILED:
            task.offset += profile.failed_put_skips
            return profile.failed_put_wait
        if ending is Ending.DROPPED:
            task.offset += 1
        if ending is Ending.NOT_DUE and profile.exact_countdown:
            assert task.head_due is not None
            return task.head_due - self._clock.wall
        return DELAY_FOR_A_WHILE

    def _note_offset(self, level: int, offset: int) -> None:
        if self.offsets.record(level, offset, self._pace.time()):
            self._trim()

    def _record(self, task: LevelTask, run: Run, ending: Ending | None) -> None:
        offset = self._offset_to_record(run, ending)
        if offset is not None:
            self._note_offset(task.level, offset)

    def _offset_to_record(self, run: Run, ending: Ending | None) -> int | None:
        if self._async is not None:
            return None  # The results are recorded as they come.
        is_any = run.delivered > run.start
        match self._profile.recording:
            case Recording.RUN_END:
                return None if ending is None else run.reached
            case Recording.RUN_START:
                return run.start + 1 if is_any else None
            case Recording.LAST_DELIVERED:
                if ending is Ending.NOT_DUE and self._profile.records_not_due:
                    return run.reached
                return run.delivered if is_any else None

    def _struck(self, task: LevelTask, run: Run) -> int:
        """A Java `Error` leaves the run: it ends the thread, the level or only the run, as the release has it."""
        self._record(task, run, None)
        if self._profile.exact_countdown:
            for every in self.tasks.values():
                every.is_dead = True
                self._unplan(every)
        task.is_dead = not self._profile.survives_java_error
        return DELAY_FOR_A_PERIOD

    def _trim(self) -> None:
        if self._broker.keeps_consumed:
            return
        for level, offset in self._broker.store.delay_offsets.items():
            if task := self.tasks.get(level):
                task.queue.trim(min(offset, task.offset))
