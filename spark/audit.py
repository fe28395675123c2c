"""An audit as a value: what was sent beside what came, in counts. Pure, and nothing of Spark in it."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from delayctl.topology.duration import Duration

QUANTILES = (0.5, 0.9, 0.99, 0.999)
# Ten to each power of ten, evenly as far as whole milliseconds go: 1, 2, 3, 4, 5, 7, 8, 10, 13, 16, 20 …
_STEPS = (10, 13, 16, 20, 25, 32, 40, 50, 63, 80)
_EDGES = sorted({-(-step * 10**power // 10) for power in range(13) for step in _STEPS})

Spread = Mapping[int, int]  # How many messages had which lateness.


@dataclass(frozen=True, slots=True)
class Rules:
    """When a message is lost, late or early; all in milliseconds, the moment since 1970."""

    moment: int  # What was expected until then should be there.
    grace: int = 60_000  # Only so long after it was expected is a message lost.
    late_after: int = 1_000
    tolerance: int = 100  # By how much the clocks of machines may differ before a message counts as early.


@dataclass(frozen=True, slots=True)
class Lateness:
    """How many milliseconds after a moment messages came; None where none did."""

    p50: int | None = None
    p90: int | None = None
    p99: int | None = None
    p999: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """The messages of a level, or all. Each is delivered, untaken, lost or waiting; the delivered may be more than that."""

    messages: int = 0
    delivered: int = 0
    untaken: int = 0  # Lies in a queue that was looked into, and no consumer has recorded it.
    lost: int = 0  # Expected long enough ago, and nobody has recorded it.
    waiting: int = 0  # Not expected yet, or only just.
    duplicated: int = 0  # Came more than once.
    extra_copies: int = 0  # How often more.
    given_again: int = 0  # Of these: by the broker, since they were not acknowledged.
    early: int = 0  # Came before the broker should have let it out.
    late: int = 0  # Came later than was wanted and later than was expected.
    before_due: int = 0  # Came before it was wanted, as planned or not.
    expedited: int = 0  # Taken out of its delay on purpose.
    measured: int = 0  # Delivered in its time; nobody knows when the untaken came.
    after_due: Lateness = Lateness()
    after_expected: Lateness = Lateness()


@dataclass(frozen=True, slots=True)
class LevelTally:
    """A tally of one level; None is what was overdue and went straight to the exit."""

    level: str | None
    tally: Tally


@dataclass(frozen=True, slots=True)
class Broken:
    """A file with lines that are no records."""

    file: str
    lines: int


@dataclass(frozen=True, slots=True)
class Records:
    """What the records hold, message by message or not."""

    files: int = 0
    deliveries: int = 0
    retries: int = 0  # Further attempts of a message that failed before.
    drained: int = 0  # Taken out of a queue by an audit of an earlier release, and by no consumer.
    without_id: int = 0
    first: int | None = None
    last: int | None = None
    broken: int = 0
    broken_files: tuple[Broken, ...] = ()  # Those with the most broken lines.


@dataclass(frozen=True, slots=True)
class Lying:
    """A queue that messages of the ledger lie in."""

    queue: str
    messages: int
    untaken: int  # Those of them that no consumer has recorded.


@dataclass(frozen=True, slots=True)
class Bar:
    """How many messages of a level came so many milliseconds after they were expected; below 0 are the early ones."""

    level: str | None
    start: float
    end: float
    count: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Counts per stretch of time, one after the other from `start` on."""

    start: int = 0
    width: int = 1
    expected: tuple[int, ...] = ()
    delivered: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """One message of a list; times in milliseconds since 1970."""

    kind: str
    message_id: str
    level: str | None
    due: int | None
    expected: int | None
    received: int | None
    copies: int


