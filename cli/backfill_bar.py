"""What is seen of a backfill while it runs; nobody but a terminal sees the bar."""

import shutil
import sys
import time

import click
from delayctl.topology.duration import Duration

_BAR = 24
_STOPPING = "Stopping: what is on its way is confirmed and written down first. Ctrl-C once more kills it."


class Bar:
    """A line on stderr that is drawn again and again: what is being done, then how far it is."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()
        self._is_shown = False
        self._is_stopping = False
        self._first: tuple[float, int] | None = None  # When the first confirmations were seen, and how many.
        self._last: tuple[float, int] = (0.0, 0)  # The same of the last: they come in blocks.

    def phase(self, what: str) -> None:
        """Say what is being done."""
        self._draw(f"{what} …")

    def notice(self, what: str) -> None:
        """Say it on a line that stays."""
        self.clear()
        click.echo(what, err=True)

    def progress(self, confirmed: int, total: int) -> None:
        """Draw how far it is; until the first confirmation, Spark is still sorting."""
        if confirmed == self._last[1] or self._is_stopping:
            return
        self._last = time.monotonic(), confirmed
        self._first = self._first or self._last
        seconds, more = (last - first for last, first in zip(self._last, self._first, strict=True))
        self._draw(bar_text(confirmed, total, more / seconds if seconds else None))

    def stopping(self) -> None:
        """Say that Ctrl-C was heard."""
        self._is_stopping = True
        self.clear()
        click.echo(_STOPPING, err=True)

    def clear(self) -> None:
        """Take the line away, so that something else can be said."""
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._is_shown = False

    def _draw(self, text: str) -> None:
        if self._is_watched:
            # A line that is too long would wrap, and stay.
            fitting = text[: shutil.get_terminal_size().columns - 1]
            click.echo(f"\r\x1b[K{fitting}", nl=False, err=True)
            self._is_shown = True


def bar_text(confirmed: int, total: int, rate: float | None) -> str:
    """The bar as it is drawn; without a rate where nobody knows it yet."""
    share = min(1.0, confirmed / total) if total else 1.0
    full = int(share * _BAR)
    text = f"[{'#' * full}{'-' * (_BAR - full)}] {share:4.0%}  {confirmed:,} of {total:,}"
    if not rate:
        return text
    left = f", {_roughly((total - confirmed) / rate)} left" if confirmed < total else ""
    return f"{text}, {rate:,.0f}/s{left}"


def _roughly(seconds: float) -> str:
    """A time as far as it can be foretold: two places are enough."""
    unit = 3600 if seconds >= 86_400 else 60 if seconds >= 3600 else 1
    return str(Duration(max(1, round(seconds / unit)) * unit * 1000))
