"""What can go wrong, said as what, where and how to fix.

DelayctlError
├── BadOption              an option's value can't be used
├── InvalidTopology        the file can't be used; carries every problem found
├── StalePlan              the broker changed after the plan was made
├── PlanUnreadable         a saved plan can't be used
├── RecordUnreadable       what an earlier apply left on the broker can't be understood
├── Locked                 another run is changing the same topology
└── BrokerError
    ├── Unreachable        nothing answers, or TLS fails
    │   └── NoMoreConnections   it answers, and a limit leaves no room for one more
    ├── AuthenticationFailed
    ├── VhostMissing
    ├── NotPermitted
    ├── Refused            the broker said no to one operation (406, 405, 540 …)
    └── ManagementUnavailable   the HTTP API is off, or closed to this user
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file, counted from 1."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a file, where it stands and how to mend it."""

    message: str
    location: Location
    fix: str

    def __str__(self) -> str:
        return f"Error: {self.message}\n  at {self.location}\n  fix: {self.fix}"


class DelayctlError(Exception):
    """The base of every error a user may meet."""

    def __init__(self, what: str, *, fix: str | None = None, where: str | None = None) -> None:
        super().__init__(what, fix, where)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        lines = [f"Error: {self.what}"]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Python would call the class with `args`, and what the classes are made of goes by keyword and differs.
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[DelayctlError], args: tuple[object, ...]) -> DelayctlError:
    """An error as it came from another process; what it carries is put into it afterwards."""
    return kind.__new__(kind, *args)


class BadOption(DelayctlError):
    """The value of an option can't be used, whatever else is given."""


class Partly(DelayctlError):
    """What ended a command when some of it was done."""

    @classmethod
    def by(cls, error: DelayctlError) -> "Partly":
        """The same error, once something was done before it came."""
        return cls(error.what, fix=error.fix, where=error.where)


class InvalidTopology(DelayctlError):
    """The file can't be used; `problems` holds all that was found, in the order of the file."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.location.line or 0))
        super().__init__(f"{len(self.problems)} problem{'s' if len(self.problems) != 1 else ''} found")

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class StalePlan(DelayctlError):
    """The broker is no longer as it was when the plan was made."""


class PlanUnreadable(DelayctlError):
    """A saved plan is damaged, of another version, or no plan at all."""


class RecordUnreadable(DelayctlError):
    """The broker's record of what was applied is damaged, or of another version."""


class Locked(DelayctlError):
    """Another run holds the lock of this topology."""


class BrokerError(DelayctlError):
    """Something between us and the broker went wrong."""


class Unreachable(BrokerError):
    """Nothing answers at the address, or the connection broke."""


class NoMoreConnections(Unreachable):
    """The broker is there, and a limit leaves no room for one more connection."""


class AuthenticationFailed(BrokerError):
    """The broker knows the user or the password differently."""


class VhostMissing(BrokerError):
    """The virtual host does not exist."""


class NotPermitted(BrokerError):
    """The user may not do this."""


class Refused(BrokerError):
    """The broker refused one operation; `code` is AMQP's reply code, or the status over HTTP."""

    def __init__(self, what: str, *, code: int | None = None, fix: str | None = None) -> None:
        super().__init__(what, fix=fix)
        self.code = code


class StillHolds(Refused):
    """A queue that was to go holds messages after all."""


class ManagementUnavailable(BrokerError):
    """The management API is off, closed to this user, or out of reach; `is_off` tells the first two from the last."""

    def __init__(self, what: str, *, fix: str, is_off: bool = False) -> None:
        super().__init__(what, fix=fix)
        self.is_off = is_off
