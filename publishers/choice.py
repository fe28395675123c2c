"""Which level a wanted delay becomes."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.model import Level
from delayctl.topology.wording import did_you_mean, quoted

Rounding = Literal["refuse", "nearest", "up", "down"]
ROUNDINGS: tuple[Rounding, ...] = ("refuse", "nearest", "up", "down")


class NoSuchDelay(DelayctlError):
    """No level fits the delay that was asked for."""


@dataclass(frozen=True, slots=True)
class Way:
    """Where a message is published, and how long it waits there."""

    exchange: str
    level: str | None = None  # None: it does not wait.
    wait_ms: int = 0


class Ways:
    """The levels of a topology, ready to be chosen from."""

    def __init__(self, exit: str, levels: Iterable[Level]) -> None:
        self._exit = Way(exit)
        self._ways = [
            Way(level.entrance, level.name, level.ttl.ms) for level in sorted(levels, key=lambda level: level.ttl)
        ]
        self._waits = [way.wait_ms for way in self._ways]
        self._by_name = {way.level: way for way in self._ways}

    @property
    def exchanges(self) -> tuple[str, ...]:
        """Every exchange that may be published to."""
        return (self._exit.exchange, *(way.exchange for way in self._ways))

    def at_level(self, name: str) -> Way:
        """The way through a level."""
        way = self._by_name.get(name)
        if way is None:
            names = [way.level for way in self._ways if way.level]
            raise NoSuchDelay(
                f"there is no level {quoted(name)}{did_you_mean(name, names)}", fix=f"use one of: {', '.join(names)}"
            )
        return way

    def for_wait(self, wait_ms: int, rounding: Rounding) -> Way:
        """The way that waits this long, or about this long; what is due already does not wait."""
        if wait_ms <= 0:
            return self._exit
        above = bisect_left(self._waits, wait_ms)
        if above < len(self._waits) and self._waits[above] == wait_ms:
            return self._ways[above]
        chosen = self._rounded(wait_ms, above, rounding)
        if chosen is None:
            known = ", ".join(str(Duration(wait)) for wait in self._waits)
            raise NoSuchDelay(
                f"no level waits {Duration(wait_ms)}",
                fix=f"use one of {known or 'none'}, or choose rounding: nearest, up or down",
            )
        return chosen

    def _rounded(self, wait_ms: int, above: int, rounding: Rounding) -> Way | None:
        lower = self._ways[above - 1] if above else self._exit
        upper = self._ways[above] if above < len(self._ways) else None
        if rounding == "down":
            return lower
        if rounding == "up":
            return upper
        if rounding == "nearest":
            return lower if upper is None or wait_ms - lower.wait_ms < upper.wait_ms - wait_ms else upper
        return None
