"""What lint finds once it knows the broker: ways and limits of others that no file tells of."""

from collections.abc import Iterator

from delayctl.topology.checks_places import short_lived
from delayctl.topology.checks_waits import exit_missing, full
from delayctl.topology.diagnosis import Check, Symptom
from delayctl.topology.effective import effective
from delayctl.topology.examination import Examination
from delayctl.topology.findings import Finding, Severity
from delayctl.topology.model import Binding, sorted_bindings
from delayctl.topology.plan import label
from delayctl.topology.wording import command, quoted

_NAMED = 5
# H402, H210, H105 and H403 tell of these; how much memory full waits would take is for capacity to say.
_TOLD_ELSEWHERE = frozenset({"D401", "D402", "D403", "D404", "D208"})
_SAME_AS = {"D102": exit_missing, "D203": short_lived, "D205": full, "D211": short_lived}


def live_lint(examination: Examination) -> Iterator[Symptom]:
    """H406: what lint says of the broker, and no other check does."""
    for finding in examination.lint:
        is_grave = finding.severity in (Severity.ERROR, Severity.WARNING)
        if is_grave and finding.code not in _TOLD_ELSEWHERE and not _is_told(finding, examination):
            yield Symptom(
                finding.at,
                f"{finding.message} ({finding.code})",
                finding.fix,
                (command("delayctl", "validate", examination.source, "--live"),),
                tuple(_seen_by(finding, examination)),
                finding.severity,
                finding.reason,
            )


def _is_told(finding: Finding, examination: Examination) -> bool:
    check = _SAME_AS.get(finding.code)
    return check is not None and any(symptom.at == finding.at for symptom in check(examination))


def _seen_by(finding: Finding, examination: Examination) -> Iterator[str]:
    """What there is on the broker, and not in the file, that it may come from."""
    if finding.code == "D212":
        yield from _policies_at(finding.at, examination)
        return
    for binding in _strangers(examination)[:_NAMED]:
        yield f"{label(binding)} is not in the file"


def _policies_at(queue: str, examination: Examination) -> Iterator[str]:
    live = examination.live
    if queue in live.queues:
        found = effective(live.queues[queue], live.policies, live.operator_policies)
        for kind, policy in (("policy", found.policy), ("operator policy", found.operator_policy)):
            if policy:
                yield f"{kind} {quoted(policy.name)} applies to it"


def _strangers(examination: Examination) -> tuple[Binding, ...]:
    """Bindings between objects of the topology that neither the file nor an apply has made."""
    desired, live = examination.desired, examination.live
    own = {*(exchange.name for exchange in desired.exchanges), *(queue.name for queue in desired.queues)}
    own |= {existing.name for existing in desired.existing}
    known = {*desired.bindings, *(live.record.bindings if live.record else ())}
    between = (b for b in live.bindings if b.source in own and b.destination in own)
    return sorted_bindings(binding for binding in between if binding not in known)


CHECKS: tuple[Check, ...] = (
    Check(
        "H406",
        "live-lint",
        Severity.WARNING,
        "What is on the broker beyond the file sends messages elsewhere, twice or in a circle, or lets them be lost.",
        "Bindings and policies of others are left as they are, and work together with those of the file.",
        live_lint,
    ),
)
