"""What every broker must be able to play, real or simulated: messages sent, groups that consume, time that passes."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Ability(Enum):
    """What not every broker can do."""

    NUMBERED_LEVELS = "a retry can ask for a level by any number"
    BOUNDED_LEVELS = "a level holds so many messages and no more"
    RESTART = "the broker can be restarted here"


@dataclass(frozen=True)
class Sent:
    """A message that was sent: its id, and a time before the broker had it."""

    message_id: str
    time: int


@dataclass(frozen=True)
class Attempt:
    """A message as a group's handler saw it, and when; `level` is the one that it came out of, 0 for none."""

    time: int
    group: str
    topic: str
    body: str
    message_id: str
    attempt: int
    level: int


@dataclass(frozen=True)
class DeadLetter:
    """A message that was given up."""

    body: str
    message_id: str


@dataclass(frozen=True)
class RetryAt:
    """Try again after this level."""

    level: int


class Answer(Enum):
    """What else a handler may answer."""

    DONE = "dealt with"
    RETRY = "try again later"
    PARK = "give up at once"
    RAISE = "an exception"


Handler = Callable[[Attempt], Answer | RetryAt]


@dataclass(frozen=True)
class Group:
    """Consumers that share one handler: each group gets every message of its topic."""

    name: str
    topic: str
    handler: Handler
    max_retries: int = 16


class Stage(Protocol):
    """A broker with its groups at work."""

    @property
    def attempts(self) -> Sequence[Attempt]:
        """All that handlers saw, in the order in which they did."""

    def send(self, topic: str, body: str, *, level: int = 0) -> Sent:
        """Send a message that waits a level first; 0 is none."""

    def rest(self) -> None:
        """Let time pass until every message is dealt with or given up; raises TimeoutError where that does not come."""

    def dead_letters(self, group: str) -> list[DeadLetter]:
        """What a group gave up."""

    def restart(self) -> None:
        """Stop the broker without a warning and start it again with what it had on disk."""

    def send_seen_twice(self, topic: str, body: str) -> Sent:
        """Send a message and see to it, as accidents do, that a handler gets it twice."""


class Theatre(Protocol):
    """A kind of broker: makes stages, each with nothing on it."""

    name: str
    can: frozenset[Ability]
    levels_ms: tuple[int, ...]
    late_ms: int  # How late a message may be.

    def open(self, *groups: Group, max_length: int | None = None) -> AbstractContextManager[Stage]:
        """Set a stage with these groups; `max_length` is how much each level holds."""
