"""A doctor's findings as text or JSON. Pure: nothing is read, nothing is printed."""

from collections.abc import Iterator, Sequence
from typing import Any

import click
from delayctl.cli.lint_views import COLOURS
from delayctl.topology.diagnosis import Diagnosis
from delayctl.topology.examination import Examination
from delayctl.topology.findings import Severity
from delayctl.topology.wording import plural, visible


def doctor_text(examination: Examination, found: Sequence[Diagnosis], *, checks: int) -> str:
    """All findings as people read them, the gravest first."""
    blocks = ["\n".join(_lines(diagnosis)) for diagnosis in found]
    return "\n\n".join([_headline(examination, found), *blocks, _summary(examination, found, checks)])


def _headline(examination: Examination, found: Sequence[Diagnosis]) -> str:
    words = {Severity.ERROR: ("not well", "red"), Severity.WARNING: ("well, with warnings", "yellow")}
    word, colour = words.get(found[0].severity, ("well", "green")) if found else ("well", "green")
    source = examination.file or "what was applied (the broker's own record)"
    where = f"{source} → virtual host {examination.status.vhost}, RabbitMQ {examination.status.version}"
    return f"{click.style(word, fg=colour)}: {visible(where)}"


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    word = click.style(diagnosis.severity.value.capitalize(), fg=COLOURS[diagnosis.severity])
    yield f"{word} {diagnosis.code}: {visible(diagnosis.message)}"
    yield from (f"  seen: {visible(detail)}" for detail in diagnosis.details)
    yield f"  why: {visible(diagnosis.reason)}"
    yield f"  fix: {visible(diagnosis.fix)}"
    yield from (f"  run: {visible(command)}" for command in diagnosis.commands)


def _summary(examination: Examination, found: Sequence[Diagnosis], checks: int) -> str:
    counts = [(sum(each.severity is severity for each in found), severity.value) for severity in Severity]
    words = ", ".join(plural(count, word) for count, word in counts if count) or "nothing found"
    watched = f", watched for {examination.watched}" if examination.watched else ""
    return f"Doctor: {plural(checks, 'check')} made{watched}: {words}."


def doctor_json(examination: Examination, found: Sequence[Diagnosis], *, checks: int) -> dict[str, Any]:
    """All findings as programs read them."""
    return {
        "healthy": not any(diagnosis.severity is Severity.ERROR for diagnosis in found),
        "vhost": examination.status.vhost,
        "rabbitmq_version": examination.status.version,
        "source": examination.file,
        "watched_ms": examination.watched.ms if examination.watched else None,
        "checks": checks,
        "findings": [diagnosis_json(diagnosis) for diagnosis in found],
    }


def diagnosis_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """One finding as programs read it."""
    return {
        "code": diagnosis.code,
        "name": diagnosis.name,
        "severity": diagnosis.severity.value,
        "at": diagnosis.at or None,
        "message": diagnosis.message,
        "seen": list(diagnosis.details),
        "reason": diagnosis.reason,
        "fix": diagnosis.fix,
        "commands": list(diagnosis.commands),
    }
