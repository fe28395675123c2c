"""The command that delivers now what waits."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.expedite_tour import Tour
from delayctl.cli.host import Host, host_for
from delayctl.cli.moved_views import NOT_MEANT
from delayctl.cli.moving import Order, Result, carry_out, raise_trouble, rate_from, result_json, result_text
from delayctl.cli.options import (
    connection_from,
    connection_options,
    output_option,
    spec_from,
    template_options,
    topology_argument,
)
from delayctl.cli.pending import UNSEEN
from delayctl.cli.returning import returning
from delayctl.cli.views import to_json_text
from delayctl.consumers.deaths import Delays
from delayctl.consumers.homes import Onward, Stays
from delayctl.consumers.inbox import Delivery
from delayctl.consumers.message import Message
from delayctl.consumers.sighting import Unreadable, Wanted, ids_of, sighted
from delayctl.publishers.contract import EXPEDITED, without_deaths, without_steps
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.live import Live
from delayctl.topology.model import Topology
from delayctl.topology.names import ANY
from delayctl.topology.routing import topic_matches
from delayctl.topology.waiting import waiting_in
from delayctl.topology.wording import did_you_mean, quoted, shorten

_SCAN = 10_000


@click.command(
    short_help="Deliver now what waits.",
    epilog="""\b
Examples:
  delayctl expedite topology.yaml --level 15m --all --dry-run
  delayctl expedite topology.yaml --level 15m --all --rate 500/s
  delayctl expedite topology.yaml --level 15m --id order-4711
  delayctl expedite topology.yaml --level 15m --key order.* --scan 100000
