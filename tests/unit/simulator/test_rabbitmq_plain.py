"""Messages without headers are kept small while they wait; nothing else about them may differ from the others."""

import gc
from collections import deque
from collections.abc import Callable

import pytest
from delayctl.simulator.rabbitmq import Broker, Delivery, Properties
from delayctl.topology.duration import Duration
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings

from tests.unit.simulator.rabbitmq_parts import broker_with, delay

WORK = Queue("work", Settings())
Publish = Callable[[str, bytes], object]
Course = Callable[[Broker, Publish], None]


def to(exchange: str, **settings: object) -> Queue:
    """A queue with 10 ms to live and a dead-letter exchange."""
    return Queue("wait", Settings(ttl=Duration(10), dead_letter_exchange=exchange, **settings))  # type: ignore[arg-type]


WAYS_OUT = {
    "to one queue by another key": (delay("wait", 10), WORK),
    "nowhere": (Queue("wait", Settings(ttl=Duration(10))), WORK),
    "to an exchange that is not there": (to("missing"), WORK),
    "straight back": (delay("wait", 10, to="wait"), WORK),
    "in a circle": (delay("wait", 10, to="again"), delay("again", 10, to="wait"), WORK),
    "to one queue by its own key": (
        to("out"),
        WORK,
        Exchange("out", "direct"),
        Binding("out", "queue", "work", "wait"),
    ),
    "to two queues": (
        *(to("out"), WORK, Queue("other", Settings()), Exchange("out", "fanout")),
        *(Binding("out", "queue", "work"), Binding("out", "queue", "other")),
    ),
    "past an exchange that looks at headers": (
        *(to("out"), WORK, Queue("other", Settings()), Exchange("out", "headers")),
        Binding("out", "queue", "work", arguments=(("x-match", "all"),)),
        Binding("out", "queue", "other", arguments=(("x-match", "all-with-x"), ("x-first-death-queue", "wait"))),
    ),
    "to a full queue": (
        *(delay("wait", 10, to="full"), WORK),
        Queue("full", Settings(max_length=1, overflow="reject-publish")),
    ),
    "to a quorum queue": (delay("wait", 10, to="quorum"), WORK, Queue("quorum", Settings(type="quorum"))),
    "when there are too many": (delay("wait", 10), WORK, Queue("few", Settings(max_length=2, ttl=Duration(5)))),
}


def expire(broker: Broker, publish: Publish) -> None:
    """Three messages wait until their time has come, the last with a consumer at the other end."""
    publish("wait", b"a")
    publish("wait", b"b")
    broker.clock.advance(10)
    broker.consume("work", broker.ack)
    publish("wait", b"c")
    broker.clock.advance(30)


def expire_in_turn(broker: Broker, publish: Publish) -> None:
    """Each comes at a time of its own; a consumer gives one back, rejects one and keeps one."""
    answers = deque([lambda d: broker.reject(d, requeue=True), lambda d: broker.nack(d, requeue=False), broker.ack])

    def answer(delivery: Delivery) -> None:
        if answers:
            answers.popleft()(delivery)

    broker.consume("work", answer, prefetch=2)
    for body in (b"a", b"b", b"c", b"d", b"e", b"f"):
        publish("wait", body)
        broker.clock.advance(3)
    broker.clock.advance(30)


def come_back(broker: Broker, publish: Publish) -> None:
    """One is taken and given back before its time has come."""
    publish("wait", b"a")
    publish("wait", b"b")
    taken = broker.get("wait")
    assert taken is not None
    publish("wait", b"c")
    broker.reject(taken, requeue=True)
    broker.clock.advance(30)


def shrink(broker: Broker, publish: Publish) -> None:
    """A policy limits the bytes of what waits already; more comes, before and after that has expired."""
    for body in (b"a", b"bb", b"ccc"):
        publish("wait", body)
    broker.set_policy(Policy("limit", "^wait$", "queues", 0, (("max-length-bytes", 5),)))
    publish("wait", b"dd")
    broker.clock.advance(10)
    publish("wait", b"eeee")
    broker.clear_policy("limit")
    publish("wait", b"e")
    broker.clock.advance(30)


def overflow(broker: Broker, publish: Publish) -> None:
    """More come than a queue takes, and it has consumers later."""
    broker.declare_queue(Queue("short", Settings(max_length=2, ttl=Duration(20), dead_letter_exchange="")))
    for body in (b"a", b"b", b"c"):
        publish("short", body)
    broker.consume("short", broker.ack, prefetch=1)
    broker.clock.advance(30)


def refuse(broker: Broker, publish: Publish) -> None:
    """More come than a queue takes, and it says so."""
    broker.declare_queue(Queue("short", Settings(max_length=2, overflow="reject-publish")))
    for body in (b"a", b"b", b"c"):
        publish("short", body)


@pytest.mark.parametrize("version", ["3.10", "4.3"])
@pytest.mark.parametrize("course", [expire, expire_in_turn, come_back, shrink, overflow, refuse])
@pytest.mark.parametrize("objects", WAYS_OUT.values(), ids=WAYS_OUT)
def test_what_has_no_headers_fares_like_what_has_some(
    objects: tuple[Exchange | Queue | Binding, ...], course: Course, version: str
) -> None:
    """The same log, the same deaths and properties in what is left."""
    plain, other = broker_with(*objects, version=version), broker_with(*objects, version=version)
    persistent = Properties(delivery_mode=2)

    course(plain, lambda queue, body: plain.publish("", queue, body, properties=persistent))
    course(other, lambda queue, body: other.publish("", queue, body, properties=persistent, headers={"h": 1}))

    assert plain.log == other.log
    for queue in (thing.name for thing in objects if isinstance(thing, Queue)):
        assert _left(plain, queue) == _left(other, queue)


def _left(broker: Broker, queue: str) -> list[tuple[object, ...]]:
    return [
        (
            seen.body,
            seen.exchange,
            seen.key,
            seen.redelivered,
            seen.properties,
            seen.message.expires,
            _deaths(seen.headers),
        )
        for seen in broker.peek(queue)
    ]


def _deaths(headers: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in headers.items() if name != "h"}


def test_what_waits_without_headers_is_nothing_to_the_garbage_collector() -> None:
    """However many wait, there is nothing more for it to look at."""
    broker = Broker(log=False)
    broker.declare_queue(delay("wait", 10))
    broker.publish("", "wait")
    gc.collect()
    before = len(gc.get_objects())

    for number in range(10_000):
        broker.publish("", "wait", b"%d" % number)
    gc.collect()

    assert broker.count("wait").ready == 10_001
    assert len(gc.get_objects()) - before < 100
