"""A doctor's findings: what is wrong with a live topology, why that matters, and the commands that mend it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from delayctl.topology.examination import Examination
from delayctl.topology.findings import Severity
from delayctl.topology.status import Status
from delayctl.topology.verdict import Reason
from delayctl.topology.verdict import Severity as Gravity

_SEVERITIES: dict[Gravity, Severity] = {
    "unhealthy": Severity.ERROR,
    "warning": Severity.WARNING,
    "note": Severity.INFO,
}
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Symptom:
    """What a check met: at which object, what is wrong with it, how to mend it, and what it was seen by."""

    at: str
    message: str
    fix: str
    commands: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    severity: Severity | None = None  # Where it matters more, or less, than the check's own.
    reason: str | None = None  # Where it is another than the check's own.


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that can be wrong with a live topology."""

    code: str
    name: str
    severity: Severity
    summary: str
    reason: str
    run: Callable[[Examination], Iterator[Symptom]]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that is wrong."""

    code: str
    name: str
    severity: Severity
    at: str
    message: str
    reason: str
    fix: str
    commands: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


def diagnose(checks: Iterable[Check], examination: Examination) -> tuple[Diagnosis, ...]:
    """Run every check; what is gravest comes first. Reads nothing, writes nothing."""
    found = dict.fromkeys(_diagnosis(check, symptom) for check in checks for symptom in check.run(examination))
    return tuple(sorted(found, key=lambda diagnosis: (diagnosis.severity.rank, diagnosis.code)))


def _diagnosis(check: Check, symptom: Symptom) -> Diagnosis:
    return Diagnosis(
        check.code,
        check.name,
        symptom.severity or check.severity,
        symptom.at,
        symptom.message,
        symptom.reason or check.reason,
        symptom.fix,
        symptom.commands,
        symptom.details,
    )


def reasons(rule: Callable[[Status, str], Iterator[Reason]], examination: Examination) -> Iterator[Reason]:
    """What a rule of the verdict says: status and doctor judge alike."""
    return rule(examination.status, examination.source)


def symptom_of(reason: Reason, *commands: str, details: Iterable[str] = (), fix: str | None = None) -> Symptom:
    """A reason of the verdict with what a doctor adds: the commands, what it was seen by, a better fix."""
    shown = fix or reason.fix or ""
    return Symptom(reason.at, reason.what, shown, commands, tuple(details), _SEVERITIES[reason.severity])


def enumerated(names: Iterable[str]) -> str:
    """The first few names of many."""
    known = list(names)
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return ", ".join(known[:_NAMED]) + more
