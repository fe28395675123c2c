"""Arrivals from a file: lines of `time,count,key`, or of nothing but times. Bad lines are reported together."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise

from delayctl.cli.simulate_options import LONGEST_MS
from delayctl.simulator.what_if_traffic import Lump, Span, Stretch
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError, InvalidTopology, Location, Problem
from delayctl.topology.rate import Rate
from delayctl.topology.wording import quoted, shorten

Lumps = tuple[Lump, ...]
_HEADINGS = ("time", "timestamp", "at", "ts")
_COUNT_HEADINGS, _KEY_HEADINGS = ("count", "messages"), ("key", "routing_key")
_MOST_TIMES = 1_000_000  # Beyond this, times that are close to each other become one.
_MOST_PROBLEMS = 20
_MOST_AT_ONCE = 10**12
_EPOCH_MS_FROM = 10**11  # A larger number of seconds would be after the year 5000: these are milliseconds.
_LINE_FIX = "write time,count or time,count,key: 12.5,300 or 1m30s,300,order.created"
_ORDER_FIX = "write the columns in the order time,count,key; count and key may be left out"
_TIME_FIX = "write seconds (12.5), a duration (1m30s), a date (2026-11-16T12:00:00Z) or seconds since 1970"


def read_arrivals(lines: Iterable[str], file: str) -> dict[str | None, Lumps]:
    """Lumps by key, in order; None is the key of lines that name none. Dates count from the first of them."""
    reading = _Reading(file)
    reader = csv.reader(lines)
    try:
        for cells in _cells(reader):
            reading.take(reader.line_num, cells)
            if len(reading.problems) >= _MOST_PROBLEMS:
                break
    except csv.Error as error:
        reading.problems.append(Problem(f"the line can't be read: {error}", Location(file, reader.line_num), _LINE_FIX))
    if not reading.problems and not reading.counts:
        reading.problems.append(Problem("there are no arrivals in the file", Location(file), _LINE_FIX))
    if reading.problems:
        raise InvalidTopology(reading.problems)
    return reading.lumps()


def spread(lumps: Sequence[Lump]) -> tuple[Stretch, ...]:
    """Each lump evenly until the next begins; the last as long as the one before it."""
    if len(lumps) < 2:
        raise DelayctlError("one line can't be spread: nobody says until when", fix="add a line, or leave out --spread")
    times = [lump.time for lump in lumps]
    times.append(2 * times[-1] - times[-2])
    return tuple(
        Stretch(Span(start, end), Rate(Fraction(lump.count * 1000, end - start)))
        for lump, (start, end) in zip(lumps, pairwise(times), strict=True)
        if lump.count
    )


def even_interval(lumps: Sequence[Lump]) -> int | None:
    """How far apart lumps are, where that is always the same: these may be counts of intervals."""
    gaps = {later.time - earlier.time for earlier, later in pairwise(lumps)}
    return gaps.pop() if len(gaps) == 1 and len(lumps) > 2 else None


class _Reading:
    """What was read so far."""

    def __init__(self, file: str) -> None:
        self.problems: list[Problem] = []
        self.counts: dict[str | None, dict[int, int]] = {}
        self._file = file
        self._grain, self._times = 1, 0
        self._are_dates: bool | None = None

    def take(self, line: int, cells: list[str]) -> None:
        """Understand one line, or note what is wrong with it."""
        try:
            self._count(*_row(cells))
        except _Bad as error:
            self.problems.append(Problem(error.what, Location(self._file, line), error.fix))

    def lumps(self) -> dict[str | None, Lumps]:
        """All of it, from the beginning of time on."""
        begin = min(min(counts) for counts in self.counts.values()) if self._are_dates else 0
        return {
            key: tuple(Lump(time - begin, counts[time]) for time in sorted(counts))
            for key, counts in self.counts.items()
        }

    def _count(self, time: int, is_date: bool, count: int, key: str | None) -> None:
        if self._are_dates is not None and self._are_dates != is_date:
            raise _Bad("dates and times from the beginning are mixed", "write all times alike")
        self._are_dates = is_date
        counts = self.counts.setdefault(key, {})
        time = -(-time // self._grain) * self._grain
        self._times += time not in counts
        counts[time] = counts.get(time, 0) + count
        if self._times > _MOST_TIMES:
            self._coarsen()

    def _coarsen(self) -> None:
        self._grain *= 10
        self._times = 0
        for key, fine in self.counts.items():
            coarse: dict[int, int] = {}
            for time, count in fine.items():
                rounded = -(-time // self._grain) * self._grain
                coarse[rounded] = coarse.get(rounded, 0) + count
            self.counts[key] = coarse
            self._times += len(coarse)


class _Bad(Exception):
    """A line that can't be used."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


