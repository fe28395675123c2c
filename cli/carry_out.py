"""From a plan to its end: show it, ask, execute it, tell what became of it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import click
from delayctl.cli import exit_codes, views
from delayctl.cli.host import Host, locked
from delayctl.cli.lint_views import finding_json
from delayctl.cli.output import tell
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BrokerError
from delayctl.topology.execute import Outcome, execute
from delayctl.topology.findings import Finding
from delayctl.topology.model import Topology
from delayctl.topology.plan import Plan


@dataclass(frozen=True, slots=True)
class Manner:
    """How a user wants it done."""

    yes: bool
    lock_timeout: Duration
    accept_loss: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True)
class Task:
    """A plan, and how it is spoken of."""

    plan: Plan
    source: str
    version: str
    output: str
    findings: tuple[Finding, ...] = ()

    @property
    def is_text(self) -> bool:
        """Say whether a person reads along."""
        return self.output == "text"

    def show(self) -> None:
        """Print the plan; as JSON it is printed at the end, together with what became of it."""
        if self.is_text:
            tell(views.plan_text(self.plan, source=self.source, version=self.version))

    def conclude(self, outcomes: list[Outcome]) -> None:
        """Print how it ended."""
        if not self.is_text:
            answer = views.plan_json(self.plan, version=self.version)
            answer["findings"] = list(map(finding_json, self.findings))
            tell(views.to_json_text({**answer, "outcomes": views.outcomes_json(outcomes)}))
        elif self.plan.changes or self.plan.refusals:
            tell(views.applied_text(self.plan, outcomes))


def plan_and_carry_out(
    host: Host, desired: Topology, source: str, manner: Manner, findings: tuple[Finding, ...] = ()
) -> int:
    """Plan under the lock where nobody is asked, and before it where somebody is."""
    if not manner.yes:
        made, version = host.plan(desired, manner.accept_loss)
        return confirm_and_carry_out(host, Task(made, source, version, manner.output, findings), manner)
    with locked(host, desired.prefix, manner.lock_timeout) as keep_lock:
        made, version = host.plan(desired, manner.accept_loss)
        task = Task(made, source, version, manner.output, findings)
        task.show()
        return _carry_out(host, task, keep_lock)


def confirm_and_carry_out(host: Host, task: Task, manner: Manner) -> int:
    """Ask where asking is due, then make sure under the lock that what was shown still holds."""
    task.show()
    if task.plan.writes and not task.plan.is_blocked and not manner.yes:
        if not task.is_text:
            click.echo(views.plan_text(task.plan, source=task.source, version=task.version), err=True)
        ask()
    with locked(host, task.plan.prefix, manner.lock_timeout) as keep_lock:
        host.check_fresh(task.plan)
        return _carry_out(host, task, keep_lock)


def ask(question: str = "Carry out these changes?") -> None:
    """Ask on a terminal, and stop on a no; where nobody can be asked, --yes has to be given."""
    if not sys.stdin.isatty():
        raise click.UsageError("this asks before it changes anything, and there is no terminal to ask on: give --yes")
    click.confirm(question, abort=True, err=True)


def _carry_out(host: Host, task: Task, keep_lock: Callable[[], None]) -> int:
    """Execute a plan, and print one line per change as it happens."""
    outcomes: list[Outcome] = []
    if task.plan.is_blocked:
        if not task.is_text:
            task.conclude(outcomes)
        return exit_codes.FAILED
    try:
        with host.broker() as broker:
            for outcome in execute(task.plan, broker, keep_lock=keep_lock):
                outcomes.append(outcome)
                if task.is_text:
                    tell(views.outcome_text(outcome))
    except BrokerError as error:
        click.echo(str(error), err=True)
        task.conclude(outcomes)
        return exit_codes.after_failure(outcomes)
    except KeyboardInterrupt:
        click.echo("\nStopped half-way. Run it again to complete it; a saved plan has to be made anew.", err=True)
        task.conclude(outcomes)
        return exit_codes.after_failure(outcomes)
    task.conclude(outcomes)
    return exit_codes.after_apply(task.plan, outcomes)
