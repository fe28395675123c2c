"""Queues that expire when nobody uses them."""

from collections.abc import Callable

from delayctl.simulator.clock import VirtualClock


class IdleTime:
    """Counts how long a queue was neither consumed from, nor asked, nor declared; when it is over, it says so once."""

    def __init__(self, clock: VirtualClock, *, is_used: Callable[[], bool], on_over: Callable[[], object]) -> None:
        self._clock = clock
        self._is_used = is_used
        self._on_over = on_over
        self._limit: int | None = None
        self._used_at = clock.now

    def touch(self) -> None:
        """Begin anew."""
        self._used_at = self._clock.now

    def limit_to(self, limit: int | None) -> None:
        """Set how long that may be; None for as long as it likes."""
        is_watched, self._limit = self._limit is not None, limit
        if limit is not None and not is_watched:
            self.touch()
            self._clock.after(limit, self._check)

    def _check(self) -> None:
        if self._limit is None:
            return
        if self._is_used():
            self.touch()
        due = self._used_at + self._limit
        if due > self._clock.now:
            self._clock.at(due, self._check)
        else:
            self._limit = None
            self._on_over()
