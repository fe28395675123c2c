"""RocketMQ 5.x: timer messages, retry policies, the proxy's levels, POP's tables."""

import pytest
from delayctl.simulator.rocketmq import (
    DEFAULT_MESSAGE_DELAY_LEVEL,
    P4,
    P6,
    SCHEDULE_TOPIC,
    Broker,
    DefaultMQProducer,
    Discarded,
    Message,
    MQBrokerError,
    PutMessageStatus,
    ResponseCode,
    TimerConfig,
    VirtualClock,
    first,
    parse_delay_level,
)
from delayctl.simulator.rocketmq_policies import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    GroupRetryPolicy,
    GroupRetryPolicyType,
    RetryPolicy,
    compute_delay_level,
    max_attempts,
)
from delayctl.simulator.rocketmq_pop import (
    CK_REWRITE_SECONDS,
    INVISIBLE_SECONDS,
    ck_rewrite_seconds,
    is_given_up,
    next_invisible_seconds,
    parse_normal_topic,
    pop_retry_topic,
)
from delayctl.simulator.rocketmq_timer import earliest_delivery, slot_of

from tests.unit.simulator.rocketmq_vectors import (
    CUSTOMIZED_POLICY,
    EXPONENTIAL_POLICY,
    MAX_ATTEMPTS,
    POP_CK_REWRITE,
    POP_INVISIBLE,
    POP_RETRY_TOPIC,
    POP_TABLE,
    PROXY_LEVEL,
    TIMER,
    TIMER_LONGEST_SEC,
    TIMER_TOO_LONG_SEC,
)


def arrivals(broker: Broker) -> list[tuple[int, bytes]]:
    """What arrived in topic T, and when."""
    return [(message.store_timestamp, message.body) for message in broker.messages("T")]


@pytest.mark.parametrize(("deliver", "precision", "slot", "earliest"), TIMER)
def test_a_timer_message_waits_in_the_slot_before_its_time(
    deliver: int, precision: int, slot: int, earliest: int
) -> None:
    """And is delivered when that slot is over, at its time rounded up."""
    clock = VirtualClock()
    broker = Broker(clock, timer=TimerConfig(timer_precision_ms=precision))
    DefaultMQProducer(broker).send(Message("T", b"x").set_deliver_time_ms(deliver), queue_id=2)
    (waiting,) = broker.messages("rmq_sys_wheel_timer")

    clock.run()

    (stored,) = broker.messages("T")
    assert (slot_of(deliver, precision), earliest_delivery(deliver, precision)) == (slot, earliest)
    assert (waiting.queue_id, waiting.properties["TIMER_OUT_MS"]) == (0, str(slot))
    assert (stored.store_timestamp, stored.queue_id) == (earliest, 2)
    assert stored.properties["TIMER_ENQUEUE_MS"] == "0"
    assert stored.properties["TIMER_DEQUEUE_MS"] == str(earliest)


@pytest.mark.parametrize("seconds", [TIMER_LONGEST_SEC, TIMER_LONGEST_SEC + 1, TIMER_TOO_LONG_SEC])
def test_a_timer_message_waits_at_most_three_days(seconds: int) -> None:
    """What asks for more is refused."""
    producer = DefaultMQProducer(Broker(VirtualClock()))
    message = Message("T", b"x").set_delay_time_sec(seconds)

    if seconds == TIMER_LONGEST_SEC:
        producer.send(message)
    else:
        with pytest.raises(MQBrokerError) as raised:
            producer.send(message)
        assert raised.value.response_code is ResponseCode.MESSAGE_ILLEGAL


def test_a_time_that_has_passed_means_at_once() -> None:
    """But a marker for it is refused."""
    clock = VirtualClock(start=10_000)
    producer = DefaultMQProducer(broker := Broker(clock))
    producer.send(Message("T", b"x").set_deliver_time_ms(10_000))

    with pytest.raises(MQBrokerError, match="MESSAGE_ILLEGAL"):
        producer.send(Message("T", b"y").set_deliver_time_ms(10_000).put_user_property("TIMER_DEL_UNIQKEY", "k"))
    assert arrivals(broker) == [(10_000, b"x")]


