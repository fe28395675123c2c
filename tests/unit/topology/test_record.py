"""What was applied, remembered on the broker."""

import json
from typing import Any

import pytest
from delayctl.topology.model import Binding, Exchange, Policy, Queue, freeze_arguments
from delayctl.topology.record import Record, from_json, record_of, to_json

from tests.support.examples import shop

PLAIN = Binding("e", "queue", "q", "k")
HEADERS = Binding("e", "exchange", "f", "", freeze_arguments({"x-match": "all", "delay-3": True}))
QUEUE, EXCHANGE, POLICY = Queue("q"), Exchange("e"), Policy("p", "^q$", "queues", 0, ())
RECORD = Record(
    frozenset({"e", "f"}), frozenset({"q"}), frozenset({PLAIN, HEADERS}), frozenset({"p"}), frozenset({HEADERS})
)
WRITTEN = {
    "version": 1,
    "exchanges": ["e", "f"],
    "queues": ["q"],
    "policies": ["p"],
    "bindings": [["e", "exchange", "f", "", {"delay-3": True, "x-match": "all"}], ["e", "queue", "q", "k"]],
    "restore": [["e", "exchange", "f", "", {"delay-3": True, "x-match": "all"}]],
}


def test_a_record_is_short_json() -> None:
    """Names, and bindings as lists, since there may be thousands."""
    assert to_json(RECORD) == WRITTEN


def test_a_record_comes_back_as_it_was() -> None:
    """Through the JSON that the broker keeps."""
    assert from_json(json.loads(json.dumps(to_json(RECORD)))) == RECORD


def test_a_topology_is_remembered_by_its_names() -> None:
    """And its bindings as they are; what merely has to exist is not ours."""
    topology = shop("5m", settings="policy")

    assert record_of(topology) == Record(
        exchanges=frozenset(exchange.name for exchange in topology.exchanges),
        queues=frozenset(queue.name for queue in topology.queues),
        bindings=frozenset(topology.bindings),
        policies=frozenset({"delay.5m.policy"}),
    )


@pytest.mark.parametrize("resource", [QUEUE, EXCHANGE, POLICY, PLAIN], ids=lambda r: type(r).__name__)
def test_a_record_knows_what_is_in_it(resource: Exchange | Queue | Policy | Binding) -> None:
    """By name, but for bindings."""
    assert resource in record_of([resource])
    assert resource not in Record()


def test_a_binding_to_be_put_back_is_not_ours() -> None:
    """It belongs to whoever made it."""
    assert PLAIN not in Record(restore=frozenset({PLAIN}))


def test_two_records_make_one() -> None:
    """All that either knows, and what is to be put back besides."""
    more = Record(exchanges=frozenset({"g"}), restore=frozenset({HEADERS}))

    assert record_of([QUEUE]).union(more, restore=[PLAIN]) == Record(
        frozenset({"g"}), frozenset({"q"}), restore=frozenset({HEADERS, PLAIN})
    )


def test_objects_are_added() -> None:
    """One of each kind."""
    assert record_of([QUEUE]).with_resources([EXCHANGE, PLAIN, POLICY]) == record_of([QUEUE, EXCHANGE, PLAIN, POLICY])


def test_a_record_counts_its_objects() -> None:
    """What is to be put back does not count."""
    assert len(RECORD) == 6


@pytest.mark.parametrize(
    "damage",
    [
        {"version": 2},
        {"exchanges": None},
        {"queues": [1]},
        {"policies": [None]},
        {"bindings": [["e", "queue", "q"]]},
        {"bindings": [["e", "stream", "q", "k"]]},
        {"bindings": [["e", "queue", None, "k"]]},
        {"bindings": [["e", "queue", "q", "k", ["a"]]]},
        {"bindings": [None]},
        {"restore": "text"},
    ],
    ids=str,
)
def test_a_damaged_record_is_told_from_a_good_one(damage: dict[str, Any]) -> None:
    """With one of the errors that the reader of records knows."""
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_json(WRITTEN | damage)


@pytest.mark.parametrize("field", WRITTEN)
def test_a_record_that_lacks_a_field_is_damaged(field: str) -> None:
    """None of them is optional."""
    with pytest.raises(KeyError):
        from_json({name: value for name, value in WRITTEN.items() if name != field})
