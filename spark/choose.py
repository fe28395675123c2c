"""The way of a row: into a level, straight to the exit, or nowhere today."""

from delayctl.publishers.choice import NoSuchDelay, Rounding, Way, Ways
from delayctl.spark.rows import Row
from delayctl.topology.duration import Duration
from delayctl.topology.wording import quoted

_MOST_CACHED = 4_096


class Beyond(NoSuchDelay):
    """A row is due later than the longest level waits."""


class Chooser:
    """Chooses by the levels of a topology."""

    def __init__(self, ways: Ways, rounding: Rounding) -> None:
        self._ways = ways
        self._rounding = rounding
        self._delays: dict[str, tuple[Way, int]] = {}

    def check(self, *, delay: str | None, level: str | None) -> None:
        """Make sure that there is a way for what all rows have in common."""
        if level is not None:
            self._ways.at_level(level)
        if delay is not None:
            wait_ms = _parsed(delay)
            self._check_is_within(wait_ms)
            self._ways.for_wait(wait_ms, self._rounding)  # All rows wait as long: it can say which levels there are.

    def choose(self, row: Row, now_ms: int) -> tuple[Way, int]:
        """The way of a row that is sent now, and when it is due; raises NoSuchDelay where there is none."""
        if row.due_ms is not None:
            return self._for_wait(row.due_ms - now_ms), row.due_ms
        if row.exchange is not None:
            return Way(row.exchange), 0
        if row.level is not None:
            way = self._ways.at_level(row.level)
            return way, now_ms + way.wait_ms
        if isinstance(row.delay, int):
            return self._for_wait(row.delay), now_ms + row.delay
        text = "0s" if row.delay is None else row.delay
        way, wait_ms = self._delays.get(text) or self._read(text)
        return way, now_ms + wait_ms

    def _for_wait(self, wait_ms: int) -> Way:
        self._check_is_within(wait_ms)
        try:
            return self._ways.for_wait(wait_ms, self._rounding)
        except NoSuchDelay as error:  # One reason for all rows: each has another wait, and is kept with it.
            raise NoSuchDelay("no level waits exactly this long", fix=error.fix) from error

    def _check_is_within(self, wait_ms: int) -> None:
        if wait_ms > self._ways.longest_ms:
            raise Beyond(
                f"due later than the longest level ({Duration(self._ways.longest_ms)}) waits",
                fix="put such rows aside for a later run, or add a longer level, or more steps to the ladder",
            )

    def _read(self, text: str) -> tuple[Way, int]:
        wait_ms = _parsed(text)
        found = self._for_wait(wait_ms), wait_ms
        if len(self._delays) < _MOST_CACHED:
            self._delays[text] = found
        return found


def _parsed(text: str) -> int:
    try:
        return Duration.parse(text).ms
    except ValueError as error:
        raise NoSuchDelay(f"{quoted(text)} is not a delay", fix="write it as 500ms, 10s, 1m30s, 2h or 1d") from error
