"""Which keys lint takes for known: those of routes, of retries, and of queues that dead-letter; and where two meet."""

import pytest
from delayctl.topology.expand import expand
from delayctl.topology.lint import lint
from delayctl.topology.parse import read_spec

from tests.lint.test_edges import found, wait

RETRY = (
    "delay: none\nexchanges: {{in: {{}}, fail: {{type: {kind}}}}}\nqueues:\n"
    "  work: {{arguments: {{x-dead-letter-exchange: fail}}}}\n  w: {wait}\n"
    'routes:\n  - {{from: in, key: "order.#", to: work}}\n  - {{from: fail, {key}to: w}}\n'
)


@pytest.mark.parametrize(
    ("kind", "key"), [("fanout", ""), ("fanout", 'key: "#", '), ("topic", 'key: "#", '), ("topic", 'key: "*.#", ')]
)
def test_what_is_rejected_comes_with_the_keys_of_its_queue(kind: str, key: str) -> None:
    """The common retry by hand: the wait gets what the work queue got, so all of it finds its way back."""
    text = RETRY.format(kind=kind, key=key, wait=wait("in"))
    spec = read_spec(f"version: 1\n{text}", {}, file="topology.yaml")

    assert lint(spec, expand(spec)).findings == ()


def test_what_is_rejected_and_finds_no_way_back_is_lost() -> None:
    """Its keys are known, so this is certain."""
    text = RETRY.format(kind="fanout", key="", wait=wait("back")) + "  - {from: back, key: user.created, to: work}\n"

    assert found(text) == [
        (
            "D101",
            "w",
            "a message with key 'order.any' (of order.#), rejected from work, waits 1s in w, then is lost without a trace:"
            " nothing at back takes it",
        )
    ]


@pytest.mark.parametrize("entry", ["{type: fanout}", "{type: headers}"])
def test_keys_that_nobody_knows_are_no_error(entry: str) -> None:
    """Who publishes to a fanout exchange may well use no other key than the exit's; where nothing is bound, none helps."""
    route = "{from: in, to: w}" if "fanout" in entry else "{from: in, headers: {tenant: eu}, to: w}"
    text = f"delay: none\nexchanges: {{in: {entry}, due: {{}}}}\nqueues:\n  w: {wait('due')}\nroutes:\n  - {route}\n"
    spec = read_spec(f"version: 1\n{text}  - {{from: due, key: a, to: o}}\n", {}, file="topology.yaml")

    assert [finding.code for finding in lint(spec, expand(spec)).findings] == ["D108"]
    assert [message for _, _, message in found(text)] == [
        "every message waits 1s in w, then is lost without a trace: nothing at due takes it"
    ]


def test_a_key_that_a_queue_puts_in_place_of_others_is_known() -> None:
    """Whatever came in, it leaves with this one."""
    named = wait("due").replace("x-max", "x-dead-letter-routing-key: gone, x-max")
    text = (
        f"delay: none\nexchanges: {{in: {{type: fanout}}, due: {{}}}}\nqueues:\n  w: {named}\n"
        "routes:\n  - {from: in, to: w}\n  - {from: due, key: a, to: o}\n"
    )

    assert ("D101", "w") in {(code, at) for code, at, message in found(text) if "with key 'gone'" in message}


def test_patterns_of_two_sources_meet_at_the_exit() -> None:
    """All delays come out of one exchange, so either gets what fits both; with a key to try it with."""
    text = (
        'delay: {levels: [1m, 5m]}\nroutes:\n  - {from: in, key: "order.*", delay: 1m, to: o}\n'
        '  - {SOURCEkey: "*.created", delay: 5m, to: p}\n'
    )
    shown = "a message with key 'order.created' (of order.* and *.created)"

    for source, way_in in (("from: in2, ", "in2"), ("", "delay.5m.exchange")):
        assert {message.partition(" after")[0] for _, _, message in found(text.replace("SOURCE", source))} == {
            f"{shown} to in also reaches p",
            f"{shown} to {way_in} also reaches o",
        }
    assert found(text.replace("SOURCE", "from: in2, ").replace("*.created", "user.*")) == []
