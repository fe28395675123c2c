"""Which level a wanted delay becomes."""

import pytest
from delayctl.publishers.choice import NoSuchDelay, Rounding, Ways
from delayctl.topology.duration import Duration
from delayctl.topology.model import Level
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
