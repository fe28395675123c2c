"""From options to streams: what is published where, when the options name a key, a level, an exchange, or nothing at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from delayctl.cli.simulate_arrivals import Lumps, spread
from delayctl.cli.simulate_options import A_LADDER
from delayctl.publishers.choice import Ways
from delayctl.simulator.what_if_routes import (
    Entry,
    delayed_entries,
    entries_at,
    entries_with,
    expected_entries,
    known_keys,
)
from delayctl.simulator.what_if_traffic import Stream, Stretch, with_bursts
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.journey import Journey, journey
from delayctl.topology.ladder import headers_for
from delayctl.topology.rate import Rate
from delayctl.topology.routing import Message, Network
from delayctl.topology.scene import Scene
from delayctl.topology.wording import did_you_mean, quoted

_SHORTEST_RUN_MS = 60_000
_WHERE = "say where they are published: --level LEVEL, or --exchange NAME with --key KEY"


class NoTraffic(DelayctlError):
    """Neither the options nor the file say how many messages come."""


@dataclass(frozen=True)
class Asked:
    """What the options say of the traffic; None is for all keys that are not named."""

    rates: Mapping[str | None, Rate] = field(default_factory=dict)
    bursts: Mapping[str | None, tuple[Stretch, ...]] = field(default_factory=dict)
    lumps: Mapping[str | None, Lumps] = field(default_factory=dict)
    is_spread: bool = False
    length: int | None = None
    key: str | None = None
    exchange: str | None = None
    levels: tuple[str, ...] = ()
    delay: int | None = None  # How long messages wait whose route leaves it to their publisher, in milliseconds.


def streams_of(scene: Scene, network: Network, asked: Asked) -> tuple[Stream, ...]:
    """Every stream that the options ask for, or DelayctlError where they ask for nothing that can be published."""
    if asked.lumps:
        return tuple(_from_lumps(scene, asked, key, lumps) for key, lumps in asked.lumps.items())
    flows = _flows(scene, asked)
    if not flows:
        fix = "give --rate 1000/s, --arrivals FILE, or expected_rate in the file"
        raise NoTraffic("nobody says how many messages come", fix=fix)
    ways = [journey_of(network, entry) for entry, _, _ in flows]
    last = max((burst.span.end for _, _, bursts in flows for burst in bursts), default=0)
    length = asked.length or max(_SHORTEST_RUN_MS, 2 * max(way.total.ms for way in ways), last)
    if last > length:
        what = f"a burst lasts until {Duration(last)}, and --for {Duration(length)} ends before"
        raise BadOption(what, fix=f"choose --for {Duration(last)} or more, or an earlier burst")
    return tuple(
        Stream(entry.exchange, entry.message, with_bursts(rate, length, bursts), is_made_up=entry.is_made_up)
        for entry, rate, bursts in flows
    )


def journey_of(network: Network, published: Entry | Stream) -> Journey:
    """The way of a message; DelayctlError where it is refused, or where it has too many copies to be followed."""
    if published.exchange not in network.exchanges:
        guess = did_you_mean(published.exchange, network.exchanges)
        raise DelayctlError(f"there is no exchange {quoted(published.exchange)}{guess}", fix="name one of the file")
    way = journey(network, published.exchange, published.message)
    if way.is_cut:
        raise DelayctlError("one message becomes too many copies to be simulated", fix="delayctl explain shows how")
    return way


_Flow = tuple[Entry, Rate | None, tuple[Stretch, ...]]


def _flows(scene: Scene, asked: Asked) -> list[_Flow]:
    """Every message that comes, with its rate and its bursts."""
    usual: dict[tuple[str, str], tuple[Entry, Rate | None]] = {}
    for key, rate in asked.rates.items():
        # What is named counts more than what is said for all, wherever it stands.
        found = ((entry, entry.of(rate)) for entry in _entries(scene, asked, key or asked.key))
        usual |= {
            _identity(entry): (entry, part) for entry, part in found if key is not None or _identity(entry) not in usual
        }
    if not asked.rates:
        expected = [] if asked.key or asked.exchange or asked.levels else expected_entries(scene)
        usual = {_identity(entry): (entry, rate) for entry, rate in expected}
    for key in asked.bursts:
        if key is not None or not usual:
            more = [entry for entry in _entries(scene, asked, key or asked.key) if _identity(entry) not in usual]
            usual |= {_identity(entry): (entry, None) for entry in more}
    return [(entry, rate, _bursts(asked, entry)) for entry, rate in usual.values()]


def _bursts(asked: Asked, entry: Entry) -> tuple[Stretch, ...]:
    named = (*asked.bursts.get(None, ()), *asked.bursts.get(entry.message.key, ()))
    return tuple(replace(burst, rate=entry.of(burst.rate)) for burst in named)


def _identity(entry: Entry) -> tuple[str, str]:
    return entry.exchange, entry.message.key


def _from_lumps(scene: Scene, asked: Asked, key: str | None, lumps: Lumps) -> Stream:
    entries = _entries(scene, asked, key or asked.key)
    if len(entries) > 1:
        keys = sorted({quoted(entry.message.key) for entry in entries})
        what = f"the arrivals can be of more than one kind: {', '.join(keys)}"
        raise DelayctlError(what, fix="name the key with --key, or in the third column of the file")
    entry = entries[0]
    stream = Stream(entry.exchange, entry.message, is_made_up=entry.is_made_up)
    return replace(stream, stretches=spread(lumps)) if asked.is_spread else replace(stream, lumps=lumps)


def _entries(scene: Scene, asked: Asked, key: str | None) -> list[Entry]:
    """Where messages with a key go in; without a key, those that the file speaks of."""
    if asked.delay is not None and scene.topology.ladder is None:
        raise BadOption(f"--delay is for {A_LADDER}", fix="add any: true beside the levels, or give --level")
    return [_waiting(scene, asked, entry) for entry in _entrances(scene, asked, key)]


def _waiting(scene: Scene, asked: Asked, entry: Entry) -> Entry:
    """An entry as its publisher makes it: what enters the ladder says how long it waits."""
    if scene.topology.ladder is None or entry.exchange != scene.topology.ladder.entrance:
        return entry
    if asked.delay is None:
        what = f"messages with the key {quoted(entry.message.key)} wait any delay, and nobody says how long"
        raise DelayctlError(what, fix="give --delay, such as 1h30m")
    way = Ways.of(scene.topology).for_wait(asked.delay, "refuse")
    headers = headers_for(way.units) if way.units else {}
    return replace(entry, exchange=way.exchange, message=Message(entry.message.key, headers))


def _entrances(scene: Scene, asked: Asked, key: str | None) -> list[Entry]:
    if asked.levels:
        return [entry for level in asked.levels for entry in _at_level(scene, level, key)]
    if asked.exchange is not None:
        return _at_exchange(scene, asked.exchange, key)
    found = delayed_entries(scene) if key is None else entries_with(scene, key)
    if not found and key is None:
        raise DelayctlError("the file has no delayed route that messages could take", fix=_WHERE)
    if not found:
        guess = did_you_mean(key or "", known_keys(scene))
        raise DelayctlError(f"no delayed route of the file takes the key {quoted(key or '')}{guess}", fix=_WHERE)
    return found


def _at_exchange(scene: Scene, exchange: str, key: str | None) -> list[Entry]:
    if key is not None:
        return [Entry(exchange, Message(key))]
    found = [entry for entry in delayed_entries(scene) if entry.exchange == exchange]
    if not found:
        raise DelayctlError(f"no delayed route of the file begins at {quoted(exchange)}", fix="name the key with --key")
    return found


def _at_level(scene: Scene, wanted: str, key: str | None) -> list[Entry]:
    name = level_named(scene, wanted)
    return entries_at(scene, name) if key is None else [Entry(scene.names.entrance(name), Message(key))]


def level_named(scene: Scene, wanted: str) -> str:
    """The level of this name or duration, or DelayctlError."""
    names = [level.name for level in scene.spec.levels]
    if wanted in names:
        return wanted
    for level in scene.spec.levels:
        if _ms(wanted) == level.ttl.ms:
            return level.name
    fix = f"name one of {', '.join(names)}" if names else "add levels to the file, or name an exchange with --exchange"
    raise DelayctlError(f"there is no level {quoted(wanted)}{_nearest(scene, wanted)}", fix=fix)


def _nearest(scene: Scene, wanted: str) -> str:
    """A suggestion: of a duration, the level that is nearest to it; of a name, one that looks like it."""
    levels, ms = scene.spec.levels, _ms(wanted)
    if ms is None or not levels:
        return did_you_mean(wanted, [level.name for level in levels])
    nearest = min(levels, key=lambda level: abs(level.ttl.ms - ms))
    return f" (the nearest is {quoted(nearest.name)})"


def _ms(text: str) -> int | None:
    try:
        return Duration.parse(text).ms
    except ValueError:
        return None
