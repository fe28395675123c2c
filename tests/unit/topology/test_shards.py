"""Levels over several queues, as values: where they are placed, how they are routed, refused, summed up and looked for."""

from collections import Counter
from dataclasses import replace

import pytest
from delayctl.publishers.known import recorded_levels
from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.execute import execute
from delayctl.topology.expand import expand
from delayctl.topology.expand_shards import part_specs, with_one_queue_each
from delayctl.topology.figures import Age, Early, Figures, Node, Rates
from delayctl.topology.live import Live
from delayctl.topology.model import EXCHANGE_TYPES, ROUTED_TYPES, Binding, Exchange, Level, Settings, Sharded
from delayctl.topology.names import Names
from delayctl.topology.placement import places_of
from delayctl.topology.plan import Refusal
from delayctl.topology.plan_file import dump_plan, load_plan
from delayctl.topology.routing import Message, Network, route
from delayctl.topology.spec import LevelSpec, RouteSpec, Spec, Target, WaitSpec
from delayctl.topology.status import LevelStatus
from delayctl.topology.status_shards import wholes

from tests.support.examples import ORDERS, ORDERS_QUEUE, live_of
from tests.support.memory_broker import MemoryBroker
from tests.support.patients import IDLE, examination
from tests.support.patients import found as diagnosed

HOUR = Duration.parse("1h")


def file(*shards: int, max_length: int | None = 1000) -> Spec:
    """A file with levels a, b, … over so many queues each, and a route through the first."""
    levels = tuple(
        LevelSpec(name, HOUR, WaitSpec(max_length=max_length, shards=count))
        for name, count in zip("abc", shards, strict=False)
    )
    route = RouteSpec(("order.created",), (Target("queue", "orders.queue"),), "orders.exchange", "a")
    return Spec(levels, exchanges=(ORDERS,), queues=(ORDERS_QUEUE,), routes=(route,))


def places(network: Network, message: Message) -> tuple[str, ...]:
    """The queues that a message for the first level gets to."""
    return route(network, "delay.a.exchange", message).queues


class TestRoom:
    """Limits are the level's."""

    @pytest.mark.parametrize(
        ("limit", "parts"), [(1000, [334, 333, 333]), (3, [1, 1, 1]), (2, [1, 1, 1]), (None, [None] * 3)]
    )
    def test_shards_have_it_together(self, limit: int | None, parts: list[int | None]) -> None:
        """And each has room for one in any case."""
        (level,) = file(3, max_length=limit).levels

        assert [part.wait.max_length for part in part_specs(level)] == parts

    def test_one_queue_each_has_it_all(self) -> None:
        """As simulate reckons."""
        assert with_one_queue_each(file(3, 2)) == file(1, 1)


class TestPlaces:
    """Every shard on the next node."""

    def test_in_turn(self) -> None:
        """A level begins one node further than the one before; what stands in for a queue is where that is."""
        found = places_of(expand(file(3, 1, 2)), ("y", "x"))

        assert found == {
            "delay.a.1.queue": "x",
            "delay.a.1.next.queue": "x",
            "delay.a.2.queue": "y",
            "delay.a.2.next.queue": "y",
            "delay.a.3.queue": "x",
            "delay.a.3.next.queue": "x",
            "delay.c.1.queue": "y",
            "delay.c.1.next.queue": "y",
            "delay.c.2.queue": "x",
            "delay.c.2.next.queue": "x",
        }

    def test_nothing_to_choose_from(self) -> None:
        """On one node, or where nobody may know the nodes."""
        assert places_of(expand(file(3)), ("x",)) == places_of(expand(file(3)), ()) == {}

    def test_a_saved_plan_keeps_them(self) -> None:
        """And declares there."""
        broker = MemoryBroker()
        plan = diff(expand(file(3)), replace(broker.live(), nodes=("x", "y", "z")))

        list(execute(load_plan(dump_plan(plan), file="plan.json"), broker))

        assert broker.places == {"delay.a.1.queue": "x", "delay.a.2.queue": "y", "delay.a.3.queue": "z"}


