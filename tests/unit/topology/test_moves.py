"""Ways that change their destinations: at every moment each message has exactly one set of them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.errors import Refused, StillHolds
from delayctl.topology.execute import Done, Failed, Skipped, execute
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Arguments, Binding, Exchange, Policy, Queue, Topology
from delayctl.topology.moves import Move
from delayctl.topology.names import Names
from delayctl.topology.plan import Refusal, title
from delayctl.topology.plan_file import dump_plan, load_plan
from delayctl.topology.record import Record
from delayctl.topology.routing import Message, Network, route
from delayctl.topology.spec import ExchangeSpec, QueueSpec, RouteSpec, Target

from tests.support.examples import live_of, shop
from tests.support.memory_broker import Died, MemoryBroker

THEIRS = (ExchangeSpec("site.exchange", None, existing=True),)
DELAYED = RouteSpec(("order.created",), (Target("queue", "site.queue"),), "site.exchange", "5m", replaces=True)
PLAIN = RouteSpec(("order.created",), (Target("queue", "site.queue"),), "site.exchange")
QUEUES = (QueueSpec("site.queue", existing=True),)
DIRECT = Binding("site.exchange", "queue", "site.queue", "order.created")
KIND = (("kind", "order"), ("x-match", "all"))
BY_HEADERS = Binding("site.exchange", "queue", "site.queue", "left.over", KIND)
INTO_DELAY = Binding("site.exchange", "exchange", "delay.5m.exchange", "order.created")


def site(*routes: RouteSpec) -> Topology:
    """A topology around an exchange and a queue that others made."""
    return shop("1m 5m", exchanges=THEIRS, queues=QUEUES, routes=routes)


def site_of(type: str, *, headers: Arguments = KIND) -> Topology:
    """The same where their exchange is of a type that does not look at keys."""
    route = replace(DELAYED, headers=headers) if type == "headers" else DELAYED
    return shop("1m 5m", exchanges=(replace(THEIRS[0], type=type),), queues=QUEUES, routes=(route,))


def their_broker(type: str = "topic", *direct: Binding) -> Live:
    """What others made: messages go straight from their exchange into their queue."""
    exchanges = {"site.exchange": Exchange("site.exchange", type)}
    return Live("4.3.6", exchanges, {"site.queue": Queue("site.queue")}, frozenset(direct or {DIRECT}))


def apply(broker: MemoryBroker, desired: Topology) -> list[str]:
    """Plan and carry out; gives what was done."""
    plan = diff(desired, broker.live())
    assert not plan.refusals
    return [f"{type(outcome.change).__name__} {title(outcome.change)}" for outcome in execute(plan, broker)]


def queues_of(broker: MemoryBroker, exchange: str = "site.exchange", key: str = "order.created") -> frozenset[str]:
    """Where a message published now would be put."""
    return frozenset(route(Network.of_live(broker.live()), exchange, Message(key, {"kind": "order"})).queues)


def test_a_route_that_gets_a_delay_is_moved() -> None:
    """The direct way goes in the moment in which the delayed one comes, and is remembered."""
    broker = MemoryBroker.holding(their_broker())
    assert apply(broker, site(DELAYED))[-1] == "Move way site.exchange [order.created]: site.queue ⇒ delay.5m.exchange"
    assert queues_of(broker) == {"delay.5m.queue"}
    assert DIRECT not in broker.bindings
    assert broker.records[""].replaced == {DIRECT}


def test_it_is_put_back_when_the_route_goes() -> None:
    """What others had is theirs again."""
    broker = MemoryBroker.holding(their_broker())
    apply(broker, site(DELAYED))
    done = apply(broker, site())
    assert "Move way site.exchange [order.created]: delay.5m.exchange ⇒ site.queue" in done
    assert queues_of(broker) == {"site.queue"}
    assert DIRECT not in broker.records[""].bindings, "it is others' again"
    assert broker.records[""].replaced == frozenset()


def test_destroy_leaves_what_others_had() -> None:
    """As if delayctl had never been there."""
    broker = MemoryBroker.holding(their_broker())
    apply(broker, site(DELAYED))
    apply(broker, empty_topology(""))
    left = broker.live()
    assert (left.exchanges, left.queues, left.bindings, left.record) == (
        *(getattr(their_broker(), name) for name in ("exchanges", "queues", "bindings")),
        None,
    )


def test_a_second_apply_changes_nothing() -> None:
    """A replaced way stays replaced."""
    broker = MemoryBroker.holding(their_broker())
    apply(broker, site(DELAYED))
    assert apply(broker, site(DELAYED)) == []
    assert broker.records[""].replaced == {DIRECT}


def test_nothing_to_replace_is_an_ordinary_route() -> None:
    """What was never there is not put back either."""
    broker = MemoryBroker.holding(replace(their_broker(), bindings=frozenset()))
    assert "Create binding site.exchange → [order.created] delay.5m.exchange" in apply(broker, site(DELAYED))
    apply(broker, site())
    assert queues_of(broker) == frozenset()


def test_a_direct_way_that_comes_back_goes_again() -> None:
    """Beside a delayed way it would deliver twice."""
    broker = MemoryBroker.holding(their_broker())
    apply(broker, site(DELAYED))
    broker.bindings.add(DIRECT)
    assert apply(broker, site(DELAYED)) == ["Delete binding site.exchange → [order.created] site.queue"]


def test_fanout_exchanges_look_at_no_key() -> None:
    """Whatever key it was bound with, it is the way to be replaced, and comes back with that key."""
    theirs = DIRECT._replace(key="whatever")
    broker = MemoryBroker.holding(their_broker("fanout", theirs))
    assert apply(broker, site_of("fanout"))[-1] == "Move way site.exchange: site.queue ⇒ delay.5m.exchange"
    assert theirs not in broker.bindings
    apply(broker, empty_topology(""))
    assert broker.bindings == {theirs}


@pytest.mark.parametrize(("written", "bound"), [(KIND[:1], KIND), (KIND, KIND[:1])])
def test_a_headers_exchange_looks_for_all_where_nothing_else_is_said(written: Arguments, bound: Arguments) -> None:
    """Whether `x-match: all` is written out makes no other way of it, and it comes back as it was."""
    theirs = BY_HEADERS._replace(arguments=bound)
    broker = MemoryBroker.holding(their_broker("headers", theirs))
    desired = site_of("headers", headers=written)
    assert apply(broker, desired)[-1] == "Move way site.exchange: site.queue ⇒ delay.5m.exchange"
    assert queues_of(broker) == {"delay.5m.queue"}
    apply(broker, empty_topology(""))
    assert broker.bindings == {theirs}


@pytest.mark.parametrize("messages", [0, 3])
def test_ways_out_stay_while_something_waits(messages: int) -> None:
    """What waits comes out where it should."""
    broker = MemoryBroker.holding(their_broker())
    apply(broker, site(DELAYED))
    broker.backlog["delay.5m.queue"] = Backlog(messages)
    list(execute(diff(site(), broker.live()), broker))
    assert queues_of(broker) == {"site.queue"}, "new messages go straight"
    assert queues_of(broker, "delay.exchange") == ({"site.queue"} if messages else {"delay.unrouted.queue"})


SEVERAL = replace(DELAYED, keys=("order.created", "order.paid"))
WITH_ARGUMENTS = DIRECT._replace(arguments=(("since", "2019"),))
PAID = DIRECT._replace(key="order.paid")
CHANGES = {
    "a delay comes in": (their_broker(), site(DELAYED)),
    "a delay for several keys comes in": (their_broker("direct", WITH_ARGUMENTS, PAID), site(SEVERAL)),
    "a delay comes into a fanout exchange": (their_broker("fanout", DIRECT), site_of("fanout")),
    "a delay comes into a headers exchange": (their_broker("headers", BY_HEADERS), site_of("headers")),
    "a delay goes out": (None, site()),
    "another level": (None, site(replace(DELAYED, level="1m"))),
    "from replaced to plain": (None, site(PLAIN)),
}


def start_of(name: str) -> MemoryBroker:
    """A broker before the change."""
    live, _ = CHANGES[name]
    broker = MemoryBroker.holding(live or their_broker())
    if live is None:
        apply(broker, site(DELAYED))
    return broker


@pytest.mark.parametrize("name", CHANGES)
def test_at_every_moment_a_message_goes_one_way(name: str) -> None:
    """After every single call a message has the old destinations or the new ones."""
    broker, desired = start_of(name), CHANGES[name][1]
    before, seen = queues_of(broker), []
    broker.watch = lambda broker: seen.append(queues_of(broker))
    apply(broker, desired)
    after = queues_of(broker)
    assert before != after
    toggled = seen.index(after)
    assert seen == [before] * toggled + [after] * (len(seen) - toggled)


def by_way_of(exchange: str, *, first: str | None, then: str | None) -> Topology:
    """What comes to their exchange goes through another one, and may wait before it or behind it."""
    there = RouteSpec(("order.created",), (Target("exchange", exchange),), "site.exchange", first)
    on = RouteSpec(("order.created",), (Target("queue", "site.queue"),), exchange, then)
    exchanges = (*THEIRS, ExchangeSpec(exchange, "topic"))
    return shop("1m 5m", exchanges=exchanges, queues=QUEUES, routes=(there, on))


@pytest.mark.parametrize(
    ("first", "then", "source"),
    [("5m", None, "delay.exchange"), (None, None, "site.exchange"), (None, "5m", "site.exchange")],
)
def test_another_exchange_between_is_whole_before_it_takes_over(
    first: str | None, then: str | None, source: str
) -> None:
    """After every single call, what expires or is published finds its queue."""
    broker = MemoryBroker.holding(replace(their_broker(), bindings=frozenset()))
    apply(broker, by_way_of("z.exchange", first=first, then=then))
    before, seen = queues_of(broker, source), set()
    broker.watch = lambda broker: seen.add(queues_of(broker, source))

    apply(broker, by_way_of("another.exchange", first=first, then=then))
    apply(broker, by_way_of("z.exchange", first=first, then=then))

    assert seen == {before}
    assert before in ({"site.queue"}, {"delay.5m.queue"})


@pytest.mark.parametrize("others", [0, 40])
def test_the_last_exchange_of_several_is_whole_before_it_takes_over(others: int) -> None:
    """A way is moved after the bindings that are made with it, however many there are and by whichever hands."""
    there = RouteSpec(("order.created",), (Target("exchange", "first.exchange"),), "site.exchange")
    straight = RouteSpec(("order.created",), (Target("queue", "site.queue"),), "first.exchange")
    further = replace(straight, targets=(Target("exchange", "last.exchange"),))
    keys = ("order.created", *(f"key.{number}" for number in range(others)))
    on = RouteSpec(keys, (Target("queue", "site.queue"),), "last.exchange")
    exchanges = (*THEIRS, ExchangeSpec("first.exchange"), ExchangeSpec("last.exchange"))
    broker = MemoryBroker.holding(replace(their_broker(), bindings=frozenset()))
    apply(broker, shop("5m", exchanges=exchanges, queues=QUEUES, routes=(there, straight)))
    seen: set[frozenset[str]] = set()
    broker.watch = lambda broker: seen.add(queues_of(broker))

    apply(broker, shop("5m", exchanges=exchanges, queues=QUEUES, routes=(there, further, on)))

    assert seen == {frozenset({"site.queue"})}


def through(*exchanges: str, to: str = "site.queue", then: str | None = None) -> Topology:
    """What comes to their exchange goes through all of these to a queue, and may wait behind the last."""
    sources = ("site.exchange", *exchanges)
    between = [RouteSpec(("order.created",), (Target("exchange", on),), source) for source, on in pairwise(sources)]
    last = RouteSpec(("order.created",), (Target("queue", to),), sources[-1], then)
    specs = (*THEIRS, *(ExchangeSpec(name) for name in exchanges))
    queues = QUEUES if to == "site.queue" else (*QUEUES, QueueSpec(to))
    return shop("1m 5m", exchanges=specs, queues=queues, routes=(*between, last))


@pytest.mark.parametrize("before", [through("a", then="1m"), through(to="old.queue"), through("a", to="old.queue")])
@pytest.mark.parametrize("after", [through(then="5m"), through("b", then="5m"), through("b", "c", then="5m")])
def test_where_a_delay_can_not_be_entered_yet_all_goes_on_as_it_did(before: Topology, after: Topology) -> None:
    """No way leads to where none leads on, and what is behind the one that stays is there, be it in the file or not."""
    broker = MemoryBroker.holding(replace(their_broker(), bindings=frozenset()))
    apply(broker, before)
    places, seen = queues_of(broker), set()
    broker.policies["theirs"] = Policy("theirs", r"^delay\.5m", "queues", 5, (("message-ttl", 1_000),))
    broker.watch = lambda broker: seen.add(queues_of(broker))

    outcomes = list(execute(diff(after, broker.live()), broker))

    assert all(isinstance(outcome, Done) for outcome in outcomes)
    assert len(places) == 1
    assert {*seen, queues_of(broker)} == {places}
    del broker.policies["theirs"]
    apply(broker, after)
    assert queues_of(broker) == {"delay.5m.queue"}


def test_the_plan_says_what_a_way_waits_for() -> None:
    """The way into the delay, and why that can't come."""
    broker = MemoryBroker.holding(their_broker())
    broker.policies["theirs"] = Policy("theirs", r"^delay\.5m", "queues", 5, (("message-ttl", 1_000),))

    refusals = {refusal.subject: refusal.reason for refusal in diff(through("b", then="5m"), broker.live()).refusals}

    out_of_order = "delay.5m.queue is not as it should be: what enters it would be lost, early or late"
    assert refusals["binding b → [order.created] delay.5m.exchange"] == out_of_order
    assert refusals["binding site.exchange → [order.created] b"] == f"waits for the way on from b: {out_of_order}"


