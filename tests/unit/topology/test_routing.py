"""Where an exchange sends a message."""

import pytest
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Kind, Policy, Queue, Topology, freeze_arguments
from delayctl.topology.routing import Hop, Message, Network, Routed, headers_match, route, topic_matches
from delayctl.topology.spec import ExchangeSpec, QueueSpec

from tests.support.examples import shop


def network(*objects: Exchange | Queue | Binding, policies: tuple[Policy, ...] = ()) -> Network:
    """A broker with these objects."""
    return Network.of_live(
        Live(
            exchanges={found.name: found for found in objects if isinstance(found, Exchange)},
            queues={found.name: found for found in objects if isinstance(found, Queue)},
            bindings=frozenset(found for found in objects if isinstance(found, Binding)),
            policies=policies,
        )
    )


def to(source: str, destination: str, key: str = "", **arguments: object) -> Binding:
    """A binding; what begins with q is a queue."""
    kind: Kind = "queue" if destination.startswith("q") else "exchange"
    spelled = {name.replace("_", "-"): value for name, value in arguments.items()}
    return Binding(source, kind, destination, key, freeze_arguments(spelled))


@pytest.mark.parametrize(
    ("pattern", "key", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.c", False),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.*", "a.b.c", False),
        ("a.#", "a", True),
        ("a.#", "a.b.c", True),
        ("#", "", True),
        ("#", "a.b", True),
        ("*", "", False),
        ("*", ".", False),
        ("*.*", ".", True),
        ("", "", True),
        ("", "a", False),
        ("#.b", "a.b", True),
        ("#.b", "b.a", False),
        ("a.#.c", "a.c", True),
        ("#.a.#", "b.a.c", True),
        ("a.*.b", "a..b", True),
        ("#.#", "", True),
        ("*.#", "", False),
        ("a.", "a", False),
    ],
)
def test_topic_patterns(pattern: str, key: str, expected: bool) -> None:
    """A star is one word, also an empty one; a hash any number of them; an empty key has none."""
    assert topic_matches(pattern, key) is expected


@pytest.mark.parametrize(
    ("wanted", "headers", "expected"),
    [
        ({}, {}, True),
        ({"x-match": "any"}, {"a": 1}, False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": 1, "b": 2, "x-match": "any"}, {"a": 1}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": True}, True),
        ({"a": None}, {"a": "whatever"}, True),
        ({"a": None}, {}, False),
        ({"x-a": 1}, {}, True),
        ({"x-a": 1, "x-match": "any"}, {"x-a": 1}, False),
        ({"x-a": 1, "x-match": "any-with-x"}, {"x-a": 1}, True),
        ({"x-a": 1, "x-match": "all-with-x"}, {}, False),
        ({"x-a": 1, "b": 2, "x-match": "all-with-x"}, {"x-a": 1, "b": 2}, True),
        ({"BCC": None}, {"BCC": ["k"]}, False),
        ({"CC": None}, {"CC": ["k"]}, True),
    ],
)
def test_headers(wanted: dict[str, object], headers: dict[str, object], expected: bool) -> None:
    """Values are compared with their types; what begins with x- counts only where x-match says so."""
    assert headers_match(freeze_arguments(wanted), headers) is expected


def test_a_direct_exchange_goes_by_the_very_key() -> None:
    """No pattern, and each queue once however many bindings lead there."""
    there = network(Exchange("x", "direct"), Queue("q"), to("x", "q", "a"), to("x", "q", "b"), to("x", "q", "#"))

    assert route(there, "x", Message("a", {"CC": ["b"]})).queues == ("q",)
    assert route(there, "x", Message("c")).queues == ()


def test_further_keys_count() -> None:
    """CC and BCC are routed by like the key itself."""
    there = network(Exchange("x", "direct"), *map(Queue, ("qa", "qb", "qc")))
    there = Network(there.exchanges, there.queues, [to("x", "qa", "a"), to("x", "qb", "b"), to("x", "qc", "c")])

    assert route(there, "x", Message("a", {"CC": ["b"], "BCC": ["c"]})).queues == ("qa", "qb", "qc")
    assert Message("a", {"CC": "b"}).keys == ("a",)


def test_the_default_exchange_leads_to_queues_by_name() -> None:
    """Every key that names a queue, and nothing else."""
    there = network(Queue("q"), Queue("q2"))

    assert route(there, "", Message("q", {"CC": ["q2", "q3"]})) == Routed(("q", "q2"), (Hop(""),))


