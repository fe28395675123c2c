"""The command `graph`: a topology as a picture, from its file, from a broker, or from a plan."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.changes import read_plan
from delayctl.cli.graph_dot import dot
from delayctl.cli.graph_mermaid import mermaid
from delayctl.cli.graph_png import png
from delayctl.cli.graph_svg import svg
from delayctl.cli.graph_theme import THEMES, Theme
from delayctl.cli.host import Host, host_for
from delayctl.cli.inputs import refuse_inputs
from delayctl.cli.options import connection_from, connection_options, spec_from, template_options, topology_argument
from delayctl.cli.output import write_file
from delayctl.cli.views import plan_summary, to_json_text
from delayctl.topology.errors import BadOption
from delayctl.topology.expand import expand
from delayctl.topology.picture import Picture
from delayctl.topology.picture_depict import depict
from delayctl.topology.picture_subject import Subject, subject_of_file, subject_of_live, subject_of_plan
from delayctl.topology.plan_file import load_plan, looks_like_plan
from delayctl.topology.spec import Spec
from delayctl.topology.statistics import read_statistics

FORMATS = ("svg", "png", "mermaid", "dot", "json")
_ENDINGS = {
    ".svg": "svg",
    ".png": "png",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".json": "json",
}
_STDOUT = "-"


@click.command(
    short_help="Draw a topology: of a file, of a broker, or of a plan.",
    epilog="""\b
Examples:
  delayctl graph topology.yaml -o topology.svg
  delayctl graph topology.yaml -o topology.png --theme dark
  delayctl graph topology.yaml --format mermaid           # for a README, between ```mermaid and ```
  delayctl graph topology.yaml --live -o now.svg          # what is on the broker, with counts
  delayctl graph topology.yaml --plan -o changes.svg      # what apply would add, change and remove
  delayctl plan topology.yaml --out today.plan && delayctl graph today.plan -o today.svg
""",
)
@topology_argument
@click.option(
    "-o", "--out", default=_STDOUT, metavar="FILE", help="Where to; its ending says the format.  [default: stdout]"
)
@click.option(
    "--format", "wanted", type=click.Choice(FORMATS), help="The format.  [default: by the file's ending, else svg]"
)
@click.option("--live", is_flag=True, help="Draw what is on the broker, with counts, and how it differs from the file.")
@click.option("--plan", "with_plan", is_flag=True, help="Draw what apply would change on the broker.")
@click.option("--theme", type=click.Choice(sorted(THEMES)), default="light", show_default=True, help="The colours.")
@template_options
@connection_options
def graph(
    topology: str, *, out: str, wanted: str | None, live: bool, with_plan: bool, theme: str, **options: Any
) -> int:
    """Draw TOPOLOGY, a file or a plan that was saved with 'plan --out'."""
    if live and with_plan:
        raise click.UsageError("one picture shows one thing: give --live or --plan, not both")
    refuse_inputs("--out", None if out == _STDOUT else out, topology, options["values_files"])
    format = _format(out, wanted)
    picture = depict(_subject(topology, options, live=live, with_plan=with_plan))
    drawn = _drawn(picture, format, THEMES[theme])
    if out == _STDOUT:
        _print(drawn)
        return exit_codes.DONE
    write_file(out, drawn, what="the picture")
    click.echo(f"Wrote {out}: {picture.subtitle.rstrip('.')}.", err=True)
    return exit_codes.DONE


def _format(out: str, wanted: str | None) -> str:
    ending = Path(out).suffix.lower()
    if wanted is not None:
        return wanted
    if out == _STDOUT:
        return "svg"
    if ending not in _ENDINGS:
        known = ", ".join(_ENDINGS)
        raise BadOption(
            f"--out {out} says no format that is known", fix=f"end it with one of {known}, or give --format"
        )
    return _ENDINGS[ending]


def _drawn(picture: Picture, format: str, theme: Theme) -> str | bytes:
    match format:
        case "svg":
            return svg(picture, theme)
        case "png":
            return png(svg(picture, theme))
        case "mermaid":
            return mermaid(picture, theme)
        case "dot":
            return dot(picture, theme)
        case _:
            return f"{to_json_text(asdict(picture))}\n"


def _print(drawn: str | bytes) -> None:
    if isinstance(drawn, bytes) and sys.stdout.isatty():
        raise BadOption("a PNG is not for a terminal", fix="name a file with -o, or send it on with >")
    click.echo(drawn, nl=False)


def _subject(topology: str, options: dict[str, Any], *, live: bool, with_plan: bool) -> Subject:
    connection = connection_from(options)
    if _is_saved_plan(topology):
        if live or with_plan or any(options.values()):
            raise click.UsageError("a saved plan is drawn as it is: leave out --live, --plan, --set and --values")
        return _of_saved_plan(topology)
    spec, name = spec_from(topology, options), Path(topology).name
    file = subject_of_file(spec, expand(spec), title=name)
    if not live and not with_plan:
        return file
    host = host_for(connection, connection.vhost_for(spec))
    return _of_live(host, spec, name) if live else _of_plan(host, spec, file)


def _is_saved_plan(file: str) -> bool:
    try:
        with Path(file).open("rb") as source:
            return looks_like_plan(source.read(100).decode("utf-8", "replace"))
    except OSError:
        return False  # Whoever reads it as a topology says why it can't be read.


def _of_saved_plan(file: str) -> Subject:
    plan = load_plan(read_plan(file), file=file)
    title = f"{Path(file).name} → virtual host {plan.vhost}"
    return subject_of_plan(plan, None, title=title, subtitle=plan_summary(plan))


def _of_plan(host: Host, spec: Spec, file: Subject) -> Subject:
    plan, version = host.plan(expand(spec))
    title = f"{file.title} → {_where(host, version)}"
    return subject_of_plan(plan, file, title=title, subtitle=plan_summary(plan))


def _of_live(host: Host, spec: Spec, name: str) -> Subject:
    assert host.management is not None
    live = host.management.read(spec.prefix)
    title = f"{name} on {_where(host, live.version)}"
    return subject_of_live(spec, expand(spec), live, read_statistics(host.management), title=title)


def _where(host: Host, version: str) -> str:
    return f"virtual host {host.vhost}, RabbitMQ {version}"
