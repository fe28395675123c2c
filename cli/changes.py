"""Commands that compare with a broker and change it: plan, apply, destroy."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from delayctl.cli import exit_codes, views
from delayctl.cli.options import (
    DEFAULT_TOPOLOGY,
    Connection,
    connection_from,
    connection_options,
    output_option,
    spec_from,
    template_options,
    topology_argument,
)
from delayctl.cli.output import tell
from delayctl.topology.access import Access
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BrokerError, DelayctlError, ManagementUnavailable, NotPermitted, PlanUnreadable
from delayctl.topology.execute import Outcome, execute
from delayctl.topology.expand import expand
from delayctl.topology.live import Live
from delayctl.topology.lock import hold_lock
from delayctl.topology.management import Management
from delayctl.topology.model import Topology
from delayctl.topology.names import Names
from delayctl.topology.plan import Plan
from delayctl.topology.plan_file import dump_plan, load_plan
from delayctl.topology.rabbit import RabbitBroker
from delayctl.topology.survey import check_fresh, make_plan

_PLAN_ANEW = "make it anew: delayctl plan topology.yaml --out FILE"


@dataclass(frozen=True, slots=True)
class _Host:
    """One virtual host of one broker, and what is known of it without reading it."""

    access: Access
    vhost: str
    management: Management | None

    @contextmanager
    def broker(self) -> Iterator[RabbitBroker]:
        with RabbitBroker(self.access, self.management) as broker:
            yield broker

    def plan(self, desired: Topology, accept_loss: tuple[str, ...] = ()) -> tuple[Plan, str]:
        """Read the broker and compare; also says which version it is."""
        with self.broker() as broker:
            if self.management is None:
                return self._blind_plan(desired, broker), ""
            made, live = make_plan(desired, self.management, broker, vhost=self.vhost, accept_loss=accept_loss)
        return made, live.version

    def _blind_plan(self, desired: Topology, broker: RabbitBroker) -> Plan:
        """Everything is declared and nothing removed: over AMQP alone nothing can be looked at."""
        if desired.policies:
            raise ManagementUnavailable(
                "settings: policy needs the management API, since AMQP knows no policies",
                fix="give --management-url, or write settings: arguments",
            )
        for reference in desired.existing:
            broker.check(reference)
        return diff(replace(desired, existing=()), Live(), vhost=self.vhost)

    def check_fresh(self, plan: Plan) -> None:
        """Raise StalePlan where the broker is no longer as it was planned for."""
        if self.management is not None:
            with self.broker() as broker:
                check_fresh(plan, self.management, broker)


def _host(connection: Connection, vhost: str, *, use_management: bool = True) -> _Host:
    access = connection.access.at(vhost)
    return _Host(access, vhost, Management(access, vhost) if use_management else None)


@click.command(
    short_help="Show what apply would change, and what it would refuse.",
    epilog="""\b
Examples:
  delayctl plan topology.yaml
  delayctl plan topology.yaml --detailed-exitcode      # 2: changes are pending
  delayctl plan topology.yaml --out today.plan && delayctl apply --plan today.plan
