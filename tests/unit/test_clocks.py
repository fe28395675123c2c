"""A clock that is set while messages wait: what the tests of early messages make of it."""

import pytest

from testbed.wait import until
from tests.support import clocks
from tests.support.clocks import ClockWatch, now_ms


def test_a_clock_that_is_set_forward_has_gained_until_it_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """For who was there before; what is sent afterwards has to wait as long as ever."""
    ahead = [100]
    monkeypatch.setattr(clocks, "_offset_ms", lambda: ahead[0])
    with ClockWatch() as clock:
        before = now_ms()
        ahead[0] = 1_900
        until(lambda: clock.steps == [1_800], 10)
        between = now_ms()
        ahead[0] = 99
        until(lambda: clock.steps == [1_800, -1_801], 10)
        after = now_ms()

    assert clock.gained(before, after) == 1_800
    assert clock.gained(between, after) == 0
    assert clock.gained(after, after) == 0
