"""The command that watches a queue."""

from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.arrivals import Arrival, Lateness, arrival_json, arrival_text, summary_text
from delayctl.cli.consume_guard import guard
from delayctl.cli.options import (
    Connection,
    TopologyFile,
    connection_from,
    connection_options,
    output_option,
    spec_from,
    template_options,
)
from delayctl.cli.tail import Tail
from delayctl.consumers.recorder import Recorder, record_line
from delayctl.publishers.contract import EXPEDITED, LEVEL
from delayctl.topology.access import Access
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.spec import Spec

_PREFETCH = 200
_UNLIMITED = 0
_MOST_PREFETCH = 65_535


@click.command(
    short_help="Watch a queue, and how late its messages are.",
    epilog="""\b
Examples:
  delayctl consume orders.timeout.queue                        # until Ctrl-C; takes what it shows
  delayctl consume orders.timeout.queue --requeue --count 5    # look, and leave it there
  delayctl consume orders.timeout.queue topology.yaml --wait 10s --output json | jq .late_ms
  delayctl consume orders.timeout.queue --record records/      # also for delayctl audit
""",
)
@click.argument("queue")
@click.argument("topology", required=False, type=TopologyFile())
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many messages.")
@click.option("--wait", "wait_", metavar="DURATION", help="Stop when nothing has come for this long, such as 10s.")
@click.option("--requeue", is_flag=True, help="Leave the messages in the queue.")
@click.option("--record", metavar="FOLDER", help="Record what is taken in this folder, for delayctl audit.")
@click.option("--yes", "-y", is_flag=True, help="Take messages out of a delay, too, and do not ask.")
@output_option
@template_options
@connection_options
def consume(
    *,
    queue: str,
    topology: str | None,
    count: int | None,
    wait_: str | None,
    requeue: bool,
    record: str | None,
    yes: bool,
    output: str,
    **options: Any,
) -> int:
    """Show what arrives in QUEUE, with due time and lateness; shown messages are acknowledged, and gone.

    TOPOLOGY, where it is given, says which virtual host is meant and, where the management API can't be asked, which
    queues are delays. Times are UTC. With --output json every message is one line.
    """
    if requeue and record is not None:
        raise BadOption("--record is of what is taken, and --requeue takes nothing", fix="leave out one of them")
    connection = connection_from(options)
    spec = spec_from(topology, options) if topology else None
    access = _access(connection, spec)
    idle_s = None if wait_ is None else _seconds(wait_)
    lateness = Lateness()
    show = arrival_json if output == "json" else arrival_text
    if not requeue:
        guard(access, queue, spec=spec, yes=yes)
    with Tail(access, queue, prefetch=prefetch_for(count, requeue=requeue)) as tail, _recorder(record) as recorder:
        click.echo(f"Watching {queue}; Ctrl-C stops.", err=True)
        try:
            for tag, arrival in islice(tail.deliveries(idle_s), count):
                click.echo(show(arrival))
                if recorder is not None:
                    recorder.note_line(_line(arrival))
                    recorder.flush()
                if not requeue:  # Only now: what could not be shown stays in the queue.
                    tail.acknowledge(tag)
                lateness.add(arrival.late_ms)
        except KeyboardInterrupt:
            click.echo("", err=True)
        finally:
            click.echo(summary_text(lateness, left_there=requeue), err=True)
    return exit_codes.DONE


def prefetch_for(count: int | None, *, requeue: bool) -> int:
    """How many messages are held at once: all that shall be seen, where none is acknowledged before the end."""
    if not requeue:
        return min(count or _PREFETCH, _PREFETCH)
    return _UNLIMITED if count is None or count > _MOST_PREFETCH else count


def _access(connection: Connection, spec: Spec | None) -> Access:
    return connection.access.at(connection.vhost_for(spec or Spec(levels=())))


def _recorder(folder: str | None) -> AbstractContextManager[Recorder | None]:
    return nullcontext() if folder is None else Recorder(folder)


def _line(arrival: Arrival) -> str:
    """The line of a record for a message that came."""
    return record_line(
        arrival.message_id,
        queue=arrival.queue,
        routing_key=arrival.key,
        received_at=arrival.arrived_ms,
        due=arrival.due_ms,
        level=arrival.headers.get(LEVEL),
        attempt=arrival.attempt,
        redelivered=arrival.redelivered,
        expedited=EXPEDITED in arrival.headers,
    )


def _seconds(text: str) -> float:
    try:
        return Duration.parse(text).ms / 1000
    except ValueError as error:
        raise BadOption(f"--wait: {error}", fix="write it as 500ms, 10s or 1m30s") from error