def test_the_alternate_takes_what_matches_nothing() -> None:
    """Only then, and only from the exchange itself."""
    there = network(
        Exchange("x", "topic", alternate="other"), Exchange("other", "fanout"), Queue("q"), to("other", "q")
    )
    bound = network(*there.exchanges.values(), Queue("q"), to("other", "q"), to("x", "empty", "a"), Exchange("empty"))

    assert route(there, "x", Message("a")).queues == ("q",)
    assert route(bound, "x", Message("b")).queues == ("q",)
    assert route(bound, "x", Message("a")) == Routed((), (Hop("x", (to("x", "empty", "a"),)), Hop("empty")))


def test_the_default_exchange_as_an_alternate_leads_nowhere() -> None:
    """It has no bindings, and what makes it special is only for those who publish to it; a policy may lead on."""
    objects = Exchange("x", "fanout", alternate=""), Exchange("y", "fanout"), Queue("q"), Queue("q2"), to("y", "q2")
    policy = Policy("p", "^$", "exchanges", 0, freeze_arguments({"alternate-exchange": "y"}))

    assert route(network(*objects), "x", Message("q")).queues == ()
    assert route(network(*objects, policies=(policy,)), "x", Message("q")).queues == ("q2",)
    assert route(network(*objects, policies=(policy,)), "", Message("nobody")).queues == ()


def test_exchanges_are_passed_once() -> None:
    """Exchanges that lead to each other, and to themselves, end."""
    there = network(
        Exchange("x", "fanout", alternate="x"),
        Exchange("y", "fanout"),
        Queue("q"),
        to("x", "y"),
        to("y", "x"),
        to("x", "x"),
        to("y", "q"),
        to("x", "q"),
    )

    routed = route(there, "x", Message("a"))

    assert routed.queues == ("q",)
    assert [hop.exchange for hop in routed.hops] == ["x", "y"]


def test_what_is_missing_is_said() -> None:
    """A missing alternate, and a binding to a queue that is not there."""
    there = network(Exchange("x", "fanout", alternate="gone"))

    assert route(there, "x", Message("a")).hops == (Hop("x", alternate="gone"), Hop("gone", is_missing=True))
    assert route(Network(there.exchanges, {}, [to("x", "q")]), "x", Message("a")).queues == ()


def test_the_type_of_a_plugin_is_not_guessed() -> None:
    """Neither its bindings nor its alternate say where it leads."""
    there = network(
        Exchange("x", "x-delayed-message", alternate="y"), Exchange("y", "fanout"), Queue("q"), to("x", "q")
    )

    assert route(there, "x", Message("a")) == Routed((), (Hop("x", is_unknown=True),))


def test_an_alternate_by_policy_counts_unless_there_is_an_argument() -> None:
    """One policy applies, the one with the highest priority; queues' policies say nothing of exchanges."""

    def policy(name: str, priority: int, alternate: str | None, apply_to: str = "exchanges") -> Policy:
        definition = {"alternate-exchange": alternate} if alternate else {"federation-upstream": "all"}
        return Policy(name, "^x", apply_to, priority, freeze_arguments(definition))

    objects = (Exchange("x", "fanout"), Exchange("x2", "fanout", alternate="own"), Exchange("other", "fanout"))
    low, all_kinds, silent = policy("a", 1, "low"), policy("b", 2, "all", "all"), policy("c", 3, None)

    def alternates(*policies: Policy) -> list[str | None]:
        there = network(*objects, policies=policies)
        return [there.exchanges[name].alternate for name in ("x", "x2", "other")]

    assert alternates(low) == ["low", "own", None]
    assert alternates(low, all_kinds) == ["all", "own", None]
    assert alternates(low, silent) == [None, "own", None]
    assert alternates(policy("d", 1, "queues", "queues")) == [None, "own", None]


def test_a_bound_queue_that_the_broker_does_not_list_is_there() -> None:
    """Exclusive queues are in no definitions."""
    there = network(Exchange("x", "fanout"), to("x", "q.exclusive"))

    assert route(there, "x", Message("a")).queues == ("q.exclusive",)


def test_settings_by_policy_are_in_force() -> None:
    """A topology that keeps its TTLs in policies routes like one that does not."""
    with_policies, without = (Network.of_topology(shop(settings=home)) for home in ("policy", "arguments"))

    assert with_policies.queues["delay.5m.queue"].settings.ttl == without.queues["delay.5m.queue"].settings.ttl
    assert with_policies.bindings_from == without.bindings_from


def test_what_exists_elsewhere_is_part_of_the_network() -> None:
    """With the type that the file gives; where it gives none, that is said."""
    topology: Topology = shop(
        exchanges=(ExchangeSpec("orders.exchange", None, existing=True), ExchangeSpec("f", "fanout", existing=True)),
        queues=(QueueSpec("orders.queue", existing=True),),
    )

    there = Network.of_topology(topology)

    assert (there.exchanges["orders.exchange"].type, there.exchanges["f"].type) == ("topic", "fanout")
    assert there.assumed == {"orders.exchange"}
    assert "orders.queue" in there.queues
