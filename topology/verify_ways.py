"""What the objects on a broker say of a way before anything is sent: where a canary would go, and who else would see it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from delayctl.topology.canary import Probe, Trouble
from delayctl.topology.duration import Duration
from delayctl.topology.figures import Figures
from delayctl.topology.journey import GOOD, End, Journey, journey
from delayctl.topology.key_index import IndexedNetwork
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Queue, Topology
from delayctl.topology.names import Names
from delayctl.topology.plan import label
from delayctl.topology.routing import Hop, Message, Network, route
from delayctl.topology.wording import argument, command, plural, quoted

_STRAY = "nobody.is.bound.by.this"


@dataclass(frozen=True)
class Seen:
    """A virtual host: its objects, how its queues are doing, and whose policies apply to them."""

    live: Live
    figures: Mapping[str, Figures] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)  # Queues, and the policies that apply to each.
    veiled: frozenset[str] = frozenset()  # Exchanges with a policy of others that the user may not read.


def network_with_catcher(seen: Seen, names: Names) -> IndexedNetwork:
    """The broker as it will be with the queue that catches canaries."""
    found, catcher = Network.of_live(seen.live), names.verify_queue()
    bindings = {*found.bindings, Binding(names.exit(), "queue", catcher, names.verify_pattern())}
    queues = {**found.queues, catcher: Queue(catcher)}
    return IndexedNetwork.of(replace(found, queues=queues, bindings=bindings))


def opened(network: Network, exchange: str) -> Network:
    """The same, with an exchange that can be published to: an internal one gets its messages from others."""
    found = network.exchanges.get(exchange)
    if found is None or not found.internal:
        return network
    return replace(network, exchanges={**network.exchanges, exchange: replace(found, internal=False)})


def way_of(network: Network, probe: Probe) -> Journey:
    """The way of a canary."""
    return journey(network, probe.exchange, Message(probe.key, probe.headers))


def unproved_waits(seen: Seen, desired: Topology) -> Iterator[str]:
    """The queues of a file that messages wait in and that are no levels: only the ways to and from them are looked at."""
    queues = Network.of_live(seen.live).queues
    listed = {queue.name for queue in desired.queues} | {each.name for each in desired.existing if each.kind == "queue"}
    for name in sorted(listed - desired.delay_queues & queues.keys()):
        settings = queues[name].settings
        if settings.ttl is not None and settings.dead_letter_exchange is not None:
            exit = settings.dead_letter_exchange or "the default exchange"
            yield f"{name} ({settings.ttl}{_by(name, seen)}, then to {exit})"


def net_trouble(network: Network, names: Names, file: str) -> Trouble | None:
    """Say what is wrong where a message with a key that nobody is bound by is neither parked nor taken by others."""
    if names.exit() not in network.exchanges:
        return Trouble("exit-missing", f"there is no exchange {names.exit()}: what has waited is lost", _apply(file))
    if route(network, names.exit(), Message(_STRAY)).queues:
        return None
    what = f"the exit has no net: what has waited and has no route does not come to {names.unrouted_queue()}"
    return Trouble("no-net", f"{what}, and is lost", _apply(file))


def arrivals(way: Journey, queue: str) -> tuple[Duration, ...]:
    """After how long each copy comes to a queue."""
    return tuple(end.after for end in way.ends if end.queue == queue)


def bystanders(way: Journey, catcher: str) -> tuple[str, ...]:
    """The queues of others that a canary would end in."""
    return tuple(sorted({end.queue for end in way.ends if end.queue and end.queue != catcher and end.fate in GOOD}))


def own_plugin_exchanges(way: Journey, names: Names) -> tuple[str, ...]:
    """The exchanges of a plugin's type on a way that are delayctl's own: nothing but delays is behind them."""
    hops = (hop for passage in way.passages for hop in passage.routed.hops)
    return tuple(hop.exchange for hop in hops if hop.is_unknown and hop.exchange.startswith(f"{names.prefix}delay."))


def delay_troubles(way: Journey, probe: Probe, catcher: str, seen: Seen, file: str) -> Iterator[Trouble]:
    """Say what the objects let expect of a canary: that it does not come, not once, or not when it should."""
    caught = arrivals(way, catcher)
    if not caught:
        yield _astray(way, probe, seen, file)
    elif len(caught) > 1:
        what = f"what is published to {probe.exchange} comes out {len(caught)} times, after {_times(caught)}"
        yield Trouble("doubled", what, f"remove what leads there a second time: delayctl plan {argument(file)}")
    elif caught[0] != probe.wait:
        yield wait_trouble(probe, caught[0], seen, file)


def _astray(way: Journey, probe: Probe, seen: Seen, file: str) -> Trouble:
    end = way.ends[-1]
    if end.fate == "refused":
        return Trouble("entrance-missing", end.reason, _apply(file))
    if end.fate == "returned":
        return Trouble("unroutable", f"{_nowhere(seen, probe)}: what is published there is refused", _apply(file))
    if end.queue in probe.queues and end.fate == "delivered":
        what = f"{end.queue} has no TTL in force: what waits there never leaves"
        return Trouble("never-leaves", what, _apply(file))
    if end.key != probe.key:
        queue = probe.queues[-1] if probe.queues else probe.exchange
        what = (
            f"what has waited in {queue} comes out with the key {quoted(end.key)} instead of its own{_by(queue, seen)}"
        )
        return Trouble("key-changed", what, f"remove the dead-letter-routing-key there, then {_apply(file)}")
    if end.fate in GOOD:
        what = f"what is published to {probe.exchange} does not come to the exit, but to {end.queue}"
        return Trouble("astray", what, _apply(file))
    return Trouble(end.fate, f"what is published to {probe.exchange} is {end.fate}: {end.reason}", _apply(file))


def _nowhere(seen: Seen, probe: Probe) -> str:
    missing = [queue for queue in probe.queues if queue not in seen.live.queues]
    reason = f"{missing[0]} is not there" if missing else "nothing is bound to it that takes it"
    return f"{probe.exchange} leads nowhere, since {reason}"


def wait_trouble(probe: Probe, after: Duration, seen: Seen, file: str) -> Trouble:
    """Say that a wait is not as long as it should be."""
    word = "early" if after < probe.wait else "late"
    policies = {name: seen.policies[name] for name in probe.queues if name in seen.policies}
    by = next((_by(name, seen) for name in policies), "")
    fix = f"narrow or correct the policy {next(iter(policies.values()))}" if policies else _apply(file)
    return Trouble(word, f"messages wait {after} instead of {probe.wait}{by}", fix)


def _by(queue: str, seen: Seen) -> str:
    return f" (policy {seen.policies[queue]})" if queue in seen.policies else ""


def route_troubles(network: Network, probe: Probe, described: Network, seen: Seen, file: str) -> Iterator[Trouble]:
    """Say which of a route's targets its messages do not reach, not when they should, or oftener than by the file."""
    way = way_of(network, probe)
    for target in probe.targets:
        times = tuple(_comes_to(way, target))
        if not times:
            ends = "; ".join(dict.fromkeys(map(_fate, way.ends)))
            yield Trouble("astray", f"messages do not reach {target}: {ends}", _apply(file))
        elif probe.wait not in times:
            yield wait_trouble(probe, times[0], seen, file)
        elif len(times) > 1 and len(times) > len(tuple(_comes_to(way_of(described, probe), target))):
            what = f"messages come to {target} {len(times)} times, after {_times(tuple(sorted(times)))}"
            yield _second_way(what, probe, _strangers(way, target, described), file)


