"""Commands that compare with a broker and change it: plan, apply, destroy."""

from pathlib import Path
from typing import Any

import click
from delayctl.cli import exit_codes, views
from delayctl.cli.carry_out import Manner, Task, confirm_and_carry_out, plan_and_carry_out
from delayctl.cli.host import host_for, with_what_answers
from delayctl.cli.inputs import refuse_inputs
from delayctl.cli.lint_views import finding_json
from delayctl.cli.linting import grave_findings, refuse_errors
from delayctl.cli.options import (
    DEFAULT_TOPOLOGY,
    Connection,
    TopologyFile,
    connection_from,
    connection_options,
    duration_value,
    output_option,
    refuse_question,
    spec_from,
    template_options,
    topology_argument,
)
from delayctl.cli.output import tell, write_file
from delayctl.topology.diff import empty_topology
from delayctl.topology.errors import PlanUnreadable
from delayctl.topology.expand import expand
from delayctl.topology.findings import Finding
from delayctl.topology.plan import Plan
from delayctl.topology.plan_file import dump_plan, load_plan
from delayctl.topology.wording import command

_WITHOUT_MANAGEMENT = "or where additions alone are wanted apply without it: delayctl apply --no-management"
_BLIND = "Over AMQP alone: drift, policies and what was applied before can't be seen; nothing is removed."
_TWICE = "A route that moved keeps its old way too: its messages come twice. The management API would see that."
_PLAN_ANEW = "make it anew: delayctl plan topology.yaml --out FILE"


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
    refuse_inputs("--out", out, topology, options["values_files"])
    connection, spec = connection_from(options), spec_from(topology, options)
    host = host_for(connection, connection.vhost_for(spec), without=_WITHOUT_MANAGEMENT)
    desired, is_text = expand(spec), output == "text"
    made, version = host.plan(desired, accept_loss)
    findings = grave_findings(spec, desired, topology, is_text=is_text)
    click.echo(_shown_plan(made, topology, version, output, findings))
    if out:
        refuse_errors(findings, topology, is_text=is_text, what="the plan is not saved")
        _save(made, out)
    return exit_codes.CHANGES_PENDING if detailed_exitcode and not made.is_empty else exit_codes.DONE


def _shown_plan(made: Plan, source: str, version: str, output: str, findings: tuple[Finding, ...]) -> str:
    if output == "json":
        answer = {**views.plan_json(made, version=version), "findings": list(map(finding_json, findings))}
        return views.to_json_text(answer)
    return views.plan_text(made, source=source, version=version)


def _save(made: Plan, out: str) -> None:
    write_file(out, dump_plan(made), what="the plan")
    click.echo(f"Saved to {out}. Apply it with: {command('delayctl', 'apply', '--plan', out)}", err=True)


_apply_options = (
    click.option("--yes", "-y", is_flag=True, help="Do not ask."),
    click.option(
        "--wait", is_flag=True, help="Wait until delay queues that change or go are empty, and go on to the end."
    ),
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
        callback=duration_value,
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
  delayctl apply topology.yaml --yes --wait             # changed delay queues: wait until they are empty, go on
  delayctl apply --plan today.plan --yes
""",
)
@click.argument("topology", required=False, type=TopologyFile())
@click.option("--plan", "plan_file", metavar="FILE", help="Apply a plan that was saved with 'plan --out'.")
@click.option(
    "--no-management", is_flag=True, help="Use AMQP alone: declare everything, look at nothing, remove nothing."
)
@_with_apply_options
@output_option
@template_options
@connection_options
def apply(topology: str | None, plan_file: str | None, no_management: bool, **options: Any) -> int:
    """Bring the broker to what TOPOLOGY (topology.yaml) says: show the plan, ask, and carry it out."""
    connection, manner = connection_from(options), _manner(options)
    if plan_file is not None:
        if no_management or topology is not None or manner.accept_loss or any(options.values()):
            raise click.UsageError("a saved plan is applied as it is: give what shapes it to 'delayctl plan'")
        if manner.wait:
            raise click.UsageError(
                "a saved plan ends where waiting begins: go on with 'delayctl apply topology.yaml --wait'"
            )
        return _apply_saved(connection, plan_file, manner)
    topology = DEFAULT_TOPOLOGY if topology is None else topology
    refuse_question(topology, yes=manner.yes)
    spec = spec_from(topology, options)
    desired, is_text = expand(spec), manner.output == "text"
    findings = grave_findings(spec, desired, topology, is_text=is_text)
    refuse_errors(findings, topology, is_text=is_text, what="nothing is applied")
    vhost = connection.vhost_for(spec)
    host = host_for(connection, vhost, use_management=not no_management, without=_WITHOUT_MANAGEMENT)
    host = host if no_management else with_what_answers(host, desired)
    if host.management is None:
        click.echo(f"{_BLIND}\n{_TWICE}" if no_management else _BLIND, err=True)
    return plan_and_carry_out(host, desired, topology, manner, findings)


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
def destroy(topology: str, **options: Any) -> int:
    """Remove what was applied for TOPOLOGY; queues that hold messages are kept, unless named."""
    connection, manner = connection_from(options), _manner(options)
    refuse_question(topology, yes=manner.yes)
    spec = spec_from(topology, options)
    host = host_for(connection, connection.vhost_for(spec))
    assert host.management is not None
    if host.management.read_record(spec.prefix) is None:
        host.management.check_vhost()  # There is no record of what is in none, either.
        click.echo(
            "There is no record on the broker of this topology. If it was applied over AMQP alone, apply it once",
            err=True,
        )
        click.echo("with the management API, then destroy it.", err=True)
    nothing = empty_topology(spec.prefix, expand(spec).existing)
    return plan_and_carry_out(host, nothing, f"destroy {topology}", manner)


def _manner(options: dict[str, Any]) -> Manner:
    return Manner(*(options.pop(name) for name in ("yes", "lock_timeout", "accept_loss", "output", "wait")))


def _apply_saved(connection: Connection, plan_file: str, manner: Manner) -> int:
    made = load_plan(read_plan(plan_file), file=plan_file)
    _refuse_another_vhost(connection, made.vhost)
    if made.is_empty and not made.writes:
        task = Task(made, plan_file, "", manner.output)
        task.conclude([]) if manner.output == "json" else tell("The saved plan changes nothing.")
        return exit_codes.DONE
    task = Task(made, plan_file, "", manner.output, is_saved=True)
    return confirm_and_carry_out(host_for(connection, made.vhost), task, manner)


def _refuse_another_vhost(connection: Connection, planned: str) -> None:
    """Raise UsageError where a saved plan is for another virtual host than --vhost says, or else the URL."""
    option, by_url = connection.vhost_option, connection.access.vhost
    if option is None and by_url not in (None, planned):
        how = "plan again with this URL, or name the other with --vhost"
        raise click.UsageError(f"the plan was made for virtual host '{planned}', and the URL names '{by_url}': {how}")
    if option not in (None, planned):
        raise click.UsageError(f"the plan was made for virtual host '{planned}', not '{option}'")


def read_plan(plan_file: str) -> str:
    """The text of a saved plan, or PlanUnreadable with the reason."""
    try:
        return Path(plan_file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PlanUnreadable("the file is not a saved plan", where=plan_file, fix=_PLAN_ANEW) from error
    except OSError as error:
        raise PlanUnreadable(f"the plan can't be read: {error.strerror}", where=plan_file, fix=_PLAN_ANEW) from error
