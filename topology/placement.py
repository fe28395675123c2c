"""On which node of a cluster each shard of a level is declared; a plan says so before anything is done.

Brokers place queues one by one, and balance all that they have: two of three shards of a level may well come to one node.
"""

from collections.abc import Iterator, Sequence

from delayctl.topology.model import Level, Topology
from delayctl.topology.names import Names


def places_of(desired: Topology, nodes: Sequence[str]) -> dict[str, str]:
    """The node of every queue that is to be on a certain one; nothing where there is no choice."""
    if len(nodes) < 2:
        return {}
    names, ordered = Names(desired.prefix), sorted(nodes)
    return {
        queue: ordered[number % len(ordered)]
        for number, shard in _numbered(desired)
        # What stands in for a queue while it is changed is where that will be.
        for queue in (shard.queue, names.next(shard.name).queue)
    }


def _numbered(desired: Topology) -> Iterator[tuple[int, Level]]:
    """The shards of each level in a row of nodes, that of the next level begins at the next node."""
    for first, level in enumerate(desired.sharded):
        yield from enumerate(level.shards, start=first)
