"""Prometheus' text format, byte by byte, and as its own client reads it."""

import math

import pytest
from delayctl.topology.exposition import Family, Histogram, Metric, Sample, exposition, number
from delayctl.topology.lateness import BOUNDS_S, Counts, joined
from hypothesis import given
from hypothesis import strategies as st

from tests.support.exposed import Exposed

GAUGE = Metric("delayctl_x", "gauge", "What it is.")


def test_a_family() -> None:
    """Help, type, and a line for each figure."""
    family = Family(GAUGE, (Sample({"queue": "a"}, 1), Sample({"queue": "b", "kind": "c"}, 0.5), Sample({}, True)))

    assert exposition([family]) == (
        "# HELP delayctl_x What it is.\n"
        "# TYPE delayctl_x gauge\n"
        'delayctl_x{queue="a"} 1\n'
        'delayctl_x{queue="b",kind="c"} 0.5\n'
        "delayctl_x 1\n"
    )


def test_without_figures_there_is_nothing_to_say() -> None:
    """Not even what it would mean."""
    assert exposition([Family(GAUGE), Family(GAUGE, (Sample({}, 2),))]).count("# HELP") == 1


def test_help_of_several_lines() -> None:
    """It stays one line."""
    text = exposition([Family(Metric("delayctl_x", "gauge", "a\\b\nc"), (Sample({}, 1),))])

    assert text.startswith("# HELP delayctl_x a\\\\b\\nc\n# TYPE")


@given(st.text(), st.text())
def test_any_name_can_be_a_label(queue: str, other: str) -> None:
    """What a queue is called is its owner's affair: quotes, backslashes, line ends, braces."""
    whole = [text.encode("utf-8", "replace").decode() for text in (queue, other)]

    found = Exposed(exposition([Family(GAUGE, (Sample({"queue": queue, "kind": other}, 7),))]))

    assert [(s.labels, s.value) for s in found.families[0].samples] == [({"queue": whole[0], "kind": whole[1]}, 7)]


def test_half_a_surrogate_is_no_end() -> None:
    """It can't be written in UTF-8; the rest of the name can."""
    text = exposition([Family(GAUGE, (Sample({"queue": "a\ud800b"}, 1),))])

    assert 'queue="a?b"' in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (True, "1"), (1_000_000, "1000000"), (0.25, "0.25"), (1e-06, "1e-06"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (-3, "-3")],
)  # fmt: skip
def test_numbers(value: float, text: str) -> None:
    """As Prometheus writes them."""
    assert number(value) == text


def test_a_histogram() -> None:
    """Counts are cumulated up to each bound; what lies on a bound lies within it."""
    counts = Counts((0.01, 1.0))
    for late_ms in (0, 10, 11, 1000, 1001, -5000):
        counts.add(late_ms)

    text = exposition([Family(Metric("h", "histogram", "How late."), tuple(counts.histogram().samples({"q": "a"})))])

    assert text.splitlines()[2:] == [
        'h_bucket{q="a",le="0.01"} 3',
        'h_bucket{q="a",le="1"} 5',
        'h_bucket{q="a",le="+Inf"} 6',
        'h_sum{q="a"} 2.022',
        'h_count{q="a"} 6',
    ]


@given(st.lists(st.integers(-10_000, 10_000_000)), st.lists(st.integers(-10_000, 10_000_000)))
def test_histograms_are_joined_as_if_all_had_been_counted_at_once(some: list[int], more: list[int]) -> None:
    """Which is how a counter goes on from run to run."""
    parts = []
    for late in (some, more, [*some, *more]):
        counts = Counts()
        for each in late:
            counts.add(each)
        parts.append(counts.histogram())

    together = joined(parts[0], parts[1])

    assert (together.bounds, together.counts) == (BOUNDS_S, parts[2].counts)
    assert together.total == pytest.approx(parts[2].total)


def test_the_counts_of_a_histogram_have_to_fit() -> None:
    """One for each bound, and one for all."""
    with pytest.raises(ValueError, match="zip"):
        list(Histogram((1.0,), (1,), 1.0).samples({}))
