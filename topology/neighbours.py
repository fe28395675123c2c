"""What topologies with other prefixes in the same virtual host have in common with this one."""

from collections.abc import Iterator

from delayctl.topology.changes import Comparison
from delayctl.topology.model import Binding, sorted_bindings
from delayctl.topology.names import Names
from delayctl.topology.plan import label
from delayctl.topology.record import Record
from delayctl.topology.rerouting import way_of
from delayctl.topology.wording import plural

_MOST_NAMED = 5


def shared_with_neighbours(both: Comparison) -> Iterator[str]:
    """What is no longer asked for and stays all the same, and messages that several topologies delay."""
    for prefix, record in sorted(both.live.neighbours.items()):
        if stays := _still_counted_on(both, record):
            named = ", ".join(stays[:_MOST_NAMED]) + (", …" if len(stays) > _MOST_NAMED else "")
            yield f"{plural(len(stays), 'object')} ({named}) stay{'s' * (len(stays) == 1)}: {_named(prefix)} was applied with {'it' if len(stays) == 1 else 'them'}, too."
        for binding in sorted_bindings(_ways_of_the_same_messages(both, prefix, record)):
            yield (
                f"{label(binding)} of {_named(prefix)} leads the same messages to the same place: they come twice. "
                "If that was this file with another prefix, destroy what was applied with that one."
            )


def _named(prefix: str) -> str:
    return f"the topology with the prefix '{prefix}'" if prefix else "the topology without a prefix"


def _still_counted_on(both: Comparison, record: Record) -> list[str]:
    """What would go if it were ours alone."""
    owned, wanted, live = both.owned, both.wanted, both.live
    names = (owned.exchanges - wanted.exchanges) & record.exchanges & live.exchanges.keys()
    names |= (owned.queues - wanted.queues) & record.queues & live.queues.keys()
    bindings = (owned.bindings - wanted.bindings) & record.bindings & live.bindings
    return [*sorted(names), *map(label, sorted_bindings(bindings))]


def _ways_of_the_same_messages(both: Comparison, prefix: str, record: Record) -> set[Binding]:
    """Ways into a neighbour's delays beside ours, where what waits there comes out where ours does."""
    desired, live, exit = both.desired, both.live, Names(prefix).exit()
    ours = {(b.key, b.kind, b.destination) for b in desired.bindings if b.source == desired.exit}
    common = {
        b.key for b in record.bindings & live.bindings if b.source == exit and (b.key, b.kind, b.destination) in ours
    }
    ways = {way_of(b, live) for b in desired.bindings if b.destination in desired.entrances and b.key in common}
    return {
        b
        for b in record.bindings & live.bindings
        if b.kind == "exchange" and b.destination not in desired.entrances and way_of(b, live) in ways
    }
