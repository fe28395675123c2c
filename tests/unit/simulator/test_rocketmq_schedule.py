"""RocketMQ's deliver loop: when it delivers, what failures do to it, and what survives a stop."""

from collections.abc import Callable

import pytest
from delayctl.simulator.rocketmq import (
    P1,
    P2,
    P3,
    P4,
    P5,
    P5_EARLY,
    P6,
    PROFILES,
    SCHEDULE_TOPIC,
    Broker,
    BrokerState,
    DefaultMQProducer,
    JavaError,
    JavaException,
    Message,
    MessageExt,
    Profile,
    PutFailed,
    PutMessageStatus,
    Stored,
    VirtualClock,
    first,
)
from delayctl.simulator.rocketmq_async import accepts
from delayctl.simulator.rocketmq_offsets import corrected

from tests.unit.simulator.rocketmq_vectors import (
    ASYNC_FLOW,
    CLOCK_JUMPS,
    DELIVER_TIME,
    FIFO_WITH_FAILURE,
    OFFSET_CORRECTION,
    ClockJump,
)

BUSY = PutMessageStatus.OS_PAGE_CACHE_BUSY
every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)


def delivered(broker: Broker) -> list[tuple[int, bytes]]:
    """When what arrived in topic T."""
    return [(time, event.body) for time, event in broker.log if isinstance(event, Stored) and event.topic == "T"]


def send(broker: Broker, *bodies: bytes, level: int = 1) -> None:
    """Send to queue 0 of topic T with a level."""
    producer = DefaultMQProducer(broker)
    for body in bodies:
        producer.send(Message("T", body).set_delay_time_level(level), queue_id=0)


def once(body: bytes, error: type[Exception]) -> Callable[[MessageExt], None]:
    """A fault that throws once, when a message is put to topic T."""
    thrown: list[bytes] = []

    def fault(message: MessageExt) -> None:
        if message.topic == "T" and message.body == body and not thrown:
            thrown.append(body)
            raise error

    return fault


