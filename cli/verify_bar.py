"""What is seen of canaries while they are on their way; nobody but a terminal sees it."""

import shutil
import sys
from types import TracebackType

import click
from delayctl.topology.duration import Duration
from delayctl.topology.wording import plural

_BAR = 24


class Bar:
    """A line on stderr that is drawn again and again. `with` takes it away at the end."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()
        self._is_shown = False

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)

    def show(self, over: int, total: int, left_s: float) -> None:
        """Draw how many have come or were refused."""
        if self._is_watched:
            # A line that is too long would wrap, and stay.
            fitting = bar_text(over, total, left_s)[: shutil.get_terminal_size().columns - 1]
            click.echo(f"\r\x1b[K{fitting}", nl=False, err=True)
            self._is_shown = True


def bar_text(over: int, total: int, left_s: float) -> str:
    """The line as it is drawn."""
    full = int(over / total * _BAR) if total else _BAR
    left = Duration(round(left_s) * 1000)
    return f"[{'#' * full}{'-' * (_BAR - full)}] {over:,} of {plural(total, 'canary')} answered, {left} left at most"
