"""A RocketMQ broker in virtual time: start, put, schedule, shut down, crash."""

from collections.abc import Callable, Sequence

from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rocketmq_codes import STORED_LATE, BrokerStartError, MQClientError, PutMessageStatus
from delayctl.simulator.rocketmq_directory import Directory
from delayctl.simulator.rocketmq_faults import Faults
from delayctl.simulator.rocketmq_levels import DEFAULT_MESSAGE_DELAY_LEVEL, parse_delay_level
from delayctl.simulator.rocketmq_log import (
    BrokerState,
    Consumed,
    Delivery,
    Discarded,
    Event,
    PutFailed,
    Stored,
    delivery,
)
from delayctl.simulator.rocketmq_message import (
    DELAY,
    SCHEDULE_TOPIC,
    TAGS,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    WAIT,
    MessageExt,
    tags_code,
)
from delayctl.simulator.rocketmq_profiles import P6, Profile
from delayctl.simulator.rocketmq_put import TIMER_PROPERTIES, is_delayable, schedule_message
from delayctl.simulator.rocketmq_schedule import ScheduleMessageService
from delayctl.simulator.rocketmq_store import DEFAULT_TOPIC_QUEUES, Store
from delayctl.simulator.rocketmq_timer import (
    TIMER_DEFAULTS,
    TIMER_TOPIC,
    TimerConfig,
    TimerMessageStore,
    is_timer_message,
)

PUT_OK = PutMessageStatus.PUT_OK
QueueChooser = Callable[[int], int]


def first_queue(_queues: int) -> int:
    """The retry queue of a failed message: RocketMQ draws one, here it is the first unless another chooser is given."""
    return 0


