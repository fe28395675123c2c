"""LevelSpec to the objects of a level: one queue, or a spread that gives each message to one of several.

The entrance stays a fanout whatever is behind it, and each shard has an entrance of its own. So a level changes from one
queue to several as ways change their destination (`moves`), and each shard is changed as a delay queue is (`switch`).
"""

from collections.abc import Iterator
from dataclasses import replace

from delayctl.topology.arguments import HASH_PROPERTY
from delayctl.topology.model import CONSISTENT_HASH, Binding, Exchange, Level, Sharded
from delayctl.topology.names import Names, shard_name
from delayctl.topology.rate import Rate
from delayctl.topology.spec import LevelSpec, Spec, WaitSpec

# Every message of ours has its own. By the key, all messages of a route would wait in the same shard.
HASHED_BY = "message_id"
_WEIGHT = "1"  # A binding to such an exchange says by its key how large a part it takes.


def part_specs(level: LevelSpec) -> tuple[LevelSpec, ...]:
    """How each queue of a level waits: itself, or shards that together have the level's room."""
    count = level.wait.shards
    if count == 1:
        return (level,)
    return tuple(
        replace(level, name=shard_name(level.name, number), wait=_part(level.wait, number))
        for number in range(1, count + 1)
    )


def _part(wait: WaitSpec, number: int) -> WaitSpec:
    rate = wait.expected_rate and Rate(wait.expected_rate.per_second / wait.shards)
    room, size = (_share(limit, number, wait.shards) for limit in (wait.max_length, wait.max_bytes))
    return replace(wait, max_length=room, max_bytes=size, expected_rate=rate, shards=1)


def _share(limit: int | None, number: int, count: int) -> int | None:
    """What one of so many gets of a limit, so that all have it together; each has room for one in any case."""
    return None if limit is None else max(1, limit // count + (number <= limit % count))


def with_one_queue_each(spec: Spec) -> Spec:
    """The same file with one queue per level: to all that counts messages it is the same."""
    levels = (replace(level, wait=replace(level.wait, shards=1)) for level in spec.levels)
    return replace(spec, levels=tuple(levels))


def level_of(spec: LevelSpec, names: Names) -> Level:
    """The level on the broker."""
    if spec.wait.shards == 1:
        return _wait(spec, names)
    shards = tuple(_wait(part, names) for part in part_specs(spec))
    called = names.shard_queues(spec.name)
    return Sharded(spec.name, spec.ttl, names.entrance(spec.name), called, names.spread(spec.name), shards)


def _wait(spec: LevelSpec, names: Names) -> Level:
    return Level(spec.name, spec.ttl, names.entrance(spec.name), names.delay_queue(spec.name))


def spread_exchanges(level: Level) -> Iterator[Exchange]:
    """The entrance of a level with shards, and what spreads its messages; nothing for one without."""
    if isinstance(level, Sharded):
        yield Exchange(level.entrance, "fanout")
        yield Exchange(level.spread, CONSISTENT_HASH, extra=((HASH_PROPERTY, HASHED_BY),))


def spread_bindings(level: Level) -> Iterator[Binding]:
    """The ways from the entrance of a level with shards to these; nothing for one without."""
    if isinstance(level, Sharded):
        yield Binding(level.entrance, "exchange", level.spread)
        yield from (Binding(level.spread, "exchange", shard.entrance, _WEIGHT) for shard in level.shards)
