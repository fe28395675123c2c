"""Which level a wanted delay becomes, or which steps of the ladder."""

import pytest
from delayctl.publishers.choice import BeyondLadder, NoSuchDelay, Rounding, Way, Ways
from delayctl.topology.duration import Duration
from delayctl.topology.model import Ladder, Level, Rung
from hypothesis import given
from hypothesis import strategies as st


def ways(*waits_ms: int) -> Ways:
    """Levels that wait so long."""
    return Ways("exit", [Level(f"{ms}ms", Duration(ms), f"in.{ms}", f"queue.{ms}") for ms in waits_ms])


@pytest.mark.parametrize(
    ("wait_ms", "rounding", "exchange"),
    [
        (1000, "refuse", "in.1000"),
        (0, "refuse", "exit"),
        (-5, "refuse", "exit"),
        (1500, "up", "in.5000"),
        (1500, "down", "in.1000"),
        (1500, "nearest", "in.1000"),
        (3000, "nearest", "in.5000"),  # In the middle the later one: rather late than early.
        (400, "down", "exit"),
        (400, "nearest", "exit"),
        (400, "up", "in.1000"),
        (9000, "down", "in.5000"),
        (9000, "nearest", "in.5000"),
    ],
)
def test_a_delay_becomes_a_level(wait_ms: int, rounding: Rounding, exchange: str) -> None:
    """As chosen: nearest, up, down."""
    assert ways(5000, 1000).for_wait(wait_ms, rounding).exchange == exchange


@pytest.mark.parametrize(("wait_ms", "rounding"), [(1500, "refuse"), (9000, "up"), (9000, "refuse")])
def test_a_delay_without_a_level_is_refused(wait_ms: int, rounding: Rounding) -> None:
    """And the levels that there are, are named."""
    with pytest.raises(NoSuchDelay, match="1s, 5s"):
        ways(1000, 5000).for_wait(wait_ms, rounding)


@pytest.mark.parametrize(
    ("waits", "rounding", "fix"),
    [
        (
            (1000, 5000),
            "refuse",
            "use one of 1s, 5s, choose rounding: nearest or down, or add a longer level and apply it",
        ),
        ((1000, 5000), "up", "use one of 1s, 5s, choose rounding: nearest or down, or add a longer level and apply it"),
        ((10_000,), "refuse", "use one of 10s, or choose rounding: nearest, up or down"),
        ((), "refuse", "add levels to the topology, and apply it"),
    ],
)
def test_what_is_advised_would_help(waits: tuple[int, ...], rounding: Rounding, fix: str) -> None:
    """Nothing is longer than the longest level, however it is rounded."""
    with pytest.raises(NoSuchDelay) as error:
        ways(*waits).for_wait(9000, rounding)

    assert error.value.fix == fix


@given(st.sets(st.integers(1, 10_000), min_size=1), st.integers(-100, 12_000))
def test_rounding_keeps_its_word(waits: set[int], wanted: int) -> None:
    """Up is never early, down never late, nearest never further off than either."""
    choice = ways(*waits)
    down, near = choice.for_wait(wanted, "down").wait_ms, choice.for_wait(wanted, "nearest").wait_ms

    assert down <= max(wanted, 0)
    assert abs(near - max(wanted, 0)) == min(abs(each - max(wanted, 0)) for each in (0, *waits))
    if wanted <= max(waits):
        assert choice.for_wait(wanted, "up").wait_ms >= wanted


def test_an_unknown_level_suggests_the_near_one() -> None:
    """A typing mistake is named."""
    with pytest.raises(NoSuchDelay, match="1000ms"):
        ways(1000).at_level("100ms")


def with_ladder(steps: int, *levels_ms: int, unit_ms: int = 100) -> Ways:
    """A ladder of so many steps, and levels that wait so long."""
    rungs = [Rung(f"any.{n:02}", Duration(unit_ms << n), f"in.{n}", f"queue.{n}", f"gate.{n}") for n in range(steps)]
    levels = [Level(f"{ms}ms", Duration(ms), f"in.{ms}", f"queue.{ms}") for ms in levels_ms]
    return Ways("exit", levels, Ladder(Duration(unit_ms), tuple(rungs), "door"))


@pytest.mark.parametrize(
    ("wait_ms", "way"),
    [
        (-1, Way("exit")),
        (0, Way("exit")),
        (1, Way("door", "any", 100, 1)),
        (100, Way("door", "any", 100, 1)),
        (101, Way("door", "any", 200, 2)),
        (250, Way("in.250", "250ms", 250)),  # Just a level.
        (251, Way("door", "any", 300, 3)),
        (800, Way("door", "any", 800, 8)),
        (1_401, Way("door", "any", 1_500, 15)),
        (1_500, Way("door", "any", 1_500, 15)),
        (4_000, Way("in.4000", "4000ms", 4_000)),  # Beyond the ladder, and a level.
    ],
)
@pytest.mark.parametrize("rounding", ["refuse", "nearest", "up", "down"])
def test_the_ladder_takes_what_no_level_does(wait_ms: int, way: Way, rounding: Rounding) -> None:
    """To the unit, never early, however levels are rounded to."""
    assert with_ladder(4, 250, 4_000).for_wait(wait_ms, rounding) == way


def test_a_level_is_a_shorter_way_than_several_steps() -> None:
    """Also where the last unit makes it one."""
    assert with_ladder(4, 700).for_wait(650, "refuse") == Way("in.700", "700ms", 700)


@pytest.mark.parametrize(
    ("wait_ms", "rounding", "wait"),
    [
        (1_600, "down", 1_500),
        (1_600, "up", 4_000),
        (1_600, "nearest", 1_500),
        (3_000, "nearest", 4_000),
        (9_000, "down", 4_000),
    ],
)
def test_between_the_ladder_and_a_longer_level_it_is_rounded(wait_ms: int, rounding: Rounding, wait: int) -> None:
    """The end of the ladder counts as a level."""
    assert with_ladder(4, 250, 4_000).for_wait(wait_ms, rounding).wait_ms == wait


def test_beyond_the_ladder_it_is_refused() -> None:
    """And it is said how many steps would do."""
    with pytest.raises(BeyondLadder) as caught:
        with_ladder(4).for_wait(1_501, "refuse")

    assert (caught.value.steps, caught.value.longest) == (5, Duration(1_500))
    assert caught.value.what == "1s501ms is beyond the ladder, which ends at 1s500ms"
    assert caught.value.fix == "write steps: 5 in delay.any and apply it, or choose a shorter delay"


def test_no_ladder_of_this_unit_is_long_enough() -> None:
    """Then more steps are no help."""
    with pytest.raises(BeyondLadder, match="no ladder with a unit of 1ms waits so long"):
        with_ladder(4, unit_ms=1).for_wait(10**13, "refuse")


def test_a_level_of_the_name_any_is_none() -> None:
    """A ladder is told how long, not by name."""
    with pytest.raises(NoSuchDelay, match="give a delay or a due time instead"):
        with_ladder(4).at_level("any")


def test_what_has_to_be_there() -> None:
    """The door, and the gate of the longest step: where it is missing, the broker's ladder is a shorter one."""
    assert with_ladder(4, 250).exchanges == ("exit", "in.250", "door", "gate.3")
    assert with_ladder(4, 250).longest_ms == 1_500
    assert Ways("exit", ()).exchanges == ()
