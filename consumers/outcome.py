"""What a handler may say of a message."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """It is dealt with."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again later: after the next wait of the policy, or at a level of one's own choice."""

    level: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Park:
    """Give up at once: it goes to the parking queue with the reason."""

    reason: str = ""


Outcome = Done | Retry | Park | None  # None is what a function without `return` gives: done.
DONE = Done()
RETRY = Retry()