def _second_way(what: str, probe: Probe, strangers: Sequence[Binding], file: str) -> Trouble:
    if strangers:
        return Trouble("doubled", f"{what}: the file knows nothing of {label(strangers[0])}", "remove that binding")
    explain = command("delayctl", "explain", file, "--exchange", probe.exchange, "--key", probe.key, "--live")
    return Trouble("doubled", what, f"remove what leads there a second time: {explain}")


def _strangers(way: Journey, target: str, described: Network) -> list[Binding]:
    """The bindings towards a target that the file does not describe under any key, those that end there first."""
    known = {(b.source, b.destination) for b in described.bindings}
    onward = {stay.queue for passage in way.passages for stay in passage.stays if stay.onward is not None}
    followed = dict.fromkeys(b for passage in way.passages for hop in passage.routed.hops for b in hop.matched)
    strangers = (b for b in followed if (b.source, b.destination) not in known)
    leading = (b for b in strangers if b.kind == "exchange" or b.destination in (target, *onward))
    return sorted(leading, key=lambda b: b.destination != target)


def _comes_to(way: Journey, target: str) -> Iterator[Duration]:
    """When a message comes to a queue, or passes an exchange; what comes back from behind it has been there."""
    behind: set[int | None] = set()
    for number, passage in enumerate(way.passages):
        hops = {hop.exchange: hop for hop in passage.routed.hops if not hop.is_missing}
        is_there = target in hops or any(stay.queue == target for stay in passage.stays)
        if is_there and number not in behind:
            yield passage.at
        beyond = {target, *_beyond(target, hops)}
        behind |= {stay.onward for stay in passage.stays if number in behind or stay.queue in beyond}


