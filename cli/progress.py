"""A bar on stderr while a file is read; nobody but a terminal sees it."""

import os
import stat
import sys
import time
from types import TracebackType
from typing import IO

_EVERY_S = 0.1
_WIDTH = 30


class Progress:
    """How far a file was read and how many of its messages are confirmed. `with` takes the bar away at the end."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._size = _size_of(source)
        self._is_watched = sys.stderr.isatty()
        self._started = self._next = time.monotonic()
        self._is_shown = False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.clear()

    def show(self, confirmed: int) -> None:
        """Draw the bar, now and then."""
        if not self._is_watched or (now := time.monotonic()) < self._next:
            return
        self._next, self._is_shown = now + _EVERY_S, True
        share = min(1.0, self._source.tell() / self._size) if self._size else None
        sys.stderr.write(f"\r\x1b[K{bar(share, confirmed, now - self._started)}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the bar away, so that something else can be said."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_shown = False


def bar(share: float | None, confirmed: int, seconds: float) -> str:
    """The bar as it is drawn; without a share where nobody knows how much there is."""
    rate = f"{confirmed:,} confirmed, {confirmed / seconds:,.0f}/s" if seconds > 0 else f"{confirmed:,} confirmed"
    if share is None:
        return rate
    full = int(share * _WIDTH)
    return f"[{'#' * full}{'-' * (_WIDTH - full)}] {share:4.0%}  {rate}"


def _size_of(source: IO[bytes]) -> int:
    """The size of a plain file; 0 for all else."""
    try:
        found = os.fstat(source.fileno())
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
