"""The machine's two clocks, one of which people and hypervisors set: brokers let classic messages go by that one."""

import threading
import time
from bisect import bisect_right

_EVERY_S = 0.005
_STEP_MS = 2  # Less is how long it takes to read both.


class ClockWatch:
    """Watches how far the time of day gains on the time that only passes, until the block ends. All in milliseconds."""

    def __init__(self) -> None:
        self._times, self._offsets = [now_ms()], [_offset_ms()]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "ClockWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def gained(self, since_ms: float, until_ms: float) -> int:
        """How far ahead of where it was at first the time of day has been, at most, between these two moments."""
        first = max(0, bisect_right(self._times, since_ms) - 1)
        last = max(first + 1, bisect_right(self._times, until_ms))
        return max(self._offsets[first:last]) - self._offsets[first]

    @property
    def steps(self) -> list[int]:
        """By how much the clock was set, each time."""
        return [after - before for before, after in zip(self._offsets, self._offsets[1:], strict=False)]

    def _look(self) -> None:
        while not self._is_over.wait(_EVERY_S):
            offset = _offset_ms()
            if abs(offset - self._offsets[-1]) >= _STEP_MS:
                self._times.append(now_ms())
                self._offsets.append(offset)


def now_ms() -> int:
    """The time that only passes."""
    return time.monotonic_ns() // 1_000_000


def _offset_ms() -> int:
    """What the time of day is ahead of it; read again where this thread was held up in between."""
    while True:
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if after - before < 1_000_000:
            return (wall - before) // 1_000_000