""",
)
@topology_argument
@click.option("--out", metavar="FILE", help="Save the plan, to apply it later.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 when the broker differs from the file.")
@click.option(
    "--accept-loss",
    multiple=True,
    metavar="NAME",
    help="Plan the change of this object although messages are lost; may be repeated.",
)
@output_option
@template_options
@connection_options
def plan(
    topology: str, out: str | None, detailed_exitcode: bool, accept_loss: tuple[str, ...], output: str, **options: Any
) -> int:
    """Show what apply would change on the broker, and what it would refuse."""
    connection, spec = connection_from(options), spec_from(topology, options)
    host = _host(connection, connection.vhost_for(spec))
    made, version = host.plan(expand(spec), accept_loss)
    click.echo(_shown_plan(made, topology, version, output))
    if out:
        _save(made, out)
    return exit_codes.CHANGES_PENDING if detailed_exitcode and not made.is_empty else exit_codes.DONE


def _shown_plan(made: Plan, source: str, version: str, output: str) -> str:
    if output == "json":
        return views.to_json_text(views.plan_json(made, version=version))
    return views.plan_text(made, source=source, version=version)


def _save(made: Plan, out: str) -> None:
    try:
        Path(out).write_text(dump_plan(made), encoding="utf-8")
    except OSError as error:
        raise DelayctlError(
            f"the plan can't be saved: {error.strerror}", where=out, fix="name a place that can be written"
        ) from error
    click.echo(f"Saved to {out}. Apply it with: delayctl apply --plan {out}", err=True)


def _duration(_: click.Context, parameter: click.Parameter, text: str) -> Duration:
    try:
        return Duration.parse(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}: write 0s, 30s or 5m", param=parameter) from error


_apply_options = (
    click.option("--yes", "-y", is_flag=True, help="Do not ask."),
    click.option(
        "--accept-loss",
        multiple=True,
        metavar="NAME",
        help="Go ahead with this object although messages are lost; may be repeated.",
    ),
    click.option(
        "--lock-timeout",
        default="10s",
        show_default=True,
        callback=_duration,
        metavar="DURATION",
        help="How long to wait for another run.",
    ),
)


def _with_apply_options(command: Any) -> Any:
    for option in _apply_options:
        command = option(command)
    return command


@click.command(
    short_help="Bring the broker to what the file says.",
    epilog="""\b
Examples:
  delayctl apply topology.yaml
  delayctl apply topology.yaml --yes --url amqps://ops@mq.example.com/ --credentials-file ops.yaml
  delayctl apply --plan today.plan --yes
""",
)
@click.argument("topology", required=False, type=click.Path())
@click.option("--plan", "plan_file", metavar="FILE", help="Apply a plan that was saved with 'plan --out'.")
@click.option(
    "--no-management", is_flag=True, help="Use AMQP alone: declare everything, look at nothing, remove nothing."
)
@_with_apply_options
@output_option
@template_options
@connection_options
def apply(topology: str | None, plan_file: str | None, no_management: bool, output: str, **options: Any) -> int:
    """Bring the broker to what TOPOLOGY (topology.yaml) says: show the plan, ask, and carry it out."""
    connection = connection_from(options)
    if plan_file is not None:
        if no_management:
            raise click.UsageError("a saved plan needs the management API: leave --no-management out")
        return _apply_saved(connection, plan_file, output, {**options, "topology": topology})
    topology = DEFAULT_TOPOLOGY if topology is None else topology
    spec = spec_from(topology, options)
    host = _host(connection, connection.vhost_for(spec), use_management=not no_management)
    host = host if no_management else _with_what_answers(host, spec.prefix)
    if host.management is None:
        click.echo(
            "Over AMQP alone: drift, policies and what was applied before can't be seen; nothing is removed.", err=True
        )
    return _run(host, expand(spec), topology, output, options)


@click.command(
    short_help="Remove what was applied.",
    epilog="""\b
Examples:
  delayctl destroy topology.yaml
  delayctl destroy topology.yaml --yes --accept-loss delay.5m.queue
