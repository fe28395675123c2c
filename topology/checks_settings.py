"""Checks of what is declared: what differs from the file, what others have set, what users may do."""

from collections.abc import Iterator

from delayctl.topology.diagnosis import Check, Symptom, enumerated, reasons, symptom_of
from delayctl.topology.effective import effective
from delayctl.topology.examination import Examination
from delayctl.topology.findings import Severity
from delayctl.topology.plan import Create, Delete, Refusal, title
from delayctl.topology.verdict import drift, plan_warnings
from delayctl.topology.wording import command, plural

_NAMED = 8


def differs(examination: Examination) -> Iterator[Symptom]:
    """H401: the broker is not as the file says; what policies do is said by H402."""
    if examination.file is None:
        return
    explained = {f"queue {finding.at}" for finding in examination.lint if finding.code == "D401"}
    refusals = [refusal for refusal in examination.plan.refusals if refusal.subject not in explained]
    if not refusals and not examination.plan.changes:
        return
    for reason in reasons(drift, examination):
        details = [] if examination.status.is_missing else list(_differences(examination, refusals))
        plan, apply = (command("delayctl", each, examination.source) for each in ("plan", "apply"))
        yield symptom_of(reason, plan, apply, details=details, fix="look at the plan, then apply it")


def _differences(examination: Examination, refusals: list[Refusal]) -> Iterator[str]:
    lines = [f"{_verb(change)}: {title(change)}" for change in examination.plan.changes]
    lines += [f"can't be mended by apply: {refusal.subject}: {refusal.reason}" for refusal in refusals]
    yield from lines[:_NAMED]
    if len(lines) > _NAMED:
        yield f"and {len(lines) - _NAMED} more"


def _verb(change: object) -> str:
    return "missing" if isinstance(change, Create) else "too much" if isinstance(change, Delete) else "different"


def gone(examination: Examination) -> Iterator[Symptom]:
    """H404: what was applied and is not there any more, where no file tells what there should be."""
    live, record = examination.live, examination.live.record
    if examination.file is not None or record is None:
        return
    lost = [f"exchange {name}" for name in sorted(record.exchanges - live.exchanges.keys())]
    lost += [f"queue {name}" for name in sorted(record.queues - live.queues.keys())]
    lost += [f"policy {name}" for name in sorted(record.policies - {policy.name for policy in live.policies})]
    bindings = len(record.bindings - live.bindings)
    lost += [plural(bindings, "binding")] if bindings else []
    if lost:
        message = f"of what was applied, {enumerated(lost)} {'is' if len(lost) == 1 else 'are'} not there any more"
        fix = "apply the file again that they came from"
        yield Symptom(lost[0], message, fix, (command("delayctl", "apply", examination.source),))


def foreign_policy(examination: Examination) -> Iterator[Symptom]:
    """H402: what lint says of policies of others."""
    for finding in examination.lint:
        if finding.code == "D401":
            yield Symptom(finding.at, finding.message, finding.fix, tuple(_clearing(examination, finding.at)))


def _clearing(examination: Examination, queue: str) -> Iterator[str]:
    """How the policies are removed that others put on a queue."""
    found = examination.live.queues.get(queue)
    if found is None:
        return
    live, vhost = examination.live, examination.status.vhost
    own = {policy.name for policy in examination.desired.policies}
    applied = effective(found, live.policies, live.operator_policies)
    if applied.policy and applied.policy.name not in own:
        yield command("rabbitmqctl", "clear_policy", "-p", vhost, applied.policy.name)
    if applied.operator_policy:
        yield command("rabbitmqctl", "clear_operator_policy", "-p", vhost, applied.operator_policy.name)


def missing_permission(examination: Examination) -> Iterator[Symptom]:
    """H403: what lint says of users that can't do their work."""
    for finding in examination.lint:
        if finding.code == "D404":
            yield Symptom(
                finding.at, finding.message, finding.fix, (command("delayctl", "permissions", examination.source),)
            )


def planned_warnings(examination: Examination) -> Iterator[Symptom]:
    """H405: what plan has to say besides."""
    for reason in reasons(plan_warnings, examination):
        yield symptom_of(
            reason, command("delayctl", "plan", examination.source), fix="look whether it is meant to be so"
        )


CHECKS: tuple[Check, ...] = (
    Check(
        "H401",
        "drift",
        Severity.ERROR,
        "The broker is not as the file says.",
        "Somebody changed it by hand, or the file was changed and not applied.",
        differs,
    ),
    Check(
        "H402",
        "foreign-policy",
        Severity.ERROR,
        "A policy of somebody else decides how a queue of the topology behaves.",
        "The smaller of argument and policy is in force for TTL and lengths, one policy alone applies to a queue, and operator"
        " policies beat both.",
        foreign_policy,
    ),
    Check(
        "H403",
        "missing-permission",
        Severity.ERROR,
        "A user of the file lacks rights that its role needs.",
        "RabbitMQ closes the channel of a user that touches an object beyond its patterns.",
        missing_permission,
    ),
    Check(
        "H404",
        "gone",
        Severity.ERROR,
        "What was applied is not there any more.",
        "Without a file, the broker's own record tells what delayctl declared there.",
        gone,
    ),
    Check(
        "H405",
        "plan-warning",
        Severity.INFO,
        "Plan has a warning.",
        "It is about what others have added, which is left as it is, or about a change that is due or under way: apply --wait"
        " carries it to its end.",
        planned_warnings,
    ),
)
