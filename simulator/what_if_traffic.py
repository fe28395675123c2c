"""What is published when: even rates, bursts, or counts at times, on a grid of steps."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import lcm

from delayctl.topology.rate import Rate
from delayctl.topology.routing import Message

_FINEST = 10**9  # Parts of a message that are carried over; with more, thousands of odd rates would take ever longer.
Arrivals = Iterator[tuple[int, int]]  # Times in milliseconds, each with how many messages come.


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, its end not included."""

    start: int
    end: int

    def overlap(self, start: int, end: int) -> int:
        """How long it and another stretch last together."""
        return max(min(self.end, end) - max(self.start, start), 0)


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same stretches of time, none of which touches another."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if found and span.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return tuple(found)


def next_outside(spans: Iterable[Span], time: int) -> int:
    """The first time from this one on that is in none of these stretches, which are merged."""
    return next((span.end for span in spans if span.start <= time < span.end), time)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages that come evenly: the first after one part of the rate, the last at the end."""

    span: Span
    rate: Rate


@dataclass(frozen=True, slots=True)
class Lump:
    """Messages that come at once."""

    time: int
    count: int


@dataclass(frozen=True)
class Stream:
    """Messages that are published alike."""

    exchange: str
    message: Message
    stretches: tuple[Stretch, ...] = ()
    lumps: tuple[Lump, ...] = field(default=(), repr=False)  # Sorted by time.
    is_made_up: bool = False  # Nobody named the key.

    @property
    def end(self) -> int:
        """When the last one has come."""
        return max(
            (*(stretch.span.end for stretch in self.stretches), *(lump.time for lump in self.lumps[-1:])), default=0
        )

    @property
    def count(self) -> int:
        """At how many different times they come, at most."""
        evenly = sum(stretch.rate.per_second * (stretch.span.end - stretch.span.start) for stretch in self.stretches)
        return int(evenly / 1000) + len(self.lumps)

    def arrivals(self, step: int) -> Arrivals:
        """When how many come, each time rounded up to a step."""
        yield from _evenly(self.stretches, step)
        yield from _at_once(self.lumps, step)


def with_bursts(rate: Rate | None, length: int, bursts: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """A rate over a length of time, with bursts in its place while they last; of two at a time the later named counts."""
    times = sorted({0, length, *(t for burst in bursts for t in (burst.span.start, burst.span.end))})
    stretches = []
    for start, end in pairwise(times):
        covering = [burst.rate for burst in bursts if burst.span.start <= start < burst.span.end]
        usual = rate if start < length else None
        if (found := covering[-1] if covering else usual) is not None:
            stretches.append(Stretch(Span(start, end), found))
    return tuple(stretches)


def _evenly(stretches: Iterable[Stretch], step: int) -> Arrivals:
    """The part of a message that is left at the end of a stretch is taken into the next."""
    left = Fraction(0)
    for stretch in stretches:
        rate = stretch.rate.per_second / 1000
        unit = lcm(rate.denominator, left.denominator)
        per_ms, before = int(rate * unit), int(left * unit)
        start, end, seen = stretch.span.start, stretch.span.end, 0
        # The first moment at which one more has come, and the end of the step that it is in.
        while (following := start - (before - (seen + 1) * unit) // per_ms) <= end:
            now = min(-(-following // step) * step, end)
            come = (before + per_ms * (now - start)) // unit
            yield -(-now // step) * step, come - seen
            seen = come
        left = (left + rate * (end - start) - seen).limit_denominator(_FINEST)


def _at_once(lumps: Iterable[Lump], step: int) -> Arrivals:
    now, come = 0, 0
    for lump in lumps:
        time = -(-lump.time // step) * step
        if time != now and come:
            yield now, come
            come = 0
        now, come = time, come + lump.count
    if come:
        yield now, come
