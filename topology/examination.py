"""What a doctor looks at: how a topology is doing, what is on the broker, who is connected, and what is parked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from delayctl.topology.clients import Clients
from delayctl.topology.duration import Duration
from delayctl.topology.figures import Figures
from delayctl.topology.findings import Finding
from delayctl.topology.live import Live
from delayctl.topology.model import Topology
from delayctl.topology.plan import Plan
from delayctl.topology.routing import Network
from delayctl.topology.status import LevelStatus, Status

UNNAMED_FILE = "topology.yaml"  # As commands call the file where none was named.


@dataclass(frozen=True, slots=True)
class Seen:
    """A parked message that was looked at and put back."""

    key: str
    reason: str | None = None  # Why it was parked, by whoever parked it.
    waited_in: str | None = None  # The queue that it expired in last.
    first_key: str | None = None  # That it had before it was tried again and parked.
    is_canary: bool = False  # Sent by delayctl verify, which has given it up.
    exchange: str | None = None  # That it came by; None for the exit.
    headers: Mapping[str, object] = field(default_factory=dict)  # Those that would be sent on.
    is_due: bool = False  # Its time was up, as far as it says when.


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of a parking queue, from its first message on; or what kept us from looking."""

    seen: tuple[Seen, ...] = ()
    obstacle: str | None = None


@dataclass(frozen=True)
class Examination:
    """All that was found out; nothing more is read from here on."""

    desired: Topology  # By the file, or by the broker's own record of what was applied.
    live: Live
    plan: Plan
    status: Status
    figures: Mapping[str, Figures] = field(default_factory=dict)  # Of every queue of the virtual host.
    file: str | None = UNNAMED_FILE  # None where the broker's record was all there was to go by.
    earlier: Status | None = None  # As it was when the watch began.
    watched: Duration | None = None
    lint: tuple[Finding, ...] = ()  # What it says with the broker, and not of the file alone.
    clients: Clients = field(default_factory=Clients)
    looks: Mapping[str, Look] = field(default_factory=dict)  # By parking queue.
    statistics_are_off: bool = False

    @property
    def source(self) -> str:
        """The file, as commands name it."""
        return self.file or UNNAMED_FILE

    @cached_property
    def network(self) -> Network:
        """Where messages go on this broker."""
        return Network.of_live(self.live)

    def wait(self, queue: str) -> LevelStatus:
        """The wait of this name."""
        return next(level for level in self.status.levels if level.queue == queue)

    def waited_before(self, queue: str) -> LevelStatus | None:
        """The same wait when the watch began."""
        levels = self.earlier.levels if self.earlier else ()
        return next((level for level in levels if level.queue == queue), None)
