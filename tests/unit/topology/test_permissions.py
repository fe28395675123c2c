"""What each role needs, and what users have of it."""

from dataclasses import replace
from typing import Any

import pytest
from delayctl.topology.expand import expand
from delayctl.topology.parse import read_spec
from delayctl.topology.permissions import (
    Lack,
    Needs,
    Rights,
    Surplus,
    allows,
    lacking,
    needs_of,
    rights_for,
    surplus,
    tags_for,
)
from delayctl.topology.spec import GrantSpec, Spec

SHOP = read_spec(
    """
version: 1
delay: {levels: [1m, 5m]}
exchanges:
  orders.exchange: {}
  hidden.exchange: {internal: true}
  legacy.exchange: {existing: true}
queues:
  legacy.queue: {existing: true}
  failed.queue: {arguments: {x-dead-letter-exchange: ""}}
routes:
  - {from: orders.exchange, key: order.created, delay: 5m, to: orders.queue}
  - {from: legacy.exchange, key: a, delay: 1m, to: legacy.queue}
  - {from: hidden.exchange, key: b, to: {exchange: site.exchange}}
  - {key: c, delay: 1m, to: billing.queue}
retry:
  orders.queue: {levels: [1m], max: 2, park: orders.parked}
permissions:
  shop: publisher
  desk: {role: publisher, exchanges: orders.exchange}
  worker: consumer
  clerk: {role: consumer, queues: [billing.queue]}
  ops: operator
""",
    {},
    file="topology.yaml",
)
TOPOLOGY = expand(SHOP)
TOGGLE = {"delay.move.exchange", "delay.move.before.exchange", "delay.move.after.exchange"}
GRANTS = {grant.user: grant for grant in SHOP.grants}


def entry(user: str, configure: str = "^$", write: str = "^$", read: str = "^$") -> dict[str, Any]:
    """A user's permissions as the management API shows them."""
    return {"user": user, "vhost": "/", "configure": configure, "write": write, "read": read}


def only(user: str) -> Spec:
    """The shop with a single user."""
    return replace(SHOP, grants=(GRANTS[user],))


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (
            "shop",
            Needs(
                write=frozenset(
                    {"delay.1m.exchange", "delay.5m.exchange", "delay.exchange", "orders.exchange", "legacy.exchange"}
                )
            ),
        ),
        ("desk", Needs(write=frozenset({"orders.exchange"}))),
        (
            "worker",
            Needs(
                write=frozenset({"delay.1m.exchange", "delay.exchange", "orders.parked"}),
                read=frozenset({"orders.queue", "legacy.queue", "billing.queue"}),
            ),
        ),
        ("clerk", Needs(read=frozenset({"billing.queue"}))),
    ],
)
def test_publishers_and_consumers(user: str, expected: Needs) -> None:
    """A publisher writes where messages enter; a consumer reads its queues, and what it retries goes to their levels."""
    assert needs_of(GRANTS[user], SHOP, TOPOLOGY) == expected


def test_an_operator_makes_everything_and_touches_what_exists_only_by_bindings() -> None:
    """Configure on what is ours, the lock, ways round queues that change and what stands between ways that do; existing objects are bound."""
    needs = needs_of(GRANTS["ops"], SHOP, TOPOLOGY)

    assert needs.configure == {
        *(exchange.name for exchange in TOPOLOGY.exchanges),
        *(queue.name for queue in TOPOLOGY.queues),
        "delay.lock.queue",
        *(f"delay.{level}.next.{kind}" for level in ("1m", "5m") for kind in ("exchange", "queue")),
        *TOGGLE,
    }
    assert needs.write >= {"delay.1m.next.queue"}, "to bind it"
    assert needs.read >= {"delay.1m.next.queue", "delay.1m.next.exchange"}
    assert needs.read >= TOGGLE
    assert needs.write >= TOGGLE
    assert "legacy.queue" in needs.write - needs.configure
    assert "legacy.exchange" in needs.read - needs.configure
    assert "orders.queue" not in needs.read
    assert "orders.exchange" not in needs.write


def test_an_operator_may_look_for_another_number_of_queues() -> None:
    """What a level has only then, by the right that changes least: not to make it, and not to take from it."""
    sharded = read_spec("version: 1\ndelay: {levels: {1m: {shards: 2}}}\n", {}, file="topology.yaml")
    one, several = needs_of(GRANTS["ops"], SHOP, TOPOLOGY), needs_of(GRANTS["ops"], sharded, expand(sharded))

    assert {"delay.1m.spread.exchange", "delay.5m.spread.exchange"} <= one.write - one.configure - one.read
    assert {"delay.1m.queue", "delay.1m.3.exchange"} <= several.write - several.configure - several.read


def test_an_operator_may_name_dead_letter_and_alternate_exchanges() -> None:
    """Read on the object that names one, write on the one that is named; the nameless one is amq.default."""
    needs = needs_of(GRANTS["ops"], SHOP, TOPOLOGY)

    assert {"delay.exchange", "delay.1m.queue", "failed.queue"} <= needs.read
    assert {"delay.unrouted.exchange", "delay.exchange", "amq.default"} <= needs.write


def test_a_verifier_publishes_to_delays_and_to_nothing_else() -> None:
    """It catches what it sent in a queue of its own, which it binds to the exit."""
    ladder = read_spec("version: 1\ndelay: {levels: [1m], any: {unit: 1s, steps: 2}}\n", {}, file="topology.yaml")
    grant = GrantSpec("monitor", "verifier")

    assert needs_of(grant, ladder, expand(ladder)) == Needs(
        configure=frozenset({"delay.verify.queue"}),
        write=frozenset(
            {
                "delay.verify.queue",
                "delay.exchange",
                "delay.1m.exchange",
                "delay.any.exchange",
                "delay.any.00.gate.exchange",
                "delay.any.01.gate.exchange",
            }
        ),
        read=frozenset({"delay.verify.queue", "delay.exchange"}),
    )
    assert tags_for("verifier") == ("management",)


