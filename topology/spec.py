"""The file as a value: what a user wrote, checked and with every default filled in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from delayctl.topology.duration import Duration
from delayctl.topology.ladder import DEFAULT_STEPS, DEFAULT_UNIT
from delayctl.topology.model import Arguments, Kind, Overflow, QueueType
from delayctl.topology.rate import Rate

ROCKETMQ_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
DEFAULT_LEVELS = ("1m", "5m", "15m")
DEFAULT_MAX_LENGTH = 1_000_000
DEFAULT_PRIORITY = 10
MOST_SHARDS = 64
ROCKETMQ_MAX_RETRIES = 16
LONGEST_BROKER_WAIT = Duration.parse("49d")  # The broker's timers hold 32 bits of milliseconds.
ROCKETMQ_FIRST_RETRY_LEVEL = 3  # The first retry waits level 3, the next level 4, and so on.

SettingsHome = Literal["arguments", "policy"]
Role = Literal["publisher", "consumer", "operator", "verifier"]
ROLES: tuple[Role, ...] = ("publisher", "consumer", "operator", "verifier")


@dataclass(frozen=True, slots=True)
class WaitSpec:
    """How a delay queue keeps what waits in it; None means no limit."""

    type: QueueType = "classic"
    max_length: int | None = DEFAULT_MAX_LENGTH
    max_bytes: int | None = None
    overflow: Overflow = "drop-head"
    at_least_once: bool = False
    lazy: bool = False  # A classic queue keeps what waits on disk. Brokers from 3.12 on do that in any case.
    shards: int = 1  # Over so many queues a level is spread; each takes its part of the limits above.
    expected_rate: Rate | None = None  # What lint holds against max_length; the broker never hears of it.


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """One delay that can be chosen."""

    name: str
    ttl: Duration
    wait: WaitSpec
    line: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LadderSpec:
    """Steps of one unit, two, four and so on, which add up to any delay."""

    unit: Duration = DEFAULT_UNIT
    steps: int = DEFAULT_STEPS
    wait: WaitSpec = WaitSpec()
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
    level: str | None = None  # None: no delay; ANY: whatever the publisher chooses.
    headers: Arguments = ()  # What a headers exchange looks for, x-match included.
    line: int = field(default=1, compare=False, repr=False)
    replaces: bool = False  # The delay is put into a way that leads straight from the source to the targets.


@dataclass(frozen=True, slots=True)
class BrokerWaits:
    """Waits that a quorum queue does by itself: the n-th is n steps long, up to the longest."""

    step: Duration
    longest: Duration
    most: int  # So many retries.


def all_steps(step: Duration, most: int) -> Duration:
    """How long the last of so many retries waits where no other limit is set."""
    return min(Duration(step.ms * most), LONGEST_BROKER_WAIT)


@dataclass(frozen=True, slots=True)
class RetrySpec:
    """Failed messages of a queue wait, in levels or in the queue itself, and are parked in the end."""

    queue: str
    waits: tuple[str, ...]  # Names of levels, one per retry; none where the broker does the waiting.
    park: str
    by_broker: BrokerWaits | None = None
    line: int = field(default=1, compare=False, repr=False)


def parking_circle(queue: str, parks: Mapping[str, str]) -> tuple[str, ...]:
    """The queues by which what fails every time comes back to this one, by where each of them parks; none where it does not."""
    passed, following = {queue: None}, parks.get(queue)
    while following is not None and following not in passed:
        passed[following] = None
        following = parks.get(following)
    return (*passed, queue) if following == queue else ()


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
    """A whole file; one without any delay declares no exit and no safety net either."""

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
    ladder: LadderSpec | None = None
    cancel: bool = False  # Messages can be cancelled while they wait.

    @property
    def has_delays(self) -> bool:
        """Say whether messages can wait: at levels, at the ladder, or both."""
        return bool(self.levels) or self.ladder is not None
