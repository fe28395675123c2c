"""Which level a wanted delay becomes, or which steps of the ladder."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.ladder import most_steps, most_units, steps_needed, units_for
from delayctl.topology.model import Ladder, Level, Topology
from delayctl.topology.names import ANY
from delayctl.topology.wording import did_you_mean, quoted

Rounding = Literal["refuse", "nearest", "up", "down"]
_MOST_MS = 1 << 62  # When it is due, too, is a number of 64 bits.
ROUNDINGS: tuple[Rounding, ...] = ("refuse", "nearest", "up", "down")


class NoSuchDelay(DelayctlError):
    """No level fits the delay that was asked for."""


class BeyondLadder(NoSuchDelay):
    """The ladder ends before the delay that was asked for; so many `steps` would do."""

    def __init__(self, wait: Duration, unit: Duration, longest: Duration) -> None:
        self.wait, self.longest = wait, longest
        self.steps = steps_needed(units_for(wait.ms, unit))
        fix = f"write steps: {self.steps} in delay.any and apply it, or choose a shorter delay"
        if self.steps > most_steps(unit):
            fix = f"choose a shorter delay, or a longer unit: no ladder with a unit of {unit} waits so long"
        super().__init__(f"{wait} is beyond the ladder, which ends at {longest}", fix=fix)


@dataclass(frozen=True, slots=True)
class Way:
    """Where a message is published, and how long it waits there."""

    exchange: str
    level: str | None = None  # None: it does not wait.
    wait_ms: int = 0
    units: int = 0  # How much of it at the ladder.


class Ways:
    """The levels of a topology and its ladder, ready to be chosen from."""

    def __init__(self, exit: str, levels: Iterable[Level], ladder: Ladder | None = None) -> None:
        self._ladder = ladder
        self._exit = Way(exit)
        self._ways = [
            Way(level.entrance, level.name, level.ttl.ms) for level in sorted(levels, key=lambda level: level.ttl)
        ]
        self._waits = [way.wait_ms for way in self._ways]
        self._by_name = {way.level: way for way in self._ways}
        self._by_wait = {way.wait_ms: way for way in reversed(self._ways)}
        self._ladder_ms = ladder.unit.ms * most_units(len(ladder.rungs)) if ladder else 0

    @classmethod
    def of(cls, topology: Topology) -> "Ways":
        """The ways of a topology."""
        return cls(topology.exit, topology.levels, topology.ladder)

    @property
    def exchanges(self) -> tuple[str, ...]:
        """Every exchange that may be published to, and the last gate: where it is missing, the ladder on the broker is shorter.

        None where there are no delays: then there is no exit either.
        """
        if not (self._ways or self._ladder):
            return ()
        ladder = (self._ladder.entrance, self._ladder.rungs[-1].gate) if self._ladder else ()
        return (self._exit.exchange, *(way.exchange for way in self._ways), *ladder)

    @property
    def levels(self) -> tuple[Way, ...]:
        """The ways through levels, the shortest first."""
        return tuple(self._ways)

    @property
    def longest_ms(self) -> int:
        """The longest wait, at a level or at the ladder; 0 where there is none."""
        return max(self._waits[-1] if self._waits else 0, self._ladder_ms)

    def at_level(self, name: str) -> Way:
        """The way through a level."""
        way = self._by_name.get(name)
        if way is None:
            names = [way.level for way in self._ways if way.level]
            fix = f"use one of: {', '.join(names)}" if names else "give a delay or a due time instead"
            raise NoSuchDelay(f"there is no level {quoted(name)}{did_you_mean(name, names)}", fix=fix)
        return way

    def for_wait(self, wait_ms: int, rounding: Rounding) -> Way:
        """The way that waits this long, or about this long; what is due already does not wait.

        The ladder takes what no level does, and counts the last unit whole.
        """
        if wait_ms <= 0:
            return self._exit
        above = bisect_left(self._waits, wait_ms)
        if above < len(self._waits) and self._waits[above] == wait_ms:
            return self._ways[above]
        if self._ladder and wait_ms <= self._ladder_ms:
            return self._climb(wait_ms, self._ladder)
        chosen = self._rounded(wait_ms, above, rounding)
        if chosen is None and self._ladder:
            raise BeyondLadder(Duration(wait_ms), self._ladder.unit, Duration(self._ladder_ms))
        if chosen is None:
            raise NoSuchDelay(f"no level waits {Duration(wait_ms)}", fix=self._instead(above))
        return chosen

    def _instead(self, above: int) -> str:
        """What to do where no level fits; so many are shorter."""
        if not self._waits:
            return "add levels to the topology, and apply it"
        known = ", ".join(str(Duration(wait)) for wait in self._waits)
        if above < len(self._waits):
            return f"use one of {known}, or choose rounding: nearest, up or down"
        return f"use one of {known}, choose rounding: nearest or down, or add a longer level and apply it"

    def _climb(self, wait_ms: int, ladder: Ladder) -> Way:
        units = units_for(wait_ms, ladder.unit)
        whole_ms = units * ladder.unit.ms
        level = self._by_wait.get(whole_ms)  # One queue is a shorter way than several.
        return level or Way(ladder.entrance, ANY, whole_ms, units)

    def _rounded(self, wait_ms: int, above: int, rounding: Rounding) -> Way | None:
        if wait_ms > _MOST_MS:
            return None
        lower = self._ways[above - 1] if above else self._exit
        if self._ladder and lower.wait_ms < self._ladder_ms:
            lower = self._climb(self._ladder_ms, self._ladder)
        upper = self._ways[above] if above < len(self._ways) else None
        if rounding == "down":
            return lower
        if rounding == "up":
            return upper
        if rounding == "nearest":
            return lower if upper is None or wait_ms - lower.wait_ms < upper.wait_ms - wait_ms else upper
        return None
