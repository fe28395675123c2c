"""What a RocketMQ broker stores of a message, before and after its delay."""

from typing import Any

import pytest
from delayctl.simulator.rocketmq import (
    P4,
    P6,
    SCHEDULE_TOPIC,
    Broker,
    DefaultMQProducer,
    Discarded,
    Message,
    MessageExt,
    MQBrokerError,
    MQClientError,
    NumberFormatError,
    Profile,
    PutMessageStatus,
    ResponseCode,
    SendStatus,
    UnsupportedOperationError,
    VirtualClock,
)
from delayctl.simulator.rocketmq_codes import response_code
from delayctl.simulator.rocketmq_message import check_batch, tags_code

from tests.unit.simulator.rocketmq_vectors import PUT, PUT_NO_NUMBER, STATUS_TO_RESPONSE, TAGS_CODE, Put

TRANSACTION = {"NOT": 0x0, "PREPARED": 0x4, "COMMIT": 0x8, "ROLLBACK": 0xC}


@pytest.fixture
def clock() -> VirtualClock:
    """Time, at 0."""
    return VirtualClock()


@pytest.fixture
def broker(clock: VirtualClock) -> Broker:
    """A broker of release 4.9, started at 0."""
    return Broker(clock, profile=P4)


def only(broker: Broker, topic: str) -> MessageExt:
    """The one message of a topic."""
    (message,) = broker.messages(topic)
    return message


@pytest.mark.parametrize("case", PUT, ids=lambda case: f"{case.delay}-{case.transaction}")
def test_a_level_above_zero_changes_topic_and_queue(broker: Broker, case: Put) -> None:
    """The real ones are kept as properties; a level above the last is rewritten to the last."""
    properties = {} if case.delay is None else {"DELAY": case.delay}
    message = MessageExt("T", 2, b"x", properties, 0, sys_flag=TRANSACTION[case.transaction])

    status = broker.put(message)

    stored = only(broker, case.topic)
    assert status is PutMessageStatus.PUT_OK
    assert (stored.queue_id, stored.properties) == (case.queue_id, case.properties)


@pytest.mark.parametrize("text", PUT_NO_NUMBER)
def test_a_level_that_is_no_number_is_an_error_of_the_put(broker: Broker, text: str) -> None:
    """The producer hears of a system error."""
    message = Message("T", b"x").put_user_property("DELAY", text)

    with pytest.raises(NumberFormatError) as raised:
        DefaultMQProducer(broker).send(message)

    assert raised.value.response_code is ResponseCode.SYSTEM_ERROR


def test_the_due_time_counts_from_the_store_time(clock: VirtualClock, broker: Broker) -> None:
    """It is what the queue holds instead of the tag's code."""
    clock.advance(1_234)
    DefaultMQProducer(broker).send(Message("T", b"x", tags="TagA").set_delay_time_level(3))

    stored = only(broker, SCHEDULE_TOPIC)
    assert (stored.store_timestamp, stored.tags_code) == (1_234, 11_234)


def test_a_delivered_message_still_shows_that_it_was_delayed(clock: VirtualClock, broker: Broker) -> None:
    """All of its properties, its id and its birth are kept; its store time is that of the delivery."""
    clock.advance(50)
    message = Message("T", b"x", tags="TagA", keys="k").put_user_property("colour", "red").set_delay_time_level(3)
    sent = DefaultMQProducer(broker).send(message, queue_id=2)

    clock.run()

    stored = only(broker, "T")
    assert (stored.queue_id, stored.born_timestamp, stored.store_timestamp, stored.reconsume_times) == (
        2,
        50,
        10_100,
        0,
    )
    assert (stored.msg_id, stored.tags_code) == (sent.msg_id, 2_598_919)
    assert stored.properties == {
        "WAIT": "true",
        "TAGS": "TagA",
        "KEYS": "k",
        "colour": "red",
        "DELAY": "3",
        "UNIQ_KEY": sent.msg_id,
        "REAL_TOPIC": "T",
        "REAL_QID": "2",
    }


