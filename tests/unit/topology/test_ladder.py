"""The arithmetic of the ladder, and the objects that it is made of."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.duration import MAX_TTL_MS, Duration
from delayctl.topology.effective import effective
from delayctl.topology.execute import Done, execute
from delayctl.topology.expand import expand
from delayctl.topology.journey import journey
from delayctl.topology.ladder import (
    DEFAULT_STEPS,
    DEFAULT_UNIT,
    headers_for,
    is_step_header,
    most_steps,
    most_units,
    steps_needed,
    steps_of,
    units_for,
    wait_of,
)
from delayctl.topology.live import Backlog
from delayctl.topology.model import Binding, Policy, Queue, Topology
from delayctl.topology.names import Names
from delayctl.topology.order import Stage
from delayctl.topology.parse import read_spec
from delayctl.topology.plan import Create, Delete, Wait, label
from delayctl.topology.routing import Message, Network
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import live_of
from tests.support.memory_broker import Died, MemoryBroker
from tests.support.switches import after, run_once, state, use_ladder

SECOND = Duration(1_000)


def ladder(
    steps: int, *, unit: str = "1s", prefix: str = "", max_length: int = 1_000, settings: str = "arguments"
) -> Topology:
    """A ladder of so many steps."""
    written = f"""
version: 1
{f"prefix: {prefix}" if prefix else ""}
delay: {{any: {{unit: {unit}, steps: {steps}}}, queue: {{max_length: {max_length}}}, settings: {settings}}}
routes:
  - {{key: "order.#", delay: any, to: target}}