def calls_of(name: str) -> Iterator[int]:
    """The calls that a change makes, counted from one."""
    broker = start_of(name)
    begun = len(broker.journal)
    apply(broker, CHANGES[name][1])
    return iter(range(1, len(broker.journal) - begun + 1))


@pytest.mark.parametrize("aim", ["goes on", "goes back"])
@pytest.mark.parametrize(("name", "call"), [(name, call) for name in CHANGES for call in calls_of(name)])
def test_killed_at_any_call_it_can_go_on_and_back(name: str, call: int, aim: str) -> None:
    """Wherever it ended, the next run comes to the same broker, and no message is lost or doubled on the way."""
    origin, broker = start_of(name), start_of(name)
    goal = CHANGES[name][1] if aim == "goes on" else site(DELAYED) if CHANGES[name][0] is None else empty_topology("")
    broker.break_at(call, Died())
    with suppress(Died):
        apply(broker, CHANGES[name][1])
    seen: set[frozenset[str]] = set()
    broker.watch = lambda broker: seen.add(queues_of(broker))
    apply(broker, goal)
    assert {len(queues) for queues in seen} <= {1}, "nothing is lost or doubled on the way"

    untouched = origin
    apply(untouched, goal)
    assert (broker.exchanges, broker.bindings, broker.records) == (
        untouched.exchanges,
        untouched.bindings,
        untouched.records,
    )


