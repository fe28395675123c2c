"""RocketMQ's consumers: batches, acknowledgements, broadcasting, slow listeners, sharing, order."""

from collections.abc import Sequence

import pytest
from delayctl.simulator.rocketmq import (
    CONSUME_SUCCESS,
    P3,
    P4,
    P5,
    P5_EARLY,
    P6,
    RECONSUME_LATER,
    SCHEDULE_TOPIC,
    Broker,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    DefaultMQProducer,
    DefaultMQPushConsumer,
    Discarded,
    Message,
    MessageExt,
    MessageModel,
    MQClientError,
    Profile,
    Takes,
    VirtualClock,
)
from delayctl.simulator.rocketmq_orderly import suspend_time
from delayctl.simulator.rocketmq_settings import ConsumerSettings

from tests.unit.simulator.rocketmq_vectors import CLIENT_RESULT, ORDERLY_NO_MAXIMUM, SUSPEND

MINUTE = 60_000
ORDERLY_SUCCESS = ConsumeOrderlyStatus.SUCCESS
ORDERLY_SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


def succeeds(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
    """A listener that always succeeds."""
    return CONSUME_SUCCESS


def fails(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
    """A listener that always fails."""
    return RECONSUME_LATER


def send(broker: Broker, *bodies: bytes, queue_id: int | None = 0) -> None:
    """Send to topic T."""
    producer = DefaultMQProducer(broker)
    for body in bodies:
        producer.send(Message("T", body), queue_id=queue_id)


@pytest.mark.parametrize(("answer", "ack_index", "size", "sent_back"), CLIENT_RESULT)
def test_what_was_not_acknowledged_is_sent_back(
    answer: str | None, ack_index: int | None, size: int, sent_back: list[int]
) -> None:
    """A success acknowledges up to the index, a failure nothing."""
    clock = VirtualClock()
    broker = Broker(clock)
    batches = []

    def listen(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus | None:
        batches.append(len(messages))
        if ack_index is not None:
            context.ack_index = ack_index
        return None if answer is None else ConsumeConcurrentlyStatus(answer)

    send(broker, *[str(number).encode() for number in range(size)])
    consumer = DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(listen)
    consumer.set_consume_message_batch_max_size(size).start()
    clock.advance(0)

    assert batches == [size]
    assert [int(message.body) for message in broker.messages(SCHEDULE_TOPIC)] == sent_back


def test_broadcasting_drops_what_fails() -> None:
    """Every consumer gets every message once; nothing is tried again."""
    clock = VirtualClock()
    broker = Broker(clock)
    for listener in (fails, succeeds):
        consumer = DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(listener)
        consumer.set_message_model(MessageModel.BROADCASTING).start()
    send(broker, *[b"x"] * 16)

    clock.run()

    dropped = [event for _, event in broker.log if isinstance(event, Discarded)]
    assert (len(broker.deliveries), broker.messages(SCHEDULE_TOPIC), clock.now) == (32, [], 0)
    assert dropped == [Discarded("T", b"x", "broadcasting does not try again")] * 16


def test_a_group_shares_the_queues() -> None:
    """Two consumers read two of four queues each; when one leaves, the other reads all."""
    clock = VirtualClock()
    broker = Broker(clock)
    seen: dict[str, list[bytes]] = {"a": [], "b": []}

    def consumer(name: str) -> DefaultMQPushConsumer:
        def listen(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
            seen[name].extend(message.body for message in messages)
            return CONSUME_SUCCESS

        return DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(listen).start()

    consumer("a")
    leaving = consumer("b")
    send(broker, b"0", b"1", b"2", b"3", queue_id=None)
    clock.run()
    leaving.shutdown()
    send(broker, b"4", b"5", b"6", b"7", queue_id=None)
    clock.run()

    assert seen == {"a": [b"0", b"1", b"4", b"5", b"6", b"7"], "b": [b"2", b"3"]}


def test_what_a_leaving_consumer_has_not_finished_goes_to_another() -> None:
    """Its own answer counts no more: no send-back, no offset."""
    clock = VirtualClock()
    broker = Broker(clock)
    slow = DefaultMQPushConsumer(broker, "G").subscribe("T")
    slow.register_message_listener(lambda *_: Takes(10_000, RECONSUME_LATER)).start()
    send(broker, b"x")
    clock.advance(5_000)
    slow.shutdown()
    DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(succeeds).start()
    clock.run()

    assert [(d.time, d.reconsume_times) for d in broker.deliveries] == [(0, 0), (5_000, 0)]
    assert broker.messages(SCHEDULE_TOPIC) == []


@pytest.mark.parametrize(
    ("profile", "attempts"),
    [(P4, [(0, 0), (1_810_000, 1), (2_410_000, 1)]), (P6, [(0, 0), (1_810_000, 1)])],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_listener_that_takes_longer_than_a_quarter_of_an_hour(
    profile: Profile, attempts: list[tuple[int, int]]
) -> None:
    """The next look after that sends the message back at level 3; before 5.1 its own failure makes a second copy."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile)

    def listen(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus | Takes[ConsumeConcurrentlyStatus]:
        return CONSUME_SUCCESS if messages[0].reconsume_times else Takes(40 * MINUTE, RECONSUME_LATER)

    DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener(listen).start()
    send(broker, b"x")
    clock.run()

    # Looks are at 15 and 30 minutes; at the first the message has not been running for longer than 15.
    assert [(d.time, d.reconsume_times) for d in broker.deliveries] == attempts


def test_messages_that_take_too_long_are_sent_back_in_the_order_in_which_they_were_taken() -> None:
    """In every process the same: nothing depends on where Python happens to keep an object."""
    clock = VirtualClock()
    broker = Broker(clock)
    topics = [f"T{number}" for number in range(30)]
    consumer = DefaultMQPushConsumer(broker, "G")
    for topic in topics:
        consumer.subscribe(topic)
    consumer.register_message_listener(
        lambda messages, _: CONSUME_SUCCESS if messages[0].reconsume_times else Takes(40 * MINUTE, CONSUME_SUCCESS)
    ).start()
    producer = DefaultMQProducer(broker)

    for topic in topics:
        producer.send(Message(topic, topic.encode()), queue_id=0)
    clock.run()

    assert [delivery.body.decode() for delivery in broker.deliveries if delivery.reconsume_times] == topics


def test_a_slow_listener_holds_the_groups_offset() -> None:
    """What follows is consumed, and would be consumed again by a consumer that starts over."""
    clock = VirtualClock()
    broker = Broker(clock)
    consumer = DefaultMQPushConsumer(broker, "G").subscribe("T")
    consumer.register_message_listener(
        lambda messages, _: Takes(60_000, CONSUME_SUCCESS) if messages[0].body == b"slow" else CONSUME_SUCCESS
    ).start()
    send(broker, b"slow", b"quick")
    clock.advance(1_000)
    early = [message.body for message in broker.messages("T")]
    clock.run()

    assert (early, broker.messages("T")) == ([b"slow", b"quick"], [])


def test_tags_are_filtered_but_not_on_retries() -> None:
    """The retry topic is subscribed as a whole."""
    clock = VirtualClock()
    broker = Broker(clock)
    consumer = DefaultMQPushConsumer(broker, "G").subscribe("T", "TagA || TagB").register_message_listener(fails)
    consumer.set_max_reconsume_times(1).start()
    producer = DefaultMQProducer(broker)
    for tags in ("TagA", "TagB", "TagC", ""):
        producer.send(Message("T", tags.encode(), tags=tags), queue_id=0)

    clock.run()

    expected = [(0, b"TagA"), (0, b"TagB"), (10_000, b"TagA"), (10_000, b"TagB")]
    assert [(delivery.time, delivery.body) for delivery in broker.deliveries] == expected


def test_a_new_group_begins_with_what_is_there() -> None:
    """Even with CONSUME_FROM_LAST_OFFSET, as long as the queue has lost nothing; by time stamp only what is recent."""
    clock = VirtualClock()
    broker = Broker(clock)
    send(broker, b"old")
    clock.advance(31 * MINUTE)
    send(broker, b"new")
    DefaultMQPushConsumer(broker, "all").subscribe("T").register_message_listener(succeeds).start()
    recent = DefaultMQPushConsumer(broker, "recent").subscribe("T").register_message_listener(succeeds)
    recent.set_consume_from_where(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP).start()
    clock.run()

    assert [(d.group, d.body) for d in broker.deliveries] == [("all", b"old"), ("all", b"new"), ("recent", b"new")]


def test_what_a_listener_does_to_a_message_stays_with_it() -> None:
    """Another group sees the message as it was stored."""
    clock = VirtualClock()
    broker = Broker(clock)
    seen = []

    def listen(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        seen.append(messages[0].get_property("mark"))
        messages[0].properties["mark"] = "mine"
        return CONSUME_SUCCESS

    for group in ("a", "b"):
        DefaultMQPushConsumer(broker, group).subscribe("T").register_message_listener(listen).start()
    send(broker, b"x")
    clock.run()

    assert seen == [None, None]


def test_a_consumer_without_a_listener_does_not_start() -> None:
    """It says what is missing."""
    with pytest.raises(MQClientError, match="register_message_listener"):
        DefaultMQPushConsumer(Broker(VirtualClock()), "G").subscribe("T").start()


@pytest.mark.parametrize(("context", "consumer", "expected"), SUSPEND)
def test_for_how_long_an_ordered_queue_pauses(context: int, consumer: int, expected: int) -> None:
    """Between 10 ms and 30 s."""
    assert suspend_time(context, consumer) == expected


def test_an_ordered_consumer_has_no_maximum_unless_it_is_set() -> None:
    """As many retries as an int can count."""
    assert ConsumerSettings("G").max_retries_in_order == ORDERLY_NO_MAXIMUM


@pytest.mark.parametrize("status", [ORDERLY_SUSPEND, None], ids=["suspend", "none"])
def test_a_failed_message_stops_its_queue_only(status: ConsumeOrderlyStatus | None) -> None:
    """It is given again after a second, from memory; what follows waits behind it, other queues go on."""
    clock = VirtualClock()
    broker = Broker(clock)

    def listen(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus | None:
        is_bad = messages[0].body == b"bad" and messages[0].reconsume_times < 2
        return status if is_bad else ORDERLY_SUCCESS

    DefaultMQPushConsumer(broker, "G").subscribe("T").register_message_listener_orderly(listen).start()
    send(broker, b"bad", b"behind")
    send(broker, b"beside", queue_id=1)
    clock.run()

    assert [(d.time, d.body, d.reconsume_times) for d in broker.deliveries] == [
        (0, b"bad", 0),
        (0, b"beside", 0),
        (1_000, b"bad", 1),
        (2_000, b"bad", 2),
        (2_000, b"behind", 0),
    ]
    assert broker.messages(SCHEDULE_TOPIC) == []


@pytest.mark.parametrize("status", [ConsumeOrderlyStatus.COMMIT, ConsumeOrderlyStatus.ROLLBACK])
def test_commit_and_rollback_count_as_success(status: ConsumeOrderlyStatus) -> None:
    """Since commits are automatic."""
    clock = VirtualClock()
    broker = Broker(clock)
    consumer = DefaultMQPushConsumer(broker, "G").subscribe("T")
    consumer.register_message_listener_orderly(lambda *_: status).start()
    send(broker, b"x")
    clock.run()

    assert len(broker.deliveries) == 1


@pytest.mark.parametrize(
    ("profile", "buried_at"),
    [(P3, 3_000 + 120_000), (P4, 3_000 + 120_000), (P5, 3_000), (P6, 3_000)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_ordered_message_that_failed_too_often_is_buried(profile: Profile, buried_at: int) -> None:
    """Three retries make four deliveries; 4.9 lets the dead letter wait level 3 + 3 first."""
    clock = VirtualClock()
    broker = Broker(clock, profile=profile)
    consumer = DefaultMQPushConsumer(broker, "G").subscribe("T")
    consumer.register_message_listener_orderly(lambda *_: ORDERLY_SUSPEND)
    consumer.set_max_reconsume_times(3).start()
    send(broker, b"x")
    clock.run()

    (dead,) = broker.messages("%DLQ%G")
    # The first poll that sees the dead letter is on the grid of tenths of a second already.
    assert ([delivery.time for delivery in broker.deliveries], dead.store_timestamp) == (
        [0, 1_000, 2_000, 3_000],
        buried_at,
    )
    assert dead.properties["ORIGIN_MESSAGE_ID"] == dead.msg_id


def test_5_0_never_buries_an_ordered_message() -> None:
    """It comes back through the retry topic at level 6, again and again."""
    clock = VirtualClock()
    broker = Broker(clock, profile=P5_EARLY)
    consumer = DefaultMQPushConsumer(broker, "G").subscribe("T")
    consumer.register_message_listener_orderly(lambda *_: ORDERLY_SUSPEND)
    consumer.set_max_reconsume_times(3).start()
    send(broker, b"x")
    clock.run_until(400_000)

    times = [delivery.time for delivery in broker.deliveries]
    assert (times, broker.messages("%DLQ%G")) == ([0, 1_000, 2_000, 3_000, 123_000, 243_000, 363_000], [])
