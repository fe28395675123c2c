"""The model plans only the polls that matter. A loop that really polls, millisecond by millisecond, must see the same."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from delayctl.simulator.rocketmq import (
    CONSUME_SUCCESS,
    P2,
    P3,
    P4,
    P5,
    P6,
    Broker,
    ConsumeConcurrentlyStatus,
    DefaultMQProducer,
    DefaultMQPushConsumer,
    Message,
    MessageExt,
    Profile,
    PutMessageStatus,
    Stored,
    VirtualClock,
)
from hypothesis import given, settings
from hypothesis import strategies as st

LEVELS = {1: 1_000, 2: 2_000, 3: 0, 4: 3_000, 5: 1_000}
TEXT = "1s 2s 0s 3s 1s"
END = 15_000

Step = tuple[int, str, int]  # Wait, what, value.


@dataclass
class Level:
    """A level's queue as (due, body), where the next run begins, and when that is by the timer's clock."""

    queue: list[tuple[int, bytes]] = field(default_factory=list)
    offset: int = 0
    next_run: int = 1_000


class Polling:
    """RocketMQ's deliver loop written down as it is: every poll is made."""

    def __init__(self, profile: Profile, bad: set[bytes]) -> None:
        self.profile = profile
        self.bad = bad  # Each of these cannot be put once.
        self.ahead = 0
        self.levels = {level: Level() for level in LEVELS}
        self.awake_at = 1_000
        self.next_write = 10_000
        self.delivered: list[tuple[int, bytes]] = []

    def tick(self, now: int) -> None:
        """A millisecond: the polls that are due in it."""
        if not self.profile.exact_countdown:
            for number, level in self.levels.items():
                if level.next_run == now:
                    level.next_run = now + self.run(now, number, level)
        elif now == self.awake_at:
            self.timer_thread(now)

    def timer_thread(self, now: int) -> None:
        """What the one thread does when it wakes up: run what its clock says is due, and sleep until the next."""
        wall = now + self.ahead
        for number, level in self.levels.items():
            if level.next_run <= wall:
                level.next_run = wall + self.run(now, number, level)
        while self.next_write <= wall:
            self.next_write += 10_000
        earliest = min([*(level.next_run for level in self.levels.values()), self.next_write])
        self.awake_at = now + earliest - wall

    def run(self, now: int, number: int, level: Level) -> int:
        """One run of a level's task; answers with the wait until the next."""
        while level.offset < len(level.queue):
            due, body = level.queue[level.offset]
            wall = now + self.ahead
            if due > wall + LEVELS[number]:
                due = wall
            if due > wall:
                return due - wall if self.profile.exact_countdown else 100
            if body in self.bad:
                self.bad.remove(body)
                if self.profile.failed_put_skips:
                    level.offset += 1
                return self.profile.failed_put_wait
            self.delivered.append((now, body))
            level.offset += 1
        return 100


def polled(profile: Profile, steps: list[Step], bad: set[bytes]) -> list[tuple[int, bytes]]:
    """What the real polling delivers."""
    loop = Polling(profile, set(bad))
    times: dict[int, list[tuple[int, Step]]] = {}
    time = 0
    for number, step in enumerate(steps):
        time += step[0]
        times.setdefault(time, []).append((number, step))
    for now in range(time + END):
        loop.tick(now)
        for number, (_, what, value) in times.get(now, ()):
            if what == "send":
                loop.levels[value].queue.append((now + loop.ahead + LEVELS[value], str(number).encode()))
            else:
                loop.ahead += value
    return loop.delivered


