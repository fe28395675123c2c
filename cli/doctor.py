"""The command that examines a live topology: what is wrong, why, and what to run against it."""

import time
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.bedside import Bedside, by_file, by_record
from delayctl.cli.doctor_views import doctor_json, doctor_text
from delayctl.cli.options import TopologyFile, connection_from, connection_options, output_option, template_options
from delayctl.cli.views import to_json_text
from delayctl.topology.diagnosis import Diagnosis, diagnose
from delayctl.topology.doctor import CHECKS
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.examination import Examination
from delayctl.topology.findings import Severity

_SHORTEST_WATCH, _LONGEST_WATCH = Duration.parse("1s"), Duration.parse("1h")


@click.command(
    short_help="Say what is wrong, why, and how to mend it.",
    epilog="""\b
Examples:
  delayctl doctor topology.yaml
  delayctl doctor topology.yaml --watch-for 30s        # also says what is getting worse
  delayctl doctor --vhost shop                         # without the file: by the broker's own record
  delayctl doctor topology.yaml --output json | jq -r '.findings[] | [.code, .at, .message] | @tsv'

\b
Exit code: 0 when nothing is wrong, 1 when something is; warnings count with --strict only.
""",
)
@click.argument("topology", required=False, type=TopologyFile())
@click.option(
    "--watch-for", metavar="DURATION", help="Look twice, so long apart: what grows meanwhile is told apart.  [1s to 1h]"
)
@click.option("--no-peek", is_flag=True, help="Do not look into parking queues; then keys and reasons are not known.")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
@click.option("--prefix", default="", metavar="TEXT", help="Without a file: the prefix of the topology.")
@output_option
@template_options
@connection_options
def doctor(
    topology: str | None,
    *,
    watch_for: str | None,
    no_peek: bool,
    strict: bool,
    prefix: str,
    output: str,
    **options: Any,
) -> int:
    """Examine TOPOLOGY on its broker; without a file, what the broker remembers to have been applied.

    Nothing is changed. Parked messages are looked at and put back, unless --no-peek is given.
    """
    pause = _pause(watch_for)
    if topology is not None and prefix:
        raise click.UsageError("--prefix is for when there is no file: a file has its own")
    connection = connection_from(options)
    bedside = by_file(topology, connection, options) if topology else by_record(prefix, connection)
    examination = _examined(bedside, pause, peeks=not no_peek)
    found = diagnose(CHECKS, examination)
    if output == "json":
        click.echo(to_json_text(doctor_json(examination, found, checks=len(CHECKS))))
    else:
        click.echo(doctor_text(examination, found, checks=len(CHECKS)))
    return _code(found, strict=strict)


def _pause(text: str | None) -> Duration | None:
    if text is None:
        return None
    try:
        pause = Duration.parse(text)
    except ValueError as error:
        raise BadOption(f"--watch-for {error}", fix="write it as 30s, or 2m") from error
    if not _SHORTEST_WATCH <= pause <= _LONGEST_WATCH:
        raise BadOption(f"--watch-for {pause} is not between {_SHORTEST_WATCH} and {_LONGEST_WATCH}", fix="write 30s")
    return pause


def _examined(bedside: Bedside, pause: Duration | None, *, peeks: bool) -> Examination:
    if pause is None:
        return bedside.examine(peeks=peeks)
    earlier = bedside.status()
    click.echo(f"Watching for {pause} …", err=True)
    time.sleep(pause.ms / 1000)
    return bedside.examine(peeks=peeks, earlier=earlier, watched=pause)


def _code(found: tuple[Diagnosis, ...], *, strict: bool) -> int:
    grave = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    return exit_codes.FAILED if any(diagnosis.severity in grave for diagnosis in found) else exit_codes.DONE
