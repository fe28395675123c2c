"""The arithmetic of the ladder, and the objects that it is made of."""

from dataclasses import replace

import pytest
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.duration import MAX_TTL_MS, Duration
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
from delayctl.topology.model import Binding, Topology
from delayctl.topology.names import Names
from delayctl.topology.parse import read_spec
from delayctl.topology.plan import Delete, Wait
from delayctl.topology.routing import Message, Network
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import live_of

SECOND = Duration(1_000)


def ladder(steps: int, *, unit: str = "1s", prefix: str = "") -> Topology:
    """A ladder of so many steps."""
    written = f"""
version: 1
{f"prefix: {prefix}" if prefix else ""}
delay: {{any: {{unit: {unit}, steps: {steps}}}}}
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
