"""Brokers that fail, as services meet them: what is lost, what comes twice, and what is told."""

import threading
from pathlib import Path

import pika
import pytest
from delayctl.consumers import Message
from delayctl.publishers import DelayPublisher, Nacked, Unroutable
from delayctl.testing import SimulatedBroker
from delayctl.topology.errors import Unreachable

from testbed.wait import until
from tests.unit.testing.conftest import Seen


def texts(messages: list[Message]) -> list[str]:
    """What they say."""
    return [message.text for message in messages]


def test_a_publisher_comes_again_and_nothing_is_lost(broker: SimulatedBroker) -> None:
    """What was not confirmed is sent again: some messages are there twice, with the same id."""
    publisher = broker.publisher()
    with broker.silent():
        sent = [publisher.publish(str(number), key="reminder", delay="10s") for number in range(5)]
        until(lambda: len(broker.waiting("10s")) == 5, 10, every=0.01)
        assert publisher.unanswered == 5

        broker.drop_connections()

    ids = [delivery.result(10) for delivery in sent]
    assert texts(broker.waiting("10s")) == ["0", "1", "2", "3", "4"] * 2
    assert [message.message_id for message in broker.waiting("10s")] == ids * 2


def test_what_a_consumer_held_comes_again_when_its_connection_is_cut(broker: SimulatedBroker) -> None:
    """To the consumer that comes again, and marked as redelivered."""
    held = threading.Event()

    def stay_away(message: Message) -> None:
        if not message.redelivered:
            broker.drop_connections()
            held.set()

    seen = Seen(broker, stay_away)
    broker.consumer({"reminders": seen})
    broker.publish("x", key="reminder", delay="10s")

    broker.advance("10s", wait=False)
    assert held.wait(10)
    broker.await_consumers("reminders")
    broker.settle()

    assert [message.redelivered for message in seen.messages] == [False, True]
    assert broker.messages("reminders") == []


def test_a_message_that_is_refused_fails(broker: SimulatedBroker) -> None:
    """So many times as was asked for, and is not there."""
    broker.refuse_publishes(2)

    for _ in range(2):
        with pytest.raises(Nacked):
            broker.publish("x", key="reminder", delay="10s")
    broker.publish("y", key="reminder", delay="10s")

    assert texts(broker.waiting("10s")) == ["y"]


def test_a_full_queue_refuses(broker: SimulatedBroker) -> None:
    """Where its overflow is reject-publish: the topology is at work."""
    broker.publish("1", key="reminder", delay="1h")
    broker.publish("2", key="reminder", delay="1h")

    with pytest.raises(Nacked):
        broker.publish("3", key="reminder", delay="1h")

    broker.advance("1h")
    assert texts(broker.messages("reminders")) == ["1", "2"]


def test_a_key_that_nothing_is_bound_for_is_returned(broker: SimulatedBroker) -> None:
    """By an exchange without an alternate."""
    with pytest.raises(Unroutable):
        broker.publish("x", key="order.deleted", exchange="orders")


def test_a_key_that_leads_nowhere_after_its_delay_is_kept(broker: SimulatedBroker) -> None:
    """The topology's safety net."""
    broker.publish("x", key="nobody.listens", delay="10s")

    broker.advance("10s")

    assert texts(broker.messages("delay.unrouted.queue")) == ["x"]


def test_a_blocked_publisher_waits_and_goes_on(broker: SimulatedBroker) -> None:
    """It is told when it publishes, as by RabbitMQ, and nothing of it is taken; time can pass meanwhile."""
    publisher = broker.publisher()
    publisher.publish("before", key="reminder", delay="10s").result(10)
    with broker.blocked("disk is full"):
        assert not publisher.is_blocked
        waiting = [publisher.publish(text, key="reminder", delay="10s") for text in ("1", "2")]
        until(lambda: publisher.is_blocked, 10, every=0.01)

        broker.advance("10s")
        assert texts(broker.messages("reminders")) == ["before"]
        assert [each.done() for each in waiting] == [False, False]

    for each in waiting:
        each.result(10)
    assert not publisher.is_blocked
    broker.advance("10s")
    assert texts(broker.messages("reminders")) == ["before", "1", "2"]


def test_a_broker_that_is_away_lets_nobody_in(broker: SimulatedBroker, topology_file: Path) -> None:
    """Whoever was there comes again by itself."""
    publisher = broker.publisher()
    with broker.away():
        with pytest.raises(Unreachable):
            DelayPublisher(broker.url, topology=topology_file)
        sent = publisher.publish("x", key="reminder", delay="10s")
        broker.advance("5m")
        assert not sent.done()

    sent.result(10)
    assert texts(broker.waiting("10s")) == ["x"]


def test_a_retry_that_is_refused_is_not_lost(broker: SimulatedBroker) -> None:
    """The consumer gives the original back, and tries again."""
    seen = Seen(broker, lambda message: _fail() if not message.redelivered else None)
    broker.consumer({"timeouts": seen})
    broker.publish("x", key="order.created", exchange="orders")
    broker.settle()
    broker.refuse_publishes(1)

    broker.advance("15m")

    assert seen.at == [("15m", "x"), ("15m", "x")]
    assert [message.redelivered for message in seen.messages] == [False, True]


def test_a_consumer_goes_on_when_one_of_its_queues_is_deleted(broker: SimulatedBroker) -> None:
    """It is told, connects again, and consumes what is left."""
    seen = Seen(broker)
    broker.consumer({"timeouts": seen, "reminders": seen})
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    connection.channel().queue_delete("timeouts")
    connection.close()

    broker.publish("x", key="reminder", delay="10s")
    broker.advance("10s")
    until(lambda: seen.at, 10, what="the consumer's return", every=0.01)

    assert set(seen.at) == {("10s", "x")}
    assert broker.messages("reminders") == []


def test_faults_end_with_the_broker(topology_file: Path) -> None:
    """A test that ends in the middle of one is not kept waiting."""
    with SimulatedBroker(topology_file) as broker:
        publisher = broker.publisher()
        silence = broker.silent()
        silence.__enter__()
        sent = publisher.publish("x", key="reminder", delay="10s")

    assert sent.result(0)


def _fail() -> None:
    raise RuntimeError("no luck")
