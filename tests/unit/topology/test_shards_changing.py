"""A level that gets another number of queues, on a broker where others have bound what they like."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import pytest
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.duration import Duration
from delayctl.topology.execute import execute
from delayctl.topology.expand import expand
from delayctl.topology.former import telltales
from delayctl.topology.live import Backlog
from delayctl.topology.model import Binding, Exchange, Queue
from delayctl.topology.plan import Plan
from delayctl.topology.spec import MOST_SHARDS, SettingsHome, Spec

from tests.support.examples import live_of
from tests.support.memory_broker import Died, MemoryBroker
from tests.support.switches import after, run_to_the_end, under_load
from tests.support.switches import state as topology_on
from tests.unit.topology.test_shards import file


def applied(spec: Spec) -> MemoryBroker:
    """A broker with what a file asks for."""
    broker = MemoryBroker()
    list(execute(diff(expand(spec), broker.live()), broker))
    return broker


def apply(spec: Spec, broker: MemoryBroker) -> Plan:
    """Apply a file as the broker is now, and say how that was planned."""
    plan = diff(expand(spec), broker.live())
    list(execute(plan, broker))
    return plan


def state(broker: MemoryBroker) -> tuple[Iterable[str], Iterable[str], Iterable[Binding], Iterable[str]]:
    """All that is there."""
    return broker.exchanges.keys(), broker.queues.keys(), broker.bindings, broker.policies.keys()


TAP = Binding("delay.a.2.exchange", "queue", "tap.queue")
AUDIT = Binding("delay.a.1.exchange", "exchange", "audit.exchange")
PAST_THE_WAIT = Binding("delay.a.1.exchange", "exchange", "delay.exchange")
BESIDE = Binding("delay.a.spread.exchange", "queue", "tap.queue", "1")


class TestWhatOthersBoundBehindShards:
    """It is theirs, and stays."""

    @pytest.mark.parametrize("is_recorded", [True, False])
    @pytest.mark.parametrize("foreign", [TAP, AUDIT, PAST_THE_WAIT, BESIDE])
    def test_one_queue_instead(self, foreign: Binding, is_recorded: bool) -> None:
        """No queue, no exchange and no way of theirs goes, and none becomes ours."""
        broker = applied(file(2))
        broker.exchanges["audit.exchange"] = Exchange("audit.exchange", "fanout")
        broker.queues |= {name: Queue(name) for name in ("tap.queue", "audit.queue")}
        theirs = {
            foreign,
            Binding("audit.exchange", "queue", "audit.queue"),
            Binding("delay.exchange", "queue", "tap.queue", "theirs.#"),
        }
        broker.bindings |= theirs
        if not is_recorded:
            broker.records.clear()

        plan = apply(file(1), broker)

        assert f"exchange {foreign.source}" in [refusal.subject for refusal in plan.refusals]
        assert theirs <= broker.bindings
        assert {"tap.queue", "audit.queue"} <= broker.queues.keys()
        assert {"audit.exchange", "delay.exchange"} <= broker.exchanges.keys()
        recorded = broker.records[""]
        assert theirs.isdisjoint(recorded.bindings)
        assert {"tap.queue", "audit.queue"}.isdisjoint(recorded.queues)
        assert "audit.exchange" not in recorded.exchanges
        before = [set(names) for names in state(broker)]
        apply(file(1), broker)
        assert before == [set(names) for names in state(broker)], "the next run sees it as this one"


@pytest.mark.parametrize("settings", ["arguments", "policy"])
@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 3), (4, 2), (2, 4)])
def test_all_that_is_ours_goes_without_a_record(before: int, after: int, settings: SettingsHome) -> None:
    """By its names; what stays in the ring would get its part of the messages for ever."""
    old, new = (replace(file(number, max_length=None), settings=settings) for number in (before, after))
    broker = applied(old)
    broker.records.clear()

    apply(new, broker)

    assert state(broker) == state(applied(new))


def test_ways_round_shards_go_without_a_record() -> None:
    """A change of a shard was under way."""
    broker = applied(file(2))
    broker.backlog["delay.a.1.queue"] = Backlog(3)
    apply(file(2, max_length=2000), broker)
    under_way = {name for name in (*broker.exchanges, *broker.queues, *broker.policies) if ".next." in name}
    broker.records.clear()
    broker.backlog.clear()

    apply(file(1), broker)

    assert under_way >= {"delay.a.1.next.exchange", "delay.a.1.next.queue", "delay.a.1.next.policy"}
    assert not [name for name in (*broker.exchanges, *broker.queues, *broker.policies) if ".next." in name]


class TestWhatOthersLeadIn:
    """What comes their way goes on waiting, and coming out."""

    @pytest.mark.parametrize("others", [(), (TAP,)], ids=["", "and a tap behind"])
    @pytest.mark.parametrize("shards", [1, 2])
    def test_nothing_goes_from_behind_an_entrance_that_stays(self, shards: int, others: tuple[Binding, ...]) -> None:
        """However many queues the level has; all is refused, and stays ours."""
        broker = applied(file(shards))
        broker.exchanges["x"] = Exchange("x")
        broker.queues["tap.queue"] = Queue("tap.queue")
        broker.bindings.add(Binding("x", "exchange", "delay.a.exchange", "k"))
        broker.bindings |= {other for other in others if other.source in broker.exchanges}
        exchanges, queues, bindings = set(broker.exchanges), set(broker.queues), set(broker.bindings)

        list(execute(diff(empty_topology(""), broker.live()), broker))

        # Nobody publishes to what the file alone made; the way out stays with all that is on it.
        assert exchanges - broker.exchanges.keys() == {"orders.exchange"}
        assert queues == broker.queues.keys()
        gone = {Binding("orders.exchange", "exchange", "delay.a.exchange", "order.created")}
        assert bindings - broker.bindings == gone

    def test_shards_stay_behind_a_spread_that_does(self) -> None:
        """New messages of the level wait in its one queue, theirs in the shards."""
        broker = applied(file(2))
        broker.exchanges["x"] = Exchange("x")
        broker.bindings.add(Binding("x", "exchange", "delay.a.spread.exchange", "k"))
        before = set(broker.bindings)

        apply(file(1), broker)

        assert before - broker.bindings == {Binding("delay.a.exchange", "exchange", "delay.a.spread.exchange")}
        assert {"delay.a.1.queue", "delay.a.2.queue", "delay.a.queue"} <= broker.queues.keys()
        assert Binding("delay.a.exchange", "queue", "delay.a.queue") in broker.bindings


class TestShardsOutOfOrder:
    """Queues of these names are there, without a TTL, and hold messages."""

    @staticmethod
    def with_broken_queues(broker: MemoryBroker, *names: str) -> MemoryBroker:
        """A broker with such queues."""
        broker.queues |= {name: Queue(name) for name in names}
        broker.backlog |= dict.fromkeys(names, Backlog(3))
        return broker

    @pytest.mark.parametrize("broken", [("delay.a.1.queue", "delay.a.2.queue"), ("delay.a.2.queue",)])
    def test_a_level_keeps_its_one_queue(self, broken: tuple[str, ...]) -> None:
        """As long as one of them can't be mended; its way is not moved."""
        broker = self.with_broken_queues(applied(file(1)), *broken)

        plan = apply(file(2), broker)

        assert {f"queue {name}" for name in broken} <= {refusal.subject for refusal in plan.refusals}
        ways = {b for b in broker.bindings if b.source == "delay.a.exchange"}
        assert ways == {Binding("delay.a.exchange", "queue", "delay.a.queue")}
        assert "delay.a.queue" in broker.queues

    def test_a_new_level_is_not_entered(self) -> None:
        """What entered it would get nowhere."""
        broker = self.with_broken_queues(MemoryBroker(), "delay.a.1.queue")

        apply(file(2), broker)

        assert not [b for b in broker.bindings if b.destination in ("delay.a.exchange", "delay.a.spread.exchange")]

    def test_a_way_stays_behind_another_that_stays(self) -> None:
        """A route that can't go elsewhere yet keeps the level, and the level its shards: each is kept once."""
        broker = applied(through(file(2, 1), "a"))
        self.with_broken_queues(broker, "delay.a.queue", "delay.c.queue")
        before = set(broker.bindings)

        plan = apply(through(file(1, 1, 1), "c"), broker)

        assert before <= broker.bindings
        subjects = [refusal.subject for refusal in plan.refusals]
        assert subjects.count("binding delay.a.exchange → delay.a.spread.exchange") == 1
        assert len(subjects) == len(set(subjects))

    def test_no_shorter_shard_comes_while_a_route_that_leaves_is_there(self) -> None:
        """It would get a part of the messages, which wait too short there: their level is shortened once they are led to another."""
        broker = applied(through(file(2), "a"))
        self.with_broken_queues(broker, "delay.c.queue")
        shorter = file(3, 1, 1)
        levels = tuple(replace(level, ttl=Duration(1_000)) if level.name == "a" else level for level in shorter.levels)

        apply(through(replace(shorter, levels=levels), "c"), broker)

        ways = {b for b in broker.bindings if b.source == "delay.a.spread.exchange"}
        assert {way.destination for way in ways} == {"delay.a.1.exchange", "delay.a.2.exchange"}


