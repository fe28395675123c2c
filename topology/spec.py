"""The file as a value: what a user wrote, checked and with every default filled in."""

from dataclasses import dataclass
from typing import Literal

from delayctl.topology.duration import Duration
from delayctl.topology.model import Arguments, Kind, Overflow, QueueType

ROCKETMQ_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
DEFAULT_LEVELS = ("1m", "5m", "15m")
DEFAULT_MAX_LENGTH = 1_000_000
DEFAULT_PRIORITY = 10
ROCKETMQ_MAX_RETRIES = 16
ROCKETMQ_FIRST_RETRY_LEVEL = 3  # The first retry waits level 3, the next level 4, and so on.

SettingsHome = Literal["arguments", "policy"]


@dataclass(frozen=True, slots=True)
class WaitSpec:
    """How a delay queue keeps what waits in it; None means no limit."""

    type: QueueType = "classic"
    max_length: int | None = DEFAULT_MAX_LENGTH
    max_bytes: int | None = None
    overflow: Overflow = "drop-head"
    at_least_once: bool = False


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """One delay that can be chosen."""

    name: str
    ttl: Duration
    wait: WaitSpec


@dataclass(frozen=True, slots=True)
class ExchangeSpec:
    """A business exchange."""

    name: str
    type: str | None = "topic"  # None only where an existing exchange may be of any type.
    alternate: str | None = None
    existing: bool = False


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A business queue; its type is the broker's default where it is None."""

    name: str
    type: QueueType | None = None
    existing: bool = False
    arguments: Arguments = ()


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


@dataclass(frozen=True, slots=True)
class RetrySpec:
    """Failed messages of a queue wait these durations in turn, then are parked."""

    queue: str
    waits: tuple[str, ...]  # Names of levels, one per retry.
    park: str


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole file."""

    levels: tuple[LevelSpec, ...]
    vhost: str | None = None
    prefix: str = ""
    settings: SettingsHome = "arguments"
    policy_priority: int = DEFAULT_PRIORITY
    exchanges: tuple[ExchangeSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()
    routes: tuple[RouteSpec, ...] = ()
    retries: tuple[RetrySpec, ...] = ()
