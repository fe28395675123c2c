"""What the file says of a message that is published: how long it waits, where it ends, and what its publisher should know."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import click
from delayctl.cli.message_lines import WAYS, Outgoing
from delayctl.publishers.choice import Way
from delayctl.topology.duration import Duration
from delayctl.topology.journey import End, Journey, Stay, journey
from delayctl.topology.key_index import IndexedNetwork
from delayctl.topology.ladder import headers_for
from delayctl.topology.model import Topology
from delayctl.topology.names import ANY, Names
from delayctl.topology.routing import FURTHER_KEYS, Message, Network, topic_matches
from delayctl.topology.spec import RouteSpec, Spec
from delayctl.topology.wording import plural, shorten

_MOST_KEPT = 4_096


@dataclass(frozen=True, slots=True)
class NotDelayed:
    """A message comes out at once, and every route of the file for its key waits."""

    key: str
    waits: tuple[str, ...]
    instead: tuple[str, ...]  # Options that make it wait.

    def __str__(self) -> str:
        routes = "routes for this key wait" if len(self.waits) > 1 else "route for this key waits"
        return f"it does not wait, but the file's {routes} {' or '.join(self.waits)}: {' or '.join(self.instead)}"

    def counted(self, count: str) -> str:
        """The same of many messages."""
        waits = f"{shorten(self.key)} ({' or '.join(self.waits)})"
        return f"{count} came out at once where the file's routes wait, such as for {waits}"


@dataclass(frozen=True, slots=True)
class NoWayOut:
    """A message is parked when its wait is over, by all that the file knows."""

    key: str
    exit: str
    parking: str

    def __str__(self) -> str:
        return f"the file has no way out for this key: unless others bound one to {self.exit}, it is parked in {self.parking}"

    def counted(self, count: str) -> str:
        """The same of many messages."""
        unless = f"unless others bound one to {self.exit}, they are parked in {self.parking}"
        return f"{count} went where the file has no way out, such as for {shorten(self.key)}: {unless}"


Note = NotDelayed | NoWayOut


@dataclass(frozen=True, slots=True)
class Forecast:
    """The way of one message by the file."""

    waits: str
    wait_ms: int | None  # Of the last copy; None where the file does not know.
    ends: tuple[End, ...] = ()
    notes: tuple[Note, ...] = ()


class Forecaster:
    """Tells messages' ways by one file."""

    def __init__(self, spec: Spec, desired: Topology) -> None:
        self._spec, self._desired = spec, desired
        self._network = IndexedNetwork.of(Network.of_topology(desired))
        self._parking = Names(spec.prefix).unrouted_queue()
        self._kept: dict[tuple[str | None, str, bool], tuple[Note, ...]] = {}

    def of(self, message: Outgoing, way: Way) -> Forecast:
        """What becomes of a message that goes this way."""
        if way.exchange not in self._network.exchanges:
            return Forecast(f"goes to {way.exchange}, of which the file knows nothing", None)
        found = self._follow(way.exchange, message, headers_for(way.units) if way.units else {})
        notes = tuple(self._notes(message, found))
        if way.level:
            return Forecast(f"waits {Duration(way.wait_ms)}", way.wait_ms, found.ends, notes)
        stays = list(_arrivals(found, self._desired.delay_queues))
        return Forecast(self._told(found, stays), max((at.ms for at, _ in stays), default=0), found.ends, notes)

    def notes_of(self, message: Outgoing) -> tuple[Note, ...] | None:
        """What to know of one message among many, looked up by exchange and key; None where so many are not kept.

        Where headers say where it goes, it is not followed.
        """
        if message.headers and (message.exchange is not None or any(name in message.headers for name in FURTHER_KEYS)):
            return ()
        kind = message.exchange, message.key, _has_way(message)
        notes = self._kept.get(kind)
        if notes is None and len(self._kept) < _MOST_KEPT:
            start = self._desired.exit if message.exchange is None else message.exchange
            is_known = start in self._network.exchanges
            notes = self._kept[kind] = tuple(self._notes(message, self._follow(start, message, {}))) if is_known else ()
        return notes

    def _follow(self, exchange: str, message: Outgoing, steps: Mapping[str, object]) -> Journey:
        sent = Message(message.key, {**message.headers, **steps}, message.message_id)
        return journey(self._network, exchange, sent, parking={self._parking})

    def _notes(self, message: Outgoing, found: Journey) -> Iterator[Note]:
        if any(end.queue == self._parking for end in found.ends):
            yield NoWayOut(message.key, self._desired.exit, self._parking)
        elif not _has_way(message):
            routes = [
                r for r in self._spec.routes if r.level and any(topic_matches(key, message.key) for key in r.keys)
            ]
            if routes:
                waits, instead = zip(*(self._wait_of(route) for route in routes), strict=True)
                yield NotDelayed(message.key, _once(waits), _once(option for each in instead for option in each))

    def _wait_of(self, route: RouteSpec) -> tuple[str, tuple[str, ...]]:
        """How long a route waits, and the options that do the same."""
        if route.level == ANY:
            return "as long as its publisher says", ("--delay DURATION",)
        ttl = next(str(level.ttl) for level in self._desired.levels if level.name == route.level)
        return ttl, (f"--delay {ttl}", *([f"--exchange {route.source}"] if route.source else []))

    def _told(self, found: Journey, stays: list[tuple[Duration, Stay | None]]) -> str:
        """How long copies wait that were published to an exchange of the file."""
        times = sorted({at for at, _ in stays})
        kept = next((stay for _, stay in stays if stay and stay.wait), None)
        until_consumed = f"; in {kept.queue} it waits {kept.wait} unless it is consumed before" if kept else ""
        if not times or times == [Duration(0)]:
            return f"does not wait{until_consumed}"
        fronts = {level.entrance for level in self._desired.levels}
        first = found.passages[0]
        passed = [hop.exchange for hop in first.routed.hops if hop.exchange in fronts - {first.exchange}]
        by = f" by {first.exchange} → {', '.join(passed)}" if passed else ""
        waits = f"waits {times[0]}" if len(times) == 1 else f"has copies that wait {' and '.join(map(str, times))}"
        return f"{waits}{by}{until_consumed}"


