"""Virtual time: integer milliseconds that move only when they are told to, and what is to happen at each."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

Action = Callable[[], object]
_FOREVER: Final = 2**60


class Timer:
    """Something that is to happen at a time; it can be cancelled until it has, and planned again after that."""

    __slots__ = ("action", "number", "time")

    def __init__(self, action: Action) -> None:
        self.action = action
        self.time = 0
        self.number = 0  # That of the plan that counts: all others were cancelled. 0 means that there is none.

    @property
    def is_pending(self) -> bool:
        """Whether it is still to happen."""
        return self.number != 0


class VirtualClock:
    """Time that passes in `advance`, `run_until` and `run` only. What is planned for one time happens in the order of planning.

    `now` never goes back. `wall` is what a computer's clock would show: it can be set, as such clocks are, and is
    `ahead` of `now` then.
    """

    def __init__(self, start: int = 0) -> None:
        self.now = start
        self.ahead = 0
        self._planned: list[tuple[int, int, Timer]] = []
        self._number = 0
        self._over = 0  # How many of these happened, or were cancelled.
        self._is_first_over = False  # Whether what happens just now is one of them, the first.
        self._watchers: list[Callable[[int, int], object]] = []

    @property
    def wall(self) -> int:
        """The time that a computer's clock shows."""
        # The same number where it can be: a million waiting messages note it.
        return self.now + self.ahead if self.ahead else self.now

    def set_wall(self, wall: int) -> None:
        """Set the computer's clock, forwards or back; what was planned is not moved by that."""
        before = self.wall
        self.ahead = wall - self.now
        for watcher in self._watchers:
            watcher(before, wall)

    def watch_wall(self, watcher: Callable[[int, int], object]) -> None:
        """Have a function called with the time before and after whenever the computer's clock is set."""
        self._watchers.append(watcher)

    def at(self, time: int, action: Action) -> Timer:
        """Plan an action for a time; one that has passed already means now, after what is planned for now."""
        timer = Timer(action)
        self.plan(timer, time)
        return timer

    def after(self, wait: int, action: Action) -> Timer:
        """Plan an action for so many milliseconds from now."""
        return self.at(self.now + wait, action)

    def plan(self, timer: Timer, time: int) -> None:
        """Have a timer do its work at a time or, where it is planned already, earlier: so one timer does for many waits."""
        if timer.number:
            if timer.time <= time:
                return
            self.cancel(timer)
        self._number = timer.number = number = self._number + 1
        timer.time = time = time if time > self.now else self.now
        if self._is_first_over:
            # It takes the place of what happens just now: mostly that was one of many waits, and this is the next.
            self._is_first_over = False
            self._over -= 1
            heapreplace(self._planned, (time, number, timer))
        else:
            heappush(self._planned, (time, number, timer))

    def cancel(self, timer: Timer) -> None:
        """Make sure that a timer does nothing; it may have done it already."""
        if not timer.number:
            return
        timer.number = 0
        self._over += 1
        # What is cancelled leaves the heap when its time comes, or when it is the larger part of it.
        if self._over > 64 and self._over * 2 > len(self._planned):
            self._planned[:] = [entry for entry in self._planned if entry[2].number == entry[1]]
            heapify(self._planned)
            self._over = 0
            self._is_first_over = False

    @property
    def next_time(self) -> int | None:
        """When something happens next; None where nothing is planned."""
        planned = self._planned
        while planned and planned[0][2].number != planned[0][1]:
            self._drop()
        return planned[0][0] if planned else None

    def _drop(self) -> None:
        heappop(self._planned)
        self._over -= 1
        self._is_first_over = False

    def step(self) -> bool:
        """Go to the next time at which something is planned and do one thing; says whether there was any."""
        time = self.next_time
        if time is None:
            return False
        timer = self._planned[0][2]
        timer.number = 0
        self._over += 1
        self._is_first_over = True
        self.now = time
        timer.action()
        return True

    def run_until(self, time: int) -> None:
        """Let everything happen that is planned up to a time, this time included; then it is that time."""
        if self._planned and self._planned[0][0] <= time:
            self._happen(time)
        if time > self.now:  # noqa: PLR1730 (`max` takes its time, and this is done before every message of a long run)
            self.now = time

    def advance(self, wait: int) -> None:
        """Let so many milliseconds pass."""
        self.run_until(self.now + wait)

    def run(self) -> None:
        """Let time pass until nothing is planned any more."""
        self._happen(_FOREVER)

    def _happen(self, until: int) -> None:
        """What `step` does, over and over; written out, as a long run spends much of its time here."""
        planned = self._planned
        while planned and planned[0][0] <= until:
            time, number, timer = planned[0]
            if timer.number != number:
                self._drop()
                continue
            timer.number = 0
            self._over += 1
            self._is_first_over = True
            self.now = time
            timer.action()
