"""The way of a message, copy by copy."""

import pytest
from delayctl.topology.duration import Duration
from delayctl.topology.journey import MAX_STAYS, End, Fate, Journey, journey
from delayctl.topology.model import Binding, Exchange, Queue, Settings
from delayctl.topology.routing import Message, Network
from delayctl.topology.spec import ExchangeSpec, RouteSpec, Target

from tests.support.examples import shop
from tests.unit.topology.test_routing import network, to

Short = tuple[Fate, str | None, int, str]  # Fate, queue, milliseconds, key.


def waits(name: str, ms: int, exit: str | None = None, key: str | None = None, **settings: str) -> Queue:
    """A queue that messages expire in."""
    return Queue(
        name,
        Settings(ttl=Duration(ms), dead_letter_exchange=exit, dead_letter_key=key, **settings),  # type: ignore[arg-type]
    )


def ends(way: Journey) -> list[Short]:
    """The ends without their reasons."""
    return [(end.fate, end.queue, end.after.ms, end.key) for end in way.ends]


def only_end(there: Network, exchange: str, message: Message) -> End:
    """The one end that there is."""
    (end,) = journey(there, exchange, message).ends
    return end


def test_through_a_delay_to_the_queue() -> None:
    """The business exchange, the entrance, the wait, the exit and the queue, each at its time."""
    way = journey(Network.of_topology(shop()), "orders.exchange", Message("order.created"))

    assert [(p.exchange, p.at.ms, p.out_of) for p in way.passages] == [
        ("orders.exchange", 0, None),
        ("delay.exchange", 300_000, "delay.5m.queue"),
    ]
    assert [hop.exchange for hop in way.passages[0].routed.hops] == ["orders.exchange", "delay.5m.exchange"]
    assert [(stay.queue, stay.wait, stay.onward) for stay in way.passages[0].stays] == [
        ("delay.5m.queue", Duration(300_000), 1)
    ]
    assert ends(way) == [("delivered", "orders.queue", 300_000, "order.created")]
    assert (way.total, way.is_safe, way.repeated) == (Duration(300_000), True, {})


def test_what_has_no_way_out_is_parked() -> None:
    """The exit's alternate leads to a queue that is for parking."""
    way = journey(
        Network.of_topology(shop()), "delay.1m.exchange", Message("who.knows"), parking={"delay.unrouted.queue"}
    )

    assert ends(way) == [("parked", "delay.unrouted.queue", 60_000, "who.knows")]
    assert way.is_safe


def test_a_ttl_without_a_way_out_loses() -> None:
    """What expires is gone."""
    end = only_end(network(waits("q", 5)), "", Message("q"))

    assert end == End("lost", Duration(5), "q", "q", "it expires, and the queue has no dead-letter exchange")


def test_a_missing_dead_letter_exchange_loses() -> None:
    """The broker does not mind, and the message is gone."""
    end = only_end(network(waits("q", 5, "gone")), "", Message("q"))

    assert end == End("lost", Duration(5), "q", "q", "the dead-letter exchange gone does not exist")


def test_no_route_at_expiry_loses() -> None:
    """Silently: mandatory speaks of the way in."""
    end = only_end(network(Exchange("x"), waits("q", 5, "x")), "", Message("q"))

    assert end == End("lost", Duration(5), "q", "q", "nothing behind x takes it")


def test_no_route_at_publish_returns() -> None:
    """The publisher can know."""
    end = only_end(network(Exchange("x")), "x", Message("a"))

    assert (end.fate, end.queue, end.after) == ("returned", None, Duration(0))
    assert end.reason == "nothing behind x takes it (and lost, if it was not published as mandatory)"


@pytest.mark.parametrize("objects", [(), (Exchange("x", "fanout", internal=True), Queue("q"), to("x", "q"))])
def test_the_publisher_is_refused(objects: tuple[Exchange | Queue | Binding, ...]) -> None:
    """An exchange that is not there, or that is internal."""
    assert only_end(network(*objects), "x", Message("a")).fate == "refused"


def test_an_own_key_of_the_queue_takes_the_place_of_all_others() -> None:
    """Also of those in CC, here and ever after."""
    there = network(
        Exchange("x", "direct"),
        waits("q1", 5, "x", key="k"),
        waits("q2", 5, "x"),
        Queue("q3"),
        to("x", "q2", "k"),
        to("x", "q3", "k"),
        to("x", "q3", "cc"),
    )

    way = journey(there, "", Message("q1", {"CC": ["cc"]}))

    assert [passage.message.keys for passage in way.passages] == [("q1", "cc"), ("k",), ("k",)]
    assert ends(way) == [("delivered", "q3", 5, "k"), ("dropped", "q2", 10, "k"), ("delivered", "q3", 10, "k")]


