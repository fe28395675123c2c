"""RocketMQ 5.x: timer messages, delivered at any second instead of after a level."""

from dataclasses import dataclass
from typing import Protocol

from delayctl.simulator.clock import Timer, VirtualClock
from delayctl.simulator.rocketmq_codes import PutMessageStatus
from delayctl.simulator.rocketmq_levels import parse_long
from delayctl.simulator.rocketmq_log import Discarded, Event
from delayctl.simulator.rocketmq_message import (
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    UNIQ_KEY,
    MessageExt,
)
from delayctl.simulator.rocketmq_put import TIMER_PROPERTIES, set_aside
from delayctl.simulator.rocketmq_store import Store
from delayctl.simulator.rocketmq_timeup import time_up

RETRY_PUT_AFTER = 50
TIMER_TOPIC = "rmq_sys_wheel_timer"
TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY"


@dataclass(frozen=True, slots=True)
class TimerConfig:
    """A broker's settings for timer messages, with RocketMQ's defaults."""

    timer_wheel_enable: bool = True
    timer_precision_ms: int = 1_000
    timer_max_delay_sec: int = 259_200
    timer_roll_window_slot: int = 172_800


TIMER_DEFAULTS = TimerConfig()


def slot_of(deliver: int, precision: int) -> int:
    """The slot in which a message waits: the last one that begins before its time."""
    return deliver - precision if deliver % precision == 0 else deliver // precision * precision


def earliest_delivery(deliver: int, precision: int) -> int:
    """When a message is delivered: its time, rounded up to the precision."""
    return slot_of(deliver, precision) + precision


def is_timer_message(message: MessageExt) -> bool:
    """Whether a message asks for a time and has not been through the wheel yet."""
    properties = message.properties
    return TIMER_OUT_MS not in properties and any(name in properties for name in TIMER_PROPERTIES)


def deliver_time(message: MessageExt, now: int) -> int | None:
    """When a message asks to be delivered; None where that can't be read."""
    for name, base, unit in ((TIMER_DELAY_SEC, now, 1_000), (TIMER_DELAY_MS, now, 1), (TIMER_DELIVER_MS, 0, 1)):
        if (text := message.properties.get(name)) is not None:
            number = parse_long(text)
            return None if number is None else base + number * unit
    return None


class Target(Protocol):
    """The broker, as far as the wheel needs it."""

    clock: VirtualClock
    store: Store
    keeps_consumed: bool

    def append(self, message: MessageExt, wall: int, *, waits: bool = True) -> PutMessageStatus:
        """Append a message to its queue, at a time of the wall clock."""

    def note(self, event: Event) -> None:
        """Write an event to the log."""


class TimerMessageStore:
    """The wheel: what waits in it survives a crash, and is delivered in the order of its slots."""

    def __init__(self, broker: Target, config: TimerConfig) -> None:
        self._broker = broker
        self._clock = broker.clock
        self._config = config
        self._slots: dict[int, list[MessageExt]] = {}
        self._timers: dict[int, Timer] = {}
        self._is_running = False

    def start(self) -> None:
        """Turn the wheel; what became due meanwhile is delivered now."""
        self._is_running = True
        self._plan_all()

    def stop(self) -> None:
        """Hold the wheel."""
        self._is_running = False
        self._cancel_all()

    def wall_set(self) -> None:
        """The wall clock was set: slots come sooner or later than planned."""
        self._cancel_all()
        self._plan_all()

    def transform(self, message: MessageExt) -> PutMessageStatus | None:
        """Let a timer message wait in the wheel's topic; a status where it is refused, None otherwise."""
        if not self._config.timer_wheel_enable:
            return PutMessageStatus.WHEEL_TIMER_NOT_ENABLE
        now = self._clock.wall
        deliver = deliver_time(message, now)
        if deliver is None or deliver - now > self._config.timer_max_delay_sec * 1_000:
            return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL
        if deliver > now:
            message.properties[TIMER_OUT_MS] = str(slot_of(deliver, self._config.timer_precision_ms))
            set_aside(message, TIMER_TOPIC, 0)
        elif TIMER_DEL_UNIQKEY in message.properties:
            return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL
        return None

    def arrived(self, message: MessageExt) -> None:
        """A timer message was stored: put it into its slot, or into an earlier one from which it is rolled on."""
        waiting = message.copied(message.topic, 0, message.properties.copy())
        # The wheel's own clock, which knows no more than its precision.
        waiting.properties[TIMER_ENQUEUE_MS] = str(
            self._clock.wall - self._clock.wall % self._config.timer_precision_ms
        )
        self._enqueue(waiting)

    def _enqueue(self, message: MessageExt) -> None:
        slot = int(message.properties[TIMER_OUT_MS])
        rolled = self._rolled(slot - self._clock.wall)
        if rolled is not None:
            times = int(message.properties.get(TIMER_ROLL_TIMES, "0"))
            message.properties[TIMER_ROLL_TIMES] = str(times + 1)
            slot = slot_of(self._clock.wall + rolled, self._config.timer_precision_ms)
        self._slots.setdefault(slot, []).append(message)
        self._plan(slot)

    def _rolled(self, wait: int) -> int | None:
        """How far ahead a message is put that the window doesn't reach; the last leg is kept from being short."""
        precision, window = self._config.timer_precision_ms, self._config.timer_roll_window_slot
        if wait < window * precision:
            return None
        return (window // 2 if wait - window * precision < window // 3 * precision else window) * precision

    def _plan(self, slot: int) -> None:
        if self._is_running and slot not in self._timers:
            wait = slot + self._config.timer_precision_ms - self._clock.wall
            self._timers[slot] = self._clock.after(wait, lambda: self._dequeue(slot))

    def _plan_all(self) -> None:
        for slot in sorted(self._slots):
            self._plan(slot)

    def _cancel_all(self) -> None:
        for timer in self._timers.values():
            self._clock.cancel(timer)
        self._timers.clear()

    def _dequeue(self, slot: int) -> None:
        """Deliver a slot, without what a delete marker of the same slot names."""
        del self._timers[slot]
        messages = self._slots.pop(slot)
        deleted = {message.properties.get(TIMER_DEL_UNIQKEY) for message in messages} - {None}
        for message in messages:
            if int(message.properties[TIMER_OUT_MS]) > slot:
                self._enqueue(message)
            elif message.properties.get(UNIQ_KEY) in deleted:
                self._broker.note(Discarded(TIMER_TOPIC, message.body, "deleted by a marker"))
            elif TIMER_DEL_UNIQKEY not in message.properties:
                self._deliver(message)
        self._trim()

    def _deliver(self, message: MessageExt) -> None:
        wall = self._clock.wall
        message.properties[TIMER_DEQUEUE_MS] = str(wall)
        status = self._broker.append(time_up(message), wall, waits=False)
        if status is not PutMessageStatus.PUT_OK:
            # The wheel's own thread repeats a failed put until it works.
            self._slots.setdefault(int(message.properties[TIMER_OUT_MS]), []).append(message)
            self._clock.after(RETRY_PUT_AFTER, self._plan_all)

    def _trim(self) -> None:
        queue = self._broker.store.create(TIMER_TOPIC, 1)[0]
        if not self._slots and not self._broker.keeps_consumed:
            queue.trim(queue.max_offset)