def test_a_level_of_five_and_eight_seconds_clamps_the_third(clock: VirtualClock) -> None:
    """RocketMQ's own test: nothing before the time, the message with its body after it."""
    broker = Broker(clock, message_delay_level="5s 8s")
    DefaultMQProducer(broker).send(Message("T", b"body").set_delay_time_level(3))

    clock.advance(7_999)
    before = broker.messages("T")
    clock.advance(1)

    assert (before, [message.body for message in broker.messages("T")]) == ([], [b"body"])


def test_levels_beyond_eighteen_have_queues_too(clock: VirtualClock) -> None:
    """The topic is made with 18 and grows."""
    broker = Broker(clock, message_delay_level=" ".join(["1s"] * 20))
    DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_level(20))

    assert only(broker, SCHEDULE_TOPIC).queue_id == 19


def test_a_broker_without_levels_loses_what_is_delayed(clock: VirtualClock) -> None:
    """A string of spaces is a table without levels: the message goes to a queue that nobody serves."""
    broker = Broker(clock, message_delay_level=" ")
    DefaultMQProducer(broker).send(Message("T", b"x").set_delay_time_level(1))
    clock.run()

    assert broker.messages("T") == []
    assert broker.log[1:] == [(0, Discarded(SCHEDULE_TOPIC, b"x", "the broker has no level at all"))]


@pytest.mark.parametrize(("tags", "code"), TAGS_CODE)
def test_a_tags_code_is_javas_hash(tags: str | None, code: int) -> None:
    """Zero for none."""
    assert tags_code(tags) == code


@pytest.mark.parametrize(
    "messages",
    [
        [Message("T", b"x").set_delay_time_level(1)],
        [Message("%RETRY%G", b"x")],
        [Message("T", b"x"), Message("U", b"x")],
        [Message("T", b"x"), Message("T", b"x").put_user_property("WAIT", "false")],
    ],
    ids=["delayed", "retry", "two topics", "two ways to wait"],
)
def test_a_batch_refuses_what_it_cannot_hold(messages: list[Message]) -> None:
    """As `MessageBatch.generateFromList` does."""
    with pytest.raises(UnsupportedOperationError):
        check_batch(messages)


def test_a_batch_of_plain_messages_is_sent(broker: Broker) -> None:
    """Level 0 is no delay."""
    DefaultMQProducer(broker).send_batch([Message("T", b"a"), Message("T", b"b").set_delay_time_level(0)])

    assert [message.body for message in broker.messages("T")] == [b"a", b"b"]


def test_the_java_client_strips_the_level_of_a_transaction(clock: VirtualClock, broker: Broker) -> None:
    """So the message is delivered at once."""
    DefaultMQProducer(broker).send_message_in_transaction(Message("T", b"x").set_delay_time_level(3))

    assert (only(broker, "T").body, clock.now) == (b"x", 0)


def test_a_rolled_back_transaction_delivers_nothing(broker: Broker) -> None:
    """Only the half message is stored."""
    DefaultMQProducer(broker).send_message_in_transaction(Message("T", b"x"), commit=False)

    assert (broker.messages("T"), only(broker, "RMQ_SYS_TRANS_HALF_TOPIC").body) == ([], b"x")


def test_a_delayed_half_message_is_lost(clock: VirtualClock, broker: Broker) -> None:
    """Another client may leave the level on it; the deliver loop discards it."""
    producer = DefaultMQProducer(broker)
    producer.send_message_in_transaction(Message("T", b"x").set_delay_time_level(1), strips_delay=False)
    clock.run()

    assert broker.messages("T") == broker.messages("RMQ_SYS_TRANS_HALF_TOPIC") == []
    discarded = Discarded("RMQ_SYS_TRANS_HALF_TOPIC", b"x", "a half message must not be delayed")
    assert broker.log[-1] == (1_000, discarded)


