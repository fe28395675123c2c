"""How late messages came, counted within bounds. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from delayctl.topology.exposition import Histogram

# Seconds: a broker at ease is late by milliseconds, a consumer that can't keep up by minutes.
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


class Counts:
    """Counts of what was late by so much; what came early was late by nothing."""

    def __init__(self, bounds_s: Sequence[float] = BOUNDS_S) -> None:
        self._bounds = tuple(bounds_s)
        self._within = [0] * (len(self._bounds) + 1)
        self._total_ms = 0

    def add(self, late_ms: int) -> None:
        """Count one that came so late."""
        late = max(0, late_ms)
        self._within[bisect_left(self._bounds, late / 1000)] += 1
        self._total_ms += late

    def histogram(self) -> Histogram:
        """All that was counted so far."""
        return Histogram(self._bounds, tuple(accumulate(self._within)), self._total_ms / 1000)


def joined(earlier: Histogram, later: Histogram) -> Histogram:
    """Two histograms of the same bounds as one."""
    counts = tuple(one + other for one, other in zip(earlier.counts, later.counts, strict=True))
    return Histogram(later.bounds, counts, earlier.total + later.total)