def test_further_keys_live_on_without_one() -> None:
    """What was published with CC is routed by it at every exit."""
    there = network(Exchange("x", "direct"), waits("q1", 5, "x"), Queue("q2"), to("x", "q2", "cc"))

    assert ends(journey(there, "", Message("q1", {"CC": ["cc"]}))) == [("delivered", "q2", 5, "q1")]


def test_a_circle_is_dropped_and_the_other_copy_goes_on() -> None:
    """Each copy by its own history."""
    there = network(
        Exchange("x", "fanout"),
        waits("q1", 5, "x"),
        waits("q2", 7, "x"),
        Queue("q3"),
        *(to("x", f"q{n}") for n in (1, 2, 3)),
    )

    way = journey(there, "", Message("q1"))

    assert ends(way) == [
        ("dropped", "q1", 5, "q1"),
        ("delivered", "q3", 5, "q1"),
        ("dropped", "q1", 12, "q1"),
        ("dropped", "q2", 12, "q1"),
        ("delivered", "q3", 12, "q1"),
    ]
    assert way.repeated == {"q3": 2}
    assert not way.is_safe


def test_at_least_once_keeps_what_it_can_not_pass_on() -> None:
    """No route, no exchange or nothing but a circle: it stays and blocks."""
    safe = {"type": "quorum", "dead_letter_strategy": "at-least-once", "overflow": "reject-publish"}
    there = network(
        Exchange("x"), waits("q1", 5, "x", **safe), waits("q2", 5, "gone", **safe), waits("q3", 5, "", **safe)
    )
    half = network(Exchange("x"), waits("q1", 5, "x", **{**safe, "overflow": "drop-head"}))

    assert [only_end(there, "", Message(name)).fate for name in ("q1", "q2", "q3")] == ["stuck"] * 3
    assert only_end(half, "", Message("q1")).fate == "lost"


def test_where_it_died_first_can_be_routed_by() -> None:
    """The broker adds headers of its own, which a headers exchange can look at if it is told to."""
    there = network(
        Exchange("x", "headers"),
        waits("q1", 5, "x"),
        waits("q2", 5, "x"),
        Queue("q3"),
        to("x", "q3", x_match="any-with-x", x_first_death_queue="q1"),
    )

    assert ends(journey(there, "", Message("q1"))) == [("delivered", "q3", 5, "q1")]
    assert ends(journey(there, "", Message("q2"))) == [("lost", "q2", 5, "q2")]


def test_a_plugin_s_exchange_is_an_unknown_end() -> None:
    """Other branches are told all the same."""
    there = network(
        Exchange("x", "fanout"), Exchange("p", "x-random"), Queue("q"), to("x", "p"), to("x", "q"), to("p", "q2")
    )

    way = journey(there, "x", Message("a"))

    assert [(end.fate, end.queue) for end in way.ends] == [("unknown", None), ("delivered", "q")]
    assert "p is of type x-random" in way.ends[0].reason


def test_a_hostile_network_is_cut() -> None:
    """Thirty queues that all lead to each other have more ways than atoms to write them down with."""
    names = [f"q{number}" for number in range(30)]
    there = network(Exchange("x", "fanout"), *(waits(name, 1, "x") for name in names), *(to("x", n) for n in names))

    way = journey(there, "x", Message("a"))

    assert way.is_cut
    assert not way.is_safe
    assert MAX_STAYS <= sum(len(passage.stays) for passage in way.passages) < MAX_STAYS + 30
    assert all(stay.onward is None or stay.onward < len(way.passages) for p in way.passages for stay in p.stays)


def test_a_long_chain_is_followed_to_its_end() -> None:
    """Deep is not the same as wide."""
    chain = [waits(f"q{number}", 1, "", key=f"q{number + 1}") for number in range(2_000)]
    way = journey(network(*chain, Queue("q2000")), "", Message("q0"))

    assert ends(way) == [("delivered", "q2000", 2_000, "q2000")]


def test_what_others_bind_to_ends_there_beside_what_is_known() -> None:
    """One copy is delivered, the other handed over; an exchange that takes it by a known binding is no end."""
    topology = shop(
        exchanges=(ExchangeSpec("orders.exchange"), ExchangeSpec("theirs", existing=True)),
        routes=(
            RouteSpec(("a",), (Target("exchange", "theirs"), Target("queue", "orders.queue")), "orders.exchange"),
            RouteSpec(("b",), (Target("queue", "orders.queue"),), "theirs"),
        ),
    )
    there = Network.of_topology(topology)

    both, known = journey(there, "orders.exchange", Message("a")), journey(there, "theirs", Message("b"))

    assert [(end.fate, end.queue, end.exchange) for end in both.ends] == [
        ("handed_over", None, "theirs"),
        ("delivered", "orders.queue", None),
    ]
    assert (both.is_safe, both.repeated) == (True, {})
    assert ends(known) == [("delivered", "orders.queue", 0, "b")]