def _beyond(exchange: str, hops: Mapping[str, Hop]) -> set[str]:
    """What a message reaches by way of an exchange, within one passage."""
    reached, ahead = set[str](), [exchange]
    while ahead:
        hop = hops.get(ahead.pop())
        led_to = [*(b.destination for b in hop.matched), hop.alternate] if hop else []
        further = {name for name in led_to if name is not None} - reached
        ahead += further
        reached |= further
    return reached


def _fate(end: End) -> str:
    place = f" in {end.queue}" if end.queue else ""
    after = f" after {end.after}" if end.after.ms else ""
    return f"{end.fate}{place}{after}" + (f", since {end.reason}" if end.reason else "")


def _times(times: tuple[Duration, ...]) -> str:
    return " and ".join(map(str, times))


def is_near_full(limit: int | None, taken: int, more: int) -> bool:
    """Say whether so much more would come close to a limit; figures are some seconds old, so a twentieth is left free."""
    return limit is not None and taken + more > limit - limit // 20


def no_room(network: Network, queue: str, seen: Seen, count: int, size: int) -> Trouble | None:
    """Say why canaries must not be sent to a queue that would let others go early to make room for them."""
    found, figures = network.queues.get(queue), seen.figures.get(queue)
    if found is None or figures is None or found.settings.overflow == "reject-publish":
        return None  # Who has no room and refuses says so.
    limit, waiting = found.settings.max_length, figures.waiting or 0
    is_full = is_near_full(limit, waiting, count)
    if not is_full and not is_near_full(found.settings.max_bytes, figures.size or 0, count * size):
        return None
    what = f"{queue} is full ({_taken(found, figures, by_length=is_full)}): what comes in pushes the oldest out early, so that no canary was sent"
    return Trouble("full", what, "raise max_length or max_bytes, or set overflow: reject-publish")


def refusing(network: Network, queue: str, seen: Seen) -> Trouble | None:
    """Say that a queue is full and refuses what comes, where no canary is sent that would be told so."""
    found, figures = network.queues.get(queue), seen.figures.get(queue)
    if found is None or figures is None or found.settings.overflow != "reject-publish":
        return None
    is_full = _is_reached(found.settings.max_length, figures.waiting)
    if not is_full and not _is_reached(found.settings.max_bytes, figures.size):
        return None
    what = f"{queue} is full ({_taken(found, figures, by_length=is_full)}): what is published to it is refused"
    return Trouble("refused", what, "raise max_length or max_bytes, or publish less")


def blocked(queue: str, seen: Seen, file: str) -> Trouble | None:
    """Say that a queue hands nothing on, where no canary is sent that would be found missing."""
    figures = seen.figures.get(queue)
    if figures is None or not figures.is_blocked:
        return None
    what = f"{queue} is blocked: {plural(figures.dead_lettering, 'message')} expired and found no taker"
    return Trouble("stuck", what, f"see what keeps them there: delayctl doctor {argument(file)}")


def _is_reached(limit: int | None, taken: int | None) -> bool:
    return limit is not None and (taken or 0) >= limit


def _taken(found: Queue, figures: Figures, *, by_length: bool) -> str:
    if by_length:
        return f"{plural(figures.waiting or 0, 'message')} of {found.settings.max_length:,}"
    return f"{figures.size or 0:,} bytes"


def _apply(file: str) -> str:
    return f"delayctl apply {argument(file)}"
