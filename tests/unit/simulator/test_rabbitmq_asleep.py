"""Retries that wait in a quorum queue, as RabbitMQ 4.3.6 was seen to do it."""

import pytest
from delayctl.simulator.rabbitmq import Broker, Delivery
from delayctl.topology.duration import Duration
from delayctl.topology.errors import Refused
from delayctl.topology.model import Queue, Settings

from tests.unit.simulator.rabbitmq_parts import bodies, broker_with


def _queue(*, ttl: int | None = None, kind: str = "failed") -> Queue:
    settings = Settings(
        type="quorum",
        ttl=None if ttl is None else Duration(ttl),
        delivery_limit=3,
        dead_letter_exchange="",
        dead_letter_key="dead",
        retry_type=kind,
        retry_min=Duration(400),
        retry_max=Duration(1_000),
    )
    return Queue("work", settings)


def _broker(*texts: bytes, ttl: int | None = None, version: str = "4.3") -> Broker:
    broker = broker_with(_queue(ttl=ttl), Queue("dead"), version=version)
    for text in texts:
        broker.publish("", "work", text)
    return broker


def _taken(broker: Broker) -> Delivery:
    delivery = broker.get("work")
    assert delivery is not None
    return delivery


def test_each_failure_waits_a_step_more_up_to_the_longest_and_the_last_is_its_end() -> None:
    """400 ms, 800 ms, 1 s, then dead-lettered as delivered too often."""
    broker = _broker(b"x")
    seen: list[tuple[int, object]] = []

    def refuse(delivery: Delivery) -> None:
        seen.append((broker.clock.now, delivery.headers.get("x-delivery-count")))
        broker.reject(delivery, requeue=True)

    broker.consume("work", refuse)
    broker.clock.run()

    (dead,) = broker.peek("dead")
    assert seen == [(0, None), (400, 1), (1_200, 2), (2_200, 3)]
    assert (dead.headers["x-first-death-reason"], broker.clock.now) == ("delivery_limit", 2_200)


def test_what_waits_is_not_ready_and_comes_back_in_front() -> None:
    """Others overtake it meanwhile."""
    broker = _broker(b"a", b"b", b"c")
    broker.reject(_taken(broker), requeue=True)

    assert (bodies(broker, "work"), broker.count("work").ready) == ([b"b", b"c"], 2)
    broker.clock.advance(399)
    assert bodies(broker, "work") == [b"b", b"c"]
    broker.clock.advance(1)
    assert bodies(broker, "work") == [b"a", b"b", b"c"]


def test_those_that_wait_equally_long_come_back_in_the_order_of_their_failures() -> None:
    """Not in that of the queue."""
    broker = _broker(b"a", b"b", b"c", b"d")
    first, second, third = (_taken(broker) for _ in range(3))
    for delivery in (second, first, third):
        broker.reject(delivery, requeue=True)

    broker.clock.advance(400)

    assert bodies(broker, "work") == [b"b", b"a", b"c", b"d"]


def test_what_is_nacked_comes_at_once_and_does_not_count() -> None:
    """The next failure is the first."""
    broker = _broker(b"x")
    for _ in range(2):
        broker.nack(_taken(broker), requeue=True)
    broker.reject(_taken(broker), requeue=True)

    broker.clock.advance(400)

    assert [delivery.headers["x-delivery-count"] for delivery in broker.peek("work")] == [1]


def test_it_does_not_expire_while_it_waits() -> None:
    """But when it is ready again."""
    broker = _broker(b"x", ttl=150)
    broker.reject(_taken(broker), requeue=True)

    broker.clock.advance(399)
    assert bodies(broker, "dead") == []
    broker.clock.advance(1)

    assert [delivery.headers["x-first-death-reason"] for delivery in broker.peek("dead")] == ["expired"]


def test_a_purge_takes_what_waits() -> None:
    """And counts it."""
    broker = _broker(b"x")
    broker.reject(_taken(broker), requeue=True)

    assert broker.purge("work") == 1
    broker.clock.run()
    assert bodies(broker, "work") == []


def test_an_old_broker_lets_nothing_wait() -> None:
    """It takes the arguments for somebody else's."""
    broker = _broker(b"x", version="3.10")
    broker.reject(_taken(broker), requeue=True)

    assert bodies(broker, "work") == [b"x"]


def test_a_wait_of_another_kind_is_refused() -> None:
    """Instead of being imitated badly."""
    with pytest.raises(Refused, match="retries of what is all are not modelled"):
        broker_with(_queue(kind="all"))
