"""A file as the rules of lint see it: what it expands to, what is on the broker, and where messages wait."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from delayctl.topology.facts import Facts
from delayctl.topology.key_index import IndexedNetwork
from delayctl.topology.live import Live
from delayctl.topology.model import Queue, Topology
from delayctl.topology.names import Names
from delayctl.topology.routing import Network
from delayctl.topology.spec import LevelSpec, QueueSpec, Spec


@dataclass(frozen=True, slots=True)
class Wait:
    """A queue that messages wait in: with a TTL, and a dead-letter exchange to leave by. Settings are those in force."""

    queue: Queue
    line: int
    level: LevelSpec | None = None  # None for a queue of the user's own.

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
        listed = {exchange.name: described.exchanges[exchange.name] for exchange in self.topology.exchanges}
        bindings = {*found.bindings, *described.bindings}
        return IndexedNetwork({**found.exchanges, **listed}, {**found.queues, **declared}, bindings)

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
        return lines | {self.names.entrance(level.name): level.line for level in self.spec.levels}

    @cached_property
    def waits(self) -> Mapping[str, Wait]:
        """Every queue of the file that messages wait in."""
        return {wait.queue.name: wait for wait in self._waits()}

    def _waits(self) -> Iterator[Wait]:
        for level in self.spec.levels:
            yield Wait(self.network.queues[self.names.delay_queue(level.name)], level.line, level)
        for spec in self.spec.queues:
            queue = self.network.queues.get(spec.name)
            if queue and queue.settings.ttl is not None and queue.settings.dead_letter_exchange is not None:
                yield Wait(queue, spec.line)
