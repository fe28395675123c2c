"""Durations as people write them."""

import pytest
from delayctl.topology.duration import MAX_TTL_MS, Duration


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("500ms", 500),
        ("10s", 10_000),
        ("1m30s", 90_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("1d2h3m4s5ms", 93_784_005),
        ("1m1ms", 60_001),
        ("90s", 90_000),
        ("007s", 7_000),
        ("0s", 0),
        ("3650d", MAX_TTL_MS),
    ],
)
def test_duration_is_read(text: str, ms: int) -> None:
    """Units may be combined, the largest first."""
    assert Duration.parse(text) == Duration(ms)


@pytest.mark.parametrize(
    "text",
    ["", " ", "5", "m", "5 m", "1.5h", "-5m", "+5m", "5M", "30s1m", "1m1m", "5min", "1w", "\u0665m", "5m\n", "1ms1s"],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    """No unit, no number, another order, another alphabet: each is an error that repeats the text."""
    with pytest.raises(ValueError, match="is not a duration"):
        Duration.parse(text)


def test_an_endless_text_is_refused_and_cut() -> None:
    """A text that no one would type is neither calculated nor repeated in full."""
    with pytest.raises(ValueError, match=r"^'1{39}…' is not a duration$"):
        Duration.parse("1" * 5_000 + "s")


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0s"), (1, "1ms"), (1_000, "1s"), (90_000, "1m30s"), (3_600_000, "1h"), (93_784_005, "1d2h3m4s5ms")],
)
def test_duration_is_shown_with_its_largest_units(ms: int, text: str) -> None:
    """What 90000 is, people read as 1m30s."""
    assert str(Duration(ms)) == text


def test_durations_are_ordered() -> None:
    """Longer is more, however it was written."""
    written = ["1h", "90s", "1m", "500ms"]

    assert sorted(map(Duration.parse, written)) == [
        Duration(500),
        Duration(60_000),
        Duration(90_000),
        Duration(3_600_000),
    ]
