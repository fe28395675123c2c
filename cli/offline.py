"""Commands that need no broker: init, render, validate (unless asked to look at one), schema."""

from importlib.resources import files
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.inputs import render_file, template_values
from delayctl.cli.lint_views import problems_sarif, report_json, report_sarif, report_text
from delayctl.cli.linting import lint_live, uri_of
from delayctl.cli.options import (
    DASH,
    FileName,
    connection_from,
    connection_options,
    spec_from,
    template_options,
    topology_argument,
)
from delayctl.cli.output import write_file
from delayctl.cli.views import to_json_text
from delayctl.topology.duration import MAX_TTL_MS, Duration
from delayctl.topology.errors import BadOption, InvalidTopology
from delayctl.topology.expand import expand
from delayctl.topology.findings import Severity
from delayctl.topology.ladder import most_units
from delayctl.topology.lint import RULES, lint
from delayctl.topology.model import Topology
from delayctl.topology.spec import DEFAULT_LEVELS, LadderSpec, Spec
from delayctl.topology.wording import argument, plural
from jinja2 import Environment, StrictUndefined


@click.command(
    short_help="Write a commented file to start from.",
    epilog="""\b
Examples:
  delayctl init
  delayctl init shop.yaml --from-rocketmq "1s 5s 10s 30s 1m 2m"
""",
)
@click.argument("file", default="topology.yaml", type=FileName())
@click.option("--from-rocketmq", metavar="LEVELS", help="Take the levels from a RocketMQ messageDelayLevel string.")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
def init(file: str, from_rocketmq: str | None, force: bool) -> int:
    """Write a commented topology FILE to start from; - is stdout."""
    levels = list(DEFAULT_LEVELS) if from_rocketmq is None else _rocketmq_levels(from_rocketmq)
    template = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False).from_string(  # noqa: S701 (YAML, not HTML)
        files("delayctl.cli").joinpath("topology.yaml.j2").read_text(encoding="utf-8")
    )
    text = template.render(levels=levels, last=levels[-1], rocketmq=from_rocketmq and " ".join(levels))
    if file == DASH:
        click.echo(text, nl=False)
        return exit_codes.DONE
    write_file(file, text, overwrite=force)
    click.echo(f"Wrote {file}. Next: delayctl validate {argument(file)}, then delayctl plan {argument(file)}.")
    return 0


def _rocketmq_levels(text: str) -> list[str]:
    levels = text.split()
    fix = 'write them as RocketMQ does, such as "1s 5s 10s 30s 1m"'
    for level in levels:
        try:
            duration = Duration.parse(level)
        except ValueError as error:
            raise BadOption(f"--from-rocketmq: {error}", fix=fix) from error
        if not 1 <= duration.ms <= MAX_TTL_MS:
            raise BadOption(f"--from-rocketmq: {level} is out of range", fix=f"choose 1ms to {Duration(MAX_TTL_MS)}")
    if not levels or len(set(levels)) < len(levels):
        raise BadOption("--from-rocketmq names no level, or one twice", fix=fix)
    return levels


@click.command(
    short_help="Print the file after templating.",
    epilog="""\b
Examples:
  delayctl render topology.yaml
  delayctl render topology.yaml --set region=eu --values prod.yaml
""",
)
@topology_argument
@template_options
def render(topology: str, values_files: tuple[str, ...], assignments: tuple[str, ...]) -> int:
    """Print TOPOLOGY after templating."""
    values = template_values(values_files, assignments)
    click.echo(render_file(topology, values, assignments=assignments).text, nl=False)
    return 0


