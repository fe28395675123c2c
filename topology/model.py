"""A topology as a value: the exchanges, queues, bindings and policies of one virtual host."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from delayctl.topology.duration import Duration

if TYPE_CHECKING:
    from delayctl.topology.onward import Onward

ExchangeType = str  # Plugins add types of their own; the four of AMQP are listed below.
CONSISTENT_HASH = "x-consistent-hash"  # By a plugin that RabbitMQ ships with: one of what is bound gets the message.
ENABLE_CONSISTENT_HASH = "on every node: rabbitmq-plugins enable rabbitmq_consistent_hash_exchange"
EXCHANGE_TYPES = ("direct", "fanout", "headers", "topic")
ROUTED_TYPES = (*EXCHANGE_TYPES, CONSISTENT_HASH)  # Those that it is known of where they lead a message.
QueueType = Literal["classic", "quorum"]
QUEUE_TYPES: tuple[QueueType, ...] = ("classic", "quorum")
Overflow = Literal["drop-head", "reject-publish"]
OVERFLOWS: tuple[Overflow, ...] = ("drop-head", "reject-publish")
Kind = Literal["exchange", "queue"]

Value = object  # A frozen JSON value: scalars, tuples, and Table for what was a mapping.
Arguments = tuple[tuple[str, Value], ...]  # Sorted by name, so that equal arguments are equal values.


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping inside of arguments, frozen."""

    items: Arguments


def freeze(value: object) -> Value:
    """Turn a JSON value into one that can be compared and hashed."""
    if isinstance(value, Mapping):
        return Table(freeze_arguments(value))
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def freeze_arguments(mapping: Mapping[str, object]) -> Arguments:
    """Turn a mapping of arguments into its one canonical form."""
    if not mapping:
        return ()
    return tuple(sorted(((name, freeze(value)) for name, value in mapping.items()), key=lambda pair: pair[0]))


def thaw(value: Value) -> object:
    """Turn a frozen value back into plain JSON."""
    if isinstance(value, Table):
        return {name: thaw(inner) for name, inner in value.items}
    if isinstance(value, tuple):
        return [thaw(inner) for inner in value]
    return value


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides how a queue keeps its messages; None means not set."""

    type: str | None = None
    ttl: Duration | None = None
    max_length: int | None = None
    max_bytes: int | None = None
    overflow: str | None = None
    dead_letter_exchange: str | None = None
    dead_letter_key: str | None = None
    dead_letter_strategy: str | None = None
    expires: Duration | None = None
    delivery_limit: int | None = None
    retry_type: str | None = None
    retry_min: Duration | None = None
    retry_max: Duration | None = None

    @property
    def waits_between_retries(self) -> bool:
        """Say whether the broker is asked to make what failed wait before it comes again."""
        return self.retry_type not in (None, "disabled")


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange as it is declared."""

    name: str
    type: ExchangeType = "topic"
    alternate: str | None = None
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    extra: Arguments = ()


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue as it is declared; `extra` holds the arguments that Settings has no word for."""

    name: str
    settings: Settings = Settings()
    durable: bool = True
    auto_delete: bool = False
    extra: Arguments = ()


class Binding(NamedTuple):
    """A way from an exchange to a queue or to another exchange.

    A named tuple, since half of all objects are bindings: it is made and looked up several times as fast.
    """

    source: str
    kind: Kind
    destination: str
    key: str = ""
    arguments: Arguments = ()

    def touches(self, kind: Kind, name: str) -> bool:
        """Say whether it begins or ends at this object."""
        return (self.kind, self.destination) == (kind, name) or (kind == "exchange" and self.source == name)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy: of all that match a queue, the one with the highest priority applies alone."""

    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: Arguments


Resource = Exchange | Queue | Binding | Policy


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that must exist on the broker already; `type` is checked where it is given."""

    kind: Kind
    name: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """One delay on the broker: publish to the entrance, wait in the queue."""

    name: str
    ttl: Duration
    entrance: str
    queue: str

    @property
    def parts(self) -> tuple["Level", ...]:
        """The waits that it consists of: itself, or its shards."""
        return (self,)

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues in one of which a message of this level waits."""
        return tuple(part.queue for part in self.parts)


@dataclass(frozen=True, slots=True)
class Sharded(Level):
    """A level whose messages wait in one of several queues; it has no queue of its own, `queue` is how people call them all."""

    spread: str
    shards: tuple[Level, ...]

    @property
    def parts(self) -> tuple[Level, ...]:
        """The shards."""
        return self.shards


