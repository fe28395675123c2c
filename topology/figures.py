"""What a broker says of a queue and of its last hour, and what follows from it about the messages that wait.

A broker counts neither how long the head of a queue has waited nor why messages left it. It does remember, every few
seconds, how many were published to a queue and how many were in it, and messages leave a delay queue in their order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from delayctl.topology.duration import Duration

Samples = tuple[tuple[int, int], ...]  # (milliseconds since 1970, value), oldest first.

_BLOCKED_BY = 32  # So many messages without a taker block an at-least-once queue as a whole.
INTERVAL_MS = 5_000  # How often a broker renews its figures, unless told otherwise.
_RATE_WINDOW_MS = 60_000
# A sample may be older than its time stamp says: by some seconds, or by two minutes where there is one per minute.
_FINE_MS, _FINE_BLUR_MS, _COARSE_BLUR_MS = 600_000, 3 * INTERVAL_MS, 120_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What the broker last said of a queue; None is what it has not said."""

    ready: int | None = None
    unacknowledged: int | None = None
    dead_lettering: int = 0  # Expired in a quorum queue, and not yet taken by the target.
    size: int | None = None  # Bytes.
    consumers: int | None = None
    state: str = ""
    head_timestamp_s: int | None = None  # As the publisher wrote it; classic queues only.
    published: Samples = ()
    lengths: Samples = ()
    node: str = ""  # Where it is, or where its leader is.
    members: tuple[str, ...] = ()  # The nodes with a replica; none where it has no replicas.
    online: tuple[str, ...] = ()

    @property
    def waiting(self) -> int | None:
        """All messages of the queue."""
        return None if self.ready is None else self.ready + (self.unacknowledged or 0) + self.dead_lettering

    @property
    def is_blocked(self) -> bool:
        """Say whether so many messages are without a taker that an at-least-once queue hands on nothing more."""
        return self.dead_lettering >= _BLOCKED_BY

    @property
    def has_majority(self) -> bool:
        """Say whether enough replicas are there to go on; brokers call a queue running that can't."""
        return not self.members or 2 * len(self.online) > len(self.members)

    @property
    def now_ms(self) -> int:
        """The broker's clock, as far as the samples tell it."""
        return max((at for at, _ in (*self.published[-1:], *self.lengths[-1:])), default=0)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the broker, and what stops it from taking messages."""

    name: str
    is_running: bool = True
    memory_alarm: bool = False
    disk_alarm: bool = False
    is_partitioned: bool = False
    memory_used: int | None = None  # Bytes; None where the broker does not say.
    memory_limit: int | None = None
    disk_free: int | None = None
    disk_limit: int | None = None


@dataclass(frozen=True)
class Statistics:
    """The figures of every queue of a virtual host; nodes are None where the user may not see them."""

    queues: Mapping[str, Figures] = field(default_factory=dict)
    nodes: tuple[Node, ...] | None = ()


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages per second over the last minute."""

    into: float
    out_of: float


@dataclass(frozen=True, slots=True)
class Age:
    """How long a message has waited, as closely as it can be told, and from what; None: there is no telling."""

    at_least_ms: int
    at_most_ms: int | None
    source: Literal["samples", "timestamp", "ttl"]


@dataclass(frozen=True, slots=True)
class Early:
    """How many of the messages that came in during the window have left although their time was not up: or more."""

    at_least: int
    window: Duration | None  # None: nothing can be early, so that the count is exact.


def figures_from_api(item: Mapping[str, Any], fine: Mapping[str, Any], coarse: Mapping[str, Any]) -> Figures:
    """Read a queue of the management API; `fine` and `coarse` are the queue again, with samples of their grain."""
    timestamp = item.get("head_message_timestamp")
    return Figures(
        ready=item.get("messages_ready"),
        unacknowledged=item.get("messages_unacknowledged"),
        dead_lettering=item.get("messages_dlx") or 0,
        size=item.get("message_bytes"),
        consumers=item.get("consumers"),
        state=item.get("state") or "",
        head_timestamp_s=timestamp if isinstance(timestamp, int) else None,
        published=_joined(_publish_details(fine), _publish_details(coarse)),
        lengths=_joined(fine.get("messages_details"), coarse.get("messages_details")),
        node=item.get("leader") or item.get("node") or "",
        members=tuple(sorted(item.get("members") or ())),
        online=tuple(sorted(item.get("online") or ())),
    )


def _publish_details(history: Mapping[str, Any]) -> Any:
    return (history.get("message_stats") or {}).get("publish_details")


def _joined(fine: Any, coarse: Any) -> Samples:
    """One history: coarse samples where there are no fine ones."""
    recent = _samples(fine)
    return tuple(sample for sample in _samples(coarse) if recent and sample[0] < recent[0][0]) + recent


def _samples(details: Any) -> Samples:
    return tuple(sorted((item["timestamp"], item["sample"]) for item in (details or {}).get("samples") or ()))


