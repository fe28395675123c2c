"""Changing a delay queue under load: at every moment a message has one place to wait in, wherever the run is killed."""

from contextlib import suppress
from dataclasses import replace

import pytest
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.duration import Duration
from delayctl.topology.effective import effective
from delayctl.topology.errors import StillHolds
from delayctl.topology.execute import Failed, execute
from delayctl.topology.expand import expand
from delayctl.topology.live import Backlog
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Topology
from delayctl.topology.plan import Delete, Replace, Wait, label, resource_of
from delayctl.topology.routing import Message, Network, route
from delayctl.topology.spec import LadderSpec, RouteSpec, Spec, Target, WaitSpec

from tests.support.examples import live_of, shop
from tests.support.memory_broker import Died, MemoryBroker
from tests.support.switches import after, destinations, run_once, run_to_the_end, state, under_load

QUEUE, NEXT = "delay.5m.queue", "delay.5m.next.queue"
INTO_QUEUE = Binding("delay.5m.exchange", "queue", QUEUE)
VIA_1M = RouteSpec(("order.created",), (Target("queue", "orders.queue"),), "orders.exchange", "1m")

CHANGES: dict[str, tuple[Topology, Topology]] = {
    "more room": (shop(), shop(max_length=20)),
    "less room": (shop(), shop(max_length=5)),
    "another overflow": (shop(), shop(overflow="reject-publish")),
    "to quorum": (shop(), shop(type="quorum")),
    "to classic": (shop(type="quorum"), shop()),
    "to policy": (shop(), shop(settings="policy")),
    "to arguments": (shop(settings="policy"), shop()),
    "to policy with less room": (shop(), shop(settings="policy", max_length=5)),
    "less room by policy": (shop(settings="policy"), shop(settings="policy", max_length=5)),
    "less room that is refused, by policy": (
        shop(settings="policy"),
        shop(settings="policy", max_length=5, overflow="reject-publish"),
    ),
    "room that is enforced, by policy": (
        shop(settings="policy", overflow="reject-publish"),
        shop(settings="policy", max_length=20),
    ),
    "a level goes": (shop("1m 5m"), shop("1m", routes=(VIA_1M,))),
}


def ttl_changed(topology: Topology, minutes: int) -> Topology:
    """The same topology, with another TTL behind the name 5m."""
    queue = next(queue for queue in topology.queues if queue.name == QUEUE)
    other = replace(queue, settings=replace(queue.settings, ttl=Duration(minutes * 60_000)))
    levels = (
        replace(level, ttl=Duration(minutes * 60_000)) if level.queue == QUEUE else level for level in topology.levels
    )
    queues = (other if found is queue else found for found in topology.queues)
    return replace(topology, queues=tuple(queues), levels=tuple(levels))


CHANGES["shorter"] = (shop(), ttl_changed(shop(), 2))
CHANGES["longer"] = (shop(), ttl_changed(shop(), 9))


def start_of(name: str) -> MemoryBroker:
    """A broker before the change, with something waiting."""
    before = CHANGES[name][0]
    return MemoryBroker.holding(live_of(before, {QUEUE: 3, "delay.1m.queue": 2}))


@pytest.mark.parametrize("name", CHANGES)
def test_it_comes_to_what_the_file_says(name: str) -> None:
    """And every message has had exactly one place all the while."""
    broker, seen = start_of(name), list[frozenset[str]]()
    broker.watch = under_load(seen)

    run_to_the_end(broker, CHANGES[name][1])

    assert {len(places) for places in seen} == {1}
    assert broker.lost == []
    assert state(broker) == after(CHANGES[name][1])
    assert diff(CHANGES[name][1], broker.live()).is_empty


def calls_of(name: str) -> range:
    """The calls that a whole change makes, counted from one."""
    broker = start_of(name)
    run_to_the_end(broker, CHANGES[name][1])
    return range(1, len(broker.journal) + 1)


