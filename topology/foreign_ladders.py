"""Ladders of delays that other products build: a queue for every power of two, one bit of the delay after the other."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from delayctl.topology.duration import Duration
from delayctl.topology.live import Live
from delayctl.topology.model import Queue

LEVELS = 28  # Both products use as many bits.
_FEWEST = 2  # Levels that must be right before a name is believed.


@dataclass(frozen=True, slots=True)
class Ladder:
    """One product's ladder as it is on the broker; what it lacks are levels that are missing or not as they should be."""

    product: str
    delivery: str
    exchanges: frozenset[str]
    queues: frozenset[str]
    lacks: tuple[str, ...]
    targets: tuple[str, ...]  # Where it delivers to.

    @property
    def levels(self) -> int:
        """How many of its levels are there and as they should be."""
        return LEVELS - sum(name != self.delivery for name in self.lacks)

    @property
    def longest(self) -> Duration:
        """The longest delay of a ladder that lacks nothing: all bits set."""
        return Duration((2**LEVELS - 1) * 1000)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a product names its levels: a family that all share, and a number of so many digits."""

    product: str
    pattern: re.Pattern[str]
    digits: int

    def level(self, family: str, number: int) -> str:
        """The name of a level's exchange and queue."""
        return f"{family}{number:0{self.digits}d}"


# Their delivery exchange is the family with another end.
_KINDS = (
    _Kind("NServiceBus", re.compile(r"(nsb\.(?:v2\.)?delay-level-)\d\d"), 2),
    _Kind("Celery (kombu's native delayed delivery)", re.compile(r"((?:.+_)?celery_delayed_)\d\d?"), 1),
)
_END = re.compile(r"(level-)?$")


def find_ladders(live: Live, prefix: str = "") -> tuple[Ladder, ...]:
    """Find the ladders of NServiceBus and kombu whose names begin with the prefix."""
    names = [name for name in live.queues.keys() | live.exchanges.keys() if name.startswith(prefix)]
    families: Mapping[_Kind, set[str]] = defaultdict(set)
    for name in names:
        for kind in _KINDS:
            if match := kind.pattern.fullmatch(name):
                families[kind].add(match[1])
    found = (_ladder(kind, family, live) for kind in _KINDS for family in sorted(families[kind]))
    return tuple(ladder for ladder in found if ladder)


def _ladder(kind: _Kind, family: str, live: Live) -> Ladder | None:
    delivery = _END.sub("delivery", family, count=1)
    names = [kind.level(family, number) for number in range(LEVELS)]
    right = {name for number, name in enumerate(names) if _is_level(name, number, [delivery, *names][number], live)}
    if len(right) < _FEWEST:
        return None
    lacks = [name for name in names if name not in right]
    lacks += [delivery] if delivery not in live.exchanges else []
    ways_on = (b for b in live.bindings_at("exchange", delivery) if b.source == delivery)
    return Ladder(
        kind.product,
        delivery,
        frozenset({delivery, *names} & live.exchanges.keys()),
        frozenset(live.queues.keys() & set(names)),
        tuple(lacks),
        tuple(sorted({binding.destination for binding in ways_on})),
    )


def _is_level(name: str, number: int, below: str, live: Live) -> bool:
    queue = live.queues.get(name)
    return queue is not None and name in live.exchanges and _waits(queue, number, below)


def _waits(queue: Queue, number: int, below: str) -> bool:
    settings = queue.settings
    return settings.ttl == Duration(2**number * 1000) and settings.dead_letter_exchange == below
