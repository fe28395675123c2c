"""Canaries as values: the ways that are to be proved, what became of what was sent there, and what that proves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from delayctl.topology.duration import Duration

CANARY = "delay-canary"  # The header of every canary: the run that sent it. DelayConsumer acknowledges them unseen.

Kind = Literal["exit", "level", "shard", "rung", "ladder", "route"]
How = Literal["canaries", "hastened", "structure"]


@dataclass(frozen=True)
class Probe:
    """One way to be proved: where a canary is published, how it comes out, and which queues it waits in."""

    kind: Kind
    name: str
    exchange: str
    key: str
    wait: Duration
    queues: tuple[str, ...] = ()
    headers: Mapping[str, object] = field(default_factory=dict)
    targets: tuple[str, ...] = ()  # Of a route: what its messages have to reach.
    is_spread: bool = False  # It waits in one of several queues, of which the first stands for all.
    is_parking: bool = False  # Nobody consumes where it ends: a canary would lie there for good.


@dataclass(frozen=True)
class Flight:
    """What is sent for one probe; hastened canaries leave by a TTL of their own, as soon as they are first in the queue."""

    probe: Probe
    count: int
    hasten_ms: int | None = None

    @property
    def wait_ms(self) -> int:
        """How long its canaries wait, if all is well."""
        return self.probe.wait.ms if self.hasten_ms is None else self.hasten_ms


@dataclass(frozen=True, slots=True)
class Sighting:
    """A canary as it came out; times are milliseconds on the clock of the run."""

    sent_ms: float
    arrived_ms: float
    key: str
    headers: Mapping[str, Any]

    def late_ms(self, wait: Duration) -> int:
        """How much longer it took than it should have waited."""
        return round(self.arrived_ms - self.sent_ms) - wait.ms


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of the canaries of one probe."""

    sent: int = 0
    sightings: tuple[Sighting, ...] = ()
    refusals: tuple[str, ...] = ()  # What the broker said of those that it did not take.
    unconfirmed: int = 0  # Neither taken nor refused in time.
    is_blocked: bool = False  # The broker has asked publishers for silence.
    twice: int = 0

    @property
    def missing(self) -> int:
        """Those that the broker took and that did not come out in time."""
        return max(0, self.sent - len(self.sightings) - len(self.refusals) - self.unconfirmed)

    @property
    def at_large(self) -> int:
        """Those that may still come out."""
        return self.missing + self.unconfirmed


@dataclass(frozen=True, slots=True)
class Trouble:
    """One reason why a way is not proved."""

    name: str
    what: str
    fix: str


@dataclass(frozen=True)
class Task:
    """What is done to prove a way: canaries are sent, or only the objects are looked at, and `note` says why."""

    probe: Probe
    flight: Flight | None = None
    expected: tuple[
        Trouble, ...
    ] = ()  # What the objects let expect; canaries have the last word, but on how long others wait.
    known: tuple[Trouble, ...] = ()  # What no canary could refute.
    note: str | None = None


@dataclass(frozen=True)
class Proof:
    """What was found out about one way; without troubles it is proved as `how` says."""

    probe: Probe
    how: How
    troubles: tuple[Trouble, ...] = ()
    observed: Observed = Observed()
    note: str | None = None

    @property
    def is_proved(self) -> bool:
        """Say whether nothing speaks against it."""
        return not self.troubles

    @property
    def lateness(self) -> tuple[int, ...]:
        """How late the canaries came, in milliseconds and the least first; nothing where they were hastened."""
        if self.how != "canaries":
            return ()
        return tuple(sorted(seen.late_ms(self.probe.wait) for seen in self.observed.sightings))