def _cells(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """The cells of every line, but for blank ones, remarks and a heading."""
    is_first = True
    for cells in rows:
        stripped = [cell.strip() for cell in cells]
        if not any(stripped) or stripped[0].startswith("#"):
            continue
        is_heading = is_first and stripped[0].lower() in _HEADINGS
        if not is_heading or _is_misplaced(stripped):
            yield stripped
        is_first = False


def _is_misplaced(cells: Sequence[str]) -> bool:
    """Say whether these are headings, and not in the order of the columns."""
    names = [cell.lower() for cell in cells[:3]]
    expected = (_HEADINGS, _COUNT_HEADINGS, _KEY_HEADINGS)
    known = [next((i for i, words in enumerate(expected) if name in words), None) for name in names]
    return any(place is not None and place != i for i, place in enumerate(known)) and not _has_number(names)


def _has_number(names: Sequence[str]) -> bool:
    """Say whether a line has a number in it: then its other words are values."""
    return any(char.isdecimal() for name in names for char in name)


def _row(cells: list[str]) -> tuple[int, bool, int, str | None]:
    if len(cells) > 3:
        raise _Bad(f"{len(cells)} columns are more than time, count and key", _LINE_FIX)
    try:
        time, is_date = _time(cells[0])
    except _Bad as error:
        raise _meant(cells, error) from error
    count = _messages(cells[1]) if len(cells) > 1 and cells[1] else 1
    return time, is_date, count, (cells[2] or None) if len(cells) > 2 else None


def _meant(cells: Sequence[str], error: _Bad) -> _Bad:
    """What is wrong with a line that does not begin with a time, if it is more than that."""
    if len(cells) == 1 and ";" in cells[0]:
        return _Bad("the columns are separated by semicolons", _LINE_FIX)
    if _is_misplaced(cells):
        return _Bad(f"the columns are {', '.join(map(shorten, cells))}", _ORDER_FIX)
    return error


def _time(text: str) -> tuple[int, bool]:
    """A time in milliseconds, and whether it counts from 1970."""
    if text.startswith("-"):
        raise _Bad(f"{quoted(text)} is before the beginning", _TIME_FIX)
    try:
        seconds = float(text)
        if seconds * 1000 > LONGEST_MS:
            return (round(seconds) if seconds >= _EPOCH_MS_FROM else round(seconds * 1000)), True
        return round(seconds * 1000), False
    except OverflowError as error:
        raise _Bad(f"{quoted(text)} is not a time", _TIME_FIX) from error
    except ValueError:
        return _duration_or_date(text)


def _duration_or_date(text: str) -> tuple[int, bool]:
    try:
        ms = Duration.parse(text).ms
    except ValueError:
        return _date(text), True
    if ms > LONGEST_MS:
        raise _Bad(f"{quoted(text)} is more than ten years", _TIME_FIX)
    return ms, False


def _date(text: str) -> int:
    try:
        date = datetime.fromisoformat(text)
        return round((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise _Bad(f"{quoted(text)} is not a time", _TIME_FIX) from error


def _messages(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or int(text) > _MOST_AT_ONCE:
        raise _Bad(f"{quoted(text)} is not a number of messages", _LINE_FIX)
    return int(text)
