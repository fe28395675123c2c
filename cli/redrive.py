"""The command that moves parked messages back to where they belong."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.host import Host, host_for
from delayctl.cli.moved_views import NOT_MEANT, code_of
from delayctl.cli.moving import Order, carry_out, raise_trouble, rate_from, result_json, result_text
from delayctl.cli.options import (
    connection_from,
    connection_options,
    output_option,
    spec_from,
    template_options,
    topology_argument,
)
from delayctl.cli.returning import returning
from delayctl.cli.views import to_json_text
from delayctl.cli.wanted import wanted_from, wanted_options
from delayctl.consumers.deaths import Delays
from delayctl.consumers.homes import Homes, Known, Onward, Stays
from delayctl.consumers.inbox import Delivery
from delayctl.consumers.mover import Decide
from delayctl.consumers.sighting import Sighting, Unreadable, ids_of, sighted
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.key_index import IndexedNetwork
from delayctl.topology.routing import Network
from delayctl.topology.spec import Spec
from delayctl.topology.wording import quoted, shorten

_MOST_NAMED = 10
_UNCHECKED = (
    "whether queues are still bound is not checked, and what finds none is parked in the queue of what has no route"
)


@click.command(
    short_help="Move parked messages back to where they belong.",
    epilog="""\b
Examples:
  delayctl redrive topology.yaml --queue orders.timeout.dlq --dry-run
  delayctl redrive topology.yaml --queue orders.timeout.dlq --rate 200/s
  delayctl redrive topology.yaml --queue orders.timeout.dlq --where key=order.* --where reason=timeout --older-than 1h
  delayctl redrive topology.yaml --queue delay.unrouted.queue          # what had no route, once it has one
  delayctl redrive topology.yaml --queue mails.dlq --to mails.again.queue --limit 10
""",
)
@topology_argument
@click.option("--queue", metavar="NAME", help="The queue to empty.  [default: the one parking queue of the file]")
@click.option("--to", metavar="QUEUE", help="Move them to this queue instead.")
@click.option("--origin", is_flag=True, help="Publish each to the exchange, and with the key, that it first came by.")
@wanted_options
@click.option("--limit", type=click.IntRange(min=1), help="Move no more than so many messages.")
@click.option("--rate", metavar="RATE", help="Move no more than this, such as 200/s or 5000/m.")
@click.option("--keep-attempts", is_flag=True, help="Go on counting retries where they ended, instead of at 0.")
@click.option("--dry-run", is_flag=True, help="Say what would be moved, and put everything back into its place.")
@output_option
@template_options
@connection_options
def redrive(*, topology: str, queue: str | None, output: str, **options: Any) -> int:
    """Move what is parked in a queue of TOPOLOGY back to the queue where it failed, each message once confirmed.

    A message is taken out of the parking queue only when the broker has confirmed the new one. Cut off at any moment,
    run it again: nothing is lost, and what arrives twice carries the same message id.
    """
    to, by_origin, keep = (options.pop(name) for name in ("to", "origin", "keep_attempts"))
    _check_names({"--queue": queue, "--to": to})
    if to is not None and by_origin:
        raise BadOption("--to and --origin exclude each other", fix="leave out one of them")
    wanted = wanted_from(*(options.pop(name) for name in ("where", "older_than", "newer_than")))
    is_dry, limit, rate = options.pop("dry_run"), options.pop("limit"), rate_from(options.pop("rate"))
    connection, spec = connection_from(options), spec_from(topology, options)
    _check_target(to, spec)
    host, known = host_for(connection, connection.vhost_for(spec)), Known.of(spec)
    name = queue or _only_parking_queue(known)
    network = _network(host, spec, is_needed=name == known.unrouted and to is None)
    homes = Homes(known, network, to, by_origin, keep, _is_there_on(host, network))
    exit = known.exit if spec.has_delays else ""
    missing = set(wanted.ids)

    def wants(seen: Sighting, now_ms: int) -> bool:
        missing.difference_update(ids_of(seen))
        return wanted.wants(seen, now_ms)

    decide = decision(homes, wants)
    given_back = returning(host, name, {each.name: each.settings.type for each in expand(spec).queues}.get(name))
    order = Order(host, name, decide, exit, is_dry, rate, limit, "Redriven", "Would redrive", returning=given_back)
    result = carry_out(order)
    if output == "json":
        click.echo(to_json_text({**result_json(result), "not_found": sorted(missing)}))
    else:
        click.echo("\n".join([result_text(result), *_not_found(missing)]))
    raise_trouble(result.trouble, [result.moved])
    code = code_of(result.moved)
    return exit_codes.FAILED if missing and code == exit_codes.DONE else code


def _not_found(missing: Collection[str]) -> Iterator[str]:
    if missing:
        names = ", ".join(map(quoted, sorted(missing)[:_MOST_NAMED]))
        more = f" and {len(missing) - _MOST_NAMED:,} more" if len(missing) > _MOST_NAMED else ""
        yield f"Not found: {names}{more}. It may be out already, in another queue, or behind what was looked at."


def decision(homes: Homes, wants: Callable[[Sighting, int], bool]) -> Decide:
    """What becomes of each message; `wants` says, with the present time, whether it is meant at all."""

    def decide(came: Delivery) -> Onward | Stays:
        try:
            seen = sighted(came, homes.known.delays)
        except Unreadable as error:
            return Stays(f"its headers can't be read: {error}", "take it with another client")
        now_ms = time.time_ns() // 1_000_000
        return homes.of(came, seen, now_ms) if wants(seen, now_ms) else NOT_MEANT

    return decide


def _check_names(named: Mapping[str, str | None]) -> None:
    """Refuse an empty name, which a variable of the shell that is not set leaves: it would mean another queue."""
    for option, name in named.items():
        if name == "":
            raise BadOption(f"{option} is empty", fix="name a queue, or leave the option out")


def _check_target(to: str | None, spec: Spec) -> None:
    """Refuse what messages wait in, also what stands in for such a queue or was one: they would come out with its name as key."""
    if to is None:
        return
    if Delays.of(expand(spec)).has(to):
        raise BadOption(
            f"--to {shorten(to)} is a delay queue: what is put there comes out with the name of the queue as its key, and goes astray",
            fix="name the queue behind the delay, or leave out --to: then each goes back to where it failed",
        )


def _only_parking_queue(known: Known) -> str:
    if len(known.parks) == 1:
        return next(iter(known.parks))
    names = [*sorted(known.parks), known.unrouted]
    raise BadOption("which queue is meant?", fix=f"name it with --queue: {', '.join(map(quoted, names))}")


def _network(host: Host, spec: Spec, *, is_needed: bool) -> Network | None:
    """What is on the broker; None where that can't be read and messages tell by themselves where they belong."""
    try:
        return network_of(host, spec)
    except DelayctlError as error:
        if is_needed:
            raise
        click.echo(f"Warning: {error.what}; {_UNCHECKED}", err=True)
        return None


def is_there_on(host: Host) -> Callable[[str], bool]:
    """Whether the broker has a queue; each is asked for once."""
    assert host.management is not None
    return cache(host.management.has_queue)


def _is_there_on(host: Host, network: Network | None) -> Callable[[str], bool]:
    return (lambda _: True) if network is None else is_there_on(host)


def network_of(host: Host, spec: Spec) -> Network:
    """What is on the broker: what has no way to its queue would be parked once more, confirmed and all."""
    assert host.management is not None
    desired = expand(spec)
    live = host.management.read(spec.prefix, [exchange.name for exchange in desired.exchanges])
    return IndexedNetwork.of(Network.of_live(live))
