"""The file as a value: what a user wrote, checked and with every default filled in."""

from dataclasses import dataclass, field
from typing import Literal

from delayctl.topology.duration import Duration
from delayctl.topology.model import Arguments, Kind, Overflow, QueueType
from delayctl.topology.rate import Rate

ROCKETMQ_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
DEFAULT_LEVELS = ("1m", "5m", "15m")
DEFAULT_MAX_LENGTH = 1_000_000
DEFAULT_PRIORITY = 10
ROCKETMQ_MAX_RETRIES = 16
ROCKETMQ_FIRST_RETRY_LEVEL = 3  # The first retry waits level 3, the next level 4, and so on.

SettingsHome = Literal["arguments", "policy"]
Role = Literal["publisher", "consumer", "operator"]
ROLES: tuple[Role, ...] = ("publisher", "consumer", "operator")


@dataclass(frozen=True, slots=True)
class WaitSpec:
    """How a delay queue keeps what waits in it; None means no limit."""

    type: QueueType = "classic"
    max_length: int | None = DEFAULT_MAX_LENGTH
    max_bytes: int | None = None
    overflow: Overflow = "drop-head"
    at_least_once: bool = False
    expected_rate: Rate | None = None  # What lint holds against max_length; the broker never hears of it.


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """One delay that can be chosen."""

    name: str
    ttl: Duration
    wait: WaitSpec
    line: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ExchangeSpec:
    """A business exchange."""

    name: str
    type: str | None = "topic"  # None only where an existing exchange may be of any type.
    alternate: str | None = None
    existing: bool = False
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Arguments = ()
    line: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A business queue; its type is the broker's default where it is None."""

    name: str
    type: QueueType | None = None
    existing: bool = False
    arguments: Arguments = ()
    durable: bool = True
    auto_delete: bool = False
    line: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a route ends."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """Messages with these keys wait at the level, then reach the targets."""

    keys: tuple[str, ...]
    targets: tuple[Target, ...]
    source: str | None = None  # None: publishers send straight to the entrance.
    level: str | None = None  # None: no delay.
    headers: Arguments = ()  # What a headers exchange looks for, x-match included.
    line: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RetrySpec:
    """Failed messages of a queue wait these durations in turn, then are parked."""

    queue: str
    waits: tuple[str, ...]  # Names of levels, one per retry.
    park: str
    line: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GrantSpec:
    """What a user shall be able to do; a consumer or publisher may be held to some of the queues or exchanges."""

    user: str
    role: Role
    only: tuple[str, ...] = ()  # Queues that a consumer reads, exchanges that a publisher writes to; () means all.
    line: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Silence:
    """A finding of lint that the file's author knows of; `at` narrows it down to one object."""

    rule: str
    reason: str
    at: str | None = None
    line: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole file; one without levels declares no exit and no safety net either."""

    levels: tuple[LevelSpec, ...]
    vhost: str | None = None
    prefix: str = ""
    settings: SettingsHome = "arguments"
    policy_priority: int = DEFAULT_PRIORITY
    exchanges: tuple[ExchangeSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()
    routes: tuple[RouteSpec, ...] = ()
    retries: tuple[RetrySpec, ...] = ()
    grants: tuple[GrantSpec, ...] = ()
    silences: tuple[Silence, ...] = ()
    memory: int | None = None  # Bytes that the broker has, for lint.
