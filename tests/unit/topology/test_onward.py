"""Where messages may go on from the exchanges of a file."""

from itertools import pairwise

import pytest
from delayctl.topology.model import Binding, Exchange, Queue, Reference, Topology
from delayctl.topology.onward import Onward, ends_first

INTO_A = Binding("site", "exchange", "a", "order.created")


def onward(*bindings: Binding, **types: str) -> Onward:
    """Of exchanges that are topic exchanges where nothing else is said, and of one of others."""
    names = {binding.source for binding in bindings} - {"site"}
    exchanges = tuple(Exchange(name, types.get(name, "topic")) for name in sorted(names))
    site = (Reference("exchange", "site"),)
    return Onward(Topology("", "delay.exchange", (), exchanges, (Queue("q"),), (*bindings, INTO_A), (), site))


@pytest.mark.parametrize(
    ("key", "type", "leads"),
    [
        ("order.created", "topic", True),
        ("order.*", "topic", True),
        ("#", "topic", True),
        ("order.paid", "topic", False),
        ("order.created", "direct", True),
        ("order.paid", "direct", False),
        ("order.paid", "fanout", True),
        ("order.paid", "headers", True),
    ],
)
def test_a_message_goes_on_by_its_key(key: str, type: str, leads: bool) -> None:
    """Where the next exchange looks at one."""
    ways = onward(Binding("a", "exchange", "b", key), Binding("b", "queue", "q", "#"), a=type)

    assert ways.leads_to(INTO_A, {"q"}) == leads
    assert ways.leads_to(INTO_A._replace(key="order.#"), {"q"}), "one of them may"


def test_by_an_alternate() -> None:
    """What has no other way goes there."""
    exchanges = (Exchange("a", "topic", alternate="b"), Exchange("b", "fanout"))
    topology = Topology("", "delay.exchange", (), exchanges, (), (INTO_A, Binding("b", "queue", "q")), (), ())

    assert Onward(topology).leads_to(INTO_A, {"q"})


def test_a_way_is_farther_from_the_end_than_those_behind_it() -> None:
    """Of each key for itself: the same exchanges may stand the other way round for another."""
    a_to_b, b_to_q = Binding("a", "exchange", "b", "order.#"), Binding("b", "queue", "q", "order.#")
    other_way = Binding("b", "exchange", "a", "mail.sent")
    ways = onward(a_to_b, b_to_q, other_way, Binding("a", "queue", "q", "mail.sent"))

    assert ways.distance(b_to_q) < ways.distance(a_to_b) < ways.distance(INTO_A)
    assert ways.distance(other_way) > ways.distance(Binding("a", "queue", "q", "mail.sent"))


def test_what_is_led_to_has_a_lower_number() -> None:
    """However long the way there, and by how many."""
    assert ends_first([("a", "b"), ("b", "c"), ("a", "c"), ("x", "c")]) == {"c": 0, "b": 1, "x": 1, "a": 2}


@pytest.mark.parametrize("circle", [[("a", "b"), ("b", "a")], [("a", "a")]])
def test_circles_have_no_numbers(circle: list[tuple[str, str]]) -> None:
    """Nor has what leads into one; all else has."""
    assert ends_first([*circle, ("into", "a"), ("x", "y")]) == {"y": 0, "x": 1}


def test_thousands_in_a_row() -> None:
    """No file is too deep."""
    row = [Binding(one, "exchange", other, "#") for one, other in pairwise(map(str, range(5_000)))]
    ways = onward(*row)

    assert ways.distance(row[0]) == 4_999
    assert ways.leads_to(row[0], {"4999"})
