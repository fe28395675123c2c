"""What a backfill would do to the levels, played through in numbers."""

import pytest
from delayctl.publishers.choice import Rounding, Ways
from delayctl.spark.choose import Chooser
from delayctl.spark.estimate import Estimate, LevelForecast, Room, Slice, estimate
from delayctl.topology.duration import Duration
from delayctl.topology.model import Ladder, Level, Rung

NOW = 1_800_000_000_000  # On the hour.
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


def chooser(rounding: Rounding = "up", *levels: str) -> Chooser:
    """One of the levels 1m and 1h, or of those given."""
    made = [Level(name, Duration.parse(name), f"{name} in", f"{name} queue") for name in levels or ("1m", "1h")]
    return Chooser(Ways("exit", made), rounding)


def test_every_row_is_somewhere() -> None:
    """Overdue, in a level, beyond, or rejected; the hours are those in which they come out."""
    slices = [
        Slice(7, due_ms=NOW + 2 * HOUR),
        Slice(300, due_ms=NOW + 50 * MINUTE),
        Slice(200, due_ms=NOW + 30 * SECOND),
        Slice(100, due_ms=NOW - HOUR),
    ]

    found = estimate(
        slices,
        [Room("1m", 5, 1_000), Room("1h", 0, 1_000, rejects=True)],
        chooser(),
        now_ms=NOW,
        rate=100,
        rejected={"bad": 3},
        confirmed_before=11,
    )

    assert found == Estimate(
        to_send=600,
        overdue=100,
        beyond=7,
        rejected={"bad": 3},
        confirmed_before=11,
        levels=(
            LevelForecast(Room("1m", 5, 1_000), 200, 205),
            LevelForecast(Room("1h", 0, 1_000, rejects=True), 300, 300),
        ),
        hours={NOW: 300, NOW + HOUR: 300},
        takes_ms=6_000,
        rate=100,
    )
    assert (found.is_work, found.overflowing) == (True, ())


def test_a_level_empties_while_rows_still_come() -> None:
    """At 10 a second, a level of a minute never holds more than 600 of 6,000, give or take a step."""
    found = estimate([Slice(6_000, level="1m")], [Room("1m", 0, 610)], chooser(), now_ms=NOW, rate=10)

    assert (found.levels, found.overflowing, found.takes_ms) == (
        (LevelForecast(Room("1m", 0, 610), 6_000, 600),),
        (),
        600_000,
    )


def test_faster_it_overflows() -> None:
    """The room is what the level holds minus what waits in it now, which is taken to have come just now."""
    found = estimate([Slice(6_000, level="1m")], [Room("1m", 50, 1_000)], chooser(), now_ms=NOW, rate=20)

    assert found.overflowing == (LevelForecast(Room("1m", 50, 1_000), 6_000, 1_250),)
    assert found.overflowing[0].overflow == 250


@pytest.mark.parametrize(
    ("long", "short"),
    [
        (Slice(3_000_000, delay="10m"), Slice(500, delay="2m")),
        (Slice(3_000_000, delay=10 * MINUTE), Slice(500, delay=2 * MINUTE)),
        (Slice(3_000_000, level="10m"), Slice(500, level="2m")),
    ],
)
def test_rows_are_played_in_the_order_in_which_they_are_sent(long: Slice, short: Slice) -> None:
    """The shortest delay first, not the first by its text: the level of two minutes is not yet empty then."""
    found = estimate([long, short], [Room("2m", 900, 1_000)], chooser("up", "2m", "10m"), now_ms=NOW, rate=10_000)

    assert found.overflowing == (LevelForecast(Room("2m", 900, 1_000), 500, 1_400),)


def test_those_of_today_leave_too() -> None:
    """After a minute nothing of them is left."""
    found = estimate([Slice(6_000, level="1m")], [Room("1m", 5_000, 10_000)], chooser(), now_ms=NOW, rate=10)

    assert found.levels == (LevelForecast(Room("1m", 5_000, 10_000), 6_000, 5_600),)


def test_a_level_without_a_limit_never_overflows() -> None:
    """Nor does one of which it is not known."""
    found = estimate([Slice(10**9, level="1h")], [Room("1h")], chooser(), now_ms=NOW, rate=None)

    assert (found.overflowing, found.levels[0].peak) == ((), 36_000_000)


def test_what_is_beyond_today_is_not_when_its_turn_comes() -> None:
    """A slow backfill reaches rows that are due in three hours when they are due in one."""
    slices = [Slice(60, due_ms=NOW + minute * MINUTE) for minute in range(180)]

    found = estimate(slices, [Room("1h")], chooser("up", "1h"), now_ms=NOW, rate=1)

    assert (found.to_send, found.beyond) == (60 * 180, 0)


