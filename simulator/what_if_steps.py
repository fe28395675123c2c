"""How finely time passes in a run: as finely as is quick, in steps that go together with the waits that people choose."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
ROUND_TIMES = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(_SECOND * n for n in (1, 2, 5, 10, 15, 30)),
    *(_MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * n for n in (1, 2, 3, 6, 12)),
    *(_DAY * n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)),
)
_QUICK = 20_000  # Comings and goings that take well under a second.
_FINE = 200_000  # As many as a short wait in a long run is worth.
_LONG = 1_000_000  # More is for runs that would be wrong otherwise.
MOST = 5_000_000  # More is refused.
_PER_WAIT = 20
_FEWEST_PER_WAIT = 10  # With fewer, a wait that is rounded up to a step would fill queues that have room.
_FEWEST_EXACT = 2  # In steps that go into every wait nothing is rounded.
_FINER, _MOST_TRIED = 4, 10_000  # How much shorter a step may be for that, and how long to look for it.


@dataclass(frozen=True, slots=True)
class Work:
    """What there is to do in a run of this length: each stream's arrivals, and the queues that they come through."""

    length: int
    streams: Sequence[tuple[int, int]]  # How many arrivals, through how many queues.
    is_paced: bool = False  # Whether there are consumers that have to be looked at in every step.
    most: int = MOST  # Comings and goings that somebody would wait for.

    def cost(self, step: int) -> int:
        """How many comings and goings steps of this length make."""
        steps = self.length // step + 1
        return sum(min(arrivals, steps) * queues for arrivals, queues in self.streams) + steps * self.is_paced

    def is_too_much(self, step: int) -> bool:
        """Say whether nobody would want to wait for it."""
        return self.cost(step) > self.most

    def longest(self, step: int) -> int:
        """About how long a run may be in steps of this length."""
        per_step = sum(queues for _, queues in self.streams) + self.is_paced
        return self.most // max(per_step, 1) * step

    def step(self, waits: Sequence[int] = ()) -> int:
        """The step to take: quick, but finer where a wait is short, however much that costs."""
        quick, fine = self._cheapest(_QUICK), self._cheapest(_FINE)
        waits = [wait for wait in waits if wait]
        if not waits:
            return quick
        step = min(max(min(quick, _longest(waits, _PER_WAIT)), fine), self._coarsest(waits))
        exact = _exact(waits, step)
        return step if exact is None or self.is_too_much(exact) else exact

    def _coarsest(self, waits: Sequence[int]) -> int:
        """The longest step that waits are told rightly in."""
        coarsest, exact = _longest(waits, _FEWEST_PER_WAIT), _exact(waits, min(waits) // _FEWEST_EXACT)
        return coarsest if exact is None or self.cost(coarsest) <= _LONG else max(coarsest, exact)

    def _cheapest(self, most: int) -> int:
        """The finest step that costs no more than this; where there is none, the coarsest."""
        return next((step for step in ROUND_TIMES if self.cost(step) <= most), ROUND_TIMES[-1])


def _longest(waits: Sequence[int], count: int) -> int:
    """The longest round step that the shortest wait has so many of."""
    return max((step for step in ROUND_TIMES if step * count <= min(waits)), default=1)


def _exact(waits: Sequence[int], most: int) -> int | None:
    """The longest step up to this one that goes into every wait; None where it would be a small part of it."""
    common = gcd(*waits)
    fewest = -(-common // max(most, 1))
    tried = range(fewest, fewest + min(_FINER * fewest, _MOST_TRIED))
    return next((common // number for number in tried if common % number == 0), None)
