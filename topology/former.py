"""What a level consists of on the broker beside what it shall: its one queue, or shards. It is known by its names alone."""

from collections.abc import Iterator

from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Level, Reference, Resource, Sharded, sorted_bindings
from delayctl.topology.names import Names, WaitNames, shard_name
from delayctl.topology.spec import MOST_SHARDS


def former(level: Level, prefix: str, live: Live) -> Iterator[Resource]:
    """All of it that is there and bound behind the entrance: messages would come twice, or go on waiting in a shard too many.

    Others may have bound what they like to it: that is theirs, and nobody follows it.
    """
    names = Names(prefix)
    if isinstance(level, Sharded):
        yield from _wait(names.wait(level.name), live)
        yield from _shards(level, names, live, beyond=len(level.shards))
    elif (way := Binding(level.entrance, "exchange", names.spread(level.name))) in live.bindings:
        yield way
        if way.destination in live.exchanges:
            yield live.exchanges[way.destination]
        yield from _shards(level, names, live)


def _shards(level: Level, names: Names, live: Live, *, beyond: int = 0) -> Iterator[Resource]:
    """The shards that a spread leads to, those beyond a number."""
    spread = names.spread(level.name)
    ways = sorted_bindings(b for b in live.bindings_at("exchange", spread) if b.source == spread)
    for number in range(beyond + 1, MOST_SHARDS + 1) if ways else ():
        shard = names.wait(shard_name(level.name, number))
        into = [way for way in ways if way.kind == "exchange" and way.destination == shard.entrance]
        if into:
            yield from into
            for wait in (shard, names.next(shard.level)):
                if wait.entrance in live.exchanges:
                    yield live.exchanges[wait.entrance]
                yield from _wait(wait, live)


def _wait(wait: WaitNames, live: Live) -> Iterator[Resource]:
    """The queue behind its own entrance, and the policy that holds its settings or leads round it."""
    way = Binding(wait.entrance, "queue", wait.queue)
    if way in live.bindings:
        yield way
        if wait.queue in live.queues:
            yield live.queues[wait.queue]
        yield from (policy for policy in live.policies if policy.name == wait.policy)


def telltales(level: Level, prefix: str) -> tuple[Reference, ...]:
    """What is there of a level only if it had another number of queues: one instead of several, several instead of one, or more."""
    names = Names(prefix)
    if not isinstance(level, Sharded):
        return (Reference("exchange", names.spread(level.name)),)
    one, following = Reference("queue", names.delay_queue(level.name)), len(level.shards) + 1
    if following > MOST_SHARDS:
        return (one,)
    return one, Reference("exchange", names.entrance(shard_name(level.name, following)))
