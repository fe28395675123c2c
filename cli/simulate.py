"""The command `simulate`: what if so many messages come, consumers are slow, or the broker is away."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.inputs import refuse_inputs
from delayctl.cli.options import output_option, refuse_other_input, spec_from, template_options, topology_argument
from delayctl.cli.simulate_arrivals import Lumps, read_arrivals
from delayctl.cli.simulate_explain import explaining
from delayctl.cli.simulate_json import simulate_json
from delayctl.cli.simulate_options import read_size
from delayctl.cli.simulate_plot import check_plot, plot
from delayctl.cli.simulate_scenario import asked_of, check_together, notes, scenario_of
from delayctl.cli.simulate_views import Simulated, simulate_text
from delayctl.cli.views import to_json_text
from delayctl.simulator.what_if import what_if
from delayctl.simulator.what_if_findings import Setting, ends_told, findings, fits
from delayctl.simulator.what_if_steps import MOST
from delayctl.topology.errors import DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.expand_shards import with_one_queue_each
from delayctl.topology.footprint import dearest, footprint_of, shape_of
from delayctl.topology.key_index import OrderedNetwork
from delayctl.topology.names import Names
from delayctl.topology.routing import Network
from delayctl.topology.scene import Scene
from delayctl.topology.spec import Spec

_STDIN = "-"
_TOLD_EVERY = 200_000


@click.command(
    short_help="Foretell backlogs, early messages and memory.",
    epilog="""\b
Examples:
  delayctl simulate topology.yaml --rate 1000/s --for 2h
  delayctl simulate topology.yaml --rate order.created=1000/s --burst order.created=5000/s@12m+30s
  delayctl simulate topology.yaml --rate 1000/s --consume 800/s
  delayctl simulate topology.yaml --rate 1000/s --away 10m+5m --consumer-away 30m+5m
  delayctl simulate topology.yaml --level 30m --rate 2777/s --plot backlog.svg
  delayctl simulate topology.yaml --arrivals monday.csv --key order.created --check