@pytest.mark.parametrize(
    ("slice_", "rounding", "counts"),
    [
        (Slice(4, delay="1h"), "up", (4, 0, 0, {})),
        (Slice(4, delay="1d"), "up", (0, 0, 4, {})),
        (Slice(4, delay="soon"), "up", (0, 0, 0, {"'soon' is not a delay": 4})),
        (Slice(4, delay=0), "up", (4, 4, 0, {})),
        (Slice(4, delay=30 * MINUTE), "refuse", (0, 0, 0, {"no level waits exactly this long": 4})),
        (Slice(4, level="2h"), "up", (0, 0, 0, {"there is no level '2h'": 4})),
    ],
)
def test_by_delay_and_by_level(slice_: Slice, rounding: Rounding, counts: tuple[int, int, int, dict[str, int]]) -> None:
    """Rows to send, of them overdue, beyond, and rejected with the reason that a task would give."""
    found = estimate([slice_], [Room("1m"), Room("1h")], chooser(rounding), now_ms=NOW, rate=None)

    assert (found.to_send, found.overdue, found.beyond, found.rejected) == counts


def test_bytes_have_to_fit_as_well() -> None:
    """A hundred bodies of 200 bytes, beside 1,000 bytes of today, are more than a level of 10,000 holds."""
    room = Room("1h", 5, 1_000, waiting_bytes=1_000, max_bytes=10_000)

    found = estimate([Slice(100, level="1h", body_bytes=200.0)], [room], chooser(), now_ms=NOW, rate=1_000)

    assert found.overflowing == (LevelForecast(room, 100, 105, 21_000),)
    assert (found.overflowing[0].overflow, found.overflowing[0].overflow_bytes) == (0, 11_000)


def test_a_full_level_that_gets_nothing_is_no_obstacle() -> None:
    """It was too full before, and this backfill changes nothing about that."""
    found = estimate([Slice(1, level="1h")], [Room("1m", 50, 10), Room("1h", 0, 10)], chooser(), now_ms=NOW, rate=None)

    assert (found.overflowing, found.levels[0].overflow) == ((), 40)


def test_what_is_rounded_down_to_nothing_is_not_overdue() -> None:
    """It is due in half a minute, and comes out at once: early."""
    slices = [Slice(3, due_ms=NOW + 30 * SECOND), Slice(2, due_ms=NOW - 1), Slice(4, due_ms=NOW + 2 * MINUTE)]

    found = estimate(slices, [Room("1m"), Room("1h")], chooser("down"), now_ms=NOW, rate=None)

    assert (found.to_send, found.overdue, found.hastened) == (9, 2, 3)


def test_nothing_is_no_work() -> None:
    """Not even when much was confirmed before."""
    found = estimate([], [Room("1h")], chooser(), now_ms=NOW, rate=None, confirmed_before=7)

    assert (found.is_work, found.takes_ms, found.hours) == (False, 0, {})


def with_ladder(steps: int) -> Chooser:
    """A ladder of so many steps of a second, beside a level of a minute."""
    rungs = [Rung(f"any.{n:02}", Duration(SECOND << n), f"in.{n}", f"queue.{n}", f"gate.{n}") for n in range(steps)]
    level = Level("1m", Duration(MINUTE), "1m in", "1m queue")
    return Chooser(Ways("exit", [level], Ladder(Duration(SECOND), tuple(rungs), "door")), "refuse")


def test_the_ladder_takes_what_is_due_at_any_time() -> None:
    """A row counts at each step that it waits at, when it is there; what is beyond the last is beyond."""
    slices = [
        Slice(4, due_ms=NOW + 6 * SECOND),
        Slice(3, due_ms=NOW + MINUTE),
        Slice(2, due_ms=NOW + 127 * SECOND),
        Slice(1, due_ms=NOW + 128 * SECOND),
    ]
    rooms = [Room("1m", 0), *(Room(f"any.{n:02}", 1, 5) for n in range(7))]

    found = estimate(slices, rooms, with_ladder(7), now_ms=NOW, rate=1_000_000)

    levels = {each.room.level: (each.rows, each.peak, each.overflow) for each in found.levels}
    assert levels == {
        "1m": (3, 3, 0),
        "any.00": (2, 2, 0),
        "any.01": (6, 4, 0),  # Four after 4 s, when the one of today has left, and two after 124 s.
        "any.02": (6, 5, 0),
        "any.03": (2, 2, 0),
        "any.04": (2, 2, 0),
        "any.05": (2, 2, 0),
        "any.06": (2, 3, 0),
    }
    assert (found.to_send, found.beyond, found.overdue) == (9, 1, 0)
