"""RocketMQ's retries: the table, its variants, the send-back at the broker, and the client when that fails."""

from collections.abc import Sequence

import pytest
from delayctl.simulator.rocketmq import (
    CONSUME_SUCCESS,
    P1,
    P4,
    P6,
    PROFILES,
    RECONSUME_LATER,
    SCHEDULE_TOPIC,
    Broker,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    Consumed,
    DefaultMQProducer,
    DefaultMQPushConsumer,
    ListenerRaised,
    Message,
    MessageExt,
    Profile,
    PutMessageStatus,
    ResponseCode,
    SendBackFailed,
    Stored,
    VirtualClock,
    send_message_back,
)
from delayctl.simulator.rocketmq_resend import send_as_normal_message

from tests.unit.simulator.rocketmq_vectors import (
    ARRIVAL_WINDOWS,
    CLOSE_ARRIVAL,
    DEAD_AT,
    DEAD_AT_P1,
    DEFAULT_TABLE,
    FALLBACK,
    GROUP_MAXIMUM_OF_ONE,
    P1_BURIES_LATE,
    RETRY_COUNT,
    RETRY_DEFAULT,
    RETRY_VARIANTS,
    SEND_BACK,
    Fallback,
    SendBack,
    Variant,
)


def fails(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
    """A listener that always fails."""
    return RECONSUME_LATER


def failing(broker: Broker, group: str = "G") -> DefaultMQPushConsumer:
    """A consumer of topic T that always fails; not started yet."""
    return DefaultMQPushConsumer(broker, group).subscribe("T").register_message_listener(fails)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_the_default_retry_table_to_the_millisecond(profile: Profile) -> None:
    """Seventeen deliveries in 17,140 s, then the dead-letter queue; 4.9.0 lets the dead letter wait two hours more."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile)
    failing(broker).start()
    DefaultMQProducer(broker).send(Message("T", b"x"))

    clock.run()

    seen = [(d.reconsume_times, d.time, d.stored_in, d.topic) for d in broker.deliveries]
    assert seen == [(row.reconsume_times, row.time, row.stored_in, "T") for row in RETRY_DEFAULT]
    (dead,) = broker.messages("%DLQ%G")
    is_late = profile in (P1,)
    assert (dead.store_timestamp, dead.reconsume_times, dead.properties["DELAY"]) == (
        (DEAD_AT_P1, 17, "18") if is_late else (DEAD_AT, 17, "0")
    )


def test_every_retry_waits_its_own_level() -> None:
    """Level 3 first, level 18 last, each in the queue before its number."""
    clock = VirtualClock()
    broker = Broker(clock)
    failing(broker).start()
    DefaultMQProducer(broker).send(Message("T", b"x"))

    clock.run()

    waited = [
        (time, event.queue_id + 1, event.reconsume_times)
        for time, event in broker.log
        if isinstance(event, Stored) and event.topic == SCHEDULE_TOPIC
    ]
    rows = [row for row in RETRY_DEFAULT if row.level is not None]
    assert waited == [(row.time, row.level, row.reconsume_times + 1) for row in rows]
    assert [row.delay for row in rows] == [DEFAULT_TABLE[row.level] for row in rows if row.level is not None]


def test_the_log_of_one_retry() -> None:
    """From the send to the second attempt, whole."""
    clock = VirtualClock()
    broker = Broker(clock, message_delay_level="1s 2s 3s")
    answers = iter([RECONSUME_LATER, CONSUME_SUCCESS])
    consumer = DefaultMQPushConsumer(broker, "G").subscribe("T")
    consumer.register_message_listener(lambda *_: next(answers)).start()
    DefaultMQProducer(broker).send(Message("T", b"x"))

    clock.run()

    assert broker.log[1:] == [
        (0, Stored("T", 0, b"x")),
        (0, Consumed("G", "T", b"x")),
        (0, Stored(SCHEDULE_TOPIC, 2, b"x", 1)),
        (3_000, Stored("%RETRY%G", 0, b"x", 1)),
        (3_000, Consumed("G", "T", b"x", 1)),
    ]


def test_what_a_listener_sees_of_a_retried_message() -> None:
    """Topic, id and birth of the first attempt; the properties tell the rest."""
    clock = VirtualClock()
    broker = Broker(clock)
    failing(broker).set_max_reconsume_times(2).start()
    sent = DefaultMQProducer(broker).send(Message("T", b"x"))

    clock.run()

    first, second, third = broker.deliveries
    assert dict(first.properties) == {"WAIT": "true", "UNIQ_KEY": sent.msg_id, "CONSUME_START_TIME": "0"}
    assert (third.topic, third.msg_id, third.stored_in, third.queue_id) == ("T", sent.msg_id, "%RETRY%G", 0)
    assert dict(third.properties) == {
        "WAIT": "false",
        "UNIQ_KEY": sent.msg_id,
        "RETRY_TOPIC": "T",
        "ORIGIN_MESSAGE_ID": "7F00000100002A9F0000000000000000",
        "DELAY": "4",
        "REAL_TOPIC": "%RETRY%G",
        "REAL_QID": "0",
        "CONSUME_START_TIME": "40000",
    }
    assert second.properties["ORIGIN_MESSAGE_ID"] == third.properties["ORIGIN_MESSAGE_ID"]


@pytest.mark.parametrize("case", RETRY_VARIANTS, ids=lambda case: case.name)
def test_other_maximums_levels_and_tables(case: Variant) -> None:
    """Attempts, levels waited and the dead letter's counter."""
    clock = VirtualClock()
    broker = Broker(clock, message_delay_level=case.levels)

    def listen(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        context.delay_level_when_next_consume = case.next_level
        return RECONSUME_LATER

    consumer = DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(listen)
    consumer.set_max_reconsume_times(case.max_reconsume_times).start()
    DefaultMQProducer(broker).send(Message("T", b"x"))
    clock.run()

    (dead,) = broker.messages("%DLQ%G")
    waited = [int(delivery.properties["DELAY"]) for delivery in broker.deliveries[1:]]
    assert ([delivery.time for delivery in broker.deliveries], waited) == (case.attempts, case.waited)
    assert (dead.store_timestamp, dead.reconsume_times) == (case.attempts[-1], case.dead_reconsume_times)


@pytest.mark.parametrize(("most", "level", "extra"), P1_BURIES_LATE)
def test_4_9_0_buries_late(most: int, level: int, extra: int) -> None:
    """The dead letter waits once more what it waited last, even if that was the producer's own level."""
    times = []
    for profile in (P4, P1):
        clock = VirtualClock()
        broker = Broker(clock, profile=profile)
        failing(broker).set_max_reconsume_times(most).start()
        DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_level(level))
        clock.run()
        (dead,) = broker.messages("%DLQ%G")
        times.append(dead.store_timestamp)

    assert times[1] - times[0] == extra


def test_a_delayed_message_begins_the_table_at_its_first_attempt() -> None:
    """Its own level is overwritten by the first retry's."""
    clock = VirtualClock()
    broker = Broker(clock)
    failing(broker).set_max_reconsume_times(2).start()
    DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_level(2))

    clock.run()

    assert [(d.time, d.properties["DELAY"]) for d in broker.deliveries] == [(5_000, "2"), (15_000, "3"), (45_000, "4")]


