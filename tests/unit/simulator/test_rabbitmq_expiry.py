"""How messages expire: at the head of a queue only, by the queue's time to live or their own."""

from dataclasses import replace
from typing import Literal

import pytest
from delayctl.simulator.rabbitmq import Broker, Properties
from delayctl.simulator.rabbitmq_events import Acked, DeadLettered, Delivered, Dropped, Published, QueueExpired
from delayctl.topology.duration import Duration
from delayctl.topology.model import Policy, Queue, Settings

from tests.support.examples import shop
from tests.unit.simulator.rabbitmq_parts import bodies, broker_with, delay, take_all


def test_a_delay_from_the_publish_to_the_acknowledgement() -> None:
    """The whole way through a topology as delayctl applies it, five minutes in no time."""
    broker = Broker(shop())
    broker.consume("orders.queue", broker.ack, tag="service")

    broker.publish("orders.exchange", "order.created", b"order 1", mandatory=True)
    broker.clock.run()

    assert broker.log == [
        (0, Published(1, "orders.exchange", "order.created", ("delay.5m.queue",))),
        (300_000, DeadLettered(1, "delay.5m.queue", "expired", "delay.exchange", "order.created", ("orders.queue",))),
        (300_000, Delivered(1, "orders.queue", "service")),
        (300_000, Acked(1, "orders.queue")),
    ]


def test_a_message_does_not_leave_before_its_time() -> None:
    """Not by a millisecond."""
    broker = broker_with(delay("wait", 1_000), Queue("work"))
    broker.publish("", "wait")

    broker.clock.advance(999)
    before = broker.count("work").ready
    broker.clock.advance(1)

    assert (before, broker.count("work").ready) == (0, 1)


def test_only_the_head_expires() -> None:
    """The second message's second is long over when the first lets it go."""
    broker = broker_with(delay("wait", None), Queue("work"))
    broker.publish("", "wait", b"slow", properties=Properties(expiration="4000"))
    broker.publish("", "wait", b"fast", properties=Properties(expiration="500"))
    broker.clock.run()

    assert [(time, event.message) for time, event in broker.log if isinstance(event, DeadLettered)] == [
        (4_000, 1),
        (4_000, 2),
    ]


def test_the_shorter_time_counts() -> None:
    """Of the queue's and the message's own."""
    broker = broker_with(delay("wait", 1_000), Queue("work"))
    broker.publish("", "wait", properties=Properties(expiration="200"))
    broker.clock.run()
    broker.publish("", "wait", properties=Properties(expiration="5000"))
    broker.clock.run()

    assert [time for time, event in broker.log if isinstance(event, DeadLettered)] == [200, 1_200]


def test_an_expiration_counts_once() -> None:
    """After a death it is gone from the message; x-death remembers it."""
    broker = broker_with(delay("wait", None), Queue("work"))
    broker.publish("", "wait", properties=Properties(expiration="200", message_id="m"))
    broker.clock.run()

    delivery = broker.get("work")

    assert delivery is not None
    assert delivery.properties == Properties(message_id="m")
    assert delivery.headers["x-death"] == [
        {
            "count": 1,
            "reason": "expired",
            "queue": "wait",
            "time": 0,
            "exchange": "",
            "routing-keys": ["wait"],
            "original-expiration": "200",
        }
    ]


def test_without_a_dead_letter_exchange_what_expires_is_gone() -> None:
    """Nobody is told."""
    broker = broker_with(Queue("wait", Settings(ttl=Duration(100))))
    broker.publish("", "wait")
    broker.clock.run()

    assert broker.log[-1] == (100, Dropped(1, "wait", "expired"))


def test_a_time_to_live_of_nothing_lets_waiting_consumers_have_it() -> None:
    """A queue with TTL 0 hands over, or lets go; it keeps nothing."""
    broker = broker_with(delay("wait", 0), Queue("work"))
    broker.publish("", "wait", b"nobody is there")
    seen: list[bytes] = []
    broker.consume("wait", lambda delivery: seen.append(delivery.body), no_ack=True)
    broker.publish("", "wait", b"somebody is")

    assert (seen, bodies(broker, "work")) == ([b"somebody is"], [b"nobody is there"])