"""
    return expand(read_spec(written, {}, file="topology.yaml"))


class TestArithmetic:
    """Delays in units, units in steps."""

    @pytest.mark.parametrize(("wait_ms", "units"), [(-1, 0), (0, 0), (1, 1), (1_000, 1), (1_001, 2), (37_000, 37)])
    def test_the_last_unit_counts_whole(self, wait_ms: int, units: int) -> None:
        """So that nothing is early."""
        assert units_for(wait_ms, SECOND) == units

    def test_a_delay_is_a_sum_of_steps(self) -> None:
        """The longest first, which is the way down."""
        assert steps_of(37) == (5, 2, 0)
        assert headers_for(37) == {"delay-top": "5", "delay-5": True, "delay-2": True, "delay-0": True}

    @given(st.integers(1, 2**39 - 1))
    def test_steps_add_up(self, units: int) -> None:
        """Whatever the delay is."""
        steps = steps_of(units)

        assert sum(wait_of(step, SECOND).ms for step in steps) == units * 1_000
        assert steps_needed(units) == steps[0] + 1
        assert most_units(steps[0] + 1) >= units > most_units(steps[0])

    def test_the_usual_ladder_reaches_beyond_eight_years(self) -> None:
        """2^28 seconds, less one."""
        assert most_units(DEFAULT_STEPS) * DEFAULT_UNIT.ms == (2**28 - 1) * 1_000
        assert most_steps(DEFAULT_UNIT) >= DEFAULT_STEPS

    @given(st.integers(1, MAX_TTL_MS))
    def test_no_step_waits_longer_than_a_broker_lets_it(self, unit_ms: int) -> None:
        """And one more would."""
        unit = Duration(unit_ms)

        assert wait_of(most_steps(unit) - 1, unit).ms <= MAX_TTL_MS < wait_of(most_steps(unit), unit).ms

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("delay-0", True), ("delay-27", True), ("delay-top", True), ("delay-due", False), ("delay-", False)],
    )
    def test_headers_of_the_ladder_are_told_from_others(self, name: str, expected: bool) -> None:
        """Those are not sent on."""
        assert is_step_header(name) is expected


class TestNames:
    """Which step an object belongs to."""

    @pytest.mark.parametrize(
        ("name", "step"),
        [
            ("a.delay.any.03.queue", 3),
            ("a.delay.any.27.exchange", 27),
            ("a.delay.any.11.gate.exchange", 11),
            ("a.delay.any.exchange", None),
            ("delay.any.03.queue", None),
            ("a.delay.any.3.queue", None),
            ("a.delay.any.03.next.queue", 3),
            ("a.delay.any.03.next.exchange", 3),
            ("a.delay.any.03.next.gate.exchange", None),
            ("a.delay.any.03.queue.next", None),
            ("a.delay.15m.queue", None),
        ],
    )
    def test_a_name_tells_its_step(self, name: str, step: int | None) -> None:
        """With the prefix, and nothing behind."""
        assert Names("a.").step_of(name) == step

    def test_a_gate_is_told_from_an_entrance(self) -> None:
        """Of the same step."""
        assert [Names().is_gate(name) for name in ("delay.any.00.gate.exchange", "delay.any.00.exchange")] == [
            True,
            False,
        ]


class TestWays:
    """Every delay comes out when it is due."""

    @pytest.mark.parametrize("units", range(1, 16))
    def test_every_delay_of_a_ladder(self, units: int) -> None:
        """One copy, with its own key, after the sum of its steps."""
        topology = ladder(4, prefix="shop.")
        assert topology.ladder is not None

        way = journey(Network.of_topology(topology), topology.ladder.entrance, Message("order.1", headers_for(units)))

        assert [(end.queue, end.key, end.after.ms) for end in way.ends] == [("target", "order.1", units * 1_000)]

    @pytest.mark.parametrize("headers", [{}, {"delay-0": True}, {"delay-top": "4"}, {"delay-top": 0}, headers_for(16)])
    def test_what_the_ladder_does_not_take_is_parked(self, headers: dict[str, object]) -> None:
        """Rather than early or lost."""
        way = journey(Network.of_topology(ladder(4)), "delay.any.exchange", Message("order.1", headers))

        assert [(end.queue, end.after.ms) for end in way.ends] == [("delay.unrouted.queue", 0)]

    def test_no_two_ways_for_one_message(self) -> None:
        """Only the longest step decides where it enters, and each way is another value of one header."""
        topology = ladder(5)
        doors = [binding for binding in topology.bindings if binding.source == "delay.any.exchange"]

        assert [dict(binding.arguments)["delay-top"] for binding in doors] == ["0", "1", "2", "3", "4"]

    def test_growing_leaves_all_that_was_as_it_was(self) -> None:
        """More steps are more objects, and no other."""
        assert set(ladder(3)) <= set(ladder(5))


class TestShrinking:
    """Steps that go are waited for, the longest first."""

    def test_the_door_closes_and_steps_empty(self) -> None:
        """What waits at a step that goes may have to wait at those below as well; nothing is refused."""
        plan = diff(ladder(2), live_of(ladder(4), {"delay.any.03.queue": 20, "delay.any.02.queue": 1}))

        closed = {
            c.resource.destination for c in plan.changes if isinstance(c, Delete) and isinstance(c.resource, Binding)
        }
        assert closed == {"delay.any.02.exchange", "delay.any.03.exchange"}
        assert (len(plan.changes), plan.refusals) == (2, ())
        assert sorted(plan.waits, key=lambda wait: wait.queue) == [
            Wait("delay.any.02.queue", "delay.any.02.queue", 1, Duration(12_000), Duration(12_000), "removed"),
            Wait("delay.any.03.queue", "delay.any.03.queue", 20, Duration(8_000), Duration(8_000), "removed"),
        ]

    def test_a_step_without_messages_is_not_waited_for(self) -> None:
        """It stays for what comes from above, and only that has to leave."""
        plan = diff(ladder(2), live_of(ladder(4), {"delay.any.03.queue": 20}))

        assert plan.refusals == ()
        assert [wait.queue for wait in plan.waits] == ["delay.any.03.queue"]

    def test_what_nobody_needs_goes_meanwhile(self) -> None:
        """The longest step goes while a shorter one still has messages."""
        plan = diff(ladder(2), live_of(ladder(4), {"delay.any.02.queue": 20}))

        gone = {c.resource.name for c in plan.changes if isinstance(c, Delete) and not isinstance(c.resource, Binding)}
        assert gone == {"delay.any.03.queue", "delay.any.03.exchange", "delay.any.03.gate.exchange"}
        assert [wait.queue for wait in plan.waits] == ["delay.any.02.queue"]

    def test_all_of_it(self) -> None:
        """A ladder that is removed lets all that waits arrive."""
        plan = diff(empty_topology(""), live_of(ladder(4), {"delay.any.03.queue": 20, "delay.any.00.queue": 2}))

        assert plan.refusals == ()
        assert {wait.queue: wait.longest.ms for wait in plan.waits} == {
            "delay.any.00.queue": 15_000,
            "delay.any.03.queue": 8_000,
        }

    def test_a_way_of_others_keeps_a_step_open(self) -> None:
        """It would not empty by itself, so the step is refused and not waited for."""
        live = live_of(ladder(4), {"delay.any.03.queue": 20})
        theirs = Binding("their.exchange", "exchange", "delay.any.03.exchange", "key")

        plan = diff(ladder(2), replace(live, bindings=live.bindings | {theirs}))

        assert "exchange delay.any.03.exchange" in {refusal.subject for refusal in plan.refusals}
        assert plan.waits == ()

    def test_a_consumer_at_a_step_is_refused(self) -> None:
        """Somebody who takes messages out of a delay has to be looked at first."""
        live = live_of(ladder(4), {})

        plan = diff(ladder(2), replace(live, backlog={"delay.any.03.queue": Backlog(20, 1)}))

        assert plan.waits == ()
        assert "queue delay.any.03.queue" in {refusal.subject for refusal in plan.refusals}

    def test_what_comes_to_a_step_that_stays_holds_nothing_up(self) -> None:
        """Only what comes from above needs a gate, and nothing is above any more."""
        broker = MemoryBroker.holding(live_of(ladder(4)))
        plan = diff(ladder(2), broker.live())
        broker.backlog["delay.any.01.queue"] = Backlog(20)

        assert [type(outcome) for outcome in execute(plan, broker)] == [Done] * len(plan.changes)

    @pytest.mark.parametrize("prefix", ["", "shop.", "shop.next."])
    @pytest.mark.parametrize("is_switched", [True, False])
    def test_what_is_under_way_finds_the_steps_below(self, prefix: str, is_switched: bool) -> None:
        """Also where they are being changed just then, and what leads round them stands in for them."""
        broker = MemoryBroker.holding(live_of(ladder(4, prefix=prefix)), prefix=prefix)
        for step in (2, 3):
            broker.backlog[f"{prefix}delay.any.{step:02}.queue"] = Backlog(1)
        if is_switched:
            list(execute(diff(ladder(4, prefix=prefix, max_length=5), broker.live(prefix=prefix)), broker))
        left = self.left_at_the_gate_of_step_2(broker, prefix)

        list(execute(diff(ladder(1, prefix=prefix, max_length=5), broker.live(prefix=prefix)), broker))

        assert left == [("target", Duration(4_000))]
        assert self.left_at_the_gate_of_step_2(broker, prefix) == left

    def left_at_the_gate_of_step_2(self, broker: MemoryBroker, prefix: str) -> list[tuple[str | None, Duration]]:
        """Where a message comes out, and after which time, that has waited at step 3 and shall at step 2."""
        message = Message("order.created", headers={"delay-top": "3", "delay-2": True})
        way = journey(Network.of_live(broker.live(prefix=prefix)), Names(prefix).gate(2), message)
        return [(end.queue, end.after) for end in way.ends]

    def test_steps_are_watched_before_they_go(self) -> None:
        """What an exchange has given to a queue may arrive there a little later."""
        broker, watched = MemoryBroker.holding(live_of(ladder(4))), list[str]()
        settled = broker.settled

        def watching(queues: Sequence[Queue]) -> frozenset[str]:
            watched.extend(queue.name for queue in queues)
            return settled(queues)

        broker.settled = watching  # type: ignore[method-assign]
        list(execute(diff(ladder(2), broker.live()), broker))

        assert watched == ["delay.any.03.queue", "delay.any.02.queue"]


class TestInUse:
    """Messages wait at every step that the door leads to, all the while."""

    @pytest.mark.parametrize("runs", range(5))
    @pytest.mark.parametrize(
        ("settings", "goal"),
        [
            ("arguments", ladder(4, max_length=5)),
            ("arguments", ladder(4, max_length=9)),
            ("arguments", ladder(4)),
            ("arguments", ladder(2, max_length=5)),
            ("arguments", ladder(6, max_length=5)),
            ("arguments", ladder(4, settings="policy")),
            ("policy", ladder(4, max_length=5, settings="policy")),
            ("policy", ladder(2, max_length=5, settings="policy")),
            ("policy", ladder(4)),
        ],
        ids=["on", "elsewhere", "back", "shorter", "longer", "to policy", "by policy", "by policy, shorter", "away"],
    )
    def test_a_change_comes_to_its_end(self, settings: str, goal: Topology, runs: int) -> None:
        """However far an earlier one had come: a way round that nothing takes any more goes, whoever waits beside it."""
        broker = MemoryBroker.holding(live_of(ladder(4, settings=settings)))
        for aim in (*[ladder(4, max_length=5, settings=settings)] * runs, *[goal] * 6):
            use_ladder(broker)
            run_once(broker, aim)

        assert broker.lost == []
        assert state(broker) == after(goal)

    def test_a_way_round_that_is_taken_stays(self) -> None:
        """Where somebody's policy ends a change half-way, what comes goes round until the old way is there again."""
        broker = MemoryBroker.holding(live_of(ladder(4), {"delay.any.03.queue": 1}))
        run_once(broker, ladder(4, max_length=5))
        broker.policies["theirs"] = Policy("theirs", r"03\.next\.queue$", "queues", 1, (("message-ttl", 5),))

        plan = diff(ladder(4, max_length=5), broker.live())

        assert (
            Create(Binding("delay.any.03.exchange", "queue", "delay.any.03.queue"), Stage.PUT_WAYS_INTO_QUEUES)
            in plan.changes
        )
        gone = [change.resource for change in plan.changes if isinstance(change, Delete)]
        assert [label(resource) for resource in gone] == ["policy delay.any.03.next.policy"]