def node_from_api(item: Mapping[str, Any]) -> Node:
    """Read a node of the management API."""
    return Node(
        item["name"],
        bool(item.get("running", True)),
        bool(item.get("mem_alarm")),
        bool(item.get("disk_free_alarm")),
        bool(item.get("partitions")),
        *(_count(item.get(name)) for name in ("mem_used", "mem_limit", "disk_free", "disk_free_limit")),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def rates(figures: Figures) -> Rates | None:
    """How fast messages come and go; None where the broker has not looked twice."""
    if len(figures.lengths) < 2:
        return None
    published = _growth(figures.published)
    grown = _growth(figures.lengths)
    # What came in and is not there any more has left; figures of different moments must not make it less than none.
    return Rates(published, max(0.0, published - grown))


def _growth(samples: Samples) -> float:
    if len(samples) < 2:
        return 0.0
    end, last = samples[-1]
    start, first = next(sample for sample in samples if sample[0] >= end - _RATE_WINDOW_MS)
    return (last - first) * 1000 / (end - start) if end > start else 0.0


def oldest(figures: Figures, ttl: Duration) -> Age | None:
    """How long the head of a queue has waited; None where nothing waits or the broker has not said."""
    if not figures.waiting:
        return None
    return (_oldest_by_samples(figures, figures.waiting, ttl) if figures.now_ms else None) or Age(0, ttl.ms, "ttl")


def _oldest_by_samples(figures: Figures, waiting: int, ttl: Duration) -> Age | None:
    if (stuck := stuck_for(figures, ttl)) and stuck.ms:
        return Age(stuck.ms, None, "samples")
    at_least, at_most = _came_between(figures, waiting)
    if at_most < ttl.ms or at_least:
        return Age(min(at_least, _since_empty_ms(figures), ttl.ms), min(at_most, ttl.ms), "samples")
    if figures.head_timestamp_s is None:
        return None
    age = max(0, figures.now_ms - figures.head_timestamp_s * 1000)
    return Age(age, age, "timestamp")


def _came_between(figures: Figures, waiting: int) -> tuple[int, int]:
    """How long ago the head came, since the last `waiting` messages that were published are those that wait."""
    published, now = figures.published, figures.now_ms
    number = published[-1][1] - waiting + 1 if published else 0
    if number < 1:
        return 0, now  # More wait than were counted: the broker was restarted since, or counts later than it looks.
    index = next(i for i, (_, value) in enumerate(published) if value >= number)
    at_least = max(0, now - published[index][0] - _blur(figures, published[index][0]))
    if not index:
        return at_least, now
    return at_least, now - published[index - 1][0] + _blur(figures, published[index - 1][0])


def _since_empty_ms(figures: Figures) -> int:
    """How long ago the queue was last seen empty; after a restart, brokers say so of all the time before."""
    empty = [at for at, value in figures.lengths if not value]
    return figures.now_ms - empty[-1] + _blur(figures, empty[-1]) if empty else figures.now_ms


def stuck_for(figures: Figures, ttl: Duration) -> Duration | None:
    """How long nothing has left although messages waited all the time, where that is longer than the TTL allows; else 0.

    None where there is no telling: samples go back an hour, and not every broker counts what comes in.
    """
    since = figures.now_ms - ttl.ms - 2 * _blur(figures, figures.now_ms - ttl.ms)
    lengths = [value for at, value in figures.lengths if at >= since]
    counted = [value for at, value in figures.published if at >= since]
    if figures.waiting == 0 or _has_let_go(lengths, counted):
        return Duration(0)
    is_watched = bool(figures.waiting and counted and lengths) and figures.lengths[0][0] <= since
    return Duration(figures.now_ms - since) if is_watched else None


def _has_let_go(lengths: Sequence[int], counted: Sequence[int]) -> bool:
    """Say whether a queue was empty at times, or has become shorter, or has not grown by all that came in."""
    if 0 in lengths or any(following < value for value, following in pairwise(lengths)):
        return True
    return bool(lengths and counted) and counted[-1] - counted[0] > lengths[-1] - lengths[0]


def gone_early(figures: Figures, ttl: Duration) -> Early | None:
    """What came in within the last TTL must still be there; None where the TTL is too short to tell."""
    end, start = figures.now_ms - _FINE_BLUR_MS, figures.now_ms - ttl.ms
    # A queue that nobody ever published to has no such samples, but it has others.
    counts = figures.published or tuple((at, 0) for at, _ in figures.lengths)
    window = [(at, value) for at, value in counts if start + _blur(figures, at) <= at <= end]
    if len(window) < 2 or not figures.lengths:
        return None
    came_in = window[-1][1] - window[0][1]
    still_there = max(value for at, value in figures.lengths if at >= end or at == figures.lengths[-1][0])
    return Early(max(0, came_in - still_there), Duration(window[-1][0] - window[0][0]))


def _blur(figures: Figures, at: int) -> int:
    """How much older than its time stamp a sample may be."""
    return _FINE_BLUR_MS if figures.now_ms - at <= _FINE_MS else _COARSE_BLUR_MS
