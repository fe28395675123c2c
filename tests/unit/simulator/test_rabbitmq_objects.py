"""What a broker refuses, with AMQP's codes, and how publishes are answered."""

from collections.abc import Callable

import pytest
from delayctl.simulator.rabbitmq import Broker, Properties, Publication
from delayctl.simulator.rabbitmq_events import Published, Returned
from delayctl.topology.duration import Duration
from delayctl.topology.errors import Refused
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings

from tests.support.examples import live_of, shop
from tests.unit.simulator.rabbitmq_parts import broker_with

REFUSED: dict[str, tuple[int, Callable[[Broker], object]]] = {
    "publish nowhere": (404, lambda broker: broker.publish("missing", "key")),
    "publish to an internal exchange": (403, lambda broker: broker.publish("internal", "key")),
    "an expiration in words": (406, lambda broker: broker.publish("", "q", properties=Properties(expiration="soon"))),
    "get from nowhere": (404, lambda broker: broker.get("missing")),
    "consume from nowhere": (404, lambda broker: broker.consume("missing", print)),
    "bind what is missing": (404, lambda broker: broker.bind(Binding("amq.topic", "queue", "missing"))),
    "bind to the default exchange": (403, lambda broker: broker.bind(Binding("", "queue", "q"))),
    "another queue": (406, lambda broker: broker.declare_queue(Queue("q", Settings(ttl=Duration(1))))),
    "another exchange": (406, lambda broker: broker.declare_exchange(Exchange("internal", "topic"))),
    "delete what is the broker's": (403, lambda broker: broker.delete_exchange("amq.topic")),
    "a reserved name": (403, lambda broker: broker.declare_queue(Queue("amq.mine"))),
    "a stream": (540, lambda broker: broker.declare_queue(Queue("s", Settings(type="stream")))),
    "priorities": (540, lambda broker: broker.declare_queue(Queue("p", extra=(("x-max-priority", 5),)))),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_broker_refuses(case: str) -> None:
    """Each with the code that closes the channel on a real one."""
    code, act = REFUSED[case]
    broker = broker_with(Exchange("internal", "fanout", internal=True), Queue("q"))

    with pytest.raises(Refused) as refused:
        act(broker)

    assert refused.value.code == code


def test_the_same_may_be_declared_again() -> None:
    """Nothing happens to its messages."""
    broker = broker_with(Queue("q"))
    broker.publish("", "q")

    broker.declare_queue(Queue("q", Settings(type="classic")))

    assert broker.count("q").ready == 1


def test_a_mandatory_message_without_a_queue_comes_back() -> None:
    """One that is not mandatory is confirmed, and gone."""
    broker = broker_with(Exchange("x"))
    heard: list[Publication] = []

    broker.publish("x", "key", mandatory=True, on_answer=heard.append)
    broker.publish("x", "key", on_answer=heard.append)

    assert heard == [Publication(is_returned=True), Publication()]
    assert broker.log == [
        (0, Published(1, "x", "key", ())),
        (0, Returned(1, "x", "key")),
        (0, Published(2, "x", "key", ())),
    ]


def test_one_full_queue_is_enough_for_a_nack() -> None:
    """The others have their copy all the same."""
    full = Queue("full", Settings(max_length=0, overflow="reject-publish"))
    bindings = [Binding("x", "queue", name) for name in ("full", "open")]
    broker = broker_with(Exchange("x", "fanout"), full, Queue("open"), *bindings)

    publication = broker.publish("x", "")

    assert publication == Publication(("full", "open"), refused_by=("full",))
    assert broker.count("open").ready == 1


def test_a_route_is_found_anew_when_something_changes() -> None:
    """Bindings, queues, policies."""
    broker = broker_with(Exchange("x"), Queue("a"), Queue("b"), Binding("x", "queue", "a", "#"))
    before = broker.publish("x", "key").queues
    broker.unbind(Binding("x", "queue", "a", "#"))
    broker.bind(Binding("x", "queue", "b", "#"))
    bound = broker.publish("x", "key").queues
    broker.delete_queue("b")
    broker.set_policy(Policy("ae", "x", "exchanges", 0, (("alternate-exchange", ""),)))
    deleted = broker.publish("x", "a").queues

    assert (before, bound, deleted) == (("a",), ("b",), ())


def test_a_way_of_the_dead_is_no_way_for_publishers() -> None:
    """What dead letters may go to, an internal exchange or one that is missing, is refused to publishers all the same."""
    codes = []
    for exchange in ("internal", "missing"):
        dying = Queue("q", Settings(ttl=Duration(0), dead_letter_exchange=exchange))
        broker = broker_with(Exchange("internal", "fanout", internal=True), dying)
        broker.publish("", "q")
        with pytest.raises(Refused) as refused:
            broker.publish(exchange, "q")
        codes.append(refused.value.code)

    assert codes == [403, 404]


def test_headers_decide_where_a_headers_exchange_is_passed() -> None:
    """For every message anew, also where the key is the same."""
    binding = Binding("h", "queue", "q", "", (("delay-1", True), ("x-match", "all")))
    broker = broker_with(
        Exchange("h", "headers", alternate="amq.fanout"),
        Queue("q"),
        Queue("rest"),
        binding,
        Binding("amq.fanout", "queue", "rest"),
    )

    queues = [
        broker.publish("h", "k", headers=headers).queues for headers in ({"delay-1": True}, None, {"delay-2": True})
    ]

    assert queues == [("q",), ("rest",), ("rest",)]


def test_a_file_and_a_broker_make_the_same() -> None:
    """A topology, and the virtual host that it was applied to."""
    logs = []
    for described in (shop(), live_of(shop())):
        broker = Broker(described)
        broker.publish("orders.exchange", "order.created")
        broker.clock.run()
        logs.append(broker.log)

    assert logs[0] == logs[1]


def test_a_queue_that_is_deleted_takes_its_messages_along() -> None:
    """They are not dead-lettered."""
    broker = broker_with(
        Queue("q", Settings(ttl=Duration(5), dead_letter_exchange="", dead_letter_key="dead")), Queue("dead")
    )
    broker.publish("", "q")

    deleted = broker.delete_queue("q")
    broker.clock.run()

    assert (deleted, broker.delete_queue("q"), broker.count("dead").ready) == (1, 0, 0)


def test_what_is_not_logged_happens_all_the_same() -> None:
    """Large runs keep no log."""
    broker = Broker(shop(), log=False)
    broker.publish("orders.exchange", "order.created")
    broker.clock.run()

    assert (broker.log, broker.count("orders.queue").ready) == ([], 1)
