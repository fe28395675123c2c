"""A topology as a value: frozen, canonical, comparable."""

import pytest
from delayctl.topology.duration import Duration
from delayctl.topology.model import (
    Binding,
    Kind,
    Level,
    Table,
    Topology,
    freeze,
    freeze_arguments,
    sorted_bindings,
    thaw,
)

from tests.support.examples import shop

NESTED = {"b": [1, {"y": True, "x": None}], "a": "text"}


def test_arguments_are_frozen_into_their_one_canonical_form() -> None:
    """Names are sorted, lists become tuples and mappings become tables, at every depth."""
    assert freeze_arguments(NESTED) == (("a", "text"), ("b", (1, Table((("x", None), ("y", True))))))


def test_equal_arguments_are_equal_values() -> None:
    """The order in which a mapping was written makes no difference, not even to a hash."""
    assert hash(freeze({"a": 1, "b": {"c": 2, "d": 3}})) == hash(freeze({"b": {"d": 3, "c": 2}, "a": 1}))


def test_thawing_undoes_freezing() -> None:
    """Frozen arguments turn back into the JSON they came from."""
    assert thaw(freeze(NESTED)) == NESTED


def test_a_text_is_not_a_list_of_letters() -> None:
    """Freezing leaves scalars as they are."""
    assert [freeze(value) for value in ("abc", 1, True, None, 1.5)] == ["abc", 1, True, None, 1.5]


def test_bindings_are_sorted_and_free_of_duplicates() -> None:
    """By source, kind, destination, key and arguments."""
    last = Binding("b", "queue", "a")
    first = Binding("a", "exchange", "z", "k")
    middle = Binding("a", "queue", "a", "k", freeze_arguments({"x-match": "all"}))

    assert sorted_bindings([last, middle, first, last, middle]) == (first, middle, last)


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("exchange", "here", True),
        ("queue", "there", True),
        ("queue", "here", False),
        ("exchange", "there", False),
    ],
)
def test_a_binding_touches_its_two_ends(kind: Kind, name: str, expected: bool) -> None:
    """A source is always an exchange; a destination is what the binding says."""
    assert Binding("here", "queue", "there").touches(kind, name) is expected


def test_a_topology_knows_its_entrances_and_delay_queues() -> None:
    """Both are derived from the levels."""
    level = Level("1m", Duration(60_000), "delay.1m.exchange", "delay.1m.queue")
    topology = Topology("", "delay.exchange", (level,), (), (), (), (), ())

    assert topology.entrances == {"delay.1m.exchange"}
    assert topology.delay_queues == {"delay.1m.queue"}


def test_a_topology_lists_all_its_objects() -> None:
    """Exchanges, queues, bindings and policies, and not what merely has to exist."""
    topology = shop(settings="policy")

    assert tuple(topology) == (*topology.exchanges, *topology.queues, *topology.bindings, *topology.policies)
