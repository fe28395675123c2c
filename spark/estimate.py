"""What a backfill would do to the levels: how many rows into which, how full they get, how long it takes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from delayctl.publishers.choice import NoSuchDelay, Way
from delayctl.spark.choose import Beyond, Chooser
from delayctl.spark.rows import Row
from delayctl.topology.duration import Duration
from delayctl.topology.ladder import steps_of, wait_of
from delayctl.topology.names import rung_name

HOUR_MS = 3_600_000
ASSUMED_RATE = 10_000.0  # Where none is set: a broker that has nothing else to do takes about as many.
_STEP_S = 1.0
_MOST_STEPS = 5_000


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows that are due about the same time, or wait the same."""

    rows: int
    due_ms: int | None = None
    delay: str | int | None = None
    level: str | None = None
    body_bytes: float = 0  # Of each, on average; 0 where no level minds.

    @property
    def as_row(self) -> Row:
        """One of them."""
        return Row("", "", b"", self.delay, self.due_ms, self.level, None, None)


@dataclass(frozen=True, slots=True)
class Room:
    """A level on the broker: what waits in it now and what it holds; None is not known, or without a limit."""

    level: str
    waiting: int | None = None
    max_length: int | None = None
    rejects: bool = False  # When it is full: otherwise the oldest leaves early.
    waiting_bytes: int = 0
    max_bytes: int | None = None  # All bodies together.


@dataclass(frozen=True, slots=True)
class LevelForecast:
    """What happens to a level, or to a step of the ladder: there a row counts wherever it waits."""

    room: Room
    rows: int
    peak: int  # How many wait in it at most, those of today included.
    peak_bytes: int = 0

    @property
    def overflow(self) -> int:
        """How many messages too many there are at the worst moment."""
        return _beyond(self.peak, self.room.max_length)

    @property
    def overflow_bytes(self) -> int:
        """How many bytes too many there are at the worst moment."""
        return _beyond(self.peak_bytes, self.room.max_bytes)


def _beyond(peak: int, most: int | None) -> int:
    return 0 if most is None else max(0, peak - most)


@dataclass(frozen=True, slots=True)
class More:
    """Rows that are rejected for reasons of which there are too many to tell each."""

    reasons: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Unrouted:
    """Rows whose routing key no route takes, and one of these keys."""

    rows: int = 0
    example: str | None = None


@dataclass(frozen=True)
class Estimate:
    """What a backfill would do. All rows are in `to_send`, `rejected` with `more`, `beyond` or `confirmed_before`."""

    to_send: int
    overdue: int
    beyond: int
    rejected: Mapping[str, int]
    confirmed_before: int
    levels: tuple[LevelForecast, ...]
    hours: Mapping[int, int] = field(default_factory=dict)  # When they come out: hour (ms since 1970) to rows.
    takes_ms: int = 0
    rate: float | None = None
    hastened: int = 0  # Of those to send: not due yet, and too soon for any level, by rounding.
    more: More = More()
    unrouted: Unrouted = Unrouted()

    @property
    def is_work(self) -> bool:
        """Whether a run would send anything, or put anything aside."""
        return bool(self.to_send or self.beyond or self.rejected or self.more.rows)

    @property
    def overflowing(self) -> tuple[LevelForecast, ...]:
        """The levels that do not hold what is sent to them."""
        return tuple(level for level in self.levels if level.rows and (level.overflow or level.overflow_bytes))


def estimate(
    slices: Iterable[Slice],
    rooms: Sequence[Room],
    chooser: Chooser,
    *,
    now_ms: int,
    rate: float | None,
    rejected: Mapping[str, int] | None = None,
    confirmed_before: int = 0,
    more: More = More(),
    unrouted: Unrouted = Unrouted(),
) -> Estimate:
    """Play the backfill through: rows in due order, so many a second, each in its level until it comes out."""
    per_s = rate or ASSUMED_RATE
    play = _Play(_Waits(rooms, now_ms), Counter(rejected or {}))
    in_order = sorted(slices, key=lambda slice_: _due_ms(slice_, chooser, now_ms))
    for rows, slice_ in _steps(in_order, per_s):
        play.step(rows, slice_, chooser, now_ms + int(play.sent * 1000 / per_s))
    return Estimate(
        play.sent,
        play.overdue,
        play.beyond,
        dict(play.rejected),
        confirmed_before,
        play.waits.forecast(),
        dict(sorted(play.hours.items())),
        int(play.sent * 1000 / per_s),
        rate,
        play.hastened,
        more,
        unrouted,
    )


