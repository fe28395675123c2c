"""The command `capacity`: how many messages wait, what they take, and whether there is room."""

from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource
from delayctl.cli import exit_codes
from delayctl.cli.capacity_json import capacity_json
from delayctl.cli.capacity_options import Asked, asked_of, budget_of, needs_of_file, needs_without_file
from delayctl.cli.capacity_views import Answer, capacity_text
from delayctl.cli.host import Host, host_for
from delayctl.cli.options import (
    TopologyFile,
    connection_from,
    connection_options,
    output_option,
    spec_from,
    template_options,
)
from delayctl.cli.views import to_json_text
from delayctl.publishers.calibrate import calibrate
from delayctl.topology.calibration import Budget, Calibration
from delayctl.topology.capacity import Available, Capacity, Need
from delayctl.topology.errors import BadOption
from delayctl.topology.expand import expand
from delayctl.topology.gauge import NodeRoom, memory_of, read_rooms
from delayctl.topology.management import Management
from delayctl.topology.names import ANY
from delayctl.topology.spec import Spec

_USUAL_BODY = 100  # Bytes, for a calibration that is not told more.


@click.command(
    short_help="Work out the room that a rate and a delay need.",
    epilog="""\b
Examples:
  delayctl capacity --rate 1000/s --delay 30m               # what waits, and what it takes
  delayctl capacity --max-length 5000000 --delay 30m        # what a queue carries
  delayctl capacity --memory 5GB --delay 30m                # what there is memory for
  delayctl capacity topology.yaml --rate 15m=500/s          # every level, by its expected_rate unless named
  delayctl capacity topology.yaml --live                    # beside what the broker's nodes have left
  delayctl capacity --rate 1000/s --delay 30m --size 400b --calibrate   # measure on the broker first

\b
--calibrate fills a queue of its own on the broker, reads what that takes, and removes it.
Exit code: 0, and 1 when it does not fit: more come than may wait, or full queues take more than there is.
""",
)
@click.argument("topology", required=False, type=TopologyFile())
@click.option(
    "--rate", "rates", multiple=True, metavar="[LEVEL=]RATE", help="How many come, such as 1000/s. May be repeated."
)
@click.option("--delay", metavar="DURATION", help="How long each waits; with a file that has a ladder, at most.")
@click.option("--size", metavar="BYTES", help="The size of a body, such as 400b or 2kB.")
@click.option("--max-length", type=click.IntRange(min=1), metavar="COUNT", help="How many may wait.")
@click.option(
    "--memory", metavar="BYTES", help="What messages may take, such as 5GB.  [default: the file's lint.memory]"
)
@click.option(
    "--memory-per-message", metavar="BYTES", help="What a waiting message takes.  [default: by --rabbitmq and --type]"
)
@click.option("--type", "shape", type=click.Choice(["classic", "quorum"]), help="The type of the queue.")
@click.option("--lazy", "is_lazy", is_flag=True, help="A classic queue that keeps what waits on disk, before 3.12.")
@click.option("--rabbitmq", metavar="VERSION", help="Whose figures are assumed, such as 4.3.  [default: the dearest]")
@click.option("--live", is_flag=True, help="Look at the broker: its version, and what its nodes have left.")
@click.option("--calibrate", "is_calibrating", is_flag=True, help="Measure what a waiting message takes on the broker.")
@click.option(
    "--calibrate-messages",
    type=click.IntRange(min=1, max=10_000_000),
    default=Budget().messages,
    show_default=True,
    metavar="COUNT",
    help="How many messages a calibration publishes at most.",
)
@click.option(
    "--calibrate-time",
    default="2m",
    show_default=True,
    metavar="DURATION",
    help="How long a calibration takes at most, for each type of queue.",
)
@output_option
@template_options
@connection_options
def capacity(topology: str | None, *, live: bool, is_calibrating: bool, output: str, **options: Any) -> int:
    """Work out how many messages wait, the max_length to set, and what they take of memory and disk.

    For one delay by --rate, --delay or --max-length, or for every level of TOPOLOGY.
    """
    asked, budget, connection = asked_of(options), budget_of(options), connection_from(options)
    if not is_calibrating:
        _refuse_what_only_calibrates()
    if is_calibrating and asked.memory_each is not None:
        raise BadOption("--calibrate measures what --memory-per-message says", fix="leave out one of them")
    spec = spec_from(topology, options) if topology is not None else None
    host = None
    if live or is_calibrating:
        host = host_for(
            connection, connection.vhost_for(spec or Spec(())), without="or leave out --live and --calibrate"
        )
    if is_calibrating and asked.body is None:
        asked = replace(asked, body=_USUAL_BODY)
    answer = _answer(topology, spec, asked, host, budget if is_calibrating else None)
    click.echo(to_json_text(capacity_json(answer)) if output == "json" else capacity_text(answer))
    return exit_codes.DONE if answer.capacity.fits else exit_codes.FAILED


