"""The command that lists what waits and what is parked."""

import time
from collections.abc import Callable, Iterable
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
from delayctl.cli.pending_views import Found, Place, pending_json, pending_text
from delayctl.cli.returning import Returning, returning
from delayctl.cli.views import to_json_text
from delayctl.consumers.deaths import Delays
from delayctl.consumers.look import look
from delayctl.topology.errors import BadOption, BrokerError
from delayctl.topology.expand import expand
from delayctl.topology.names import Names
from delayctl.topology.spec import Spec
from delayctl.topology.waiting import Waiting, waiting_in
from delayctl.topology.wording import did_you_mean, quoted

UNSEEN = "levels that are being changed, or go, are not looked into"
_SAMPLE_OF_WAITING, _SAMPLE_OF_PARKED = 100, 10_000


@click.command(
    short_help="List what waits and what is parked.",
    epilog="""\b
Examples:
  delayctl pending topology.yaml
  delayctl pending topology.yaml --level 15m --sample 1000
  delayctl pending topology.yaml --queue orders.timeout.dlq --list
  delayctl pending topology.yaml --sample 0                          # count only; touches no message
  delayctl pending topology.yaml --output json | jq '.queues[] | {queue, messages}'
""",
)
@topology_argument
@click.option("--level", "levels", multiple=True, metavar="NAME", help="This level only; may be repeated.")
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="This queue only; may be repeated.")
@click.option(
    "--sample",
    type=click.IntRange(min=0),
    help="Look at the first so many messages of each queue; 0 only counts.  [default: 100, and 10,000 of what is parked]",
)
@click.option("--disturb", is_flag=True, help="Look also where that changes the order of what waits.")
@click.option("--list", "is_listed", is_flag=True, help="Show every message that was looked at.")
@output_option
@template_options
@connection_options
def pending(*, topology: str, sample: int | None, is_listed: bool, output: str, **options: Any) -> int:
    """List what waits in TOPOLOGY and what is parked: how many, with which keys, due when, and why it was given up.

    To see more than counts, messages are held for a moment and put back in their places; the answer says for how long.
    """
    levels, queues, disturb = (options.pop(name) for name in ("levels", "queues", "disturb"))
    connection, spec = connection_from(options), spec_from(topology, options)
    host = host_for(connection, connection.vhost_for(spec))
    desired = expand(spec)
    places = _chosen(_places(spec, waiting_in(desired, host.read(spec.prefix, unseen=UNSEEN))), levels, queues)
    delays, types = Delays.of(desired), {queue.name: queue.settings.type for queue in desired.queues}
    found = [_look_at(host, place, delays, sample, types.get(place.queue), disturb=disturb) for place in places]
    untaken = _untaken(host)
    found = [replace(each, dead_lettering=untaken(each.place.queue)) for each in found]
    now_ms = time.time_ns() // 1_000_000
    if output == "json":
        click.echo(to_json_text(pending_json(found, now_ms)))
    else:
        click.echo(pending_text(found, now_ms, is_listed=is_listed))
    return exit_codes.DONE


def _untaken(host: Host) -> Callable[[str], int | None]:
    """How many messages of a queue expired and found no taker yet, some seconds ago: nobody can be given these."""
    try:
        assert host.management is not None
        listed = host.management.get(f"queues/{host.management.vhost}?columns=name,messages_dlx")
    except BrokerError:
        return lambda _: None
    counts = {each["name"]: each.get("messages_dlx") or 0 for each in listed}
    return lambda queue: counts.get(queue, 0)


def _places(spec: Spec, waiting: Iterable[Waiting]) -> list[Place]:
    parks = list(dict.fromkeys(retry.park for retry in spec.retries))
    unrouted = [Names(spec.prefix).unrouted_queue()] if spec.has_delays else []
    waits = [Place(each.queue, each.name, each.ttl, each.names) for each in waiting if each.queue not in parks]
    return [*waits, *(Place(queue, None) for queue in (*parks, *unrouted))]


def _chosen(places: list[Place], levels: Iterable[str], queues: Iterable[str]) -> list[Place]:
    """Those that were named, or all; a queue that the file does not know is taken for a parking queue."""
    by_level: dict[str, list[Place]] = {}
    for place in places:
        for name in place.names:
            by_level.setdefault(name, []).append(place)
    by_queue = {place.queue: place for place in places}
    for level in levels:
        if level not in by_level:
            known = ", ".join(by_level) or "none"
            what = f"there is no level {quoted(level)}{did_you_mean(level, by_level)}"
            raise BadOption(what, fix=f"use one of: {known}")
    chosen = [place for level in levels for place in by_level[level]] + [
        by_queue.get(name, Place(name, None)) for name in queues
    ]
    return list(dict.fromkeys(chosen)) or places


def _look_at(
    host: Host, place: Place, delays: Delays, sample: int | None, type_in_file: str | None, *, disturb: bool
) -> Found:
    """Look into a queue, unless that would make messages wait longer than they should."""
    default = _SAMPLE_OF_PARKED if place.level is None else _SAMPLE_OF_WAITING
    most = default if sample is None else sample
    given_back = returning(host, place.queue, type_in_file) if most else Returning()
    is_harmful = place.level is not None and not given_back.keeps_place and not disturb
    seen = look(host.access, place.queue, 0 if is_harmful else most, given_back.most, delays)
    return Found(place, seen.ready, seen.seen, seen.held_ms, seen.is_worn, given_back.keeps_place)
