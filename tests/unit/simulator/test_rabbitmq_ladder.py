"""The ladder in virtual time: every message comes out in the very millisecond that it is due."""

from datetime import timedelta

import pytest
from delayctl.simulator.rabbitmq import Broker, Delivery, Properties
from delayctl.testing import SimulatedBroker
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.ladder import headers_for
from delayctl.topology.parse import read_spec
from delayctl.topology.spec import Spec

from tests.support.climbs import Climb, climbs
from tests.unit.testing.conftest import Seen

EVERY = 3  # Milliseconds between two publishes.


def spec(wait: str = "type: classic", *, unit: str = "1ms") -> Spec:
    """A ladder of thirteen steps, and a queue behind it."""
    text = f"""
version: 1
delay: {{levels: [10s], any: {{unit: {unit}, steps: 13}}, queue: {{{wait}}}}}
routes:
  - {{key: "order.#", delay: any, to: target}}
retry:
  target: {{levels: [10s], max: 1, park: parked}}
"""
    return read_spec(text, {}, file="topology.yaml")


@pytest.mark.parametrize(
    ("wait", "version", "count"),
    [
        ("type: classic", "4.3", 2_000),
        ("type: classic", "3.10", 200),
        ("type: quorum", "4.3", 200),
        ("type: quorum", "3.10", 200),
        ("profile: safe", "4.3", 200),
        ("profile: safe", "3.10", 200),
    ],
)
def test_random_delays_to_the_millisecond(wait: str, version: str, count: int) -> None:
    """The script of the test on real brokers, once at its full length."""
    broker = Broker(expand(spec(wait)), version=version, log=False)
    messages = climbs(count)
    arrived: list[tuple[str | None, str, int]] = []

    def note(delivery: Delivery) -> None:
        arrived.append((delivery.properties.message_id, delivery.key, broker.clock.now))

    broker.consume("target", note, no_ack=True)

    for number, each in enumerate(messages):
        broker.clock.run_until(number * EVERY)
        _publish(broker, each)
    broker.clock.run()

    due = [(each.message_id, each.key, number * EVERY + each.units) for number, each in enumerate(messages)]
    assert sorted(arrived, key=str) == sorted(due, key=str)
    assert broker.count("delay.unrouted.queue").ready == 0


def _publish(broker: Broker, each: Climb) -> None:
    broker.publish(
        "delay.any.exchange",
        each.key,
        headers=headers_for(each.units),
        properties=Properties(message_id=each.message_id),
    )


def test_a_service_on_the_simulated_broker_takes_any_delay() -> None:
    """By publisher and consumer, delay and due time; what has waited carries its own key and headers."""
    with SimulatedBroker(spec(unit="1s")) as broker:
        seen = Seen(broker)
        broker.consumer({"target": seen})
        broker.publish("by delay", key="order.1", delay="37s", headers={"shop": "eu"})
        broker.publish("by time", key="order.2", due=broker.now + timedelta(seconds=41))
        broker.publish("at once", key="order.3", delay="0s")

        broker.advance("36s999ms")
        assert seen.at == [("0s", "at once")]
        assert [message.text for message in broker.waiting("any.00")] == ["by delay"]

        broker.advance("1h")
        assert seen.at == [("0s", "at once"), ("37s", "by delay"), ("41s", "by time")]
        assert [(message.key, message.headers.get("shop")) for message in seen.messages[1:]] == [
            ("order.1", "eu"),
            ("order.2", None),
        ]


def test_a_retry_waits_its_level_and_nothing_of_the_ladder() -> None:
    """The steps of the first wait are not sent on."""
    with SimulatedBroker(spec(unit="1s")) as broker:

        def fail(_: object) -> None:
            raise RuntimeError("no luck")

        seen = Seen(broker, fail)
        broker.consumer({"target": seen})
        broker.publish("order", key="order.1", delay=Duration(5_000))

        broker.advance("1h")

        assert seen.at == [("5s", "order"), ("15s", "order")]
        assert not [name for name in seen.messages[1].headers if name in headers_for(31)]
        assert [message.text for message in broker.messages("parked")] == ["order"]
