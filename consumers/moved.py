"""What became of messages that were looked at one by one: an account in which each of them is once."""

from collections import Counter
from dataclasses import dataclass, field

from delayctl.consumers.homes import Stays


@dataclass(slots=True)
class Moved:
    """What became of the messages that were looked at; every one of them is in exactly one of the counts."""

    sent: Counter[str] = field(default_factory=Counter)  # By where they went.
    left: Counter[Stays] = field(default_factory=Counter)  # By why they stay.
    failed: Counter[Stays] = field(default_factory=Counter)  # By what the broker said.
    on_the_way: int = 0  # Sent, and not answered: in both places, for all we know.
    without_id: int = 0  # Of those that were sent: they got new ones.
    withheld: int = 0  # There, but not given to us: so they were not looked at.
    is_stopped: bool = False
    is_worn: bool = False  # One was given back so often that the broker would soon give it up: no more were taken.

    @property
    def seen(self) -> int:
        """How many were looked at."""
        return self.sent.total() + self.left.total() + self.failed.total() + self.on_the_way

    @property
    def is_any(self) -> bool:
        """Say whether some were moved, or may have been."""
        return bool(self.sent) or self.on_the_way > 0