@pytest.mark.parametrize("aim", ["goes on", "goes back", "goes elsewhere"])
@pytest.mark.parametrize(("name", "call"), [(name, call) for name in CHANGES for call in calls_of(name)])
def test_killed_at_any_call_it_goes_on_and_back(name: str, call: int, aim: str) -> None:
    """Whatever file comes next, it is reached, and no message is lost, doubled or let out early on the way."""
    broker, seen = start_of(name), list[frozenset[str]]()
    broker.watch = under_load(seen)
    broker.break_at(call, Died())
    goal = {"goes on": CHANGES[name][1], "goes back": CHANGES[name][0], "goes elsewhere": shop(max_length=77)}[aim]

    with suppress(Died):
        run_to_the_end(broker, CHANGES[name][1])
    run_to_the_end(broker, goal)

    assert {len(places) for places in seen} <= {1}
    assert broker.lost == []
    assert state(broker) == after(goal)


@pytest.mark.parametrize("call", calls_of("to quorum"))
def test_killed_at_any_call_it_can_be_destroyed(call: int) -> None:
    """What waits leaves first, then all is gone."""
    broker = start_of("to quorum")
    broker.break_at(call, Died())
    with suppress(Died):
        run_to_the_end(broker, CHANGES["to quorum"][1])

    run_to_the_end(broker, empty_topology(""))

    assert broker.lost == []
    assert state(broker) == ({}, {}, set(), {}, {})


def test_the_steps_are_those_of_the_recipe() -> None:
    """Way round, cut, wait, anew, bind, wait, clear up."""
    broker = start_of("more room")
    broker.watch = under_load([])
    only_5m = replace(
        CHANGES["more room"][1],
        queues=tuple(
            next(old for old in CHANGES["more room"][0].queues if old.name == queue.name)
            if queue.name != QUEUE
            else queue
            for queue in CHANGES["more room"][1].queues
        ),
    )
    assert run_to_the_end(broker, only_5m) == [
        "Create policy delay.5m.next.policy",
        "Create queue delay.5m.next.queue",
        "Create exchange delay.5m.next.exchange",
        "Create binding delay.5m.next.exchange → delay.5m.next.queue",
        "Delete binding delay.5m.exchange → delay.5m.queue",
        "wait for delay.5m.queue",
        "Replace queue delay.5m.queue",
        "wait for delay.5m.next.queue",
        "Create binding delay.5m.exchange → delay.5m.queue",
        "wait for delay.5m.next.queue",
        "Delete binding delay.5m.next.exchange → delay.5m.next.queue",
        "Delete exchange delay.5m.next.exchange",
        "Delete queue delay.5m.next.queue",
        "Delete policy delay.5m.next.policy",
    ]


def test_the_plan_says_what_is_waited_for_and_how_long() -> None:
    """The old delay first, then the new one."""
    plan = diff(ttl_changed(shop(), 2), live_of(shop(), {QUEUE: 3}))
    (wait,) = plan.waits
    assert (wait.subject, wait.queue, wait.messages, wait.then) == ("5m", QUEUE, 3, "declared anew")
    assert (wait.longest, wait.altogether) == (Duration.parse("5m"), Duration.parse("7m"))
    assert [(d.field, str(d.live), str(d.desired)) for d in wait.differences] == [("x-message-ttl", "5m", "2m")]
    assert plan.altogether == Duration.parse("7m")


def test_a_level_that_goes_empties_first() -> None:
    """It is no refusal: it passes by itself."""
    broker = start_of("a level goes")
    plan, _ = run_once(broker, CHANGES["a level goes"][1])
    assert plan.waits == (Wait(QUEUE, QUEUE, 3, Duration.parse("5m"), Duration.parse("5m"), "removed"),)
    assert not plan.refusals
    assert QUEUE in broker.queues
    broker.backlog[QUEUE] = Backlog(0)
    plan, _ = run_once(broker, CHANGES["a level goes"][1])
    assert not plan.waits
    assert QUEUE not in broker.queues


def test_policies_are_raised_in_place() -> None:
    """Nothing waits behind anything then."""
    plan = diff(shop(settings="policy", max_length=20), live_of(shop(settings="policy"), {QUEUE: 3}))
    assert not plan.waits
    assert {label(resource_of(change)) for change in plan.changes} == {
        "policy delay.1m.policy",
        "policy delay.5m.policy",
    }


def test_what_comes_late_keeps_its_queue() -> None:
    """A message that arrives between the plan and the deletion makes it wait, no more."""
    broker = start_of("more room")
    run_once(broker, CHANGES["more room"][1])
    broker.backlog = {}
    plan = diff(CHANGES["more room"][1], broker.live())
    assert any(isinstance(change, Replace) for change in plan.changes)
    broker.backlog[QUEUE] = Backlog(1)

    failed = [outcome for outcome in execute(plan, broker) if isinstance(outcome, Failed)]

    assert [(label(resource_of(o.change)), type(o.error)) for o in failed] == [(f"queue {QUEUE}", StillHolds)]
    assert broker.lost == []
    run_to_the_end(broker, CHANGES["more room"][1])
    assert state(broker) == after(CHANGES["more room"][1])


