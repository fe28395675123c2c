"""The way of a row, whatever it says about its wait."""

from typing import Any

import pytest
from delayctl.publishers.choice import NoSuchDelay, Rounding, Way, Ways
from delayctl.spark.choose import Beyond, Chooser
from delayctl.spark.rows import Row
from delayctl.topology.duration import Duration
from delayctl.topology.model import Level

NOW = 1_000_000
WAYS = Ways("exit", [Level(name, Duration.parse(name), f"in.{name}", f"q.{name}") for name in ("1m", "15m")])
ONE, FIFTEEN = Way("in.1m", "1m", 60_000), Way("in.15m", "15m", 900_000)


def chosen(*, rounding: Rounding = "up", **waits: Any) -> tuple[Way, int]:
    """The way of a row that is sent at NOW."""
    empty = dict.fromkeys(("delay", "due_ms", "level", "exchange"))
    row = Row(message_id="1", key="k", body=b"", headers=None, **{**empty, **waits})
    return Chooser(WAYS, rounding).choose(row, NOW)


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ({"delay": "1m"}, (ONE, NOW + 60_000)),
        ({"delay": "0s"}, (Way("exit"), NOW)),
        ({"delay": "2m"}, (FIFTEEN, NOW + 120_000)),
        ({"delay": 60_000}, (ONE, NOW + 60_000)),
        ({"delay": -5}, (Way("exit"), NOW - 5)),
        ({"due_ms": NOW + 900_000}, (FIFTEEN, NOW + 900_000)),
        ({"due_ms": NOW + 1}, (ONE, NOW + 1)),
        ({"due_ms": NOW}, (Way("exit"), NOW)),
        ({"due_ms": 5}, (Way("exit"), 5)),
        ({"level": "15m"}, (FIFTEEN, NOW + 900_000)),
        ({"exchange": "orders"}, (Way("orders"), 0)),
    ],
)
def test_ways_and_due_times(waits: dict[str, Any], expected: tuple[Way, int]) -> None:
    """What is due goes straight to the exit, all else into a level; the due time is what was wanted."""
    assert chosen(**waits) == expected


@pytest.mark.parametrize(("rounding", "way"), [("nearest", ONE), ("down", ONE), ("up", FIFTEEN)])
def test_what_is_between_levels_is_rounded(rounding: Rounding, way: Way) -> None:
    """Rounding is the user's choice."""
    assert chosen(due_ms=NOW + 90_000, rounding=rounding) == (way, NOW + 90_000)


def test_what_is_no_level_can_be_refused() -> None:
    """Without rounding a row must hit a level: one reason for all rows, and the delay itself where all have the same."""
    with pytest.raises(NoSuchDelay, match="no level waits exactly this long"):
        chosen(delay="1m30s", rounding="refuse")
    with pytest.raises(NoSuchDelay, match="no level waits 1m30s"):
        Chooser(WAYS, "refuse").check(delay="1m30s", level=None)


@pytest.mark.parametrize("waits", [{"due_ms": NOW + 900_001}, {"delay": 900_001}, {"delay": "900001ms"}])
@pytest.mark.parametrize("rounding", ["up", "down", "nearest", "refuse"])
def test_beyond_the_longest_level_there_is_no_way(waits: dict[str, Any], rounding: Rounding) -> None:
    """However waits are rounded: a message would come too early."""
    with pytest.raises(Beyond) as caught:
        chosen(**waits, rounding=rounding)

    assert str(caught.value) == (
        "Error: due later than the longest level (15m) waits\n"
        "  fix: put such rows aside for a later run, or add a longer level, or more steps to the ladder"
    )


@pytest.mark.parametrize("text", ["soon", ""])
def test_a_text_that_is_no_delay_is_repeated(text: str) -> None:
    """The error has the text in it, and how to write one; an empty one is none either."""
    with pytest.raises(NoSuchDelay) as caught:
        chosen(delay=text)

    assert str(caught.value) == f"Error: '{text}' is not a delay\n  fix: write it as 500ms, 10s, 1m30s, 2h or 1d"


def test_an_unknown_level_is_named_with_the_known_ones() -> None:
    """The error shows what there is to choose from."""
    with pytest.raises(NoSuchDelay) as caught:
        chosen(level="5m")

    assert str(caught.value) == "Error: there is no level '5m' (did you mean '15m'?)\n  fix: use one of: 1m, 15m"


@pytest.mark.parametrize("wrong", [{"delay": "soon"}, {"delay": "1d"}, {"level": "5m"}])
def test_what_all_rows_share_is_checked_before_the_first(wrong: dict[str, str]) -> None:
    """An option that fits no row is found without any."""
    with pytest.raises(NoSuchDelay):
        Chooser(WAYS, "up").check(**{"delay": None, "level": None, **wrong})
