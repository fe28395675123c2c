"""Not faster than so many a second, on a clock of the test's own."""

import pytest
from delayctl.spark.pace import Pace


class Clock:
    """Time that passes only in sleep, or when the test says so."""

    def __init__(self, oversleeps: float = 0) -> None:
        self.now = 100.0
        self._oversleeps = oversleeps

    def __call__(self) -> float:
        """The time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        assert seconds > 0
        self.now += seconds + self._oversleeps


def span_of(steps: int, rate: float | None, *, oversleeps: float = 0) -> float:
    """How long so many steps take."""
    clock = Clock(oversleeps)
    pace = Pace(rate, clock=clock, sleep=clock.sleep)
    for _ in range(steps):
        pace.step()
    return clock.now - 100


@pytest.mark.parametrize("rate", [0.5, 3, 49, 50, 1000, 12345])
def test_the_rate_is_kept(rate: float) -> None:
    """So many a second, from the slowest to the fastest, with a moment's grace at the start."""
    steps = int(rate * 20)

    assert span_of(steps, rate) == pytest.approx(20, abs=max(0.05, 1.01 / rate))


def test_a_machine_that_oversleeps_keeps_the_rate() -> None:
    """What a sleep takes too long is taken off the next one."""
    assert span_of(20_000, 1000, oversleeps=0.01) == pytest.approx(20, abs=0.1)


def test_without_a_rate_nobody_waits() -> None:
    """No limit costs no time."""
    assert span_of(10_000, None) == 0


def test_what_was_missed_is_not_caught_up() -> None:
    """After a long halt it goes on at the rate, and not in a burst."""
    clock = Clock()
    pace = Pace(100, clock=clock, sleep=clock.sleep)
    pace.step()
    clock.now += 60
    halted = clock.now

    for _ in range(500):
        pace.step()

    assert clock.now - halted == pytest.approx(5, abs=0.15)
