"""Virtual time."""

import pytest
from delayctl.simulator.clock import Timer, VirtualClock
from hypothesis import given
from hypothesis import strategies as st


def test_time_stands_still_until_it_is_told_to_pass() -> None:
    """Nothing happens before its time."""
    clock = VirtualClock()
    log: list[tuple[int, str]] = []
    clock.after(10, lambda: log.append((clock.now, "ten")))

    clock.advance(9)
    before = list(log)
    clock.advance(1)

    assert (before, log, clock.now) == ([], [(10, "ten")], 10)


def test_what_is_planned_for_one_time_happens_in_the_order_of_planning() -> None:
    """First planned, first done."""
    clock = VirtualClock()
    log: list[str] = []
    for name in "abc":
        clock.at(5, lambda name=name: log.append(name))  # type: ignore[misc]

    clock.run()

    assert log == ["a", "b", "c"]


def test_an_action_may_plan_another_for_the_same_time() -> None:
    """What happens now may lead to more that happens now."""
    clock = VirtualClock()
    log: list[tuple[int, str]] = []
    clock.at(5, lambda: clock.after(0, lambda: log.append((clock.now, "then"))))

    clock.run_until(5)

    assert log == [(5, "then")]


def test_a_time_that_has_passed_means_now() -> None:
    """Nobody can plan for the past."""
    clock = VirtualClock(start=100)

    timer = clock.at(3, lambda: None)

    assert timer.time == 100


def test_a_cancelled_timer_does_nothing() -> None:
    """Cancelling twice does no harm."""
    clock = VirtualClock()
    log: list[int] = []
    timer = clock.after(5, lambda: log.append(clock.now))

    clock.cancel(timer)
    clock.cancel(timer)
    clock.run()

    assert (log, clock.now, timer.is_pending) == ([], 0, False)


def test_a_timer_that_is_planned_again_keeps_the_earlier_time() -> None:
    """Once, and at the earliest of the times; after that it can be planned anew."""
    clock = VirtualClock()
    log: list[int] = []
    timer = Timer(lambda: log.append(clock.now))

    for time in (9, 5, 7):
        clock.plan(timer, time)
    clock.run_until(20)
    clock.plan(timer, 3)
    clock.run()

    assert (log, timer.is_pending, clock.next_time) == ([5, 20], False, None)


def test_a_timer_may_plan_itself() -> None:
    """What happens over and over needs no other."""
    clock = VirtualClock()
    log: list[int] = []

    def tick() -> None:
        log.append(clock.now)
        if clock.now < 30:
            clock.plan(timer, clock.now + 10)

    timer = clock.at(10, tick)

    clock.run()

    assert log == [10, 20, 30]


def test_the_wall_clock_can_be_set_and_moves_on_with_time() -> None:
    """Setting it moves nothing that was planned."""
    clock = VirtualClock()
    clock.advance(1_000)

    clock.set_wall(400)
    clock.advance(50)

    assert (clock.now, clock.wall) == (1_050, 450)


def test_whoever_watches_the_wall_clock_hears_when_it_is_set() -> None:
    """The time before and the time after."""
    clock = VirtualClock()
    heard: list[tuple[int, int]] = []
    clock.watch_wall(lambda before, after: heard.append((before, after)))

    clock.advance(1_000)
    clock.set_wall(400)
    clock.advance(50)
    clock.set_wall(2_000)

    assert heard == [(1_000, 400), (450, 2_000)]


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=300))
def test_everything_happens_once_and_in_order_whatever_is_cancelled(plans: list[tuple[int, bool]]) -> None:
    """Also when most of what was planned is cancelled."""
    clock = VirtualClock()
    log: list[tuple[int, int]] = []
    timers = []
    for number, (time, _) in enumerate(plans):
        timers.append(clock.at(time, lambda number=number: log.append((clock.now, number))))  # type: ignore[misc]

    for timer, (_, is_cancelled) in zip(timers, plans, strict=True):
        if is_cancelled:
            clock.cancel(timer)
    clock.run()

    kept = [(time, number) for number, (time, is_cancelled) in enumerate(plans) if not is_cancelled]
    assert log == sorted(kept)


@given(
    st.lists(
        st.tuples(st.sampled_from(("plan", "cancel", "pass")), st.integers(0, 3), st.integers(0, 20)), max_size=400
    )
)
def test_timers_that_are_planned_over_and_over_do_what_a_list_of_times_says(steps: list[tuple[str, int, int]]) -> None:
    """Each has one time or none, whatever was planned, cancelled and done before."""
    clock = VirtualClock()
    log: list[tuple[int, int]] = []
    timers = [Timer(lambda number=number: log.append((clock.now, number))) for number in range(4)]  # type: ignore[misc]
    times: dict[int, int] = {}
    expected: list[tuple[int, int]] = []

    for step, number, wait in steps:
        if step == "plan":
            clock.plan(timers[number], clock.now + wait)
            times[number] = min(times.get(number, clock.now + wait), clock.now + wait)
        elif step == "cancel":
            clock.cancel(timers[number])
            times.pop(number, None)
        else:
            clock.advance(wait)
            done = sorted((time, number) for number, time in times.items() if time <= clock.now)
            expected += done
            for _, gone in done:
                del times[gone]
        assert clock.next_time == min(times.values(), default=None)

    assert [time for time, _ in log] == [time for time, _ in expected]
    assert sorted(log) == sorted(expected)


@pytest.mark.parametrize("wait", [0, 1, 7_200_000])
def test_a_wait_ends_exactly_then(wait: int) -> None:
    """Not a millisecond more."""
    clock = VirtualClock()

    clock.advance(wait)

    assert clock.now == wait