def test_nobody_sends_to_the_schedule_topic(broker: Broker) -> None:
    """It is the broker's own."""
    with pytest.raises(MQClientError, match="forbidden"):
        DefaultMQProducer(broker).send(Message(SCHEDULE_TOPIC, b"x"))
    with pytest.raises(MQClientError, match="forbidden"):
        DefaultMQProducer(broker).send(Message(SCHEDULE_TOPIC, b"x"), queue_id=0)


@pytest.mark.parametrize(("status", "code"), STATUS_TO_RESPONSE)
def test_every_status_has_its_answer(status: PutMessageStatus, code: ResponseCode) -> None:
    """What the sender hears."""
    assert response_code(status) is code


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (PutMessageStatus.FLUSH_DISK_TIMEOUT, SendStatus.FLUSH_DISK_TIMEOUT),
        (PutMessageStatus.SLAVE_NOT_AVAILABLE, SendStatus.SLAVE_NOT_AVAILABLE),
    ],
)
def test_a_late_flush_stores_the_message_all_the_same(
    broker: Broker, status: PutMessageStatus, told: SendStatus
) -> None:
    """The sender is told, and nothing is raised."""
    broker.faults.put = lambda _: status

    result = DefaultMQProducer(broker).send(Message("T", b"x"))

    assert (result.send_status, only(broker, "T").body) == (told, b"x")


def test_a_put_that_fails_is_raised_to_the_sender(broker: Broker) -> None:
    """With the broker's answer."""
    broker.faults.put = lambda _: PutMessageStatus.OS_PAGE_CACHE_BUSY

    with pytest.raises(MQBrokerError) as raised:
        DefaultMQProducer(broker).send(Message("T", b"x"))

    assert (raised.value.response_code, broker.messages("T")) == (ResponseCode.SYSTEM_ERROR, [])


def test_the_same_object_sent_twice_keeps_its_id(broker: Broker) -> None:
    """As in Java, where the id is a property of the message."""
    producer = DefaultMQProducer(broker)
    message = Message("T", b"x")

    assert producer.send(message).msg_id == producer.send(message).msg_id != producer.send(Message("T", b"x")).msg_id


def test_a_stopped_broker_takes_nothing(broker: Broker) -> None:
    """The sender hears so."""
    broker.shutdown()

    with pytest.raises(MQBrokerError, match="SERVICE_NOT_AVAILABLE"):
        DefaultMQProducer(broker).send(Message("T", b"x"))


def test_what_was_stored_is_not_changed_through_the_senders_object(clock: VirtualClock, broker: Broker) -> None:
    """The broker has a copy of its own."""
    message = Message("T", b"x").put_user_property("colour", "red")
    DefaultMQProducer(broker).send(message)
    message.put_user_property("colour", "blue")

    found: Any = only(broker, "T").get_property("colour")
    assert found == "red"


@pytest.mark.parametrize(("profile", "kept"), [(P4, {}), (P6, {"WAIT": "true"})], ids=["P4", "P6"])
def test_4_9_stores_a_message_that_is_not_delayed_without_wait(profile: Profile, kept: dict[str, str]) -> None:
    """As recorded of 4.9.7 and 5.3.3."""
    broker = Broker(VirtualClock(), profile=profile)
    sent = DefaultMQProducer(broker).send(Message("T", b"x"))

    assert only(broker, "T").properties == {"UNIQ_KEY": sent.msg_id, **kept}


@pytest.mark.parametrize(("level", "status"), [("1", PutMessageStatus.MESSAGE_ILLEGAL), ("0", PutMessageStatus.PUT_OK)])
def test_the_store_refuses_a_batch_that_asks_for_a_delay(broker: Broker, level: str, status: PutMessageStatus) -> None:
    """Where another client than Java's made one."""
    container = MessageExt("T", 0, b"", {"DELAY": level}, 0)

    found = broker.put_batch(container, [MessageExt("T", 0, b"a", {}, 0), MessageExt("T", 0, b"b", {}, 0)])

    stored = [message.body for message in broker.messages("T")]
    assert (found, stored) == (status, [b"a", b"b"] if level == "0" else [])