class TestRouting:
    """One of them."""

    def test_a_message_comes_to_one_queue_and_always_to_the_same(self) -> None:
        """Each queue gets its part; messages without an id all come to the first."""
        network = Network.of_topology(expand(file(3)))

        found = {number: places(network, Message("k", id=str(number))) for number in range(300)}

        assert found == {number: places(network, Message("k", id=str(number))) for number in range(300)}
        counts = Counter(queue for queues in found.values() for queue in queues)
        assert {len(queues) for queues in found.values()} == {1}
        assert sorted(counts) == ["delay.a.1.queue", "delay.a.2.queue", "delay.a.3.queue"]
        assert min(counts.values()) > 50
        assert places(network, Message("k")) == places(network, Message("other")) == ("delay.a.1.queue",)

    def test_by_key_header_and_weight(self) -> None:
        """As the exchange is told to; a binding with the key 0 gets nothing, and what is bound to nothing is unroutable."""
        ways = frozenset({Binding("x", "exchange", "one", "1"), Binding("x", "exchange", "none", "0")})
        network = Network({"x": Exchange("x", "x-consistent-hash")}, {}, ways)
        by_header = Network({"x": Exchange("x", "x-consistent-hash", extra=(("hash-header", "shop"),))}, {}, ways)
        empty = Network({"x": Exchange("x", "x-consistent-hash", alternate="net")}, {}, ())

        assert {route(network, "x", Message(str(n))).hops[0].matched[0].destination for n in range(20)} == {"one"}
        assert route(by_header, "x", Message("k", {"shop": "eu"})).hops[0].one_of == 1
        assert route(empty, "x", Message("k")).hops[0].alternate == "net"


def test_without_the_plugin_nothing_is_applied() -> None:
    """The plan says what is missing, and how to switch it on; with it, there is nothing to say."""
    refused = diff(expand(file(2)), Live(exchange_types=frozenset(EXCHANGE_TYPES)))
    fine = diff(expand(file(2)), Live(exchange_types=frozenset(ROUTED_TYPES)))

    assert refused.refusals == (
        Refusal(
            "exchange delay.a.spread.exchange",
            "is of the type x-consistent-hash, which the broker does not have: its plugin is not enabled",
            "on every node: rabbitmq-plugins enable rabbitmq_consistent_hash_exchange",
            blocking=True,
        ),
    )
    assert (refused.is_blocked, fine.refusals) == (True, ())


def test_a_publisher_finds_the_level_by_the_record() -> None:
    """With its shards, and beside it the level that has one queue."""
    desired = expand(file(2, 1))
    broker = MemoryBroker()
    list(execute(diff(desired, broker.live()), broker))

    assert recorded_levels(broker.live(), "") == desired.levels


def test_a_way_that_is_not_ours_is_told_of() -> None:
    """What others bind behind the entrance does not wait."""
    live = live_of(expand(file(2)))
    foreign = Binding("delay.a.exchange", "queue", "orders.queue")

    plan = diff(expand(file(2)), replace(live, bindings=live.bindings | {foreign}))

    assert [text for text in plan.warnings if "is not delayctl's" in text] == [
        "binding delay.a.exchange → orders.queue is not delayctl's: what enters there reaches orders.queue without any delay."
    ]


def _status(number: int, level: Sharded, figures: Figures) -> LevelStatus:
    settings = Settings(ttl=HOUR, max_length=10)
    return LevelStatus(
        f"a.{number}",
        f"delay.a.{number}.queue",
        True,
        settings,
        settings,
        (),
        figures,
        Rates(1.0, 0.5),
        Age(number * 100, number * 200, "samples"),
        Early(number, HOUR),
        is_own=True,
        shard_of=level,
    )


