"""From a plan to its end: show it, ask, execute it, tell what became of it."""

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

import click
from delayctl.cli import exit_codes, views
from delayctl.cli.host import Host, locked
from delayctl.cli.lint_views import finding_json
from delayctl.cli.output import tell
from delayctl.cli.waiting import Patience, is_not_yet
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BrokerError
from delayctl.topology.execute import Done, Outcome, Skipped, execute
from delayctl.topology.findings import Finding
from delayctl.topology.model import Topology
from delayctl.topology.plan import Change, Plan, Refusal

_PUT_OFF_AT_MOST = 20  # Times in a row; then something keeps coming that no plan counts on.


@dataclass(frozen=True, slots=True)
class Manner:
    """How a user wants it done."""

    yes: bool
    lock_timeout: Duration
    accept_loss: tuple[str, ...]
    output: str
    wait: bool = False  # For queues to empty, until all is done.


@dataclass(frozen=True, slots=True)
class Task:
    """A plan, and how it is spoken of."""

    plan: Plan
    source: str
    version: str
    output: str
    findings: tuple[Finding, ...] = ()
    refused: tuple[Refusal, ...] = ()  # By a plan that followed the one that was shown.
    is_saved: bool = False  # It was made by an earlier command, and can't be carried out again.

    @property
    def is_text(self) -> bool:
        """Say whether a person reads along."""
        return self.output == "text"

    def followed_by(self, plan: Plan) -> "Task":
        """The task with one more plan in it: all changes of both, and what is left to wait for."""
        new = tuple(refusal for refusal in plan.refusals if refusal not in self.plan.refusals)
        joined = replace(plan, changes=(*self.plan.changes, *plan.changes))
        return replace(self, plan=joined, refused=tuple(dict.fromkeys((*self.refused, *new))))

    def without(self, changes: Collection[Change]) -> "Task":
        """The task without changes that a later plan will have again."""
        left = tuple(change for change in self.plan.changes if change not in changes)
        return replace(self, plan=replace(self.plan, changes=left))

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
        elif not self.plan.is_empty:
            if still := [refusal for refusal in self.refused if refusal in self.plan.refusals]:
                tell(views.refusals_text(still))
            tell(views.applied_text(self.plan, outcomes))
            if any(wait.messages or self.is_saved for wait in self.plan.waits):
                tell(views.left_text(self.plan, source=self.source, is_saved=self.is_saved))


@dataclass(frozen=True, slots=True)
class Goal:
    """What a user asked for; it may take several plans to come there."""

    host: Host
    desired: Topology
    accept_loss: tuple[str, ...]

    def plan(self) -> tuple[Plan, str]:
        """What can be done now."""
        return self.host.plan(self.desired, self.accept_loss)


def plan_and_carry_out(
    host: Host, desired: Topology, source: str, manner: Manner, findings: tuple[Finding, ...] = ()
) -> int:
    """Plan under the lock where nobody is asked, and before it where somebody is."""
    goal = Goal(host, desired, manner.accept_loss)
    if not manner.yes:
        made, version = goal.plan()
        return confirm_and_carry_out(host, Task(made, source, version, manner.output, findings), manner, goal)
    with locked(host, desired.prefix, manner.lock_timeout) as keep_lock:
        made, version = goal.plan()
        task = Task(made, source, version, manner.output, findings)
        task.show()
        return _Run(host, task, manner, keep_lock, goal).to_the_end()


def confirm_and_carry_out(host: Host, task: Task, manner: Manner, goal: Goal | None = None) -> int:
    """Ask where asking is due, then make sure under the lock that what was shown still holds."""
    task.show()
    if task.plan.writes and not task.plan.is_blocked and not manner.yes:
        if not task.is_text:
            click.echo(views.plan_text(task.plan, source=task.source, version=task.version), err=True)
        ask()
    with locked(host, task.plan.prefix, manner.lock_timeout) as keep_lock:
        host.check_fresh(task.plan)
        return _Run(host, task, manner, keep_lock, goal).to_the_end()


def ask(question: str = "Carry out these changes?") -> None:
    """Ask on a terminal, and stop on a no; where nobody can be asked, --yes has to be given."""
    if not sys.stdin.isatty():
        raise click.UsageError("this asks before it changes anything, and there is no terminal to ask on: give --yes")
    confirm(question)


def confirm(question: str) -> None:
    """Go on with a yes; Ctrl-C and a no end a command that has changed nothing yet."""
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as stop:
        raise click.Abort("Nothing was changed.") from stop


@dataclass
class _Run:
    """One plan after the other, as far as it goes without waiting, or to the end. A saved plan has no goal, and is the only one."""

    host: Host
    task: Task
    manner: Manner
    keep_lock: Callable[[], None]
    goal: Goal | None
    outcomes: list[Outcome] = field(default_factory=list)
    times_put_off: int = 0  # In a row.

    def to_the_end(self) -> int:
        """Carry out what there is to do, and print one line per change as it happens."""
        if self.task.plan.is_blocked:
            if not self.task.is_text:
                self.task.conclude(self.outcomes)
            return exit_codes.FAILED
        code = None
        try:
            self._execute(self.task.plan)
            self._go_on()
        except BrokerError as error:
            click.echo(str(error), err=True)
            code = exit_codes.after_failure(self.outcomes)
        except KeyboardInterrupt:
            click.echo("\nStopped half-way. Run it again to complete it; a saved plan has to be made anew.", err=True)
            code = exit_codes.after_failure(self.outcomes)
        self.task.conclude(self.outcomes)
        return exit_codes.after_apply(self.task.plan, self.outcomes) if code is None else code

    def _go_on(self) -> None:
        """Follow what the broker has come to, until there is nothing left to do, or nothing but to wait."""
        patience = Patience(self.host.broker, self.keep_lock)
        while self.goal and (self.times_put_off or self.task.plan.waits) and not self._has_failed():
            if self.times_put_off:
                patience.pause()
            plan, _ = self.goal.plan()
            self.task = self.task.followed_by(plan)
            if plan.is_blocked:
                return
            # What is empty already is held up by something else, and waiting would be over at once.
            emptying = [wait for wait in plan.waits if wait.messages]
            if plan.changes:
                self._execute(plan)
            elif self.manner.wait and emptying:
                patience.wait_for(emptying)
            else:
                return

    def _execute(self, plan: Plan) -> None:
        """Carry out a plan; what messages that came late stand in the way of is put off, where it is waited for."""
        may_put_off = self.manner.wait and self.goal and self.times_put_off < _PUT_OFF_AT_MOST
        put_off: set[Change] = set()
        with self.host.broker() as broker:
            for outcome in execute(plan, broker, keep_lock=self.keep_lock):
                if may_put_off and (is_not_yet(outcome) or (put_off and isinstance(outcome, Skipped))):
                    put_off.add(outcome.change)
                    continue
                self.outcomes.append(outcome)
                if self.task.is_text:
                    tell(views.outcome_text(outcome))
        self.task = self.task.without(put_off)
        self.times_put_off = self.times_put_off + 1 if put_off else 0

    def _has_failed(self) -> bool:
        return any(not isinstance(outcome, Done) for outcome in self.outcomes)
