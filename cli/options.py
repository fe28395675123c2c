"""Options that several commands share, and what they say together."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from delayctl.cli.inputs import read_topology_file, template_values
from delayctl.cli.submitted import refuse_written_passwords
from delayctl.topology.access import DEFAULT_URL, Access, Tls, access_from, credentials_from
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.spec import Spec
from delayctl.topology.wording import STDIN

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_TOPOLOGY = "topology.yaml"
DASH = "-"  # For stdin, or stdout where something is written.


class FileName(click.Path):
    """The name of a file, or -; an empty one is mostly a variable that is not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name as it is, or BadOption."""
        if value == "":
            raise BadOption(
                "no file is named", fix=f"name the topology file, such as {DEFAULT_TOPOLOGY}, or - for stdin"
            )
        return super().convert(value, param, ctx)


class TopologyFile(FileName):
    """The name of a file that is read, with stdin by the name that all messages call it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name, or BadOption."""
        return STDIN if value == DASH else super().convert(value, param, ctx)


topology_argument = click.argument("topology", default=DEFAULT_TOPOLOGY, type=TopologyFile())
output_option = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the answer is printed.",
)


def template_options(command: Command) -> Command:
    """--set and --values."""
    for option in (
        click.option(
            "--values",
            "values_files",
            multiple=True,
            metavar="FILE",
            help="YAML file of template values; may be repeated.",
        ),
        click.option(
            "--set", "assignments", multiple=True, metavar="NAME=VALUE", help="One template value; may be repeated."
        ),
    ):
        command = option(command)
    return command


def _seconds(_: click.Context, parameter: click.Parameter, value: float) -> float:
    if 0.1 <= value <= 3600:  # Which NaN is not.
        return value
    raise click.BadParameter(f"{value} is not between 0.1 and 3600 seconds", param=parameter)


def duration_value(_: click.Context, parameter: click.Parameter, text: str) -> Duration:
    """Read the value of an option that is a duration."""
    try:
        return Duration.parse(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}: write 0s, 30s or 5m", param=parameter) from error


def connection_options(command: Command) -> Command:
    """All that says where the broker is and how to get in."""
    for option in (
        click.option(
            "--timeout",
            type=float,
            callback=_seconds,
            default=10.0,
            show_default=True,
            metavar="SECONDS",
            help="How long to wait for an answer.",
        ),
        click.option("--insecure", is_flag=True, help="Do not verify the broker's certificate."),
        click.option(
            "--key-file", metavar="FILE", envvar="DELAYCTL_KEY_FILE", help="Key of the client certificate (PEM)."
        ),
        click.option("--cert-file", metavar="FILE", envvar="DELAYCTL_CERT_FILE", help="Client certificate (PEM)."),
        click.option(
            "--ca-file",
            metavar="FILE",
            envvar="DELAYCTL_CA_FILE",
            help="CA that signed the broker's certificate (PEM).",
        ),
        click.option(
            "--credentials-file",
            metavar="FILE",
            envvar="DELAYCTL_CREDENTIALS_FILE",
            help="File with username: and password: lines.",
        ),
        click.option(
            "--vhost", envvar="DELAYCTL_VHOST", metavar="NAME", help="Virtual host; overrides the file and the URL."
        ),
        click.option(
            "--management-url",
            envvar="DELAYCTL_MANAGEMENT_URL",
            metavar="URL",
            help="Management API.  [default: same host, port 15672 or 15671]",
        ),
        click.option(
            "--url",
            envvar="DELAYCTL_URL",
            default=DEFAULT_URL,
            metavar="URL",
            help="Broker, amqp:// or amqps://.  [default: amqp://127.0.0.1:5672/]",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection options of a command, as they were given."""

    access: Access
    vhost_option: str | None

    def vhost_for(self, spec: Spec) -> str:
        """The one virtual host that options, URL and file agree on."""
        if self.vhost_option is not None:
            if not self.vhost_option:
                raise BadOption("--vhost is empty", fix="name a virtual host, such as /, or leave the option out")
            return self.vhost_option
        if spec.vhost and self.access.vhost and spec.vhost != self.access.vhost:
            raise DelayctlError(
                f"the URL names virtual host '{self.access.vhost}', the file '{spec.vhost}'",
                fix="remove one of them, or decide with --vhost",
            )
        return spec.vhost or self.access.vhost or "/"


def connection_from(options: dict[str, Any]) -> Connection:
    """Take the connection options out of a command's options."""
    refuse_written_passwords(options)
    tls = Tls(
        options.pop("ca_file"), options.pop("cert_file"), options.pop("key_file"), verify=not options.pop("insecure")
    )
    access = access_from(
        options.pop("url"),
        management_url=options.pop("management_url"),
        credentials=credentials_from(options.pop("credentials_file"), os.environ),
        tls=tls,
        timeout_s=options.pop("timeout"),
    )
    return Connection(access, options.pop("vhost"))


def refuse_other_input(topology: str, what: str, *, is_read: bool) -> None:
    """Raise BadOption where something else would be read from stdin, after the topology is."""
    if topology == STDIN and is_read:
        raise BadOption(f"stdin can't be the topology and {what}", fix="name a file for one of them")


def refuse_question(topology: str, *, yes: bool) -> None:
    """Raise BadOption where somebody would be asked who has no stdin to answer on."""
    if topology == STDIN and not yes:
        what = "this asks before it changes anything, and stdin is the topology"
        raise BadOption(what, fix="give --yes, or name a file")


def spec_from(topology: str, options: dict[str, Any]) -> Spec:
    """Read the topology file with the template options of a command."""
    assignments = options.pop("assignments")
    values = template_values(options.pop("values_files"), assignments)
    return read_topology_file(topology, values, assignments=assignments)
