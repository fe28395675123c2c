"""A file as the rules of lint see it: what it expands to, what is on the broker, and where messages wait."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from delayctl.topology.effective import Effective, alternate_in_force, effective
from delayctl.topology.expand_ladder import rung_specs
from delayctl.topology.expand_shards import part_specs
from delayctl.topology.facts import Facts
from delayctl.topology.key_index import IndexedNetwork
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Queue, Settings, Sharded, Topology
from delayctl.topology.names import ANY, Names, rung_name
from delayctl.topology.rerouting import place_of
from delayctl.topology.routing import DEFAULT_EXCHANGE, Network
from delayctl.topology.spec import LevelSpec, QueueSpec, Spec


@dataclass(frozen=True, slots=True)
class Wait:
    """A queue that messages wait in: with a TTL, and a dead-letter exchange to leave by. Settings are those in force."""

    queue: Queue
    line: int
    level: LevelSpec | None = None  # None for a queue of the user's own.
    is_step: bool = False  # Of the ladder.

    @property
    def exit(self) -> str:
        """Where what has waited comes out."""
        return self.queue.settings.dead_letter_exchange or ""

    @property
    def is_quorum(self) -> bool:
        """Say whether what waits is kept on more than one node."""
        return self.queue.settings.type == "quorum"


@dataclass(frozen=True)
class Scene:
    """A file, and the broker where one was asked for."""

    spec: Spec
    topology: Topology
    live: Live | None = None
    facts: Facts | None = None

    @cached_property
    def names(self) -> Names:
        """The names of delayctl's own objects."""
        return Names(self.spec.prefix)

    @cached_property
    def network(self) -> IndexedNetwork:
        """What the file describes; with a broker, together with all else that is there."""
        described = Network.of_topology(self.topology)
        if self.live is None:
            return IndexedNetwork.of(described)
        found = Network.of_live(self.live)
        declared = {queue.name: described.queues[queue.name] for queue in self.topology.queues}
        listed = {
            exchange.name: replace(exchange, alternate=alternate_in_force(exchange, self.live.policies))
            for exchange in self.topology.exchanges
        }
        bindings = {*(b for b in found.bindings if not self._is_replaced(b)), *described.bindings}
        return IndexedNetwork({**found.exchanges, **listed}, {**found.queues, **declared}, bindings)

    def _is_replaced(self, binding: Binding) -> bool:
        """Say whether a route of the file takes the place of a binding."""
        assert self.live is not None
        return bool(self.topology.replaced) and place_of(binding, self.live) in self._replaced_places

    @cached_property
    def _replaced_places(self) -> frozenset[object]:
        assert self.live is not None
        return frozenset(place_of(binding, self.live) for binding in self.topology.replaced)

    @cached_property
    def open_ended(self) -> frozenset[str]:
        """The exchanges that others may have bound what the file does not know of."""
        if self.live is not None:
            return frozenset()
        return frozenset(exchange.name for exchange in self.spec.exchanges if exchange.existing)

    @cached_property
    def own_queues(self) -> Mapping[str, QueueSpec]:
        """The queues of the file, by name."""
        return {queue.name: queue for queue in self.spec.queues}

    @cached_property
    def exchange_lines(self) -> Mapping[str, int]:
        """The line of every exchange, delayctl's own included."""
        lines = {exchange.name: exchange.line for exchange in self.spec.exchanges}
        lines |= dict.fromkeys(self._of_ladder, self.spec.ladder.line) if self.spec.ladder else {}
        levels = {level.name: level.line for level in self.spec.levels}
        sharded = (level for level in self.topology.sharded if level.name in levels)
        lines |= {name: levels[level.name] for level in sharded for name in (level.spread, *_entrances(level))}
        return lines | {self.names.entrance(name): line for name, line in levels.items()}

    @cached_property
    def exchange_types(self) -> Mapping[str, str | None]:
        """The type of every exchange of the file, as far as it says."""
        return {exchange.name: exchange.type for exchange in self.spec.exchanges}

    @cached_property
    def rejection_exchanges(self) -> frozenset[str]:
        """Every exchange that gets what consumers reject from a queue of the user's own."""
        return frozenset(
            queue.settings.dead_letter_exchange
            for queue in self.consumed
            if queue.settings.dead_letter_exchange is not None
        )

    @cached_property
    def waits(self) -> Mapping[str, Wait]:
        """Every queue of the file that messages wait in."""
        return {wait.queue.name: wait for wait in self._waits()}

    @cached_property
    def kinds_of_waits(self) -> tuple[Wait, ...]:
        """Every wait, with all queues of a level as one; of the steps of the ladder that keep what waits alike, the first."""
        seen: set[Settings] = set()
        return tuple(wait for wait in self.whole_waits if not wait.is_step or _is_new(wait.queue.settings, seen))

    @cached_property
    def whole_waits(self) -> tuple[Wait, ...]:
        """Every wait, with all queues of a level as one that has the level's room."""
        levels = {level.name: level for level in self.spec.levels}
        sharded = [level for level in self.topology.sharded if level.name in levels]
        spread = {part.queue: level for level in sharded for part in level.parts}
        wholes = {level.name: self._whole(level, levels[level.name]) for level in sharded}
        found = (wholes[spread[name].name] if name in spread else wait for name, wait in self.waits.items())
        return tuple(dict.fromkeys(found))

    def _whole(self, level: Sharded, spec: LevelSpec) -> Wait:
        first = self.network.queues[level.parts[0].queue]
        settings = replace(first.settings, max_length=spec.wait.max_length, max_bytes=spec.wait.max_bytes)
        return Wait(replace(first, name=level.queue, settings=settings), spec.line, spec)

    def wait_behind(self, level: str) -> str:
        """The queue that a message of a route comes out of: one of the level's, or the last of the ladder that it may wait in."""
        if level == ANY:
            return self.names.delay_queue(rung_name(0))
        return self._first_queues.get(level, self.names.delay_queue(level))

    @cached_property
    def _first_queues(self) -> Mapping[str, str]:
        """The queue of every level; of several, the one that samples wait in, which have no id."""
        return {level.name: level.parts[0].queue for level in self.topology.levels}

    def shown_queue(self, level: LevelSpec) -> str:
        """The queue of a level, or all of them, as people speak of it."""
        return self.names.shard_queues(level.name) if level.wait.shards > 1 else self.names.delay_queue(level.name)

    @cached_property
    def rejects_into_waits(self) -> frozenset[str]:
        """The queues of the file that somebody consumes from, and that dead-letter to where messages wait."""
        return frozenset(queue.name for queue in self.consumed if self._leads_to_a_wait(queue.settings))

    @cached_property
    def consumed(self) -> tuple[Queue, ...]:
        """The user's own queues that nothing expires in."""
        known = (self.network.queues.get(name) for name in self.own_queues)
        return tuple(queue for queue in known if queue and queue.settings.ttl is None)

    @cached_property
    def in_force(self) -> Mapping[str, Effective]:
        """What holds for every queue of the file: on a broker, also by policies of others."""
        if self.live is None:
            return {name: Effective(queue.settings) for name, queue in self.network.queues.items()}
        own = {policy.name for policy in self.topology.policies}
        theirs = (policy for policy in self.live.policies if policy.name not in own)
        policies = (*theirs, *self.topology.policies)
        return {queue.name: effective(queue, policies, self.live.operator_policies) for queue in self.declared.values()}

    @cached_property
    def declared(self) -> Mapping[str, Queue]:
        """Every queue of the file as it is declared, there or on the broker."""
        elsewhere = self.live.queues if self.live else {}
        existing = {name: elsewhere[name] for name in self.own_queues if name in elsewhere}
        return existing | {queue.name: queue for queue in self.topology.queues}

    @property
    def _of_ladder(self) -> tuple[str, ...]:
        rungs = self.topology.rungs
        return self.names.entrance(ANY), *(name for rung in rungs for name in (rung.gate, rung.entrance))

    def _leads_to_a_wait(self, settings: Settings) -> bool:
        if settings.dead_letter_exchange == DEFAULT_EXCHANGE:
            return settings.dead_letter_key in self.waits
        return settings.dead_letter_exchange in self._exchanges_before_waits

    @cached_property
    def _exchanges_before_waits(self) -> frozenset[str]:
        """Every exchange that some binding or alternate leads from towards a wait."""
        before: dict[tuple[str, str], set[str]] = {}
        for binding in self.network.bindings:
            before.setdefault((binding.kind, binding.destination), set()).add(binding.source)
        for exchange in self.network.exchanges.values():
            if exchange.alternate is not None:
                before.setdefault(("exchange", exchange.alternate), set()).add(exchange.name)
        found: set[str] = set()
        ahead = [source for name in self.waits for source in before.get(("queue", name), ())]
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead.extend(before.get(("exchange", name), ()))
        return frozenset(found)

    def _waits(self) -> Iterator[Wait]:
        for part in (part for level in self.spec.levels for part in part_specs(level)):
            yield Wait(self.network.queues[self.names.delay_queue(part.name)], part.line, part)
        for step, _ in rung_specs(self.spec.ladder, self.names) if self.spec.ladder else ():
            yield Wait(self.network.queues[self.names.delay_queue(step.name)], step.line, step, is_step=True)
        for spec in self.spec.queues:
            queue = self.network.queues.get(spec.name)
            if queue and queue.settings.ttl is not None and queue.settings.dead_letter_exchange is not None:
                yield Wait(queue, spec.line)


def _entrances(level: Sharded) -> tuple[str, ...]:
    return tuple(shard.entrance for shard in level.shards)


def _is_new(settings: Settings, seen: set[Settings]) -> bool:
    """Say whether no step before has the same settings, but for how long it waits and where it leads."""
    kept = replace(settings, ttl=None, dead_letter_exchange=None)
    is_new = kept not in seen
    seen.add(kept)
    return is_new
