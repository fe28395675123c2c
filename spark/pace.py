"""Not faster than so many a second."""

import time
from collections.abc import Callable

_LOOKS_PER_S = 50
_CATCH_UP_S = 0.1  # Sleeps take longer than they are told to, and would add up.


class Pace:
    """Makes its caller wait, so that it goes on `rate` times a second and never catches up more than a moment."""

    def __init__(
        self,
        rate: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._step = 0 if rate is None else max(1, int(rate / _LOOKS_PER_S))
        self._clock, self._sleep = clock, sleep
        self._count = 0
        self._next = clock()

    def step(self) -> None:
        """Wait until one more may go."""
        if self._rate is None:
            return
        if self._count == 0:
            self._wait(self._step / self._rate)
        self._count = (self._count + 1) % self._step

    def _wait(self, span_s: float) -> None:
        now = self._clock()
        if now < self._next:
            self._sleep(self._next - now)
        self._next = max(self._next, now - _CATCH_UP_S) + span_s