@dataclass(frozen=True, slots=True)
class Audit:
    """The answer: what became of everything in the ledger."""

    rules: Rules
    ledger_rows: int
    total: Tally
    levels: tuple[LevelTally, ...] = ()
    unknown: int = 0  # Ids that were recorded and are not in the ledger.
    records: Records = Records()
    lying: tuple[Lying, ...] = ()
    lost_after_last_record: int = 0
    bars: tuple[Bar, ...] = ()
    timeline: Timeline = Timeline()
    shown: tuple[Shown, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, nothing is left in a queue and nothing came early."""
        return self.total.lost == self.total.untaken == self.total.early == 0

    @property
    def sent_twice(self) -> int:
        """Rows of the ledger beyond one per message."""
        return self.ledger_rows - self.total.messages


COUNTS = (
    "messages", "delivered", "untaken", "lost", "waiting", "duplicated", "extra_copies", "given_again", "early", "late",
    "before_due", "expedited", "measured",
)  # fmt: skip


def tally_of(counts: Iterable[Mapping[str, Any]], after_due: Spread, after_expected: Spread) -> Tally:
    """A tally from rows of counts, which are added up, and from the spreads of both latenesses."""
    rows = list(counts)
    return Tally(
        **{name: sum(int(row[name] or 0) for row in rows) for name in COUNTS},
        after_due=lateness_of(after_due, _most(rows, "after_due_most")),
        after_expected=lateness_of(after_expected, _most(rows, "after_expected_most")),
    )


def _most(rows: Iterable[Mapping[str, Any]], name: str) -> int | None:
    return max((row[name] for row in rows if row[name] is not None), default=None)


def lateness_of(spread: Spread, most: int | None) -> Lateness:
    """The smallest lateness that so many have not exceeded, for each of QUANTILES; and the largest there is."""
    values = sorted(spread)
    ranks = list(accumulate(spread[value] for value in values))
    if not ranks:
        return Lateness()
    p50, p90, p99, p999 = (values[bisect_left(ranks, share * ranks[-1])] for share in QUANTILES)
    return Lateness(p50, p90, p99, p999, most)


def merged(spreads: Iterable[Spread]) -> Spread:
    """All of these together."""
    total: Counter[int] = Counter()
    for spread in spreads:
        total.update(spread)
    return total


def by_wait(level: str | None) -> tuple[int, str]:
    """The order of levels: at once, then by how long they wait, then those that have a name of another kind."""
    if level is None:
        return -1, ""
    try:
        return Duration.parse(level).ms, level
    except ValueError:
        return 2**63, level


def bars_of(level: str | None, spread: Spread) -> Iterator[Bar]:
    """The bars of a histogram: one for what came early, one below a millisecond, then ten to each power of ten."""
    counts: Counter[tuple[float, float]] = Counter()
    for lateness, count in spread.items():
        counts[_edges(lateness)] += count
    return (Bar(level, *edges, count) for edges, count in sorted(counts.items()))


def _edges(lateness: int) -> tuple[float, float]:
    """Whole milliseconds, so that no bar is empty for want of a number between its edges."""
    if lateness < 1:
        return (float("-inf"), 0.0) if lateness < 0 else (0.0, 1.0)
    number = min(bisect_right(_EDGES, lateness), len(_EDGES) - 1)
    return float(_EDGES[number - 1]), float(_EDGES[number])


def width_for(span_ms: int, most: int = 120) -> int:
    """A round width, so that a span has at most so many stretches."""
    steps = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000)
    minutes = (1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1_440)
    widths = (*steps, *(60_000 * each for each in minutes))
    return next((width for width in widths if span_ms <= width * most), -(-span_ms // most))


def timeline_of(start: int, end: int, width: int, rows: Iterable[tuple[str, int, int]]) -> Timeline:
    """From rows of series, number of the stretch and count; stretches without a row are empty."""
    length = (end - start) // width + 1
    series = {name: [0] * length for name in ("expected", "delivered", "lost")}
    for name, number, count in rows:
        series[name][number] = count
    return Timeline(start, width, **{name: tuple(counts) for name, counts in series.items()})
