"""Changes of bindings that belong together become one move; a toggle that was left behind is settled first."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from delayctl.topology.key_index import common_key
from delayctl.topology.live import Live
from delayctl.topology.model import CONSISTENT_HASH, Binding, Kind, Topology, binding_order, sorted_bindings
from delayctl.topology.moves import Move, Settle, Toggle, Way, side_in_force
from delayctl.topology.names import Names
from delayctl.topology.plan import Change, Create, Delete, Refusal, resource_of
from delayctl.topology.routing import PREDEFINED

_FIRST = 0  # Before every stage: what is compared and planned is the broker without a toggle.
_Group = list[Create | Delete]
_Place = tuple[Kind, str]


def with_moves(changes: Iterable[Change], desired: Topology, live: Live) -> list[Change]:
    """Put moves in the place of bindings that end and begin the same way; all else stays as it is."""
    changes = list(changes)
    fixed = _fixed_sources(changes, desired, live)
    groups = {
        way: group
        for way, group in _groups(changes, live).items()
        if way.source not in fixed and _leads_elsewhere(group)
    }
    moved = {change for group in groups.values() for change in group}
    return [*(change for change in changes if change not in moved), *_moves(groups, desired.prefix)]


def _groups(changes: Iterable[Change], live: Live) -> dict[Way, _Group]:
    """The bindings that change, by the way that they lead."""
    groups: dict[Way, _Group] = defaultdict(list)
    for change in changes:
        if isinstance(change, Create | Delete) and isinstance(change.resource, Binding):
            groups[way_of(change.resource, live)].append(change)
    return groups


def _leads_elsewhere(group: _Group) -> bool:
    """Say whether destinations both end and begin: only then is there a moment with too few of them or too many."""
    before, after = (_places(_bindings(group, kind)) for kind in (Delete, Create))
    return not (before <= after or after <= before)


def _moves(groups: dict[Way, _Group], prefix: str) -> Iterator[Move]:
    """One move for all ways of an exchange that lead from the same destinations to the same: they change as one."""
    alike: dict[object, list[Way]] = defaultdict(list)
    for way, group in groups.items():
        sides = (_places(_bindings(group, kind)) for kind in (Delete, Create))
        alike[(way.source, *sides, _stage(group))].append(way)
    for ways in alike.values():
        yield _move(ways, [change for way in ways for change in groups[way]], prefix)


def _move(ways: list[Way], group: _Group, prefix: str) -> Move:
    before = sorted_bindings(_bindings(group, Delete))
    after = sorted_bindings(_bindings(group, Create))
    shown = sorted(ways, key=lambda way: binding_order(way.to_exchange("")))
    return Move(tuple(shown), before, after, Toggle.of(prefix), _stage(group))


def _stage(group: _Group) -> int:
    return max(change.stage for change in group if isinstance(change, Create))


def _bindings(group: _Group, kind: type[Create | Delete]) -> Iterator[Binding]:
    return (change.resource for change in group if isinstance(change, kind) and isinstance(change.resource, Binding))


def _places(bindings: Iterable[Binding]) -> frozenset[_Place]:
    return frozenset((binding.kind, binding.destination) for binding in bindings)


def way_of(binding: Binding, live: Live) -> Way:
    """The way that a binding leads: what of it the exchange looks at, and nothing else."""
    source = live.exchanges.get(binding.source)
    match source.type if source else PREDEFINED.get(binding.source):
        case "fanout":
            return Way(binding.source)
        case "headers":
            # Clients mostly write out what holds without it.
            looked_for = (pair for pair in binding.arguments if pair != ("x-match", "all"))
            return Way(binding.source, arguments=tuple(looked_for))
        case "topic" | "direct":
            return Way(binding.source, binding.key)
        case _:
            return Way(binding.source, binding.key, binding.arguments)


def share_messages(one: Way, other: Way, live: Live) -> bool:
    """Say whether some message may go both ways."""
    if one.source != other.source:
        return False
    source = live.exchanges.get(one.source)
    match source.type if source else PREDEFINED.get(one.source):
        case "topic":
            return common_key(one.key, other.key) is not None
        case "headers":
            return True  # By looking at arguments alone there is no telling.
        case _:
            return one == other


def two_ways_at_once(changes: Iterable[Change], live: Live) -> Iterator[str]:
    """Warn of what goes an old way and a new one for a moment: patterns that overlap make no move, as neither replaces the other."""
    changed = [change for change in changes if isinstance(change, Create | Delete)]
    ended: dict[str, list[Binding]] = defaultdict(list)
    for binding in sorted_bindings(_bindings(changed, Delete)):
        ended[binding.source].append(binding)
    for begun in sorted_bindings(_bindings(changed, Create)):
        for old in ended.get(begun.source, ()):
            if _is_pattern(old, begun) and share_messages(way_of(old, live), way_of(begun, live), live):
                yield (
                    f"{begun.source}: while this is applied, what matches both {old.key} and {begun.key} comes to "
                    f"{old.destination} and to {begun.destination}. To avoid that, change keys and destinations one after the other."
                )


def _is_pattern(old: Binding, begun: Binding) -> bool:
    """Say whether one of two keys may be part of the other, and whether they lead to different places."""
    return not {"*", "#"}.isdisjoint((*old.key, *begun.key)) and _places([old]) != _places([begun])


def place_of(binding: Binding, live: Live) -> tuple[Way, Kind, str]:
    """What a binding does, whatever it says: which messages it leads where."""
    return way_of(binding, live), binding.kind, binding.destination


def _fixed_sources(changes: Iterable[Change], desired: Topology, live: Live) -> set[str]:
    """Exchanges whose bindings are not moved: they come or go themselves, or lead into a delay and are switched.

    Nor are those of exchanges that give a message to one of what is bound: there it never has too few places nor too many.
    """
    names = Names(desired.prefix)
    coming_or_going = {
        resource_of(change).name  # type: ignore[union-attr]
        for change in changes
        if not isinstance(resource_of(change), Binding)
    }
    choosing = {name for name, exchange in live.exchanges.items() if exchange.type == CONSISTENT_HASH}
    entrances = desired.entrances - _spread_or_joined(changes, names)
    return {*coming_or_going, *choosing, *entrances, *desired.gates, names.unrouted_exchange()}


def _spread_or_joined(changes: Iterable[Change], names: Names) -> set[str]:
    """The entrances whose level gets several queues instead of one, or one instead of several."""
    bindings = (change.resource for change in changes if isinstance(change, Create | Delete))
    return {b.source for b in bindings if isinstance(b, Binding) and names.spread_level(b.destination) is not None}


def settled(live: Live, prefix: str) -> tuple[Live, tuple[Settle, ...]]:
    """The broker as it is once the toggle of an interrupted run is gone, and how it goes."""
    toggle = Toggle.of(prefix)
    names = frozenset(toggle.exchanges)
    if names.isdisjoint(live.exchanges) or not _was_left_behind(toggle, live):
        return live, ()
    settle = _settle(toggle, live)
    bindings = (b for b in live.bindings if b.source not in names and b.destination not in names)
    return replace(
        live,
        exchanges={name: exchange for name, exchange in live.exchanges.items() if name not in names},
        bindings=frozenset(bindings).union(settle.keep),
    ), (settle,)


def _was_left_behind(toggle: Toggle, live: Live) -> bool:
    """Say whether what is there of a toggle is ours: just as we make it, after a run that left a record."""
    front, *_ = toggle.exchanges
    there = [made for made in toggle.as_made if made.name in live.exchanges]
    if live.record is None or any(live.exchanges[made.name] != made for made in there):
        return False
    # Its sides have no shape of their own, but nothing leads into them while there is no front.
    return front in live.exchanges or not any(
        binding.destination == made.name for made in there for binding in live.bindings_at("exchange", made.name)
    )


def names_taken(changes: Iterable[Change], live: Live) -> Iterator[Refusal]:
    """What others call by a name that a move needs; where that was left behind by us, it is settled first."""
    toggle = next((change.toggle for change in changes if isinstance(change, Move)), None)
    for name in toggle.exchanges if toggle else ():
        if name in live.exchanges:
            reason = "is in the way: delayctl makes one of this name while ways change, and did not make this one"
            yield Refusal(f"exchange {name}", reason, "remove it, or give it another name", blocking=True)


def _settle(toggle: Toggle, live: Live) -> Settle:
    entries = sorted_bindings(b for b in live.bindings_at("exchange", toggle.name) if b.destination == toggle.name)
    side = side_in_force(toggle, live.bindings)
    ways = {way_of(entry, live) for entry in entries}
    ends = [binding for binding in live.bindings_at("exchange", side) if binding.source == side]
    led = (end._replace(source=source) for end in ends for source in {way.source for way in ways})
    keep = (binding for binding in led if way_of(binding, live) in ways)
    return Settle(entries, sorted_bindings(keep), toggle, _FIRST)