def test_toggles_of_other_topologies_are_left_alone() -> None:
    """A prefix keeps topologies apart."""
    theirs = Exchange(Names("shop-").toggle()[0], "fanout")
    broker = MemoryBroker.holding(live_of(shop()))
    broker.exchanges[theirs.name] = theirs
    assert apply(broker, shop()) == []


def test_the_record_of_an_earlier_release_has_nothing_to_put_back() -> None:
    """It knows of no replaced ways."""
    broker = MemoryBroker.holding(live_of(shop()))
    assert broker.records[""].replaced == Record().replaced
    assert not any(isinstance(change, Move) for change in diff(shop(), broker.live()).changes)


def test_all_keys_of_a_route_are_moved_as_one() -> None:
    """They lead from the same place to the same place."""
    broker = MemoryBroker.holding(their_broker("direct", WITH_ARGUMENTS, PAID))
    done = apply(broker, site(SEVERAL))
    assert done[-1] == "Move way site.exchange [order.created, order.paid]: site.queue ⇒ delay.5m.exchange"
    apply(broker, site())
    assert {b for b in broker.bindings if b.source == "site.exchange"} == {WITH_ARGUMENTS, PAID}


def test_a_route_that_no_longer_says_so_goes_on_replacing() -> None:
    """The direct way would be a second one beside the delayed; it comes back when the route goes."""
    broker = MemoryBroker.holding(their_broker())
    apply(broker, site(DELAYED))
    assert apply(broker, site(replace(DELAYED, replaces=False))) == []
    apply(broker, site())
    assert DIRECT in broker.bindings