""",
)
@topology_argument
@_with_apply_options
@output_option
@template_options
@connection_options
def destroy(topology: str, output: str, **options: Any) -> int:
    """Remove what was applied for TOPOLOGY; queues that hold messages are kept, unless named."""
    connection, spec = connection_from(options), spec_from(topology, options)
    host = _host(connection, connection.vhost_for(spec))
    assert host.management is not None
    if host.management.read_record(spec.prefix) is None:
        click.echo(
            "There is no record on the broker of this topology. If it was applied over AMQP alone, apply it once",
            err=True,
        )
        click.echo("with the management API, then destroy it.", err=True)
    return _run(host, empty_topology(spec.prefix), f"destroy {topology}", output, options)


def _with_what_answers(host: _Host, prefix: str) -> _Host:
    """The host without its management API where that is off or closed to this user."""
    assert host.management is not None
    try:
        host.management.read_record(prefix)
    except (ManagementUnavailable, NotPermitted) as error:
        if isinstance(error, ManagementUnavailable) and not error.is_off:
            raise
        click.echo(f"Warning: {error.what}", err=True)
        return replace(host, management=None)
    return host


def _run(host: _Host, desired: Topology, source: str, output: str, options: dict[str, Any]) -> int:
    if not options["yes"]:
        made, version = host.plan(desired, options["accept_loss"])
        return _confirm_and_carry_out(host, _Task(made, source, version, output), options)
    with _locked(host, desired.prefix, options) as keep_lock:
        made, version = host.plan(desired, options["accept_loss"])
        task = _Task(made, source, version, output)
        task.show()
        return _carry_out(host, task, keep_lock)


def _apply_saved(connection: Connection, plan_file: str, output: str, options: dict[str, Any]) -> int:
    if options["accept_loss"] or options["values_files"] or options["assignments"] or options["topology"]:
        raise click.UsageError(
            "a saved plan is applied as it is: give the topology, --accept-loss, --set and --values to 'delayctl plan'"
        )
    made = load_plan(_read_plan(plan_file), file=plan_file)
    if connection.vhost_option not in (None, made.vhost):
        raise click.UsageError(f"the plan was made for virtual host '{made.vhost}', not '{connection.vhost_option}'")
    if not made.changes and not made.refusals and not made.writes:
        tell("The saved plan changes nothing.")
        return exit_codes.DONE
    return _confirm_and_carry_out(_host(connection, made.vhost), _Task(made, plan_file, "", output), options)


def _read_plan(plan_file: str) -> str:
    try:
        return Path(plan_file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PlanUnreadable("the file is not a saved plan", where=plan_file, fix=_PLAN_ANEW) from error
    except OSError as error:
        raise PlanUnreadable(f"the plan can't be read: {error.strerror}", where=plan_file, fix=_PLAN_ANEW) from error


@dataclass(frozen=True, slots=True)
class _Task:
    """A plan, and how it is spoken of."""

    plan: Plan
    source: str
    version: str
    output: str

    @property
    def is_text(self) -> bool:
        return self.output == "text"

    def show(self) -> None:
        """Print the plan; as JSON it is printed at the end, together with what became of it."""
        if self.is_text:
            tell(views.plan_text(self.plan, source=self.source, version=self.version))

    def conclude(self, outcomes: list[Outcome]) -> None:
        """Print how it ended."""
        if not self.is_text:
            answer = views.plan_json(self.plan, version=self.version)
            tell(views.to_json_text({**answer, "outcomes": views.outcomes_json(outcomes)}))
        elif self.plan.changes or self.plan.refusals:
            tell(views.applied_text(self.plan, outcomes))


def _confirm_and_carry_out(host: _Host, task: _Task, options: dict[str, Any]) -> int:
    """Ask where asking is due, then make sure under the lock that what was shown still holds."""
    task.show()
    if task.plan.changes and not task.plan.is_blocked and not options["yes"]:
        if not task.is_text:
            click.echo(views.plan_text(task.plan, source=task.source, version=task.version), err=True)
        _ask()
    with _locked(host, task.plan.prefix, options) as keep_lock:
        host.check_fresh(task.plan)
        return _carry_out(host, task, keep_lock)


@contextmanager
def _locked(host: _Host, prefix: str, options: dict[str, Any]) -> Iterator[Callable[[], None]]:
    def on_wait() -> None:
        click.echo("Another delayctl is changing this topology; waiting for it …", err=True)

    with hold_lock(host.access, prefix, wait_s=options["lock_timeout"].ms / 1000, on_wait=on_wait) as keep_lock:
        # The lock was taken over AMQP: a management API that can't see it belongs to another broker.
        if host.management is not None and not host.management.has_queue(Names(prefix).lock()):
            raise DelayctlError(
                "--url and --management-url lead to different brokers",
                where=f"{host.access.address} and {host.access.management_url}",
                fix="correct one of them; DELAYCTL_URL and DELAYCTL_MANAGEMENT_URL count too",
            )
        yield keep_lock


def _ask() -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("this asks before it changes anything, and there is no terminal to ask on: give --yes")
    click.confirm("Carry out these changes?", abort=True, err=True)


def _carry_out(host: _Host, task: _Task, keep_lock: Callable[[], None]) -> int:
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
        click.echo("\nStopped half-way. Apply the file again to complete it.", err=True)
        task.conclude(outcomes)
        return exit_codes.after_failure(outcomes)
    task.conclude(outcomes)
    return exit_codes.after_apply(task.plan, outcomes)