class Tally:
    """Notes of many messages, each kind told once."""

    def __init__(self, forecaster: Forecaster) -> None:
        self._forecaster = forecaster
        self._found: dict[type[Note], list[Any]] = {}  # The first of each kind, and how many there are.
        self._is_complete = True

    def count(self, message: Outgoing) -> None:
        """Take a message into account."""
        notes = self._forecaster.notes_of(message)
        if notes is None:
            self._is_complete = False
        for note in notes or ():
            self._found.setdefault(type(note), [note, 0])[1] += 1

    def told(self) -> tuple[str, ...]:
        """One line for each kind."""
        least = "" if self._is_complete else "at least "
        return tuple(note.counted(least + plural(count, "message")) for note, count in self._found.values())


def show_notes(notes: Iterable[object]) -> None:
    """Tell what a publisher should know, beside the answer."""
    for note in notes:
        click.echo(f"{click.style('Note:', fg='yellow')} {note}.", err=True)


def end_json(end: End) -> dict[str, Any]:
    """Where a copy ends, as programs read it."""
    return {"fate": end.fate, "queue": end.queue, "exchange": end.exchange, "after_ms": end.after.ms}


def _has_way(message: Outgoing) -> bool:
    return any(getattr(message, name) is not None for name in WAYS)


def _arrivals(found: Journey, delays: frozenset[str]) -> Iterator[tuple[Duration, Stay | None]]:
    """When each copy comes to a queue that is no delay, or to its end without one."""
    ahead = [found.passages[0]]
    while ahead:
        passage = ahead.pop()
        yield from ((end.after, None) for end in passage.ends)
        for stay in passage.stays:
            if stay.queue in delays and stay.onward is not None:
                ahead.append(found.passages[stay.onward])
            else:
                yield stay.at, stay


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