""",
)
@topology_argument
@click.option("--level", "levels", multiple=True, metavar="NAME", help="Where they wait; any is the whole ladder.")
@click.option("--all", "is_all", is_flag=True, help="All that waits there.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="The message with this id; may be repeated.")
@click.option(
    "--key", "keys", multiple=True, metavar="PATTERN", help="Those with this key, or order.*; may be repeated."
)
@click.option(
    "--scan", type=click.IntRange(min=1), help="Look for --id and --key among the first so many.  [default: 10000]"
)
@click.option(
    "--limit", type=click.IntRange(min=1), help="Deliver no more than so many messages, of all levels together."
)
@click.option("--rate", metavar="RATE", help="Deliver no more than this, such as 200/s.")
@click.option("--disturb", is_flag=True, help="Look for them also where that changes the order of what waits.")
@click.option("--dry-run", is_flag=True, help="Say what would be delivered, and leave everything in its place.")
@output_option
@template_options
@connection_options
def expedite(*, topology: str, output: str, **options: Any) -> int:
    """Take what waits at a level of TOPOLOGY out of its delay, and deliver it now, in order, each once confirmed.

    To get at a message behind others, those before it are held for a moment: they can't expire meanwhile, and are put
    back in their places. --all holds nothing back. Cut off at any moment, run it again: nothing is lost, and what
    arrives twice carries the same message id.
    """
    taken = {
        name: options.pop(name)
        for name in ("levels", "is_all", "ids", "keys", "scan", "limit", "rate", "dry_run", "disturb")
    }
    _check(taken)
    connection, spec = connection_from(options), spec_from(topology, options)
    host, desired = host_for(connection, connection.vhost_for(spec)), expand(spec)
    search = _Search(desired.exit, Wanted(keys=taken["keys"], ids=frozenset(taken["ids"])), Delays.of(desired))
    queues = _queues(desired, host.read(spec.prefix, unseen=UNSEEN), taken["levels"])
    tour = Tour(taken["limit"])
    tour.make(
        queues, lambda queue: _expedite(host, queue, desired, search, taken, moved_before=tour.moved), search.is_over
    )
    click.echo(_json(tour, search) if output == "json" else _text(tour, search))
    raise_trouble(tour.trouble, [result.moved for result in tour.results])
    return tour.code if tour.code != exit_codes.DONE or search.is_found else exit_codes.FAILED


@dataclass
class _Search:
    """What is to be delivered, and what of it was not found yet."""

    exit: str
    wanted: Wanted
    delays: Delays
    missing: set[str] = field(init=False)
    unseen: set[str] = field(init=False)  # Keys that nothing had.

    def __post_init__(self) -> None:
        self.missing, self.unseen = set(self.wanted.ids), set(self.wanted.keys)

    @property
    def is_found(self) -> bool:
        """Whether all that was named was there."""
        return not self.missing and (bool(self.wanted.ids) or not self.unseen)

    def is_over(self) -> bool:
        """Whether all that was named is found; what was not named never is."""
        return bool(self.wanted.ids) and not self.missing

    def decide(self, came: Delivery) -> Onward | Stays:
        """To the exit, with the key that it carries: as if its time were up."""
        try:
            seen = sighted(came, self.delays)
        except Unreadable as error:
            return Stays(f"its headers can't be read: {error}", "it comes out by itself when its time is up")
        if not self.wanted.wants(seen, 0):
            return NOT_MEANT
        self.missing -= ids_of(seen)
        self.unseen = {pattern for pattern in self.unseen if not topic_matches(pattern, seen.key)}
        # So that nobody takes it for one that left too early by itself.
        headers = {**without_steps(without_deaths(seen.headers)), EXPEDITED: time.time_ns() // 1_000_000}
        properties = replace(Message.of(came).properties, headers=headers, expiration=None, user_id=None)
        return Onward(self.exit, came.key, f"{self.exit} with key {shorten(came.key)}", properties)


def _expedite(
    host: Host, queue: str, desired: Topology, search: _Search, taken: dict[str, Any], *, moved_before: int
) -> Result:
    scan = None if taken["is_all"] else taken["scan"] or _SCAN
    given_back = returning(host, queue, {each.name: each.settings.type for each in desired.queues}.get(queue))
    if not given_back.keeps_place and not (taken["is_all"] and not taken["dry_run"]) and not taken["disturb"]:
        whose = (
            "quorum queues of this broker"
            if given_back.keeps_place is not None
            else "queues of a kind that could not be asked"
        )
        raise DelayctlError(
            f"what is held to get at others would not be put back in its place: {whose} put it behind the others, where it "
            "would wait too long",
            where=queue,
            fix="take all that waits there (--all), or say --disturb to do it all the same",
        )
    order = Order(
        host,
        queue,
        search.decide,
        desired.exit,
        taken["dry_run"],
        rate_from(taken["rate"]),
        taken["limit"],
        "Expedited",
        "Would expedite",
        scan=scan,
        is_search=bool(search.wanted.ids),
        is_over=search.is_over,
        returning=given_back,
        moved_before=moved_before,
    )
    return carry_out(order)


def _check(taken: dict[str, Any]) -> None:
    if not taken["levels"]:
        raise BadOption("which level is meant?", fix="name it with --level 15m; delayctl pending shows what waits")
    named = bool(taken["ids"] or taken["keys"])
    if named == taken["is_all"]:
        what = "--all excludes --id and --key" if named else "which messages are meant?"
        raise BadOption(what, fix="say which: --all, or --id ID or --key PATTERN")
    if taken["is_all"] and taken["scan"]:
        raise BadOption("--scan is for --id and --key: --all looks at all that waits", fix="leave out --scan")


def _queues(desired: Topology, live: Live, levels: tuple[str, ...]) -> list[str]:
    """The queues of the levels that were named, also of those that go; for the ladder those of all of its steps."""
    places = [place for place in waiting_in(desired, live) if place.is_own]
    known = [level.name for level in desired.wholes] + [name for place in places for name in place.names]
    by_name = {name: [place.queue for place in places if name in place.names] for name in dict.fromkeys(known)}
    by_name[ANY] = sorted(by_name.get(ANY, ()), reverse=True)  # The longest steps first.
    for level in levels:
        if not by_name.get(level):
            named = [name for name, queues in by_name.items() if queues]
            what = f"there is no level {quoted(level)}{did_you_mean(level, named)}"
            raise BadOption(what, fix=f"use one of: {', '.join(named) or 'none'}")
    return list(dict.fromkeys(queue for level in levels for queue in by_name[level]))


def _json(tour: Tour, search: _Search) -> str:
    missing = {"not_found": sorted(search.missing), "keys_not_found": sorted(search.unseen)}
    return to_json_text({"queues": list(map(result_json, tour.results)), "not_looked_into": tour.unvisited, **missing})


def _text(tour: Tour, search: _Search) -> str:
    unvisited = [f"Not looked into: {', '.join(tour.unvisited)}."] if tour.unvisited else []
    return "\n".join([*map(result_text, tour.results), *unvisited, *_missing(search)])


def _missing(search: _Search) -> list[str]:
    if search.is_found:
        return []
    names = [quoted(name) for name in sorted(search.missing)[:10]]
    names += [f"key {quoted(key)}" for key in sorted(search.unseen)[:10]] if not search.wanted.ids else []
    return [
        f"Not found: {', '.join(names)}. It may be out already, at another level, or behind what was looked at (--scan)."
    ]