@dataclass
class _Play:
    """How far the backfill has been played through."""

    waits: "_Waits"
    rejected: Counter[str]
    hours: Counter[int] = field(default_factory=Counter)
    sent: int = 0
    overdue: int = 0
    hastened: int = 0
    beyond: int = 0

    def step(self, rows: int, slice_: Slice, chooser: Chooser, at_ms: int) -> None:
        """Send so many rows of a slice, or put them aside."""
        try:
            way, due_ms = chooser.choose(slice_.as_row, at_ms)
        except Beyond:
            self.beyond += rows
        except NoSuchDelay as error:
            self.rejected[error.what] += rows
        else:
            if way.level is None and due_ms > at_ms:
                self.hastened += rows
            elif way.level is None:
                self.overdue += rows
            self._send(rows, way, at_ms, slice_.body_bytes)

    def _send(self, rows: int, way: Way, at_ms: int, body_bytes: float) -> None:
        self.sent += rows
        self.hours[(at_ms + way.wait_ms) // HOUR_MS * HOUR_MS] += rows
        for level, wait_ms in _stops(way):
            self.waits.enter(level, rows, round(rows * body_bytes), at_ms, wait_ms)
            at_ms += wait_ms


def _stops(way: Way) -> Iterator[tuple[str, int]]:
    """Where a message waits, one after the other, and how long: at its level, or at the steps of the ladder."""
    if way.units:
        unit = Duration(way.wait_ms // way.units)
        yield from ((rung_name(step), wait_of(step, unit).ms) for step in steps_of(way.units))
    elif way.level is not None:
        yield way.level, way.wait_ms


def _due_ms(slice_: Slice, chooser: Chooser, now_ms: int) -> int:
    """When rows are due that are sent now: by this the run sorts them, too. What has no way is not sent at all."""
    if slice_.due_ms is not None:
        return slice_.due_ms  # Also where it is beyond the longest level as of now: it need not be when its turn comes.
    try:
        return chooser.choose(slice_.as_row, now_ms)[1]
    except NoSuchDelay:
        return now_ms


def _steps(slices: Sequence[Slice], per_s: float) -> Iterable[tuple[int, Slice]]:
    """The slices in pieces that take about a second each, or longer where there are many."""
    total = sum(slice_.rows for slice_ in slices)
    most = max(1, int(per_s * _STEP_S), total // _MOST_STEPS)
    for slice_ in slices:
        for start in range(0, slice_.rows, most):
            yield min(most, slice_.rows - start), slice_


class _Waits:
    """Who waits where, as time goes by."""

    def __init__(self, rooms: Sequence[Room], now_ms: int) -> None:
        self._rooms = {room.level: room for room in rooms}
        self._now_ms = now_ms
        self._rows: Counter[str] = Counter()
        self._changes: dict[str, Counter[int]] = {}
        self._byte_changes: dict[str, Counter[int]] = {}

    def enter(self, level: str, rows: int, size: int, at_ms: int, wait_ms: int) -> None:
        """Let rows in, and out again when their time is up; at the ladder they come in any order."""
        if level not in self._changes:
            # How long those of today have waited is not known: as if they had just come.
            self._changes[level] = Counter({self._now_ms + wait_ms: -self._today(level)})
            self._byte_changes[level] = Counter({self._now_ms + wait_ms: -self._today_bytes(level)})
        for changes, count in ((self._changes[level], rows), (self._byte_changes[level], size)):
            changes[at_ms] += count
            changes[at_ms + wait_ms] -= count
        self._rows[level] += rows

    def forecast(self) -> tuple[LevelForecast, ...]:
        """What came of it, in the order of the levels; of the steps of a ladder, those that anything waits at."""
        names = dict.fromkeys((*self._rooms, *self._changes))
        return tuple(
            LevelForecast(
                self._rooms.get(level, Room(level)),
                self._rows[level],
                _peak(self._changes.get(level, {}), self._today(level)),
                _peak(self._byte_changes.get(level, {}), self._today_bytes(level)),
            )
            for level in names
            if "." not in level or self._rows[level]
        )

    def _today(self, level: str) -> int:
        return (self._rooms[level].waiting or 0) if level in self._rooms else 0

    def _today_bytes(self, level: str) -> int:
        return self._rooms[level].waiting_bytes if level in self._rooms else 0


def _peak(changes: Mapping[int, int], today: int) -> int:
    return max(accumulate((changes[at] for at in sorted(changes)), initial=today))