def test_what_was_ours_is_not_put_back() -> None:
    """A direct way of the file's own, replaced and then given up, is given up."""
    broker = MemoryBroker.holding(replace(their_broker(), bindings=frozenset()))
    apply(broker, site(PLAIN))
    apply(broker, site(DELAYED))
    apply(broker, site())
    assert not [b for b in broker.bindings if b.source == "site.exchange"]


def test_a_way_stays_where_its_delay_is_out_of_order() -> None:
    """What would lose or hasten messages can't be mended while some wait: they go on straight until it can."""
    broker = MemoryBroker.holding(their_broker())
    apply(broker, site())
    broker.queues["delay.5m.queue"] = Queue("delay.5m.queue")
    broker.backlog["delay.5m.queue"] = Backlog(1)
    plan = diff(site(DELAYED), broker.live())
    list(execute(plan, broker))
    assert queues_of(broker) == {"site.queue"}
    assert "binding site.exchange → [order.created] site.queue" in [refusal.subject for refusal in plan.refusals]


def test_ways_out_stay_for_what_comes_while_the_plan_is_carried_out() -> None:
    """Counted as empty when it was planned, a delay is looked at again when nothing more can come."""
    broker = MemoryBroker.holding(their_broker())
    apply(broker, site(DELAYED))
    plan = diff(site(), broker.live())
    broker.backlog["delay.5m.queue"] = Backlog(1)
    last = list(execute(plan, broker))[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, StillHolds)
    assert last.error.what == "1 message came into delay.5m.queue meanwhile and may still need it on the way out"
    assert queues_of(broker, "delay.exchange") == {"site.queue"}
    broker.backlog.clear()
    apply(broker, site())
    assert queues_of(broker, "delay.exchange") == {"delay.unrouted.queue"}