def test_who_insists_is_obeyed_at_once() -> None:
    """--accept-loss replaces the queue, and what waits in it is lost."""
    plan = diff(shop(max_length=20), live_of(shop(), {QUEUE: 3}), accept_loss=[QUEUE, "delay.1m.queue"])
    assert not plan.waits
    assert [type(change) for change in plan.changes] == [Replace, Replace]


def test_bindings_of_others_are_in_the_way() -> None:
    """Behind an entrance that leads elsewhere too, the way round would never be taken."""
    live = live_of(shop(), {QUEUE: 3})
    theirs = Binding("delay.5m.exchange", "queue", "orders.queue", "theirs")
    plan = diff(shop(max_length=20), replace(live, bindings=live.bindings | {theirs}))
    assert [refusal.subject for refusal in plan.refusals] == [f"queue {QUEUE}"]
    assert [wait.subject for wait in plan.waits] == ["1m"]


def test_a_covered_binding_stays_where_another_policy_wins() -> None:
    """Without the way round what is published would be lost, so nothing is cut."""
    broker = start_of("more room")
    plan = diff(CHANGES["more room"][1], broker.live())
    (cut,) = [change for change in plan.changes if isinstance(change, Delete) and change.resource == INTO_QUEUE]
    theirs = Policy("theirs", "^delay", "exchanges", 5_000, (("alternate-exchange", "elsewhere"),))
    broker.policies["theirs"] = theirs

    list(execute(plan, broker))

    assert cut.covered_by == "delay.5m.next.policy"
    assert INTO_QUEUE in broker.bindings


def test_the_next_queue_waits_as_the_file_says_whoever_holds_the_settings() -> None:
    """It has arguments of its own, since no policy is made for it."""
    plan = diff(shop(settings="policy", max_length=5), live_of(shop(settings="policy"), {QUEUE: 3}))
    (made,) = [r for change in plan.changes if isinstance(r := resource_of(change), Queue) and r.name == NEXT]
    assert (made.settings.ttl, made.settings.max_length) == (Duration.parse("5m"), 5)


def test_a_step_of_the_ladder_changes_like_a_level() -> None:
    """What climbs down passes its gate, and waits in the one queue or the other."""
    before, later = (
        expand(Spec((), ladder=LadderSpec(Duration(1_000), 2, WaitSpec(max_length=length)))) for length in (10, 20)
    )
    broker = MemoryBroker.holding(live_of(before, {"delay.any.01.queue": 1}))
    seen: list[frozenset[str]] = []
    waits_twice = Message("k", headers={"delay-1": True, "delay-top": "1"})
    broker.watch = lambda broker: seen.append(
        frozenset(route(Network.of_live(broker.live()), "delay.any.exchange", waits_twice).queues)
    )

    run_to_the_end(broker, later)

    assert set(seen) == {frozenset({"delay.any.01.queue"}), frozenset({"delay.any.01.next.queue"})}
    assert state(broker) == after(later)


HASTENS = Policy("theirs", r"next\.queue$", "queues", 1, (("message-ttl", 1_000),))
BENDS = {
    "a lower ttl": HASTENS,
    "a limit": replace(HASTENS, definition=(("max-length", 5),)),
    "a routing key": replace(HASTENS, definition=(("dead-letter-routing-key", "elsewhere"),)),
}


@pytest.mark.parametrize("messages", [0, 3])
@pytest.mark.parametrize("policy", BENDS.values(), ids=BENDS)
def test_nothing_goes_round_by_a_queue_that_a_policy_bends(policy: Policy, messages: int) -> None:
    """Messages would wait there in another way than they should, so nothing is begun."""
    live = live_of(shop(), {QUEUE: messages})

    plan = diff(shop(overflow="reject-publish"), replace(live, policies=(*live.policies, policy)))

    assert (plan.changes, plan.waits) == ((), ())
    assert [refusal.subject for refusal in plan.refusals] == ["queue delay.1m.queue", f"queue {QUEUE}"]
    assert plan.refusals[1].reason == (
        f"stays as it is: messages would wait in {NEXT} while it is changed, "
        "and policy theirs (priority 1) changes what it does"
    )
    assert "rabbitmqctl clear_policy -p / theirs" in plan.refusals[1].fix
    assert [d.field for d in plan.refusals[1].differences] == [policy.definition[0][0]]