@click.command(
    short_help="Check the file, and foretell what would go wrong with it.",
    epilog="""\b
Examples:
  delayctl validate topology.yaml
  delayctl validate topology.yaml --strict                  # fail on warnings too
  git show main:topology.yaml | delayctl validate -         # - is stdin, here and wherever a TOPOLOGY is read
  delayctl validate topology.yaml --live --url amqp://ops@mq.example.com/ --credentials-file ops.yaml
  delayctl validate topology.yaml --output sarif > delayctl.sarif

\b
Exit code: 0 when there is no error, 1 when there is one; with --strict a warning counts too.
""",
)
@topology_argument
@click.option(
    "--live", is_flag=True, help="Look at the broker as well: policies, permissions, version, memory, messages."
)
@click.option("--strict", is_flag=True, help="Fail on warnings, not on errors alone.")
@click.option("--show-silenced", is_flag=True, help="List what the file silences under lint.ignore.")
@click.option(
    "--output",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="How the answer is printed.",
)
@template_options
@connection_options
def validate(topology: str, *, live: bool, strict: bool, show_silenced: bool, output: str, **options: Any) -> int:
    """Check TOPOLOGY, without a broker unless --live is given; every problem is reported, with line and fix."""
    try:
        spec = spec_from(topology, options)
    except InvalidTopology as error:
        if output == "text":
            raise
        is_sarif = output == "sarif"
        answer = problems_sarif(error.problems, uri_of(topology)) if is_sarif else _invalid_json(error)
        click.echo(to_json_text(answer))
        return exit_codes.FAILED
    desired = expand(spec)
    report = lint_live(spec, desired, connection_from(options)) if live else lint(spec, desired)
    match output:
        case "json":
            click.echo(to_json_text({**_valid_json(spec, desired), **report_json(report)}))
        case "sarif":
            click.echo(to_json_text(report_sarif(report, RULES, uri_of(topology))))
        case _:
            findings = report_text(report, topology, show_silenced=show_silenced)
            click.echo(_valid_text(topology, spec, desired) + (f"\n\n{findings}" if findings else ""))
    fatal = (Severity.ERROR, Severity.WARNING) if strict else (Severity.ERROR,)
    return exit_codes.FAILED if report.of(*fatal) else exit_codes.DONE


def _invalid_json(error: InvalidTopology) -> dict[str, Any]:
    return {"valid": False, "problems": problems_json(error)}


def problems_json(error: InvalidTopology) -> list[dict[str, Any]]:
    """Problems as programs read them."""
    return [
        {"message": problem.message, "file": problem.location.file, "line": problem.location.line, "fix": problem.fix}
        for problem in error.problems
    ]


def _valid_text(file: str, spec: Spec, desired: Topology) -> str:
    counts = (
        plural(len(spec.levels), "level"),
        *([f"a ladder of {plural(spec.ladder.steps, 'step')}"] if spec.ladder else []),
        plural(len(desired.exchanges), "exchange"),
        plural(len(desired.queues), "queue"),
        plural(len(desired.bindings), "binding"),
        *([plural(len(desired.policies), "policy")] if desired.policies else []),
    )
    return f"{file} is valid: {', '.join(counts)}."


def _valid_json(spec: Spec, desired: Topology) -> dict[str, Any]:
    return {
        "valid": True,
        "levels": {level.name: level.ttl.ms for level in spec.levels},
        "ladder": _ladder_json(spec.ladder) if spec.ladder else None,
        "exchanges": [exchange.name for exchange in desired.exchanges],
        "queues": [queue.name for queue in desired.queues],
        "bindings": len(desired.bindings),
        "policies": [policy.name for policy in desired.policies],
        "existing": [reference.name for reference in desired.existing],
    }


def _ladder_json(ladder: LadderSpec) -> dict[str, int]:
    return {"unit_ms": ladder.unit.ms, "steps": ladder.steps, "longest_ms": ladder.unit.ms * most_units(ladder.steps)}


@click.command(
    short_help="Print the JSON Schema of the file, for editors.",
    epilog="""\b
Examples:
  delayctl schema > topology.schema.json
  # then, at the top of topology.yaml:
  # yaml-language-server: $schema=topology.schema.json
""",
)
def schema() -> int:
    """Print the JSON Schema of topology.yaml, for editors."""
    click.echo(files("delayctl.topology").joinpath("schema.json").read_text(encoding="utf-8"), nl=False)
    return 0
