"""The command that hands a topology to other tools: export."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, assert_never

import click
from delayctl.cli import exit_codes
from delayctl.cli.export_quoting import compose_text, hcl_value, yaml_value
from delayctl.cli.export_views import FORMATS, Format, beyond, compose_values, kubernetes_values, terraform_values
from delayctl.cli.inputs import refuse_inputs
from delayctl.cli.options import spec_from, template_options, topology_argument
from delayctl.cli.output import write_file
from delayctl.cli.views import to_json_text
from delayctl.topology.definitions import definitions_of
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.model import Topology
from delayctl.topology.wording import plural, shorten
from jinja2 import Environment, StrictUndefined

_TEMPLATES = {
    "terraform": "export_terraform.tf.j2",
    "kubernetes": "export_kubernetes.yaml.j2",
    "compose": "export_compose.yaml.j2",
}
_STDOUT = "-"


@click.command(
    short_help="Write the topology for another tool.",
    epilog="""\b
Examples:
  delayctl export topology.yaml --format definitions --out definitions.json
  curl -u admin -H content-type:application/json -d @definitions.json http://127.0.0.1:15672/api/definitions/%2F
  delayctl export topology.yaml --format terraform > delay.tf
  delayctl export topology.yaml --format kubernetes --cluster mq | kubectl apply -f -
  delayctl export topology.yaml --format compose --out compose.yaml
""",
)
@topology_argument
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What it is written for.")
@click.option("--out", default=_STDOUT, metavar="FILE", help="Where it is written to; - is stdout, the default.")
@click.option("--vhost", envvar="DELAYCTL_VHOST", metavar="NAME", help="Virtual host; overrides the file.")
@click.option(
    "--cluster", default="rabbitmq", show_default=True, metavar="NAME", help="The RabbitmqCluster, for kubernetes."
)
@template_options
def export(topology: str, form: Format, out: str, vhost: str | None, cluster: str, **options: Any) -> int:
    """Write what TOPOLOGY describes as RabbitMQ definitions, Terraform, Kubernetes objects or docker compose."""
    if vhost == "" or not cluster:
        raise BadOption(f"--{'cluster' if vhost else 'vhost'} is empty", fix="name one, or leave the option out")
    refuse_inputs("--out", None if out == _STDOUT else out, topology, options["values_files"])
    spec = spec_from(topology, options)
    desired, vhost = expand(spec), vhost or spec.vhost or "/"
    _refuse_what_is_beyond(desired, form, vhost, source=topology)
    text = _exported(desired, form, source=topology, vhost=vhost, cluster=cluster)
    if form == "definitions" and desired.existing:
        names = ", ".join(shorten(reference.name) for reference in desired.existing)
        click.echo(f"Not exported, since the file marks them as existing: {names}", err=True)
    _write(text, out)
    return exit_codes.DONE


def _refuse_what_is_beyond(desired: Topology, form: Format, vhost: str, *, source: str) -> None:
    if reasons := list(beyond(desired, form, vhost)):
        more = f", and {plural(len(reasons) - 1, 'thing')} more of this kind" if len(reasons) > 1 else ""
        fix = "change the file, mark the object as existing and make it elsewhere, or use --format definitions"
        raise DelayctlError(f"{form} can't say that {reasons[0]}{more}", where=source, fix=fix)


def _exported(desired: Topology, form: Format, *, source: str, vhost: str, cluster: str) -> str:
    match form:
        case "definitions":
            return to_json_text(definitions_of(desired, vhost)) + "\n"
        case "terraform":
            values = terraform_values(desired)
        case "kubernetes":
            values = kubernetes_values(desired, vhost)
        case "compose":
            values = compose_values(desired, vhost)
        case _:
            assert_never(form)
    template = _environment().from_string(_template(form))
    given = {"source": Path(source).name, "vhost": vhost, "cluster": cluster, "existing": desired.existing}
    return template.render({**given, "is_spread": bool(desired.sharded), **values})


def _template(form: Format) -> str:
    return files("delayctl.cli").joinpath(_TEMPLATES[form]).read_text(encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 (not HTML)
    environment.filters |= {"hcl": hcl_value, "yaml": yaml_value, "json": json.dumps, "compose": compose_text}
    return environment


def _write(text: str, out: str) -> None:
    if out == _STDOUT:
        click.echo(text, nl=False)
        return
    write_file(out, text, what="the export")
    click.echo(f"Wrote {out}.", err=True)
