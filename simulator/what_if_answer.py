"""What came out of a run: the account of every queue, and of what reached none."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from delayctl.simulator.flow_counts import Series, Spread
from delayctl.simulator.what_if_traffic import Span
from delayctl.topology.journey import Fate
from delayctl.topology.model import Queue


@dataclass(slots=True)
class Occurrence:
    """Messages that something befell, from when to when."""

    count: int = 0
    first: int | None = None
    last: int | None = None
    gap: int = field(default=0, compare=False)  # What is no further apart than this is one stretch.
    stretches: list[Span] = field(default_factory=list, compare=False)

    def add(self, now: int, count: int) -> None:
        """Count so many more."""
        self.count += count
        if self.stretches and now - self.stretches[-1].end <= self.gap:
            self.stretches[-1] = Span(self.stretches[-1].start, now)
        else:
            self.stretches.append(Span(now, now))
        self.first = now if self.first is None else self.first
        self.last = now


@dataclass(slots=True)
class Account:
    """A queue over a run: arrived = expired + early + consumed + refused + still waiting (+ lost in a full target).

    Times are milliseconds from the beginning. `early` says by how much messages left before their time here; `late` by
    how much they were taken by consumers after the time that their publisher had in mind, early ones below zero.
    """

    queue: Queue
    series: Series
    arrived: int = 0
    expired: int = 0
    consumed: int = 0
    waiting: int = 0
    waiting_when_traffic_ends: int = 0
    peak: int = 0
    peak_at: int = 0
    full_from: int | None = None
    empty_at: int | None = None
    early: Spread = field(default_factory=Spread)
    left_early: Occurrence = field(default_factory=Occurrence)
    refused: Occurrence = field(default_factory=Occurrence)
    lost: Occurrence = field(default_factory=Occurrence)  # Dead-lettered to it while it was full and refused.
    late: Spread = field(default_factory=Spread)
    longest_wait: int = 0  # Of what was consumed.

    def note(self, now: int, length: int) -> None:
        """Take down how many wait from now on."""
        self.series.record(now, length)
        if length > self.peak:
            self.peak, self.peak_at = length, now
        if not length and self.waiting:
            self.empty_at = now
        self.waiting = length


def order_of(account: Account) -> tuple[bool, int, str]:
    """What accounts are sorted by: short waits first, then long ones, then queues that nothing waits in."""
    ttl = account.queue.settings.ttl
    return ttl is None, 0 if ttl is None else ttl.ms, account.queue.name


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole run: its queues by name, the most that waited in all of them together, and when it was over."""

    accounts: Mapping[str, Account]
    ends: Mapping[Fate, int]  # Of copies that reached no queue.
    published: int
    held: Occurrence  # What publishers kept until the broker was back.
    failed: Occurrence  # What publishers gave up while it was away.
    peak: int
    peak_at: int
    traffic_ends: int
    end: int
    step: int