@every_profile
@pytest.mark.parametrize(("stored", "level", "exact", "polled"), DELIVER_TIME)
def test_a_message_is_delivered_at_its_due_time_or_at_the_poll_after(
    profile: Profile, stored: int, level: str, exact: int, polled: int
) -> None:
    """Up to 4.9.2 a timer is set to the millisecond; since then there is a poll every 100 ms."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level=level)
    clock.advance(stored)
    send(broker, b"x")

    clock.run()

    assert delivered(broker) == [(exact if profile.exact_countdown else polled, b"x")]


@pytest.mark.parametrize("name", FIFO_WITH_FAILURE)
def test_a_failed_put_holds_up_its_level_or_is_skipped(name: str) -> None:
    """What follows keeps its place; only 5.0.0 to 5.3.2 go on with the next message."""
    clock = VirtualClock()
    broker = Broker(clock, profile=PROFILES[name], message_delay_level="5s 6s")
    send(broker, b"0", b"1", b"2")
    broker.faults.put = first(1, BUSY, body=b"1", topic="T")

    clock.run()

    assert delivered(broker) == FIFO_WITH_FAILURE[name]
    assert (5_000, PutFailed("T", 0, b"1", BUSY)) in broker.log


def test_a_failed_put_does_not_hold_up_other_levels() -> None:
    """Every level has a task of its own."""
    clock = VirtualClock()
    broker = Broker(clock, message_delay_level="5s 5s")
    send(broker, b"stuck", level=1)
    send(broker, b"free", level=2)
    broker.faults.put = first(3, BUSY, body=b"stuck", topic="T")

    clock.run()

    assert delivered(broker) == [(5_000, b"free"), (5_300, b"stuck")]


def test_a_skipped_message_is_seen_again_only_before_a_later_one_is_recorded() -> None:
    """5.0.0 to 5.3.2: after a crash before the offsets are written it is there, after the next delivery it is lost."""
    clock = VirtualClock()
    broker = Broker(clock, profile=P5, message_delay_level="1s")
    send(broker, b"0", b"1")
    broker.faults.put = first(1, BUSY, body=b"1", topic="T")
    clock.advance(1_000)
    broker.crash()
    broker.start()
    clock.advance(1_000)
    seen_again = delivered(broker)
    send(broker, b"2", b"3")
    broker.faults.put = first(1, BUSY, body=b"2", topic="T")
    clock.advance(20_000)
    broker.crash()
    broker.start()
    clock.run()

    assert seen_again == [(1_000, b"0"), (2_000, b"0"), (2_000, b"1")]
    assert delivered(broker)[3:] == [(3_100, b"3")]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (P1, [(1_000, b"0"), (1_000, b"2")]),
        (P2, [(1_000, b"0"), (1_000, b"2")]),
        (P3, [(1_000, b"0"), (1_100, b"1"), (1_100, b"2")]),
        (P4, [(1_000, b"0"), (1_100, b"1"), (1_100, b"2")]),
        (P5, [(1_000, b"0"), (1_100, b"2")]),
        (P6, [(1_000, b"0"), (1_100, b"2")]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_exception_in_a_put_drops_the_message_or_blocks_the_level(
    profile: Profile, expected: list[tuple[int, bytes]]
) -> None:
    """As the release has it."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level="1s")
    send(broker, b"0", b"1", b"2")
    broker.faults.put = once(b"1", JavaException)

    clock.run()

    assert delivered(broker) == expected


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (P1, [(1_000, b"0"), (11_000, b"0"), (11_000, b"1")]),
        (P4, [(1_000, b"0"), (1_100, b"1")]),
        (P6, [(1_000, b"0")]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_exception_in_a_lookup_repeats_the_run_the_message_or_nothing(
    profile: Profile, expected: list[tuple[int, bytes]]
) -> None:
    """Up to 4.9.2 what the run had delivered is delivered again."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level="1s")
    send(broker, b"0", b"1")
    thrown: list[bytes] = []

    def lookup(message: MessageExt) -> bool:
        if message.body == b"1" and not thrown:
            thrown.append(message.body)
            raise JavaException
        return True

    broker.faults.lookup = lookup
    clock.run()

    assert delivered(broker) == expected


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (P2, [(1_000, b"0")]),
        (P4, [(1_000, b"0"), (1_000, b"other")]),
        (P5, [(1_000, b"0"), (1_000, b"other")]),
        (P6, [(1_000, b"0"), (1_000, b"other"), (11_000, b"0"), (11_000, b"1")]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_java_error_ends_all_levels_or_one_or_only_the_run(
    profile: Profile, expected: list[tuple[int, bytes]]
) -> None:
    """One Timer thread for all, one task per level, or a task that catches everything."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level="1s 1s")
    send(broker, b"0", b"1")
    send(broker, b"other", level=2)
    broker.faults.put = once(b"1", JavaError)

    clock.run()

    assert delivered(broker) == expected


def test_what_the_commit_log_no_longer_has_is_passed_over() -> None:
    """Silently, as far as the consumer is concerned."""
    clock = VirtualClock()
    broker = Broker(clock, message_delay_level="1s")
    send(broker, b"0", b"1", b"2")
    broker.faults.lookup = lambda message: message.body != b"1"

    clock.run()

    assert delivered(broker) == [(1_000, b"0"), (1_000, b"2")]


@every_profile
@pytest.mark.parametrize("jump", CLOCK_JUMPS)
def test_a_clock_that_goes_back(profile: Profile, jump: ClockJump) -> None:
    """Behind the store time the message comes at once, or with the old timer only when the clock is there again."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level="5s")
    clock.advance(2_000)
    send(broker, b"x")
    clock.advance(1_050)

    clock.set_wall(clock.wall - jump.back)
    clock.run()

    (stored,) = broker.messages("T")
    expected = jump.countdown if profile.exact_countdown else jump.polling
    assert (delivered(broker)[0][0], stored.store_timestamp) == expected


@every_profile
def test_a_clock_that_goes_forward_makes_everything_due(profile: Profile) -> None:
    """At the next poll; the old timer's thread sleeps until then as well."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level="1h 2h")
    send(broker, b"x")
    clock.advance(5_050)

    clock.set_wall(clock.wall + 3_600_000)
    clock.run()

    assert delivered(broker) == [(5_100, b"x")]


def test_offsets_are_written_every_ten_seconds() -> None:
    """From the start on; what is recorded at that very time comes after the writing."""
    clock = VirtualClock()
    broker = Broker(clock, profile=P4, message_delay_level="1s")
    files = []
    for _ in range(22):
        send(broker, b"x")
        clock.advance(1_000)
        files.append(dict(broker.delay_offset_file))

    assert files[8:11] == [{}, {1: 9}, {1: 9}]
    assert files[18:21] == [{1: 9}, {1: 19}, {1: 19}]


@every_profile
def test_after_a_crash_comes_again_what_was_delivered_since_the_last_writing(profile: Profile) -> None:
    """Nothing is lost."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level="1s")
    bodies = [str(number).encode() for number in range(14)]
    for body in bodies:
        send(broker, body)
        clock.advance(1_000)

    broker.crash()
    clock.advance(5_000)
    broker.start()
    clock.run()

    assert delivered(broker)[:14] == [((number + 1) * 1_000, body) for number, body in enumerate(bodies)]
    # The tenth arrived at 10 s, after the writing.
    assert delivered(broker)[14:] == [(20_000, body) for body in bodies[9:]]


def test_4_9_3_delivers_more_again_than_it_had_to() -> None:
    """It records the start of a run plus one, however many messages the run delivered."""
    counts = {}
    for profile in (P3, P4):
        clock = VirtualClock()
        broker = Broker(clock, profile=profile, message_delay_level="1s")
        send(broker, *[b"x"] * 5)
        clock.advance(12_000)
        broker.crash()
        broker.start()
        clock.run()
        counts[profile.name] = len(delivered(broker))

    assert counts == {"P3": 9, "P4": 5}


@pytest.mark.parametrize(
    ("profile", "copies"),
    [(P1, 2), (P2, 2), (P3, 1), (P4, 1), (P5, 1), (P6, 1)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_clean_shutdown_writes_the_offsets_since_4_9_3(profile: Profile, copies: int) -> None:
    """Before, the next start delivers up to ten seconds again."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level="1s")
    send(broker, b"x")
    clock.advance(1_500)
    broker.shutdown()
    broker.start()
    clock.run()

    assert len(delivered(broker)) == copies


def test_what_became_due_while_the_broker_was_away_comes_a_second_after_its_start() -> None:
    """In order; the log tells the whole story."""
    clock = VirtualClock()
    broker = Broker(clock, profile=P4, message_delay_level="5s")
    send(broker, b"a", b"b")
    clock.advance(1_000)
    broker.shutdown()
    clock.advance(60_000)
    broker.start()
    clock.run()

    assert broker.log == [
        (0, BrokerState("started")),
        (0, Stored(SCHEDULE_TOPIC, 0, b"a")),
        (0, Stored(SCHEDULE_TOPIC, 0, b"b")),
        (1_000, BrokerState("shut down")),
        (61_000, BrokerState("started")),
        (62_000, Stored("T", 0, b"a")),
        (62_000, Stored("T", 0, b"b")),
    ]


@pytest.mark.parametrize(
    ("before", "after", "time"),
    [
        ("1h", "10s", 21_000),  # An hour less twenty seconds remain: more than the level is long now.
        ("30s", "20s", 30_000),  # Ten seconds remain: the old due time holds.
        ("30s", "1h", 30_000),
        ("30s", "30s 1s", 30_000),
    ],
)
def test_other_levels_after_a_restart(before: str, after: str, time: int) -> None:
    """A message keeps its due time, unless that is further away than its level is long now."""
    clock = VirtualClock()
    broker = Broker(clock, message_delay_level=before)
    send(broker, b"x")
    clock.advance(20_000)
    broker.shutdown()
    broker.start(message_delay_level=after)
    clock.run()

    assert delivered(broker) == [(time, b"x")]


def test_a_removed_level_keeps_its_messages_until_it_is_there_again() -> None:
    """Its recorded offset stays in the file."""
    clock = VirtualClock()
    broker = Broker(clock, message_delay_level="1s 2s")
    send(broker, b"before", level=2)
    clock.advance(2_000)
    send(broker, b"x", level=2)
    broker.shutdown()
    broker.start(message_delay_level="1s")
    clock.advance(60_000)
    broker.shutdown()
    kept = dict(broker.delay_offset_file)
    broker.start(message_delay_level="1s 2s")
    clock.run()

    assert (kept, delivered(broker)) == ({2: 1}, [(2_000, b"before"), (63_000, b"x")])


def test_reordered_levels_judge_by_what_is_at_their_place_now() -> None:
    """The queue keeps its messages."""
    clock = VirtualClock()
    broker = Broker(clock, message_delay_level="1h 1s")
    send(broker, b"x", level=1)
    broker.shutdown()
    broker.start(message_delay_level="1s 1h")
    clock.run()

    assert delivered(broker) == [(1_000, b"x")]


@pytest.mark.parametrize(("stored", "least", "most", "expected"), OFFSET_CORRECTION)
def test_an_offset_is_brought_within_its_queue(stored: int, least: int, most: int, expected: int) -> None:
    """`correctDelayOffset`."""
    assert corrected(stored, least, most) == expected


@pytest.mark.parametrize(
    ("profile", "expected"),
    [(P1, [b"2"]), (P2, [b"1", b"2"]), (P3, [b"1", b"2"]), (P4, [b"0", b"1", b"2"]), (P6, [b"0", b"1", b"2"])],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_recorded_offset_beyond_the_queue(profile: Profile, expected: list[bytes]) -> None:
    """4.9.0 waits until the queue has grown there, 4.9.2 corrects at the first run, later ones when they load."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level="1s")
    broker.shutdown()
    broker.delay_offset_file[1] = 2
    broker.start()
    send(broker, b"0")
    clock.advance(1_000)
    send(broker, b"1", b"2")
    clock.run()

    assert [body for _, body in delivered(broker)] == expected


@pytest.mark.parametrize(("pending", "resends", "is_accepted"), ASYNC_FLOW)
def test_asynchronous_delivery_takes_only_so_much(pending: int, resends: int, is_accepted: bool) -> None:
    """Two thousand under way, or a head that was sent again more than three times."""
    assert accepts(pending, resends) is is_accepted


@pytest.mark.parametrize(
    ("profile", "skips"),
    [(P4, False), (P5_EARLY, True), (P5, True), (P6, False)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_too_many_asynchronous_puts_wait_or_are_skipped(profile: Profile, skips: bool) -> None:
    """With answers that take 50 ms, 3,000 messages at once are too many: 5.0.0 to 5.3.2 lose one per poll."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level="1s", enable_schedule_async_deliver=True)
    bodies = [str(number).encode() for number in range(3_000)]
    send(broker, *bodies)
    broker.faults.put_takes = lambda _: 50

    clock.run()

    found = [body for _, body in delivered(broker)]
    assert found == bodies[:2_001] + (bodies[2_002:] if skips else bodies[2_001:])


def test_asynchronous_offsets_are_recorded_in_order_when_all_before_are_done() -> None:
    """The first answer takes longest, and holds up the offset but not the messages."""
    clock = VirtualClock()
    broker = Broker(clock, profile=P4, message_delay_level="1s", enable_schedule_async_deliver=True)
    send(broker, b"slow", b"quick")
    broker.faults.put_takes = lambda message: 30_000 if message.body == b"slow" else 0
    clock.advance(20_000)
    early = dict(broker.delay_offset_file)
    clock.advance(30_000)

    assert delivered(broker) == [(1_000, b"slow"), (1_000, b"quick")]
    assert (early, broker.delay_offset_file) == ({}, {1: 2})


@pytest.mark.parametrize(
    ("profile", "arrives"),
    [(P4, 1_000 + 0 + 100), (P6, 1_000 + 100 + 200)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_asynchronous_put_that_fails_is_sent_again_after_growing_pauses(profile: Profile, arrives: int) -> None:
    """From 0 ms in 4.9, from 100 ms in 5.1.1 and later; ticks of 10 ms in between."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile, message_delay_level="1s", enable_schedule_async_deliver=True)
    send(broker, b"bad", b"good")
    broker.faults.put = first(2, BUSY, body=b"bad", topic="T")
    clock.run()

    assert delivered(broker) == [(1_000, b"good"), (arrives, b"bad")]
    assert broker.schedule.offsets.recorded == {1: 2}