def test_another_group_is_not_disturbed() -> None:
    """Each group has a retry topic and a dead-letter queue of its own."""
    clock = VirtualClock()
    broker = Broker(clock)
    failing(broker, "bad").set_max_reconsume_times(1).start()
    good = DefaultMQPushConsumer(broker, "good").subscribe("T")
    good.register_message_listener(lambda *_: CONSUME_SUCCESS).start()
    DefaultMQProducer(broker).send(Message("T", b"x"))

    clock.run()

    assert [(d.time, d.group) for d in broker.deliveries] == [(0, "bad"), (0, "good"), (10_000, "bad")]
    assert (len(broker.messages("%DLQ%bad")), broker.messages("%DLQ%good")) == (1, [])


def test_the_dead_letter_queue_can_be_consumed_since_4_9_2() -> None:
    """Before, its topic is write-only."""
    counts = {}
    for profile in PROFILES.values():
        clock = VirtualClock()
        broker = Broker(clock, profile=profile)
        failing(broker).set_max_reconsume_times(0).start()
        undertaker = DefaultMQPushConsumer(broker, "U").subscribe("%DLQ%G")
        undertaker.register_message_listener(lambda *_: CONSUME_SUCCESS).start()
        DefaultMQProducer(broker).send(Message("T", b"x"))
        clock.run()
        counts[profile.name] = sum(delivery.group == "U" for delivery in broker.deliveries)

    assert counts == {"P1": 0, "P2": 1, "P3": 1, "P4": 1, "P5_EARLY": 1, "P5": 1, "P6": 1}