def _refuse_what_only_calibrates() -> None:
    context = click.get_current_context()
    for name in ("calibrate_messages", "calibrate_time"):
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = f"--{name.replace('_', '-')}"
            raise BadOption(f"{option} is for --calibrate", fix="leave it out, or measure on the broker: --calibrate")


def _answer(file: str | None, spec: Spec | None, asked: Asked, host: Host | None, budget: Budget | None) -> Answer:
    management = host.management if host else None
    version = management.version() if management else ""
    needs = needs_of_file(spec, asked, version) if spec else needs_without_file(asked, version)
    calibrations: tuple[Calibration, ...] = ()
    if host and budget:
        calibrations = _calibrated(host, needs, asked.body or 0, budget, spec.prefix if spec else "")
        found = {each.shape: each.footprint for each in calibrations}
        needs = tuple(replace(need, footprint=found[need.shape]) for need in needs)
    available = _available(asked, spec, management)
    if not spec:
        needs = _filled(needs, available)
    return Answer(Capacity(needs, available), file, calibrations, tuple(_notes(needs)) if spec else ())


def _calibrated(host: Host, needs: tuple[Need, ...], body: int, budget: Budget, prefix: str) -> tuple[Calibration, ...]:
    """One calibration for each way to keep messages."""
    assert host.management is not None
    found = []
    for shape in dict.fromkeys(need.shape for need in needs):
        tell = _teller(f"calibrating, {shape} queue")
        found.append(calibrate(host.access, host.management, shape, body=body, budget=budget, prefix=prefix, tell=tell))
    return tuple(found)


def _teller(subject: str) -> Any:
    return lambda text: click.echo(f"{subject}: {text}", err=True)


def _available(asked: Asked, spec: Spec | None, management: Management | None) -> Available:
    """What messages may take: by option, by file, else what the poorest node has left."""
    if asked.memory is not None:
        return Available(asked.memory, source="--memory")
    if spec and spec.memory is not None:
        return Available(spec.memory, source="lint.memory of the file")
    if management is None:
        return Available()
    own = memory_of(management, expand(spec).delay_queues) if spec else 0
    return _left(read_rooms(management), own)


def _left(rooms: tuple[NodeRoom, ...], own: int) -> Available:
    """What is left on the node that has least; what waits there already makes room for what is reckoned with."""
    poorest, disk = rooms[0], min(room.disk_left for room in rooms)
    source = f"{poorest.name}: its alarm is at {poorest.memory_limit:,} B, and {poorest.memory_used:,} B are used"
    return Available(poorest.memory_left + own, disk, source)


def _filled(needs: tuple[Need, ...], available: Available) -> tuple[Need, ...]:
    """Where nothing says how many may wait: as many as there is memory for."""
    [need] = needs
    most = Capacity(needs, available).most_messages(need)
    if need.room is not None:
        return needs
    if most is None:
        raise BadOption(
            "nothing says how many messages wait",
            fix="give --rate and --delay, --max-length, --memory, or a topology file",
        )
    if most < 1:
        return needs  # A limit of 0 is no advice: that nothing fits is told as a shortfall.
    return (replace(need, max_length=most),)


def _notes(needs: tuple[Need, ...]) -> list[str]:
    found = []
    if any(need.name == ANY and need.delay is None for need in needs):
        found.append("the ladder is not reckoned with: give --delay, the longest delay that is in use")
    unlimited = [need.name for need in needs if need.limit is None and need.name != ANY and need.waiting is None]
    if unlimited:
        found.append(f"nothing is known of {', '.join(unlimited)}: it has neither a limit nor a rate")
    return found
