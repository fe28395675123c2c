"""A level over several queues in virtual time: each message waits in one of them, and comes out when it is due."""

from collections import Counter

import pytest
from delayctl.publishers.publisher import DelayPublisher
from delayctl.simulator.rabbitmq import Broker, Delivery, Properties
from delayctl.simulator.rabbitmq_events import DeadLettered
from delayctl.testing import SimulatedBroker
from delayctl.topology.expand import expand
from delayctl.topology.parse import read_spec

SPEC = read_spec(
    """
version: 1
delay: {levels: {5s: {shards: 3}}}
routes:
  - {key: order.created, delay: 5s, to: target}
""",
    {},
    file="topology.yaml",
)
SHARDS = ["delay.5s.1.queue", "delay.5s.2.queue", "delay.5s.3.queue"]


@pytest.mark.parametrize("version", ["3.10", "4.3"])
def test_in_one_of_them_by_its_id(version: str) -> None:
    """All come out after five seconds, and messages without an id share a queue."""
    broker = Broker(expand(SPEC), version=version)
    arrived: list[tuple[int, str | None]] = []

    def note(delivery: Delivery) -> None:
        arrived.append((broker.clock.now, delivery.properties.message_id))

    broker.consume("target", note)
    for number in range(90):
        answer = broker.publish(
            "delay.5s.exchange", "order.created", properties=Properties(message_id=str(number)), mandatory=True
        )
        assert len(answer.queues) == 1
    plain = {broker.publish("delay.5s.exchange", "order.created").queues for _ in range(5)}
    broker.clock.advance(5_000)

    waited = Counter(event.queue for _, event in broker.log if isinstance(event, DeadLettered))
    assert sorted(waited) == SHARDS
    assert len(plain) == 1
    assert Counter(at for at, _ in arrived) == {5_000: 95}
    assert {name for _, name in arrived} == {None, *map(str, range(90))}


def test_a_service_under_test_sees_one_level() -> None:
    """It publishes as ever; what waits is found by the name of the level."""
    with SimulatedBroker(SPEC) as broker:
        with DelayPublisher(broker.url, topology=SPEC) as publisher:
            for number in range(30):
                publisher.publish(b"x", key="order.created", level="5s", message_id=str(number))
            publisher.flush(30)
        waiting = broker.waiting("5s")
        broker.advance("5s")
        arrived = broker.messages("target")

    assert len(waiting) == len(arrived) == 30