@pytest.mark.parametrize("case", SEND_BACK)
def test_a_send_back_stores_a_copy(case: SendBack) -> None:
    """Retry or dead-letter queue, by the request's maximum; a group without retry queues swallows the message."""
    broker = Broker(VirtualClock(), message_delay_level=case.levels)
    broker.create_subscription_group("G", retry_queue_nums=case.retry_queue_nums, retry_max_times=case.group_max)
    broker.put(MessageExt("T", 0, b"x", {}, 0, reconsume_times=case.reconsume_times))
    (stored,) = broker.messages("T")

    code = send_message_back(broker, stored, "G", delay_level=case.delay_level, max_reconsume_times=case.header_max)

    copies = [*broker.messages(SCHEDULE_TOPIC), *broker.messages("%RETRY%G"), *broker.messages("%DLQ%G")]
    found = [
        (copy.topic, copy.queue_id, copy.properties["DELAY"], copy.get_property("REAL_TOPIC"), copy.reconsume_times)
        for copy in copies
    ]
    assert (code, found) == (ResponseCode.SUCCESS, [] if case.stored is None else [case.stored])


def test_a_send_back_that_cannot_be_stored_is_a_system_error() -> None:
    """Which sends the client to its fallback."""
    broker = Broker(VirtualClock())
    broker.put(MessageExt("T", 0, b"x", {}, 0))
    (stored,) = broker.messages("T")
    broker.faults.put = lambda _: PutMessageStatus.OS_PAGE_CACHE_BUSY

    assert send_message_back(broker, stored, "G") is ResponseCode.SYSTEM_ERROR


def test_a_seeded_chooser_picks_the_retry_queue() -> None:
    """The first queue unless a chooser is given."""
    broker = Broker(VirtualClock(), choose_retry_queue=lambda queues: queues - 1)
    broker.create_subscription_group("G", retry_queue_nums=4)
    broker.put(MessageExt("T", 0, b"x", {}, 0))
    (stored,) = broker.messages("T")

    send_message_back(broker, stored, "G")

    assert broker.messages(SCHEDULE_TOPIC)[0].properties["REAL_QID"] == "3"