def modelled(profile: Profile, steps: list[Step], bad: set[bytes]) -> list[tuple[int, bytes]]:
    """What the model delivers."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level=TEXT)
    producer = DefaultMQProducer(broker)
    left = set(bad)

    def fault(message: object) -> PutMessageStatus | None:
        body, topic = getattr(message, "body", b""), getattr(message, "topic", "")
        if topic != "T" or body not in left:
            return None
        left.remove(body)
        return PutMessageStatus.OS_PAGE_CACHE_BUSY

    broker.faults.put = fault
    for number, (wait, what, value) in enumerate(steps):
        clock.advance(wait)
        if what == "send":
            producer.send(Message("T", str(number).encode()).set_delay_time_level(value))
        else:
            clock.set_wall(clock.wall + value)
    clock.advance(END - 1)
    return [(time, event.body) for time, event in broker.log if isinstance(event, Stored) and event.topic == "T"]


sends = st.tuples(st.integers(0, 1_200), st.just("send"), st.sampled_from(sorted(LEVELS)))
jumps = st.tuples(st.integers(0, 1_200), st.just("jump"), st.integers(-4_000, 4_000))


@pytest.mark.parametrize("profile", [P2, P3, P4, P5, P6], ids=lambda profile: profile.name)
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.one_of(sends, sends, sends, jumps), max_size=12), bad=st.sets(st.integers(0, 11), max_size=3))
def test_the_model_delivers_what_real_polling_delivers(profile: Profile, steps: list[Step], bad: set[int]) -> None:
    """Whatever is sent, whatever the clock does, whatever cannot be put: the same messages at the same milliseconds."""
    bodies = {str(number).encode() for number in bad}

    assert sorted(modelled(profile, steps, bodies)) == sorted(polled(profile, steps, bodies))


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3_000), st.sampled_from([1, 2, 4, 5])), max_size=30),
    profile=st.sampled_from([P2, P3, P4, P5, P6]),
    crashes=st.sets(st.integers(0, 29), max_size=3),
)
def test_nothing_is_early_lost_or_out_of_order(
    steps: list[tuple[int, int]], profile: Profile, crashes: set[int]
) -> None:
    """Crashes may repeat messages, and then in order again; a level's first deliveries are in the order of sending."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level=TEXT)
    producer = DefaultMQProducer(broker)
    due: dict[bytes, int] = {}
    by_level: dict[int, list[bytes]] = {}
    for number, (wait, level) in enumerate(steps):
        clock.advance(wait)
        if number in crashes:
            broker.crash()
            broker.start()
        body = str(number).encode()
        producer.send(Message("T", body).set_delay_time_level(level))
        due[body] = clock.now + LEVELS[level]
        by_level.setdefault(level, []).append(body)
    clock.run()

    found = [(time, event.body) for time, event in broker.log if isinstance(event, Stored) and event.topic == "T"]
    firsts = list(dict.fromkeys(body for _, body in found))
    assert all(time >= due[body] for time, body in found)
    assert set(firsts) == set(due)
    assert {level: [body for body in firsts if body in sent] for level, sent in by_level.items()} == by_level
    assert crashes or len(found) == len(due)


def test_what_is_delivered_and_consumed_is_not_kept() -> None:
    """Memory grows with what waits, not with what has passed."""
    clock = VirtualClock()
    broker = Broker(clock, message_delay_level="1s", log=False)
    producer = DefaultMQProducer(broker)
    most = 0
    for _ in range(400):
        for _ in range(25):
            producer.send(Message("T", b"x").set_delay_time_level(1))
        clock.advance(100)
        most = max(most, len(broker.messages("SCHEDULE_TOPIC_XXXX")))

    # A second's worth waits; ten more seconds' worth may come again after a crash, and it is cleared by halves.
    assert most <= 2 * (250 + 2_500) + 1_024
    assert len(broker.messages("T")) > 9_000  # Nobody consumes it.


def test_without_a_log_nothing_is_written_down_of_what_has_passed() -> None:
    """Neither events nor deliveries; the listener sees them all the same."""
    clock = VirtualClock()
    broker = Broker(clock, log=False)
    seen: list[bytes] = []

    def listen(messages: Sequence[MessageExt], _: object) -> ConsumeConcurrentlyStatus:
        seen.extend(message.body for message in messages)
        return CONSUME_SUCCESS

    DefaultMQPushConsumer(broker, "group").subscribe("T").register_message_listener(listen).start()

    DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_level(1))
    clock.advance(5_000)

    assert (seen, broker.log, broker.deliveries) == ([b"x"], [], [])


def test_a_broker_can_be_told_to_keep_everything() -> None:
    """As a real one does for three days."""
    clock = VirtualClock()
    broker = Broker(clock, message_delay_level="1s", keep_consumed=True)
    producer = DefaultMQProducer(broker)
    for _ in range(30):
        producer.send(Message("T", b"x").set_delay_time_level(1))
        clock.advance(1_000)

    assert len(broker.messages("SCHEDULE_TOPIC_XXXX")) == 30