\b
A line of such a file is time,count,key; count and key may be left out. A time is 12.5 (seconds), 1m30s, a date, or
seconds since 1970.
Exit code: 0, and with --check 1 when messages leave early, are refused or lost, find no route, or take more memory than the
file's lint.memory.
""",
)
@topology_argument
@click.option(
    "--rate",
    "rates",
    multiple=True,
    metavar="[KEY=]RATE",
    help="How many come, such as 1000/s; of each delayed route, unless a key is named. May be repeated.  [default: the file's expected_rate]",
)
@click.option("--for", "length", metavar="DURATION", help="How long they come.  [default: twice the longest wait]")
@click.option(
    "--burst",
    "bursts",
    multiple=True,
    metavar="[KEY=]RATE@START+LENGTH",
    help="Another rate for a while: 5000/s@12m+30s. May be repeated.",
)
@click.option("--arrivals", metavar="FILE", help="Take arrivals from a CSV file instead; - is stdin.")
@click.option(
    "--spread", "is_spread", is_flag=True, help="Spread each line of the arrivals evenly until the time of the next."
)
@click.option("--key", metavar="KEY", help="The routing key, where neither a rate nor a line names one.")
@click.option(
    "--level", "levels", multiple=True, metavar="LEVEL", help="Publish straight to this level. May be repeated."
)
@click.option("--delay", metavar="DURATION", help="How long messages of routes with delay: any wait.")
@click.option("--exchange", metavar="NAME", help="Publish to this exchange.  [default: where the file's routes begin]")
@click.option(
    "--consume",
    multiple=True,
    metavar="[QUEUE=]RATE",
    help="How fast consumers are. May be repeated.  [default: they keep up]",
)
@click.option("--away", multiple=True, metavar="START+LENGTH", help="The broker is away: 10m+5m. May be repeated.")
@click.option(
    "--give-up",
    is_flag=True,
    help="Publishers give up what they can't publish meanwhile.  [default: they hold it back]",
)
@click.option(
    "--consumer-away",
    multiple=True,
    metavar="[QUEUE=]START+LENGTH",
    help="Consumers are away: 30m+5m. May be repeated.",
)
@click.option(
    "--message-size", metavar="BYTES", help="The size of a body: what max_bytes has room for, and what bodies take."
)
@click.option(
    "--memory-per-message",
    metavar="BYTES",
    help=f"What a waiting message takes.  [default: {footprint_of('classic').memory}; about {footprint_of('classic', '4.0.0').memory} with RabbitMQ 4]",
)
@click.option("--step", metavar="DURATION", help="How finely time passes.  [default: chosen by the length of the run]")
@click.option(
    "--plot", "picture", metavar="FILE", help="Draw the backlog over time: .svg, .png or .pdf. Needs delayctl[plot]."
)
@click.option("--check", is_flag=True, help="Exit with 1 when it does not fit.")
@output_option
@template_options
def simulate(topology: str, *, check: bool, output: str, picture: str | None, **options: Any) -> int:
    """Foretell what becomes of messages in TOPOLOGY: how many wait when, what leaves early, what it takes.

    Time is virtual: two hours take less than a second, no broker is needed, and the answer is always the same.
    """
    refuse_other_input(topology, "the arrivals", is_read=options["arrivals"] == _STDIN)
    refuse_inputs("--plot", picture, topology, options["values_files"])
    if picture is not None:
        check_plot(picture)
    spec = spec_from(topology, options)
    simulated = foretell(topology, spec, options)
    if picture is not None:
        plot(simulated, picture)
    click.echo(to_json_text(simulate_json(simulated)) if output == "json" else simulate_text(simulated))
    return exit_codes.FAILED if check and not fits(simulated.findings) else exit_codes.DONE


def foretell(file: str, spec: Spec, options: Mapping[str, Any], *, most: int = MOST) -> Simulated:
    """Run what the options ask for; a level that is spread over queues counts as one with all their room.

    What makes more than `most` comings and goings is refused: it would take too long.
    """
    spec = with_one_queue_each(spec)
    scene = Scene(spec, expand(spec))
    network = OrderedNetwork.of(Network.of_topology(scene.topology))
    check_together(options)
    asked = asked_of(options, _read(options["arrivals"]) if options["arrivals"] is not None else {})
    scenario = scenario_of(scene, network, asked, options, most)
    unrouted = Names(spec.prefix).unrouted_queue()
    size = options["memory_per_message"]
    each = _assumed(scene) if size is None else read_size("--memory-per-message", size)
    parking = frozenset({unrouted, *(retry.park for retry in spec.retries)})
    answer = what_if(network, scenario, parking=parking)
    is_short = any(a.left_early.count or a.refused.count or a.lost.count for a in answer.accounts.values())
    needed = what_if(network, replace(scenario, is_unlimited=True), parking=parking) if is_short else None
    explained = explaining(file, network, scenario.streams, parking, ends_told(answer, unrouted))
    setting = Setting(each, spec.memory, unrouted, explained)
    found = findings(scenario, answer, needed, setting)
    noted = notes(asked, scenario, answer, options["arrivals"])
    return Simulated(file, scene.topology, scenario, answer, needed, each, (*found, *noted))


def _assumed(scene: Scene) -> int:
    """What a message takes in that of the waits where it takes most."""
    return dearest(shape_of(wait.queue) for wait in scene.waits.values()).memory


def _read(file: str) -> dict[str | None, Lumps]:
    with _opened(file) as lines:
        return read_arrivals(_told(lines), "stdin" if file == _STDIN else file)


def _told(lines: IO[str]) -> Iterator[str]:
    """The lines, with a word on stderr now and then where somebody watches."""
    is_watched = sys.stderr.isatty()
    number = 0
    for number, line in enumerate(lines, 1):
        if is_watched and number % _TOLD_EVERY == 0:
            click.echo(f"\r{number:,} lines read", err=True, nl=False)
        yield line
    if is_watched and number >= _TOLD_EVERY:
        click.echo("\r\x1b[K", err=True, nl=False)


@contextmanager
def _opened(file: str) -> Iterator[IO[str]]:
    try:
        if file == _STDIN:
            yield sys.stdin
            return
        with open(file, encoding="utf-8-sig", newline="") as lines:
            yield lines
    except OSError as error:
        raise DelayctlError(f"the file can't be read: {error.strerror}", where=file, fix="check the path") from error
    except UnicodeDecodeError as error:
        raise DelayctlError("the file is not UTF-8", where=file, fix="save it as UTF-8") from error
