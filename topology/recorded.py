"""A topology as the broker's own record remembers it: which objects were applied, as they are there now."""

from delayctl.topology.live import Live
from delayctl.topology.model import Ladder, Level, Topology, sorted_bindings
from delayctl.topology.names import Names
from delayctl.topology.record import Record
from delayctl.topology.spec import QueueSpec, Spec


def recorded_topology(
    live: Live, record: Record, *, prefix: str, levels: tuple[Level, ...], ladder: Ladder | None
) -> Topology:
    """What of the record is on the broker; of what is gone, nothing but the name is known."""
    return Topology(
        prefix=prefix,
        exit=Names(prefix).exit(),
        levels=levels,
        exchanges=tuple(live.exchanges[name] for name in sorted(record.exchanges & live.exchanges.keys())),
        queues=tuple(live.queues[name] for name in sorted(record.queues & live.queues.keys())),
        bindings=sorted_bindings(record.bindings & live.bindings),
        policies=tuple(policy for policy in live.policies if policy.name in record.policies),
        existing=(),
        ladder=ladder,
    )


def recorded_parks(topology: Topology) -> tuple[str, ...]:
    """Where retries end: the queues that the exit leads to by a key for parking."""
    start = Names(topology.prefix).park_key("")
    ways = (way for way in topology.bindings if way.source == topology.exit and way.kind == "queue")
    return tuple(sorted({way.destination for way in ways if way.key.startswith(start)}))


def recorded_spec(topology: Topology) -> Spec:
    """As much of a file as those rules need that look at a broker: the queues, which tell by themselves if they wait."""
    return Spec((), prefix=topology.prefix, queues=tuple(QueueSpec(queue.name) for queue in topology.queues))