class Broker(Directory):
    """A broker that runs from the moment it is made. `log` holds (time, event), `deliveries` what listeners saw.

    With log=False both stay empty: a long run needs memory for what waits only.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        profile: Profile = P6,
        message_delay_level: str = DEFAULT_MESSAGE_DELAY_LEVEL,
        flush_delay_offset_interval: int = 10_000,
        default_topic_queues: int = DEFAULT_TOPIC_QUEUES,
        enable_schedule_async_deliver: bool = False,
        timer: TimerConfig = TIMER_DEFAULTS,
        choose_retry_queue: QueueChooser = first_queue,
        log: bool = True,
        keep_consumed: bool = False,
    ) -> None:
        self.clock = clock
        self.profile = profile
        super().__init__(Store(), default_topic_queues)
        self.faults = Faults()
        self.log: list[tuple[int, Event]] = []
        self.deliveries: list[Delivery] = []
        self.is_logging = log
        self.keeps_consumed = keep_consumed
        self._is_5 = profile.is_5
        self._strips_wait = profile.strips_wait
        self.is_running = False
        self.choose_retry_queue = choose_retry_queue
        self._flush_interval = flush_delay_offset_interval
        self._message_delay_level = message_delay_level
        self.timer = TimerMessageStore(self, timer)
        self._is_async = enable_schedule_async_deliver
        clock.watch_wall(self._wall_set)
        self.start()

    def start(self, *, message_delay_level: str | None = None) -> None:
        """Start the broker again, perhaps with other levels; a level string that cannot be read ends it with -3."""
        if self.is_running:
            raise MQClientError("the broker runs already", fix="call shutdown() or crash() first")
        text = self._message_delay_level if message_delay_level is None else message_delay_level
        levels = parse_delay_level(text)
        if not levels.ok:
            raise BrokerStartError(f"messageDelayLevel cannot be read: {text!r} ({levels.error})", -3)
        self._message_delay_level = text
        self.schedule = ScheduleMessageService(self, levels, self._flush_interval, is_async=self._is_async)
        self.is_running = True
        self.timer.start()
        self.note(BrokerState("started"))
        self.rebalance()

    def shutdown(self) -> None:
        """Stop cleanly: nothing is lost, and releases from 4.9.3 on write their offsets."""
        self._stop("shut down", is_clean=True)

    def crash(self) -> None:
        """Stop at once: what was recorded since the offsets were last written is forgotten."""
        self._stop("crashed", is_clean=False)

    def _stop(self, state: str, *, is_clean: bool) -> None:
        if self.is_running:
            self.is_running = False
            self.schedule.stop(is_clean=is_clean)
            self.timer.stop()
            self.note(BrokerState(state))

    def _wall_set(self, before: int, after: int) -> None:
        if self.is_running:
            self.schedule.wall_set(before, after)
            self.timer.wall_set()

    @property
    def delay_offset_file(self) -> dict[int, int]:
        """What `delayOffset.json` holds now: level to the offset at which delivery goes on after a crash."""
        if self.is_running:
            self.schedule.write_due()
        return self.store.delay_offsets

    def note(self, event: Event) -> None:
        """Write an event to the log."""
        if self.is_logging:
            self.log.append((self.clock.now, event))

    def note_consumed(self, group: str, messages: Sequence[MessageExt]) -> None:
        """Write to the log and to `deliveries` that a listener is given messages."""
        if not self.is_logging:
            return
        for seen in messages:
            self.note(Consumed(group, seen.topic, seen.body, seen.reconsume_times))
            self.deliveries.append(delivery(self.clock.now, group, seen))

    def receive(self, message: MessageExt) -> PutMessageStatus:
        """Store what a client sends; 4.9 spares itself the property that only the sender's waiting depends on."""
        status = self.put(message)
        if self._strips_wait and message.topic != SCHEDULE_TOPIC:
            message.properties.pop(WAIT, None)
        return status

    def put(self, message: MessageExt) -> PutMessageStatus:
        """Store a message, or let it wait first if it has a delay level."""
        if not self.is_running:
            return PutMessageStatus.SERVICE_NOT_AVAILABLE
        properties = message.properties
        if self._is_5 and (
            TIMER_DELAY_SEC in properties or TIMER_DELAY_MS in properties or TIMER_DELIVER_MS in properties
        ):
            refused = self._to_wheel(message)
            if refused is not None:
                return refused
        delay = properties.get(DELAY)
        if delay is not None:
            level = schedule_message(message, delay, self.schedule.levels)
            if level is not None:
                return self._append_scheduled(message, level)
        message.tags_code = tags_code(properties.get(TAGS))
        status = self.append(message, self.clock.wall)
        if message.topic == TIMER_TOPIC and status is PUT_OK:
            self.timer.arrived(message)
        return status

    def put_batch(self, container: MessageExt, messages: Sequence[MessageExt]) -> PutMessageStatus:
        """Store messages that were sent together; a container that asks for a delay is refused."""
        if container.delay_time_level > 0:
            return PutMessageStatus.MESSAGE_ILLEGAL
        statuses = [self.receive(message) for message in messages]
        return next((status for status in statuses if status is not PUT_OK), PUT_OK)

    def _to_wheel(self, message: MessageExt) -> PutMessageStatus | None:
        """Let a timer message wait in the wheel, or refuse it; a level above 0 wins over a time."""
        if message.delay_time_level > 0:
            for name in TIMER_PROPERTIES:
                message.properties.pop(name, None)
        if not is_delayable(message) or not is_timer_message(message):
            return None
        return self.timer.transform(message)

    def _append_scheduled(self, message: MessageExt, level: int) -> PutMessageStatus:
        if level == 0:
            self.note(Discarded(SCHEDULE_TOPIC, message.body, "the broker has no level at all"))
            return PUT_OK
        wall = self.clock.wall
        schedule = self.schedule
        message.tags_code = schedule.levels.deliver_timestamp(level, wall)
        status = self.append(message, wall)
        if schedule.tasks[level].timer is None:
            schedule.arrived(level)
        return status

    def append(self, message: MessageExt, wall: int, *, waits: bool = True) -> PutMessageStatus:
        """Append a message to its queue and wake who reads there; `waits` for flush and replica unless told otherwise."""
        status = PUT_OK
        if self.faults.put is not None:
            status = self._faulty(message, waits)
            if status not in STORED_LATE and status is not PUT_OK:
                return status
        store = self.store
        queues = store.topics.get(message.topic)
        if queues is None or message.queue_id >= len(queues):
            queues = self.queues_for(message)
        queue = queues[message.queue_id]
        messages = queue.messages
        message.store_timestamp = wall
        message.queue_offset = queue.base + len(messages)
        message.commit_log_offset = store.commit_log_offset
        store.commit_log_offset += 1
        messages.append(message)
        if self.is_logging:
            self.note(Stored(message.topic, message.queue_id, message.body, message.reconsume_times))
        for reader in queue.readers:
            if not reader.is_woken:
                reader.wake()
        return status

    def _faulty(self, message: MessageExt, waits: bool) -> PutMessageStatus:
        assert self.faults.put is not None
        status = self.faults.put(message) or PUT_OK
        if status in STORED_LATE:
            return status if waits else PUT_OK
        if status is not PUT_OK:
            self.note(PutFailed(message.topic, message.queue_id, message.body, status))
        return status