@dataclass(frozen=True, slots=True)
class Rung(Level):
    """One step of the ladder: a level behind a gate that sends in what shall wait there, and lets the rest pass by."""

    gate: str


@dataclass(frozen=True, slots=True)
class Ladder:
    """Waits of one unit, two, four and so on, which add up to any delay."""

    unit: Duration
    rungs: tuple[Rung, ...]  # From the shortest: the k-th waits 2^k units.
    entrance: str  # The door: it leads a message to the longest of its steps.


@dataclass(frozen=True)
class Topology:
    """All that a file asks for. Sorted and free of duplicates."""

    prefix: str
    exit: str
    levels: tuple[Level, ...]
    exchanges: tuple[Exchange, ...]
    queues: tuple[Queue, ...]
    bindings: tuple[Binding, ...]
    policies: tuple[Policy, ...]
    existing: tuple[Reference, ...]
    ladder: Ladder | None = None
    replaced: tuple[Binding, ...] = ()  # Direct ways that must not be there beside a delayed route.
    rounds: tuple[Level, ...] = ()  # Ways round delay queues that are being changed; no file asks for these.

    @cached_property
    def rungs(self) -> tuple[Rung, ...]:
        """The steps of the ladder, from the shortest; () where there is none."""
        return self.ladder.rungs if self.ladder else ()

    @cached_property
    def waits(self) -> tuple[Level, ...]:
        """All that messages wait in: the levels, which are chosen by name, or their shards, and the rungs of the ladder."""
        return (*(part for level in self.levels for part in level.parts), *self.rungs)

    @cached_property
    def wholes(self) -> tuple[Level, ...]:
        """The same by the names that people choose from: with all shards of a level as one."""
        return (*self.levels, *self.rungs)

    @cached_property
    def sharded(self) -> tuple[Sharded, ...]:
        """The levels with several queues."""
        return tuple(level for level in self.levels if isinstance(level, Sharded))

    @cached_property
    def fronts(self) -> frozenset[str]:
        """The entrances of levels with several queues: nothing but a spread is behind them."""
        return frozenset(level.entrance for level in self.sharded)

    @cached_property
    def spreads(self) -> frozenset[str]:
        """The exchanges that give each message to one of the shards of a level."""
        return frozenset(level.spread for level in self.sharded)

    @cached_property
    def entrances(self) -> frozenset[str]:
        """The names of the exchanges with nothing but delay queues behind them, be it a level's, a shard's or a rung's."""
        return frozenset(wait.entrance for wait in (*self.waits, *self.rounds)) | self.fronts | self.spreads

    @cached_property
    def gates(self) -> frozenset[str]:
        """The names of the exchanges that decide whether a message waits at a rung or passes by."""
        return frozenset(rung.gate for rung in self.rungs)

    @cached_property
    def passed(self) -> frozenset[str]:
        """The names of the exchanges that others lead to, and that queues dead-letter to."""
        bound = (binding.destination for binding in self.bindings if binding.kind == "exchange")
        alternates = (exchange.alternate for exchange in self.exchanges)
        dead_letters = (queue.settings.dead_letter_exchange for queue in self.queues)
        return frozenset(name for name in (*bound, *alternates, *dead_letters) if name is not None)

    @cached_property
    def inside(self) -> frozenset[str]:
        """All that a message passes while it is delayed, from its entrance to the exit."""
        return frozenset({self.exit, *self.entrances, *self.gates, *self.delay_queues})

    @cached_property
    def onward(self) -> "Onward":
        """Where a message may go on."""
        from delayctl.topology.onward import Onward  # noqa: PLC0415 (it is made of topologies)

        return Onward(self)

    @cached_property
    def delay_queues(self) -> frozenset[str]:
        """The names of the queues that messages wait in."""
        return frozenset(wait.queue for wait in (*self.waits, *self.rounds))

    def __iter__(self) -> Iterator[Resource]:
        yield from self.exchanges
        yield from self.queues
        yield from self.bindings
        yield from self.policies


def sorted_bindings(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
    """Drop duplicates and put bindings into the order in which they are shown."""
    return tuple(sorted(set(bindings), key=binding_order))


def binding_order(binding: Binding) -> tuple[str, str, str, str, str]:
    """The sorting key of a binding."""
    arguments = repr(binding.arguments) if binding.arguments else ""
    return binding.source, binding.kind, binding.destination, binding.key, arguments
