"""A file as the rules of lint see it: what it expands to, what is on the broker, and where messages wait."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from delayctl.topology.effective import Effective, alternate_in_force, effective
from delayctl.topology.facts import Facts
from delayctl.topology.key_index import IndexedNetwork
from delayctl.topology.live import Live
from delayctl.topology.model import Queue, Settings, Topology
from delayctl.topology.names import Names
from delayctl.topology.routing import DEFAULT_EXCHANGE, Network
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
        listed = {
            exchange.name: replace(exchange, alternate=alternate_in_force(exchange, self.live.policies))
            for exchange in self.topology.exchanges
        }
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
        for level in self.spec.levels:
            yield Wait(self.network.queues[self.names.delay_queue(level.name)], level.line, level)
        for spec in self.spec.queues:
            queue = self.network.queues.get(spec.name)
            if queue and queue.settings.ttl is not None and queue.settings.dead_letter_exchange is not None:
                yield Wait(queue, spec.line)