def test_a_level_is_the_sum_of_its_shards() -> None:
    """Messages, rates and room of all, and the age of the oldest; a level with one queue stays as it is."""
    (level,) = expand(file(2)).sharded
    first, second = _status(1, level, Figures(3, consumers=0)), _status(2, level, Figures(4))
    alone = replace(first, name="b", shard_of=None)

    ((whole, shards), (other, none)) = wholes([first, second, alone])

    assert (whole.name, whole.queue, whole.waiting, whole.settings.max_length) == ("a", "delay.a.*.queue", 7, 20)
    assert (whole.rates, whole.oldest, whole.early) == (Rates(2.0, 1.0), Age(200, 400, "samples"), Early(3, HOUR))
    assert (whole.figures.consumers, whole.is_own, shards) == (None, True, (first, second))
    assert (other, none) == (alone, ())
    assert wholes([replace(first, rates=None, early=None), second])[0][0].rates is None


def test_the_past_of_a_level_is_that_of_all_shards() -> None:
    """From when on something is known of each; one that has no sample of a moment counts as it was before."""
    (level,) = expand(file(2)).sharded
    first = _status(1, level, Figures(3, lengths=((1, 5), (2, 6), (4, 7))))
    second = _status(2, level, Figures(4, lengths=((2, 10), (3, 20), (4, 30))))

    ((whole, _),) = wholes([first, second])

    assert whole.figures.lengths == ((2, 16), (3, 26), (4, 37))


def test_names_of_spreads_and_shards() -> None:
    """Read back with any prefix, and nothing else is taken for one."""
    names = Names("eu.")

    assert names.spread_level(names.spread("15m")) == "15m"
    assert [names.spread_level(name) for name in ("delay.15m.spread.exchange", "eu.delay.15m.1.exchange")] == [
        None,
        None,
    ]
    others = ("delay.15m.1.exchange", "eu.delay.15m.01.exchange", "eu.delay.any.10.exchange", "eu.delay.15m.exchange")
    assert names.shard_level(names.entrance("15m.12")) == "15m"
    assert {names.shard_level(name) for name in others} == {None}


def test_parts() -> None:
    """A level is its own part, unless it has shards."""
    sharded, alone = expand(file(2, 1)).levels

    assert [part.name for part in sharded.parts] == ["a.1", "a.2"]
    assert (alone.parts, alone.queues) == ((alone,), ("delay.b.queue",))
    assert isinstance(alone, Level)
    assert not isinstance(alone, Sharded)


@pytest.mark.parametrize(("leaders", "is_skewed"), [("abc", False), ("aab", True), ("cab", False)])
def test_shards_that_another_node_could_have_are_told_of(leaders: str, is_skewed: bool) -> None:
    """By the doctor: two of three on one of three nodes."""
    figures = {
        f"delay.a.{number}.queue": replace(IDLE, node=f"rabbit@{leader}") for number, leader in enumerate(leaders, 1)
    }
    nodes = (Node("rabbit@a"), Node("rabbit@b"), Node("rabbit@c"))

    diagnoses = diagnosed(examination(expand(file(3)), figures=figures, nodes=nodes), "H214")

    told = "rabbit@a leads 2 of 3 shards of a, and there are 3 nodes"
    assert [(found.at, found.message) for found in diagnoses] == [("delay.a.*.queue", told)] * is_skewed


@pytest.mark.parametrize("nodes", [None, (Node("rabbit@a"),)])
def test_shards_that_no_other_node_could_have_are_none_too_many(nodes: tuple[Node, ...] | None) -> None:
    """On a single node; nor does the doctor fail where its user may not know the nodes."""
    figures = {f"delay.a.{number}.queue": replace(IDLE, node="rabbit@a") for number in (1, 2, 3)}

    assert diagnosed(examination(expand(file(3)), figures=figures, nodes=nodes), "H214") == []
