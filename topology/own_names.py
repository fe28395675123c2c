"""The names that delayctl gives on a virtual host for one file, so that the file gives them to nothing else."""

from collections.abc import Iterable, Iterator

from delayctl.topology.expand_shards import part_specs
from delayctl.topology.model import Kind
from delayctl.topology.names import ANY, Names, WaitNames, rung_name
from delayctl.topology.spec import LevelSpec, Spec


def own_names(
    names: Names, levels: Iterable[LevelSpec], *, steps: int, has_delays: bool, can_cancel: bool
) -> dict[Kind, frozenset[str]]:
    """What is made of these levels and so many steps of a ladder, and what any run may make for a moment."""
    levels = tuple(levels)
    waits = tuple(_waits(names, levels, steps))
    exchanges = {*names.toggle(), *(wait.entrance for wait in waits)}
    exchanges |= {names.spread(level.name) for level in levels if level.wait.shards > 1}
    exchanges |= {names.entrance(ANY), *map(names.gate, range(steps))} if steps else set()
    queues = {names.lock(), names.verify_queue(), *(wait.queue for wait in waits)}
    if has_delays:
        exchanges |= {names.exit(), names.unrouted_exchange()}
        queues |= {names.unrouted_queue(), *([names.cancellations()] if can_cancel else [])}
    return {"exchange": frozenset(exchanges), "queue": frozenset(queues)}


def own_names_of(spec: Spec) -> dict[Kind, frozenset[str]]:
    """The same of a whole file."""
    steps = spec.ladder.steps if spec.ladder else 0
    names = Names(spec.prefix)
    return own_names(names, spec.levels, steps=steps, has_delays=spec.has_delays, can_cancel=spec.cancel)


def _waits(names: Names, levels: tuple[LevelSpec, ...], steps: int) -> Iterator[WaitNames]:
    """Every queue that messages may wait in, and what leads round it while it is changed."""
    shards = (part.name for level in levels for part in part_specs(level))
    for name in (*(level.name for level in levels), *shards, *map(rung_name, range(steps))):
        yield from (names.wait(name), names.next(name))
