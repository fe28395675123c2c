"""From any state to the desired one: what holds for every plan, whoever did what to the broker before."""

from contextlib import suppress
from dataclasses import replace

from delayctl.topology.changes import Comparison
from delayctl.topology.diff import at_stake, diff
from delayctl.topology.errors import Refused
from delayctl.topology.execute import Done, execute
from delayctl.topology.live import Backlog
from delayctl.topology.model import Binding, Topology
from delayctl.topology.names import Names
from delayctl.topology.plan import Plan
from delayctl.topology.plan_file import dump_plan, load_plan
from delayctl.topology.record import Record, record_of
from hypothesis import given, note
from hypothesis import strategies as st

from tests.support.broker_states import aims, brokers, topologies
from tests.support.examples import live_of
from tests.support.memory_broker import Died, MemoryBroker


def every_name(desired: Topology, broker: MemoryBroker) -> frozenset[str]:
    """All that --accept-loss could name."""
    wanted = record_of(desired)
    named = {*wanted.exchanges, *wanted.queues, *wanted.policies}
    return frozenset({*named, *broker.exchanges, *broker.queues, *broker.policies})


def theirs(desired: Topology, broker: MemoryBroker) -> frozenset[object]:
    """Bindings of others that are there now, or that an earlier run still has to put back."""
    record = broker.records.get("", Record())
    return frozenset(broker.bindings) - record.bindings - frozenset(desired.bindings)


def agreed(desired: Topology, broker: MemoryBroker) -> frozenset[Binding]:
    """Bindings of the file that others have made between objects of theirs: they stay theirs."""
    existing = {(reference.kind, reference.name) for reference in desired.existing}
    found = broker.bindings & frozenset(desired.bindings) - broker.records.get("", Record()).bindings
    return frozenset(b for b in found if ("exchange", b.source) in existing and (b.kind, b.destination) in existing)


def is_drift_only(plan: Plan) -> bool:
    """Say whether all that is left is what policies of others do."""
    return not plan.changes and all(refusal.reason.endswith("changes what it does") for refusal in plan.refusals)


@given(topologies())
def test_a_broker_that_matches_needs_nothing(desired: Topology) -> None:
    """Comparing a topology with the broker that has just become it finds no change and nothing to refuse."""
    assert diff(desired, live_of(desired)).is_empty


@given(st.data())
def test_one_apply_reaches_the_desired_state_from_any_other(data: st.DataObject) -> None:
    """With every loss accepted, one apply does it all; only policies of others may still be complained about."""
    desired = data.draw(aims())
    broker = data.draw(brokers(desired))
    stay_theirs = agreed(desired, broker)
    plan = diff(desired, broker.live(), accept_loss=every_name(desired, broker))

    outcomes = list(execute(plan, broker))

    note(f"{outcomes=}")
    assert [outcome for outcome in outcomes if not isinstance(outcome, Done)] == []
    assert is_drift_only(diff(desired, broker.live(), accept_loss=every_name(desired, broker)))
    assert broker.records.get("", Record()) == record_of(each for each in desired if each not in stay_theirs)


@given(st.data())
def test_without_acceptance_nothing_is_lost(data: st.DataObject) -> None:
    """Without --accept-loss no queue goes with messages in it, and no binding of others goes at all."""
    desired = data.draw(aims())
    broker = data.draw(brokers(desired))
    theirs_before = theirs(desired, broker)

    list(execute(diff(desired, broker.live()), broker))

    assert broker.lost == []
    assert theirs_before <= broker.bindings


@given(st.data())
def test_what_waits_keeps_its_way_out(data: st.DataObject) -> None:
    """While messages wait, exit, its alternate and the queue behind that stay, if they were there to begin with."""
    desired = data.draw(aims())
    broker = data.draw(brokers(desired))
    names = Names("")
    net = next((b for b in broker.bindings if b.source == names.unrouted_exchange()), None)
    ends = {names.exit(), names.unrouted_exchange()} & broker.exchanges.keys()
    waiting = [queue.name for queue in broker.queues.values() if queue.settings.dead_letter_exchange == names.exit()]
    stays = any(broker.backlog.get(name, Backlog(0)).messages for name in waiting)

    def check(broker: MemoryBroker) -> None:
        assert not stays or (ends <= broker.exchanges.keys() and (net is None or net in broker.bindings))

    broker.watch = check

    list(execute(diff(desired, broker.live()), broker))


@given(st.data())
def test_nothing_waits_without_a_ttl(data: st.DataObject) -> None:
    """A delay queue never loses the policy that holds its TTL, whatever else is refused."""
    desired = data.draw(aims())
    broker = data.draw(brokers(desired))
    governed = {name for name in broker.policies if name.startswith("delay.")}
    queues = {name.replace(".policy", ".queue") for name in governed}
    held = {name for name in queues & broker.queues.keys() if broker.queues[name].settings.ttl is None}

    def check(broker: MemoryBroker) -> None:
        for name in held & broker.queues.keys():
            has_policy = name.replace(".queue", ".policy") in broker.policies
            assert has_policy or broker.queues[name].settings.ttl is not None

    broker.watch = check

    list(execute(diff(desired, broker.live()), broker))


@given(st.data())
def test_an_interrupted_apply_is_completed_by_the_next(data: st.DataObject) -> None:
    """Killed before any call, the next apply ends where an undisturbed one does."""
    desired = data.draw(aims())
    broker = data.draw(brokers(desired))
    start, accepted = broker.live(), every_name(desired, broker)
    undisturbed = MemoryBroker.holding(start)
    list(execute(diff(desired, start, accept_loss=accepted), undisturbed))
    broker.break_at(data.draw(st.integers(1, max(1, len(undisturbed.journal)))), Died())

    try:
        list(execute(diff(desired, broker.live(), accept_loss=accepted), broker))
    except Died:
        list(execute(diff(desired, broker.live(), accept_loss=accepted), broker))

    assert broker.live() == undisturbed.live()


@given(st.data())
def test_a_refusal_of_the_broker_is_survived(data: st.DataObject) -> None:
    """Whatever call the broker refuses, no message and no binding of others is lost for good."""
    desired = data.draw(aims())
    broker = data.draw(brokers(desired))
    theirs_before = theirs(desired, broker)
    plan = diff(desired, broker.live())
    broker.break_at(data.draw(st.integers(2, 2 + 3 * len(plan.changes))), Refused("no", code=406))

    with suppress(Refused):  # What the broker refuses may be the record itself.
        list(execute(plan, broker))
    broker = MemoryBroker.holding(broker.live())
    list(execute(diff(desired, broker.live()), broker))

    assert broker.lost == []
    assert theirs_before <= broker.bindings


@given(st.data())
def test_only_what_is_at_stake_needs_to_be_counted(data: st.DataObject) -> None:
    """A plan made with the counts that were asked for is the plan made with all counts, beside what is waited for."""
    desired = data.draw(aims())
    live = data.draw(brokers(desired)).live()
    both = Comparison(desired, live)
    names = at_stake(both) | {wait.queue for wait in both.course.waits}
    counted = replace(live, backlog={name: live.backlog[name] for name in names & live.backlog.keys()})

    assert diff(desired, counted) == diff(desired, live)


@given(st.data())
def test_a_saved_plan_is_the_plan(data: st.DataObject) -> None:
    """Whatever a plan holds, its file holds it too."""
    desired = data.draw(aims())
    broker = data.draw(brokers(desired))
    accepted = every_name(desired, broker) if data.draw(st.booleans()) else ()
    plan = diff(desired, broker.live(), accept_loss=accepted)

    assert load_plan(dump_plan(plan), file="saved.plan") == plan
