"""What the page shows and can do, as values; how they are found out is up to whoever implements a Stage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from delayctl.topology.figures import Samples
from delayctl.topology.status import Status

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Observation:
    """A whole look at the broker."""

    status: Status
    state: Json  # All that the page is told, but for counts and the map.
    map: str  # SVG; the same text for as long as the topology keeps its shape.
    counted: tuple[str, ...]  # The queues whose messages are counted between two looks.
    counts: Mapping[str, int | None]  # As of this look.
    history: Mapping[str, Samples] = field(default_factory=dict)  # Of the queues that messages wait in.


@dataclass(frozen=True, slots=True)
class Away:
    """The broker can't be looked at: since when, and what it said."""

    since_ms: int
    what: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What every viewer is shown at one moment; the last observation stays while the broker is away."""

    at_ms: int
    observation: Observation | None = None
    seen_ms: int | None = None  # When the broker last answered.
    counts: Mapping[str, int | None] = field(default_factory=dict)
    away: Away | None = None
    version: int = 0  # Another number, another state.


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which messages of a parking queue are to be moved: all, or those of which everything that is named holds."""

    queue: str
    ids: frozenset[str] | None = None
    kind: tuple[str, str | None] | None = None  # Key and reason.


class Stage(Protocol):
    """One topology on one broker. Every method may raise DelayctlError; they are called from several threads."""

    def observe(self) -> Observation:
        """Look at everything."""

    def count(self, queues: tuple[str, ...]) -> Mapping[str, int | None]:
        """Count the messages of some queues, quickly."""

    def parked(self, queue: str) -> Json:
        """Look at what is parked in a queue."""

    def redrive(self, chosen: Chosen) -> Json:
        """Move parked messages to where they belong."""

    def close(self) -> None:
        """Let go of what is kept for counting; called by the thread that counts."""

    def what_if(self, question: Mapping[str, str]) -> Json:
        """Foretell what becomes of messages."""
