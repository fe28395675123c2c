"""The command that tells figures to a monitoring system."""

import ipaddress
import signal
import time
from pathlib import Path
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.host import Host, host_for
from delayctl.cli.inputs import refuse_inputs
from delayctl.cli.metrics_server import Shared, address_url, serving
from delayctl.cli.options import (
    connection_from,
    connection_options,
    duration_value,
    spec_from,
    template_options,
    topology_argument,
)
from delayctl.cli.output import replace_file
from delayctl.cli.status import gather
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.exposition import exposition
from delayctl.topology.metrics import Reading, families
from delayctl.topology.model import Topology
from delayctl.topology.spec import Spec
from delayctl.topology.status import Facts

_HIGHEST_PORT = 65_535
_LOOPBACK = "127.0.0.1"


def _address(_: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    place, port = text.rpartition(":")[::2] if ":" in text else (_LOOPBACK, text)
    host = place.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > _HIGHEST_PORT:
        raise click.BadParameter(f"{text} is not an address: write 9725, 127.0.0.1:9725 or [::1]:9725", param=parameter)
    return host, int(port)


@click.command(
    short_help="Tell figures to Prometheus.",
    epilog="""\b
Examples:
  delayctl metrics topology.yaml                                   # once, to stdout
  delayctl metrics topology.yaml --listen 127.0.0.1:9725           # for Prometheus to scrape
  delayctl metrics topology.yaml --textfile /var/lib/prometheus/node-exporter/delayctl.prom
  delayctl metrics shop.yaml --name shop | promtool check metrics

\b
A broker that can't be read is told as delayctl_up 0. Exit code: 0 when it was read, 1 when not;
0 when --listen was stopped.
""",
)
@topology_argument
@click.option(
    "--textfile", metavar="FILE", help="Write to this file, all at once, for node_exporter's textfile collector."
)
@click.option(
    "--listen",
    metavar="[HOST:]PORT",
    callback=_address,
    help="Serve /metrics there until Ctrl-C, on loopback if no host is named; who can reach it may read.",
)
@click.option(
    "--max-age",
    default="5s",
    show_default=True,
    metavar="DURATION",
    callback=duration_value,
    help="With --listen: for how long one reading serves every scrape.",
)
@click.option("--name", metavar="TEXT", help="What the label topology says.  [default: the name of the file]")
@template_options
@connection_options
def metrics(
    topology: str,
    *,
    textfile: str | None,
    listen: tuple[str, int] | None,
    max_age: Duration,
    name: str | None,
    **options: Any,
) -> int:
    """Tell how TOPOLOGY is doing in Prometheus' text format: what status shows, drift, and changes under way.

    The broker is read and nothing is changed; a user with the tags monitoring and policymaker may do that.
    """
    if textfile is not None and listen is not None:
        raise click.UsageError("give --textfile or --listen, not both")
    refuse_inputs("--textfile", textfile, topology, options["values_files"])
    connection, spec = connection_from(options), spec_from(topology, options)
    # Who scrapes does not wait for long: better no figures in time than figures that nobody takes any more.
    host = host_for(connection, connection.vhost_for(spec), is_patient=False)
    reader = _Reader(host, spec, name or Path(topology).name)
    if listen is not None:
        return _serve(reader, listen, max_age)
    text = reader.read()
    if textfile is None:
        click.echo(text, nl=False)
    else:
        replace_file(textfile, text, what="the metrics")
    if reader.trouble is not None:
        click.echo(str(reader.trouble), err=True)
    return exit_codes.FAILED if reader.trouble else exit_codes.DONE


class _Reader:
    """Reads a broker, again and again; the last trouble is kept, and told when it is new."""

    def __init__(self, host: Host, spec: Spec, name: str) -> None:
        self._host, self._name = host, name
        self._desired: Topology = expand(spec)
        self._parks = tuple(retry.park for retry in spec.retries)
        self.trouble: DelayctlError | None = None

    def read(self) -> str:
        """The exposition of what is there now, be it only that nothing can be read."""
        at_ms, begun = time.time_ns() // 1_000_000, time.monotonic()
        found = self._found()
        took_ms = round((time.monotonic() - begun) * 1000)
        return exposition(families(Reading(self._name, self._host.vhost, at_ms, took_ms, found)))

    def read_and_say(self) -> str:
        """The same; that a broker went away, or came back, is said once."""
        before = self.trouble
        text = self.read()
        if self.trouble is not None and before is None:
            click.echo(str(self.trouble), err=True)
        elif before is not None and self.trouble is None:
            click.echo("The broker can be read again.", err=True)
        return text

    def _found(self) -> Facts | str:
        try:
            found = gather(self._host, self._desired, self._parks)
        except DelayctlError as error:
            self.trouble = error
            return type(error).__name__
        self.trouble = None
        return found


def _serve(reader: _Reader, address: tuple[str, int], max_age: Duration) -> int:
    shared = Shared(reader.read_and_say, max_age_s=max_age.ms / 1000, clock=time.monotonic)
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with serving(address, shared.text) as server:
            url = address_url(server)
            if not _is_loopback(address[0]):
                click.echo(f"Warning: {url} can be read by everybody who can reach it", err=True)
            click.echo(f"Serving {url}; Ctrl-C stops.", err=True)
            server.serve_forever()
    except KeyboardInterrupt:
        click.echo("", err=True)
    finally:
        signal.signal(signal.SIGTERM, previous)
    return exit_codes.DONE


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