def units_in_force(broker: MemoryBroker) -> set[Duration]:
    """The units that the steps count in which messages wait at."""
    found = {name: effective(broker.queues[name], broker.policies.values(), ()) for name in broker.backlog}
    return {Duration((each.settings.ttl or SECOND).ms >> (Names().step_of(name) or 0)) for name, each in found.items()}


class TestAnotherUnit:
    """Every step waits for another time."""

    @pytest.mark.parametrize("unit", ["500ms", "2s"])
    def test_what_is_under_way_would_be_early_or_late(self, unit: str) -> None:
        """What waits at one step has others before it."""
        plan = diff(ladder(4, unit=unit), live_of(ladder(4), {"delay.any.03.queue": 2}))

        [refusal] = plan.refusals
        assert plan.is_blocked
        assert refusal.subject == "ladder delay.any.exchange"
        assert refusal.reason.startswith("2 messages are under way on it, and would come early or late")

    def test_an_empty_ladder_is_changed(self) -> None:
        """Nothing waits that counts on it."""
        assert diff(ladder(4, unit="2s"), live_of(ladder(4))).refusals == ()

    def test_a_ladder_that_is_being_changed_is_in_use_too(self) -> None:
        """What stands in for a queue waits as that did."""
        broker = MemoryBroker.holding(live_of(ladder(4)))
        use_ladder(broker)
        run_once(broker, ladder(4, max_length=5))
        use_ladder(broker)

        assert diff(ladder(4, unit="2s", max_length=5), broker.live()).is_blocked

    @pytest.mark.parametrize("steps", [1, 4])
    def test_a_step_that_lost_its_policy_gets_it_back(self, steps: int) -> None:
        """A ladder that is damaged is mended, whoever waits: the file asks for no other unit."""
        asked = ladder(steps, settings="policy")
        live = live_of(asked, {"delay.any.00.queue": 2})
        lost, *others = live.policies

        plan = diff(asked, replace(live, policies=tuple(others)))

        assert plan.changes == (Create(lost, 0),)
        assert plan.refusals == ()

    def test_a_step_that_somebody_bent_is_mended(self) -> None:
        """One that waits for another time is no other unit."""
        asked = ladder(4, settings="policy")
        live = live_of(asked, {"delay.any.03.queue": 2})
        bent = replace(live.policies[3], definition=(("message-ttl", 5),))

        plan = diff(asked, replace(live, policies=(*live.policies[:3], bent)))

        assert plan.changes
        assert plan.refusals == ()

    @pytest.mark.parametrize("settings", ["arguments", "policy"])
    @pytest.mark.parametrize("unit", ["500ms", "2s"])
    @pytest.mark.parametrize("call", range(1, 30))
    def test_what_was_begun_goes_on_under_load(self, call: int, unit: str, settings: str) -> None:
        """Killed in the middle, an empty ladder has steps of both units; to leave it so would help nobody."""
        goal = ladder(4, unit=unit, settings=settings)
        broker = MemoryBroker.holding(live_of(ladder(4, settings=settings)))
        broker.break_at(call, Died())
        with suppress(Died):
            run_once(broker, goal)
        broker.mend()
        use_ladder(broker)
        units = units_in_force(broker)

        plan, _ = run_once(broker, goal)

        assert plan.is_blocked == (units == {SECOND})

    def test_a_policy_of_others_is_told_as_such(self) -> None:
        """It is not the file that asks for another time."""
        live = live_of(ladder(4), {"delay.any.03.queue": 2})
        theirs = Policy("theirs", "any", "queues", 1, (("message-ttl", 5),))

        assert not diff(ladder(4), replace(live, policies=(theirs,))).is_blocked