def test_an_operator_policy_bends_the_way_round_too() -> None:
    """It has the last word on TTLs and limits."""
    plan = diff(shop(max_length=20), replace(live_of(shop(), {QUEUE: 3}), operator_policies=(HASTENS,)))
    assert (plan.changes, plan.waits) == ((), ())
    assert "operator policy theirs" in plan.refusals[1].reason


def test_levels_that_no_policy_touches_are_changed_all_the_same() -> None:
    """One level in the way holds up no other."""
    live = live_of(shop(), {QUEUE: 3})
    only_5m = replace(HASTENS, pattern=r"5m\.next\.queue$")

    plan = diff(shop(max_length=20), replace(live, policies=(*live.policies, only_5m)))

    assert [wait.subject for wait in plan.waits] == ["1m"]
    assert [refusal.subject for refusal in plan.refusals] == [f"queue {QUEUE}"]
    assert not any("5m" in label(resource_of(change)) for change in plan.changes)


# It matches the old queue too, which then does not merely empty.
TIDIES = Policy("theirs", ".*", "queues", 1, (("expires", 86_400_000),))


@pytest.mark.parametrize("theirs", [HASTENS, TIDIES], ids=["the next queue", "both queues"])
@pytest.mark.parametrize("call", calls_of("more room"))
def test_a_policy_in_the_middle_of_a_change_lets_nothing_more_into_the_next_queue(call: int, theirs: Policy) -> None:
    """The old queue takes messages again as it is, or, where it was empty, declared anew; without the policy it goes on."""
    broker, seen = start_of("more room"), list[frozenset[str]]()
    broker.watch = under_load(seen)
    broker.break_at(call, Died())
    with suppress(Died):
        run_to_the_end(broker, CHANGES["more room"][1])
    broker.policies["theirs"] = theirs

    for _ in range(2):
        run_once(broker, CHANGES["more room"][1])

    assert INTO_QUEUE in broker.bindings
    assert {len(places) for places in seen} <= {1}
    assert broker.lost == []
    del broker.policies["theirs"]
    run_to_the_end(broker, CHANGES["more room"][1])
    assert state(broker) == after(CHANGES["more room"][1])


@pytest.mark.parametrize("is_switched", [True, False])
def test_a_level_that_goes_keeps_what_others_still_lead_into(is_switched: bool) -> None:
    """Their binding keeps the entrance, and that what is behind it: the queue, or the way round while it is changed."""
    broker = start_of("more room")
    broker.exchanges["theirs"] = Exchange("theirs")
    broker.bindings.add(Binding("theirs", "exchange", "delay.5m.exchange", "order.created"))
    if is_switched:
        run_once(broker, CHANGES["more room"][1])
    led = destinations(broker, "theirs")

    run_once(broker, shop("1m", routes=(VIA_1M,), max_length=20))

    assert led == {NEXT if is_switched else QUEUE}
    assert destinations(broker, "theirs") == led


def ttls_in_force(broker: MemoryBroker) -> set[Duration | None]:
    """How long a message that comes now waits."""
    found = (effective(broker.queues[name], broker.policies.values(), ()) for name in destinations(broker))
    return {each.settings.ttl for each in found}


@pytest.mark.parametrize("call", range(1, 60))
def test_what_comes_meanwhile_waits_as_before_or_as_the_file_says(call: int) -> None:
    """Also where a run was killed before the policy of the past was gone."""
    before, later = shop(settings="policy"), ttl_changed(shop(), 9)
    broker, seen = MemoryBroker.holding(live_of(before, {QUEUE: 3})), list[Duration | None]()
    broker.break_at(call, Died())
    with suppress(Died):
        run_to_the_end(broker, later)
    is_begun = ttls_in_force(broker) == {Duration.parse("9m")}
    broker.watch = lambda broker: seen.extend(ttls_in_force(broker))

    run_to_the_end(broker, later)

    assert set(seen) <= ({Duration.parse("9m")} if is_begun else {Duration.parse("5m"), Duration.parse("9m")})