def test_a_verifier_of_a_file_without_delays_needs_nothing() -> None:
    """There is nothing to send canaries through."""
    bare = read_spec("version: 1\ndelay: none\nqueues: {a.queue: {}}\n", {}, file="topology.yaml")

    assert needs_of(GrantSpec("monitor", "verifier"), bare, expand(bare)) == Needs()


def test_rights_are_patterns() -> None:
    """Anchored and escaped."""
    assert rights_for(GRANTS["worker"], SHOP, TOPOLOGY) == Rights(
        "^$", r"^(delay\.(1m\.exchange|exchange)|orders\.parked)$", r"^(billing|legacy|orders)\.queue$"
    )


def test_a_prefix_reaches_the_patterns() -> None:
    """Another prefix is another topology, and other rights."""
    other = replace(SHOP, prefix="eu.")

    assert rights_for(GrantSpec("x", "publisher"), other, expand(other)).write == (
        r"^(eu\.delay\.((1m|5m)\.exchange|exchange)|(legacy|orders)\.exchange)$"
    )


def test_only_operators_need_a_tag() -> None:
    """Policies and the record go through the management API."""
    assert [tags_for(role) for role in ("publisher", "consumer", "operator")] == [(), (), ("policymaker",)]


class TestLacking:
    """What users have not."""

    def test_with_the_printed_rights_nothing_is_lacking(self) -> None:
        """For every user of the file."""
        found = [
            entry(user, rights.configure, rights.write, rights.read)
            for user, grant in GRANTS.items()
            for rights in [rights_for(grant, SHOP, TOPOLOGY)]
        ]

        assert lacking(SHOP, TOPOLOGY, found) == ()
        assert surplus(SHOP, TOPOLOGY, found) == ()

    def test_a_user_without_any_rights_here(self) -> None:
        """Lacks all that it needs."""
        assert lacking(only("clerk"), TOPOLOGY, [entry("somebody", ".*", ".*", ".*")]) == (
            Lack("clerk", "consumer", "read", ("billing.queue",), None, GRANTS["clerk"].line),
        )

    def test_each_name_is_told(self) -> None:
        """And those that the pattern takes are not."""
        found = [entry("worker", write="^(delay|amq)", read="^orders")]

        assert lacking(only("worker"), TOPOLOGY, found) == (
            Lack("worker", "consumer", "write", ("orders.parked",), "^(delay|amq)", GRANTS["worker"].line),
            Lack("worker", "consumer", "read", ("billing.queue", "legacy.queue"), "^orders", GRANTS["worker"].line),
        )

    def test_a_pattern_that_only_erlang_reads_is_not_judged(self) -> None:
        """It may be enough, and it is not called too little."""
        found = [entry("clerk", read="[[:alpha:]]+")]

        assert lacking(only("clerk"), TOPOLOGY, found) == ()
        assert surplus(only("clerk"), TOPOLOGY, found) == (
            Surplus("clerk", "consumer", "read", (), "[[:alpha:]]+", GRANTS["clerk"].line, is_readable=False),
        )


class TestSurplus:
    """What users have too much of."""

    def test_all_rights(self) -> None:
        """Everything that is there is named, and that the pattern has no end."""
        more = surplus(only("clerk"), TOPOLOGY, [entry("clerk", read=".*")], there=["other.queue"])

        assert [(one.verb, one.is_open) for one in more] == [("read", True)]
        assert {"other.queue", "orders.queue", "amq.default"} <= set(more[0].names)
        assert "billing.queue" not in more[0].names

    def test_a_pattern_without_anchors(self) -> None:
        """It takes nothing more today, and names that begin or end the same way tomorrow."""
        (more,) = surplus(only("clerk"), TOPOLOGY, [entry("clerk", read=r"billing\.queue")])

        assert (more.names, more.is_open) == ((), True)

    def test_another_spelling_of_the_same(self) -> None:
        """Is no surplus."""
        assert surplus(only("clerk"), TOPOLOGY, [entry("clerk", configure="", read=r"^(billing\.queue)$")]) == ()


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("", "a", False),
        ("^$", "a", False),
        ("a", "bab", True),
        ("^é$", "é", True),
        ("^.$", "é", False),
        ("(", "a", None),
    ],
)
def test_patterns_are_read_as_the_broker_reads_them(pattern: str, name: str, expected: bool | None) -> None:
    """Unanchored unless anchored, byte by byte, and empty means nothing."""
    assert allows(pattern, name) is expected


def test_a_publisher_needs_the_door_of_the_ladder_and_no_step() -> None:
    """What is behind it is the broker's to hand on; a retry in levels does not need it."""
    text = """
version: 1
delay: {levels: [1m], any: {steps: 3}}
routes:
  - {key: c, delay: any, to: billing.queue}
retry:
  billing.queue: {levels: [1m], max: 1, park: parked}
"""
    spec = read_spec(text, {}, file="topology.yaml")
    topology = expand(spec)

    publisher, consumer = (needs_of(GrantSpec("u", role), spec, topology) for role in ("publisher", "consumer"))

    assert publisher == Needs(write=frozenset({"delay.exchange", "delay.1m.exchange", "delay.any.exchange"}))
    assert "delay.any.exchange" not in consumer.write
    assert "delay.any.02.gate.exchange" in needs_of(GrantSpec("u", "operator"), spec, topology).configure
