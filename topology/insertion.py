"""What a user should know of delays that are put into live ways: direct ways that are not there, or that stay."""

from collections.abc import Iterator

from delayctl.topology.changes import Comparison
from delayctl.topology.key_index import common_key
from delayctl.topology.model import Binding, sorted_bindings
from delayctl.topology.plan import label
from delayctl.topology.rerouting import place_of, way_of
from delayctl.topology.routing import PREDEFINED


def ways_beside(both: Comparison) -> Iterator[str]:
    """Warnings about routes that replace nothing, and about direct ways that go on beside them."""
    found = {place_of(binding, both.live) for binding in both.replaced}
    for direct in both.desired.replaced:
        if place_of(direct, both.live) not in found and _is_new(direct, both):
            yield f"{label(direct)} is not there, so the route has nothing to replace. Look at the key and the names if it should."
        for other in _overlapping(direct, both):
            yield (
                f"{label(other)} stays: a message that fits [{direct.key}] as well reaches {direct.destination} at once, "
                "and again after the delay. Let a route replace that way too, or unbind it."
            )


def _is_new(direct: Binding, both: Comparison) -> bool:
    """Say whether the delay is put into this way now, not earlier."""
    way, entrances = way_of(direct, both.live), both.desired.entrances
    ahead = (b for b in both.live.bindings_at("exchange", direct.source) if b.destination in entrances)
    return way not in {way_of(binding, both.live) for binding in ahead}


def _overlapping(direct: Binding, both: Comparison) -> tuple[Binding, ...]:
    """Other bindings to the same destination that some message fits together with this one."""
    source = both.live.exchanges.get(direct.source)
    if (source.type if source else PREDEFINED.get(direct.source)) != "topic":
        return ()  # Of the other types those that share messages are one way, or can't be told apart by looking.
    there = both.live.bindings_at(direct.kind, direct.destination)
    leaving = both.replaced | both.unwanted_bindings
    return sorted_bindings(
        b for b in there if b.source == direct.source and b not in leaving and common_key(b.key, direct.key) is not None
    )
