"""The command that says how a topology is doing."""

from dataclasses import replace
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.host import Host, host_for
from delayctl.cli.options import (
    connection_from,
    connection_options,
    output_option,
    spec_from,
    template_options,
    topology_argument,
)
from delayctl.cli.status_views import status_json, status_text
from delayctl.cli.views import to_json_text
from delayctl.topology.expand import expand
from delayctl.topology.model import Topology
from delayctl.topology.spec import Spec
from delayctl.topology.statistics import read_statistics
from delayctl.topology.status import Facts, Status, missing_exits, status_of, waiting_queues
from delayctl.topology.survey import make_plan
from delayctl.topology.verdict import is_healthy, verdict


@click.command(
    short_help="Show what waits, and whether all is well.",
    epilog="""\b
Examples:
  delayctl status topology.yaml
  delayctl status topology.yaml --output json | jq '.levels[] | {level, waiting}'
  delayctl status topology.yaml > /dev/null || echo "the delays need somebody"
""",
)
@topology_argument
@output_option
@template_options
@connection_options
def status(topology: str, output: str, **options: Any) -> int:
    """Show what waits in the levels of TOPOLOGY; exits with 1 where it is not healthy, and says why."""
    connection, spec = connection_from(options), spec_from(topology, options)
    found = look(host_for(connection, connection.vhost_for(spec)), spec)
    reasons = verdict(found, source=topology)
    if output == "json":
        click.echo(to_json_text(status_json(found, reasons)))
    else:
        click.echo(status_text(found, reasons, source=topology))
    return exit_codes.DONE if is_healthy(reasons) else exit_codes.FAILED


def look(host: Host, spec: Spec) -> Status:
    """How the topology of a file is doing."""
    return status_of(gather(host, expand(spec), tuple(retry.park for retry in spec.retries)))


def gather(host: Host, desired: Topology, parks: tuple[str, ...]) -> Facts:
    """Read all that a status is made of; `parks` is where retries end."""
    assert host.management is not None
    with host.broker() as broker:
        plan, live = make_plan(desired, host.management, broker, vhost=host.vhost)
    if unlisted := missing_exits(desired, live):
        found = host.management.read(desired.prefix, unlisted).exchanges
        live = replace(live, exchanges={**live.exchanges, **found})
    statistics = read_statistics(host.management, waiting_queues(desired, live))
    return Facts(desired, parks, plan, live, statistics)