def test_a_time_that_is_no_number_is_refused() -> None:
    """As a message is that asks for too much."""
    with pytest.raises(MQBrokerError, match="MESSAGE_ILLEGAL"):
        DefaultMQProducer(Broker(VirtualClock())).send(Message("T", b"x").put_user_property("TIMER_DELAY_MS", "soon"))


def test_a_broker_without_the_wheel_refuses_timer_messages() -> None:
    """With a system error."""
    broker = Broker(VirtualClock(), timer=TimerConfig(timer_wheel_enable=False))

    with pytest.raises(MQBrokerError, match="SYSTEM_ERROR"):
        DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_sec(1))


def test_seconds_come_before_milliseconds_and_these_before_a_time() -> None:
    """If a message asks for several."""
    clock = VirtualClock()
    producer = DefaultMQProducer(broker := Broker(clock))
    producer.send(Message("T", b"s").set_delay_time_sec(3).set_delay_time_ms(5_000).set_deliver_time_ms(7_000))
    producer.send(Message("T", b"ms").set_delay_time_ms(5_000).set_deliver_time_ms(7_000))
    clock.run()

    assert arrivals(broker) == [(3_000, b"s"), (5_000, b"ms")]


def test_a_level_comes_before_any_time() -> None:
    """The timer's properties are removed."""
    clock = VirtualClock()
    broker = Broker(clock)
    DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_sec(60).set_delay_time_level(1))
    (waiting,) = broker.messages(SCHEDULE_TOPIC)
    clock.run()

    assert (arrivals(broker), "TIMER_DELAY_SEC" in waiting.properties) == ([(1_000, b"x")], False)


def test_4_9_knows_no_timer_messages() -> None:
    """The properties mean nothing to it."""
    broker = Broker(VirtualClock(), profile=P4)
    DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_sec(60))

    assert arrivals(broker) == [(0, b"x")]


def test_a_marker_deletes_exactly_its_target() -> None:
    """Both wait in the same slot."""
    clock = VirtualClock()
    producer = DefaultMQProducer(broker := Broker(clock))
    target = producer.send(Message("T", b"target").set_deliver_time_ms(5_000))
    producer.send(Message("T", b"other").set_deliver_time_ms(5_000))
    marker = Message("T", b"marker").set_deliver_time_ms(5_000).put_user_property("TIMER_DEL_UNIQKEY", target.msg_id)
    producer.send(marker)
    clock.run()

    assert arrivals(broker) == [(5_000, b"other")]
    assert (5_000, Discarded("rmq_sys_wheel_timer", b"target", "deleted by a marker")) in broker.log


def test_what_the_wheel_cannot_reach_is_rolled_on() -> None:
    """Delivered at its time all the same, and the number of rolls can be seen."""
    clock = VirtualClock()
    broker = Broker(clock, timer=TimerConfig(timer_roll_window_slot=30))
    DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_sec(60))
    clock.run()

    (stored,) = broker.messages("T")
    assert (stored.store_timestamp, stored.properties["TIMER_ROLL_TIMES"]) == (60_000, "1")


def test_timer_messages_survive_a_crash() -> None:
    """What became due meanwhile is delivered at the start."""
    clock = VirtualClock()
    producer = DefaultMQProducer(broker := Broker(clock))
    producer.send(Message("T", b"meanwhile").set_delay_time_sec(5))
    producer.send(Message("T", b"later").set_delay_time_sec(60))
    broker.crash()
    clock.advance(30_000)
    broker.start()
    clock.run()

    assert arrivals(broker) == [(30_000, b"meanwhile"), (60_000, b"later")]


def test_timer_messages_go_by_the_wall_clock() -> None:
    """A step forward makes them due."""
    clock = VirtualClock()
    broker = Broker(clock)
    DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_sec(60))
    clock.advance(1_000)
    clock.set_wall(50_000)
    clock.run()

    assert (arrivals(broker), clock.now) == ([(60_000, b"x")], 11_000)


