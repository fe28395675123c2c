"""What lint has to say: findings, the rules that make them, and how much each matters."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from delayctl.topology.lint_context import Context
from delayctl.topology.spec import Silence


class Severity(StrEnum):
    """How much a finding matters: errors stop apply, warnings are shown before it, infos by validate alone."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """The gravest first."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule met: at which object, what will happen there, how to mend it, and the line that says so."""

    at: str
    message: str
    fix: str
    line: int
    severity: Severity | None = None  # Where it matters more, or less, than the rule's own.


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be wrong. `needs_live` tells the rules that have nothing to say without a broker."""

    code: str
    name: str
    severity: Severity
    summary: str
    reason: str
    check: Callable[[Context], Iterator[Found]]
    needs_live: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule found in a file."""

    code: str
    severity: Severity
    at: str
    message: str
    reason: str
    fix: str
    line: int


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found; what the file's author knows of stands apart, with the reason given."""

    findings: tuple[Finding, ...] = ()
    silenced: tuple[tuple[Finding, Silence], ...] = ()

    def of(self, *severities: Severity) -> tuple[Finding, ...]:
        """The findings of these severities."""
        return tuple(finding for finding in self.findings if finding.severity in severities)

    @property
    def has_errors(self) -> bool:
        """Say whether something must be mended, or silenced, before an apply."""
        return bool(self.of(Severity.ERROR))