@pytest.mark.parametrize("case", FALLBACK, ids=lambda case: str(case.reconsume_times))
@pytest.mark.parametrize("profile", [P4, P6], ids=lambda profile: profile.name)
def test_a_fallback_is_judged_one_attempt_earlier_by_4_9(profile: Profile, case: Fallback) -> None:
    """And 4.9 lets what it buries wait first."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile)
    broker.put(MessageExt("T", 0, b"x", {}, 0, reconsume_times=case.reconsume_times))
    seen = broker.messages("T")[0].seen("T")

    is_sent = send_as_normal_message(broker, seen, "G", case.reconsume_times + 1, 16)
    at_once = [len(broker.messages(topic)) for topic in ("%RETRY%G", "%DLQ%G")]
    clock.run()

    topic, delay = case.stored_5 if profile.is_5 else case.stored_4
    (stored,) = broker.messages(topic)
    assert (is_sent, stored.properties["DELAY"], stored.reconsume_times) == (True, delay, case.counter)
    assert at_once == ([0, 1] if delay == "-1" else [0, 0])


def test_the_fallback_ignores_the_level_that_was_asked_for() -> None:
    """And is a new message as far as its birth is concerned; the log tells why it happened."""
    clock = VirtualClock()
    broker = Broker(clock)

    def listen(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        context.delay_level_when_next_consume = -1
        return RECONSUME_LATER if messages[0].reconsume_times == 0 else CONSUME_SUCCESS

    DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(listen).start()
    broker.faults.send_back = lambda _: ResponseCode.SYSTEM_ERROR
    DefaultMQProducer(broker).send(Message("T", b"x"))
    clock.run()

    assert [(d.time, d.reconsume_times, d.topic) for d in broker.deliveries] == [(0, 0, "T"), (10_000, 1, "T")]
    assert broker.deliveries[1].properties["MAX_RECONSUME_TIMES"] == "16"
    assert (0, SendBackFailed("G", b"x", ResponseCode.SYSTEM_ERROR)) in broker.log


def test_a_message_that_nobody_takes_back_stays_with_the_client() -> None:
    """The listener gets it every five seconds, with a counter of its own, until the broker is there again."""
    clock = VirtualClock()
    broker = Broker(clock)

    def listen(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        if messages[0].reconsume_times == 0:
            broker.crash()
        return RECONSUME_LATER if messages[0].reconsume_times < 3 else CONSUME_SUCCESS

    DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(listen).start()
    DefaultMQProducer(broker).send(Message("T", b"x"))
    clock.advance(12_000)
    broker.start()
    clock.run()

    # At 10 s the broker is away, at 15 s it is there; the stored message knows nothing of the client's counting.
    assert [(d.time, d.reconsume_times) for d in broker.deliveries] == [(0, 0), (5_000, 1), (10_000, 2), (15_000, 3)]


def test_a_listener_that_raises_has_failed() -> None:
    """Its error is in the log."""
    clock = VirtualClock()
    broker = Broker(clock)

    def listen(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        if messages[0].reconsume_times == 0:
            raise ValueError("no luck")
        return CONSUME_SUCCESS

    DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(listen).start()
    DefaultMQProducer(broker).send(Message("T", b"x"))
    clock.run()

    assert [delivery.time for delivery in broker.deliveries] == [0, 10_000]
    assert (0, ListenerRaised("G", "ValueError('no luck')")) in broker.log


def test_an_assertion_in_a_listener_fails_the_test() -> None:
    """It is not taken for a failed message."""
    clock = VirtualClock()
    broker = Broker(clock)

    def listen(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        raise AssertionError("found out")

    DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(listen).start()
    DefaultMQProducer(broker).send(Message("T", b"x"))

    with pytest.raises(AssertionError, match="found out"):
        clock.run()


@pytest.mark.parametrize(("level", "least", "most"), ARRIVAL_WINDOWS)
def test_a_hundred_messages_arrive_between_their_level_and_the_next(level: int, least: int, most: int) -> None:
    """RocketMQ's own integration test, with messages sent at any time of the poll."""
    clock = VirtualClock()
    broker = Broker(clock)
    producer = DefaultMQProducer(broker)
    for _ in range(100):
        clock.advance(37)
        producer.send(Message("T", b"x").set_delay_time_level(level))
    clock.run()

    waits = [message.store_timestamp - message.born_timestamp for message in broker.messages("T")]
    assert len(waits) == 100
    assert least <= min(waits) <= max(waits) <= most
    if level == CLOSE_ARRIVAL[0]:
        assert max(abs(wait - CLOSE_ARRIVAL[1]) for wait in waits) <= CLOSE_ARRIVAL[2]


def test_messages_that_fail_twice_are_retried_twice() -> None:
    """Ten messages make twenty retries and ten successes."""
    clock = VirtualClock()
    broker = Broker(clock)
    successes = []

    def listen(messages: Sequence[MessageExt], _: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        if messages[0].reconsume_times < RETRY_COUNT.failures:
            return RECONSUME_LATER
        successes.append(messages[0].body)
        return CONSUME_SUCCESS

    DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(listen).start()
    for number in range(RETRY_COUNT.messages):
        DefaultMQProducer(broker).send(Message("T", str(number).encode()))
    clock.run()

    retries = sum(delivery.reconsume_times > 0 for delivery in broker.deliveries)
    assert (retries, len(successes)) == (RETRY_COUNT.retries, RETRY_COUNT.successes)


def test_a_groups_own_maximum_counts_where_the_client_sends_none() -> None:
    """One retry makes two deliveries; the dead letter has the same id."""
    clock = VirtualClock()
    broker = Broker(clock)
    broker.create_subscription_group("G", retry_max_times=1)
    sent = DefaultMQProducer(broker).send(Message("T", b"x"))
    deliveries = 0
    while not broker.messages("%DLQ%G"):
        (latest,) = broker.messages("%RETRY%G")[-1:] or broker.messages("T")
        deliveries += 1
        send_message_back(broker, latest, "G")
        clock.run()

    (dead,) = broker.messages("%DLQ%G")
    assert (deliveries, dead.msg_id) == (GROUP_MAXIMUM_OF_ONE, sent.msg_id)