def test_a_timer_message_that_cannot_be_put_is_tried_again() -> None:
    """Until it works."""
    clock = VirtualClock()
    broker = Broker(clock)
    DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_sec(1))
    broker.faults.put = first(2, PutMessageStatus.OS_PAGE_CACHE_BUSY, body=b"x", topic="T")
    clock.run()

    assert arrivals(broker) == [(1_100, b"x")]


@pytest.mark.parametrize(("failures", "wait"), CUSTOMIZED_POLICY)
def test_the_customized_policy_begins_at_its_third_wait(failures: int, wait: int) -> None:
    """And ends with its last."""
    assert CustomizedRetryPolicy().next_delay_duration(failures) == wait


@pytest.mark.parametrize(("failures", "wait"), EXPONENTIAL_POLICY)
def test_the_exponential_policy_doubles_up_to_two_hours(failures: int, wait: int) -> None:
    """From five seconds on."""
    assert ExponentialRetryPolicy().next_delay_duration(failures) == wait


@pytest.mark.parametrize(
    ("group", "policy"),
    [
        (GroupRetryPolicy(), CustomizedRetryPolicy()),
        (GroupRetryPolicy(GroupRetryPolicyType.EXPONENTIAL), CustomizedRetryPolicy()),
        (
            GroupRetryPolicy(GroupRetryPolicyType.EXPONENTIAL, ExponentialRetryPolicy(initial=1)),
            ExponentialRetryPolicy(initial=1),
        ),
        (GroupRetryPolicy(None), CustomizedRetryPolicy()),
        (
            GroupRetryPolicy(customized_retry_policy=CustomizedRetryPolicy((1, 2, 3))),
            CustomizedRetryPolicy((1, 2, 3)),
        ),
    ],
)
def test_a_group_without_the_policy_that_it_names_has_the_default(group: GroupRetryPolicy, policy: RetryPolicy) -> None:
    """Which is the customized one."""
    assert group.retry_policy == policy


@pytest.mark.parametrize(("retries", "attempts"), MAX_ATTEMPTS)
def test_a_client_is_told_attempts_not_retries(retries: int, attempts: int) -> None:
    """One more."""
    assert max_attempts(retries) == attempts


@pytest.mark.parametrize(("interval", "level"), PROXY_LEVEL)
def test_the_proxy_takes_the_first_longer_level(interval: int, level: int) -> None:
    """Or the last."""
    assert compute_delay_level(parse_delay_level(DEFAULT_MESSAGE_DELAY_LEVEL), interval) == level


@pytest.mark.parametrize(("level", "failures", "seconds"), POP_INVISIBLE)
def test_a_popped_message_stays_invisible_by_a_table(level: int, failures: int, seconds: int) -> None:
    """By level, or by failures where none is asked for."""
    assert next_invisible_seconds(failures, delay_level=level) == seconds


def test_the_tables_of_pop() -> None:
    """Whole."""
    found = tuple(ck_rewrite_seconds(times) for times in range(len(CK_REWRITE_SECONDS)))

    assert (INVISIBLE_SECONDS, found, ck_rewrite_seconds(99)) == (POP_TABLE, POP_CK_REWRITE, 7_200)


def test_pop_gives_up_after_four_hours_at_the_earliest() -> None:
    """However often a message has failed."""
    assert [is_given_up(16, 16, age) for age in (14_400_000, 14_400_001)] == [False, True]
    assert not is_given_up(15, 16, 99_999_999)


def test_pop_retry_topics_have_two_spellings() -> None:
    """Both lead back to the topic."""
    topic, group, v1, v2 = POP_RETRY_TOPIC

    assert (pop_retry_topic(topic, group), pop_retry_topic(topic, group, is_v2=True)) == (v1, v2)
    assert [parse_normal_topic(name, group) for name in (v1, v2, topic)] == [topic] * 3


def test_p6_is_what_a_broker_is_unless_told_otherwise() -> None:
    """The newest behaviour."""
    assert Broker(VirtualClock()).profile is P6
