"""What became of the rows of a task, in numbers that have to add up."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from delayctl.topology.errors import DelayctlError
from delayctl.topology.wording import plural


class DoesNotAddUp(DelayctlError):
    """Rows went in of which nobody can say what became of them."""


@dataclass(frozen=True, slots=True)
class Account:
    """Every row is in exactly one of the counts behind `rows`."""

    rows: int = 0
    confirmed: int = 0  # The broker has it safe.
    returned: int = 0  # Sent, and no queue takes it.
    nacked: int = 0  # Sent, and the broker refused it to the end: a queue stayed full, or it is too large.
    rejected: int = 0  # Never sent: the row is bad.
    later: int = 0  # Never sent: due beyond the longest level, put aside.
    skipped: int = 0  # Confirmed by an earlier attempt of the same task.

    @property
    def sent(self) -> int:
        """How many messages the broker was given; the same message sent again does not count."""
        return self.confirmed + self.returned + self.nacked

    @property
    def refused(self) -> int:
        """How many rows were not delivered, and will not be without somebody doing something."""
        return self.returned + self.nacked + self.rejected

    @property
    def adds_up(self) -> bool:
        """Whether every row is accounted for."""
        return self.rows == self.sent + self.rejected + self.later + self.skipped

    def __add__(self, other: "Account") -> "Account":
        mine, theirs = asdict(self), asdict(other)
        return Account(**{name: count + theirs[name] for name, count in mine.items()})

    def __str__(self) -> str:
        counts = [(field.name, getattr(self, field.name)) for field in fields(self)[1:]]
        return f"{plural(self.rows, 'row')}: " + (
            ", ".join(f"{count:,} {name}" for name, count in counts if count) or "nothing to do"
        )


def total(accounts: Iterable[Account]) -> Account:
    """The account of all tasks together, or DoesNotAddUp."""
    found = sum(accounts, Account())
    if not found.adds_up:
        raise DoesNotAddUp(
            f"the account does not add up: {found}",
            fix="this is a bug, please report it; until then run the job again: messages keep their ids",
        )
    return found