def through(spec: Spec, level: str) -> Spec:
    """A file whose route begins at an exchange that is named before all of delayctl's, and waits at this level."""
    (exchange,), (route,) = spec.exchanges, spec.routes
    source = "billing.exchange"
    routes = (replace(route, source=source, level=level),)
    return replace(spec, exchanges=(replace(exchange, name=source),), routes=routes)


@pytest.mark.parametrize(
    ("shards", "found"),
    [
        (1, ["delay.a.spread.exchange"]),
        (2, ["delay.a.queue", "delay.a.3.exchange"]),
        (MOST_SHARDS, ["delay.a.queue"]),
    ],
)
def test_what_gives_another_number_of_queues_away(shards: int, found: list[str]) -> None:
    """It is on the broker then, and never with this number: so it can be looked for over AMQP alone."""
    (level,) = expand(file(shards)).levels
    numbers = {1, 2, shards, min(shards + 1, MOST_SHARDS)}

    names = [reference.name for reference in telltales(level, "")]
    there = {number: {*applied(file(number)).exchanges, *applied(file(number)).queues} for number in numbers}

    assert names == found
    assert there[shards].isdisjoint(names)
    assert all(there[number].intersection(names) for number in numbers if number == 1 < shards or number > shards)


@pytest.mark.parametrize("home", ["arguments", "policy"])
@pytest.mark.parametrize("call", range(20, 40))
def test_killed_on_the_way_to_shards_it_goes_back_to_a_shorter_queue_by_policy(home: SettingsHome, call: int) -> None:
    """The old queue, which nothing enters, gets its policy when it is empty, and is bound only then: nobody has to insist."""
    one, two = (expand(replace(file(shards, max_length=None), settings=home)) for shards in (1, 2))
    shorter = expand(replace(file(1, max_length=10), settings="policy"))
    broker = MemoryBroker.holding(live_of(one, dict.fromkeys(one.delay_queues, 2)))
    seen: list[frozenset[str]] = []
    broker.watch = under_load(seen)
    broker.break_at(call, Died())

    with suppress(Died):
        run_to_the_end(broker, two)
    broker.mend()
    run_to_the_end(broker, shorter)

    assert broker.lost == []
    assert topology_on(broker) == after(shorter)