def test_what_a_consumer_has_does_not_expire() -> None:
    """It keeps the time that it came with all the same: given back late, it leaves at once."""
    broker = broker_with(delay("wait", 1_000), Queue("work"))
    broker.publish("", "wait")
    delivery = broker.get("wait")
    assert delivery is not None
    broker.clock.advance(5_000)
    meanwhile = broker.count("wait")

    broker.reject(delivery, requeue=True)

    assert (meanwhile, broker.count("wait"), broker.count("work").ready) == ((0, 1, 0), (0, 0, 0), 1)


def test_a_shorter_policy_does_not_hasten_what_waits() -> None:
    """Expiry is stamped when a message comes; a new one with less time waits behind an old one with more."""
    broker = broker_with(delay("wait", 6_000), Queue("work"))
    broker.publish("", "wait", b"old")
    broker.clock.advance(500)
    broker.set_policy(Policy("shorter", "wait", "queues", 0, (("message-ttl", 1_000),)))
    broker.publish("", "wait", b"new")
    broker.clock.run()

    assert [time for time, event in broker.log if isinstance(event, DeadLettered)] == [6_000, 6_000]
    assert take_all(broker, "work") == [b"old", b"new"]


def test_in_a_new_quorum_queue_what_came_back_does_not_stand_in_the_way() -> None:
    """There, a message expires also behind one that was returned; everywhere else it waits for it."""
    found = {}
    for type, version in (("classic", "4.3"), ("quorum", "3.10"), ("quorum", "4.3")):
        queue = Queue("q", Settings(type=type, delivery_limit=5 if type == "quorum" else None))
        broker = broker_with(queue, version=version)
        broker.publish("", "q", b"returned")
        broker.publish("", "q", b"short", properties=Properties(expiration="100"))
        delivery = broker.get("q")
        assert delivery is not None
        broker.nack(delivery, requeue=True)
        broker.clock.advance(1_000)
        found[type, version] = bodies(broker, "q")

    assert found == {
        ("classic", "4.3"): [b"returned", b"short"],
        ("quorum", "3.10"): [b"returned", b"short"],
        ("quorum", "4.3"): [b"returned"],
    }


def test_an_idle_queue_expires_with_its_messages() -> None:
    """They are not dead-lettered; taking one keeps the queue alive for another while."""
    broker = broker_with(
        Queue("idle", Settings(expires=Duration(1_000), dead_letter_exchange="", dead_letter_key="work")), Queue("work")
    )
    broker.publish("", "idle")
    broker.publish("", "idle")
    broker.clock.advance(600)
    broker.get("idle", no_ack=True)
    broker.clock.run()

    assert broker.log[-1] == (1_600, QueueExpired("idle", 1))
    assert broker.count("work").ready == 0


@pytest.mark.parametrize("version", ["3.10", "4.3"])
@pytest.mark.parametrize("type", ["classic", "quorum"])
def test_all_that_is_due_has_left_before_anything_comes_of_it(type: Literal["classic", "quorum"], version: str) -> None:
    """What the first one pushes out elsewhere finds the room of the second one too (seen on 3.10.8)."""
    full = replace(delay("wait", None, type=type).settings, max_length=2, overflow="reject-publish")
    short = Settings(max_bytes=20, dead_letter_exchange="", dead_letter_key="wait")
    broker = broker_with(Queue("wait", full), Queue("work", short), version=version)
    for body in (b"old 1".rjust(10), b"old 2".rjust(10)):
        broker.publish("", "work", body)
    broker.publish("", "wait", b"large".rjust(20), properties=Properties(expiration="300"))
    broker.publish("", "wait", b"", properties=Properties(expiration="100"))
    broker.clock.run()

    assert ([body.strip() for body in bodies(broker, "work")], [body.strip() for body in bodies(broker, "wait")]) == (
        [b"large", b""],
        [b"old 1", b"old 2"],
    )
