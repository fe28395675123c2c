"""Queues by the million messages: those that came at the same time are one cohort, and every message is counted."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

from delayctl.topology.duration import Duration
from delayctl.topology.model import Settings

Place = TypeVar("Place")
_REOPENS_AT = 0.8


class Cohort(NamedTuple, Generic[Place]):
    """Messages that entered a queue together; `due` is when their publisher wants them to be through."""

    entered: int
    due: int
    size: int
    place: Place


class Limit(NamedTuple):
    """How many messages a queue holds, and which setting says so."""

    messages: int
    setting: Literal["max_length", "max_bytes"]


def limits_of(settings: Settings, message_bytes: int | None) -> list[Limit]:
    """What limits a queue to how many messages of one size, the tightest first; without a size, bytes are no limit."""
    found = [] if settings.max_length is None else [Limit(settings.max_length, "max_length")]
    if settings.max_bytes is not None and message_bytes:
        found.append(Limit(settings.max_bytes // message_bytes, "max_bytes"))
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Room:
    """How much a queue holds, and what becomes of the rest."""

    limit: int | None = None  # In messages; None means no end.
    refuses: bool = False  # Or else the oldest make room.
    reopens_at: int | None = None  # Once full, it refuses until no more than this are left.

    @classmethod
    def of(cls, settings: Settings, message_bytes: int | None) -> "Room":
        """The room that settings give to messages of one size."""
        limit = next((limit.messages for limit in limits_of(settings, message_bytes)), None)
        refuses = (settings.overflow or "").startswith("reject-publish")
        if limit is None or not refuses or settings.type != "quorum":
            return cls(limit, refuses)
        # A quorum queue tells publishers when it is over its limit, and again when a fifth of it is free.
        return cls(limit + 1, refuses, int(limit * _REOPENS_AT))


class FlowQueue(Generic[Place]):
    """First in, first out, with one TTL for all: so the head is always the next to expire."""

    __slots__ = ("_cohorts", "_is_closed", "length", "room", "slack", "ttl")

    def __init__(self, ttl: Duration | None = None, room: Room | None = None) -> None:
        self.ttl = None if ttl is None else ttl.ms
        self.room = room or Room()
        self.length = 0
        self.slack = 0  # How many are about to be consumed: they don't count for the limit.
        self._is_closed = False
        self._cohorts: deque[Cohort[Place]] = deque()

    @property
    def free(self) -> int | None:
        """How many more are taken from who waits for an answer; None where there is no end to it, or the oldest make room."""
        room = self.room
        if room.limit is None or not room.refuses:
            return None
        if self._is_closed and room.reopens_at is not None:
            self._is_closed = self.length > room.reopens_at
        return 0 if self._is_closed else max(room.limit + self.slack - self.length, 0)

    @property
    def takes_all_dead_letters(self) -> bool:
        """Say whether what is dead-lettered gets in however full it is; quorum queues refuse only who waits for an answer."""
        return self.room.reopens_at is not None

    @property
    def excess(self) -> int:
        """How many have to leave at once."""
        if self.room.limit is None or self.room.refuses:
            return 0
        return max(self.length - self.room.limit - self.slack, 0)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for one more."""
        return self.room.limit is not None and self.length >= self.room.limit + self.slack

    @property
    def next_expiry(self) -> int | None:
        """When the head is over its time."""
        return None if self.ttl is None or not self._cohorts else self._cohorts[0].entered + self.ttl

    def push(self, cohort: Cohort[Place]) -> None:
        """Let messages in at the tail."""
        self._cohorts.append(cohort)
        self.length += cohort.size
        if self.room.reopens_at is not None and self.is_full:
            self._is_closed = True

    def put_back(self, cohort: Cohort[Place]) -> None:
        """Let messages in again at the head."""
        self._cohorts.appendleft(cohort)
        self.length += cohort.size

    def take(self, count: int) -> Iterator[Cohort[Place]]:
        """Take so many of the oldest, or all."""
        while count > 0 and self._cohorts:
            head = self._cohorts.popleft()
            if head.size > count:
                self._cohorts.appendleft(head._replace(size=head.size - count))
                head = head._replace(size=count)
            self.length -= head.size
            count -= head.size
            yield head

    def expired(self, now: int) -> Iterator[Cohort[Place]]:
        """Take what is over its time, the oldest first."""
        while (due := self.next_expiry) is not None and due <= now:
            cohort = self._cohorts.popleft()
            self.length -= cohort.size
            yield cohort