def test_a_move_that_fails_is_the_last_of_its_stage() -> None:
    """There is one toggle: while it stands between for one, it can't for another."""
    elsewhere = replace(DELAYED, keys=("order.paid",), targets=(Target("queue", "other.queue"),))
    theirs = replace(their_broker("topic", DIRECT, PAID._replace(destination="other.queue")))
    broker = MemoryBroker.holding(theirs)
    broker.queues["other.queue"] = Queue("other.queue")
    queues = (*QUEUES, QueueSpec("other.queue", existing=True))
    desired = shop("1m 5m", exchanges=THEIRS, queues=queues, routes=(DELAYED, elsewhere))
    plan = diff(desired, broker.live())
    first, second = plan.changes[-2:]
    begun = sum(1 for change in plan.changes if not isinstance(change, Move)) + 1
    broker.break_at(begun + 6, error := Refused("no"))
    assert list(execute(plan, broker))[-2:] == [Failed(first, error), Skipped(second)]
    apply(broker, desired)
    assert queues_of(broker) == queues_of(broker, key="order.paid") == {"delay.5m.queue"}


def test_a_pattern_that_goes_on_beside_is_told() -> None:
    """It delivers at once what the route delays."""
    broker = MemoryBroker.holding(their_broker("topic", DIRECT, DIRECT._replace(key="order.#")))
    [warning] = diff(site(DELAYED), broker.live()).warnings
    assert warning.startswith("binding site.exchange → [order.#] site.queue stays: a message that fits [order.created]")


def test_a_route_with_nothing_to_replace_is_told_once() -> None:
    """Most often it is a typing error."""
    broker = MemoryBroker.holding(their_broker("topic", DIRECT._replace(key="order.creatde")))
    [warning] = diff(site(DELAYED), broker.live()).warnings
    assert warning.startswith("binding site.exchange → [order.created] site.queue is not there")
    apply(broker, site(DELAYED))
    assert diff(site(DELAYED), broker.live()).warnings == ()


def test_a_saved_plan_holds_moves() -> None:
    """It is carried out as it was made."""
    plan = diff(site(DELAYED), their_broker())
    assert load_plan(dump_plan(plan), file="plan") == plan


FRONT, BEFORE, AFTER = Names("").toggle()


@pytest.mark.parametrize(
    "theirs",
    [
        Exchange(FRONT),
        Exchange(FRONT, "fanout"),
        Exchange(FRONT, "fanout", alternate=AFTER, durable=False),
        Exchange(BEFORE, "fanout", alternate="their.exchange"),
        Exchange(AFTER, "headers"),
    ],
)
def test_an_exchange_of_others_that_is_called_like_a_toggle_stays(theirs: Exchange) -> None:
    """A name is no proof: it is not as it is made here."""
    broker = MemoryBroker.holding(live_of(shop()))
    broker.exchanges[theirs.name] = theirs

    assert apply(broker, shop()) == []
    assert apply(broker, empty_topology("")) != []
    assert broker.exchanges == {theirs.name: theirs}


def test_what_was_there_before_the_first_apply_was_not_left_behind() -> None:
    """Without a record nothing was ever begun, whatever its shape."""
    theirs = Exchange(FRONT, "fanout", alternate=AFTER)
    broker = MemoryBroker(exchanges={FRONT: theirs})

    apply(broker, shop())

    assert broker.exchanges[FRONT] == theirs


def test_a_side_that_others_lead_into_is_theirs() -> None:
    """Ours is reached through the front alone."""
    broker = MemoryBroker.holding(live_of(shop()))
    broker.exchanges[AFTER] = Exchange(AFTER, "fanout")
    broker.bindings.add(Binding("orders.exchange", "exchange", AFTER, "their.key"))

    assert apply(broker, shop()) == []


def test_ways_are_not_changed_where_the_name_is_taken() -> None:
    """Nothing is applied, since the move would fail half-way."""
    broker = MemoryBroker.holding(their_broker())
    apply(broker, site())
    broker.exchanges[FRONT] = Exchange(FRONT)

    plan = diff(site(DELAYED), broker.live())

    reason = "is in the way: delayctl makes one of this name while ways change, and did not make this one"
    fix = "remove it, or give it another name"
    assert plan.refusals == (Refusal("exchange delay.move.exchange", reason, fix, blocking=True),)
