"""A topology as a value: the exchanges, queues, bindings and policies of one virtual host."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from delayctl.topology.duration import Duration

ExchangeType = str  # Plugins add types of their own; the four of AMQP are listed below.
EXCHANGE_TYPES = ("direct", "fanout", "headers", "topic")
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


@dataclass(frozen=True, slots=True)
class Binding:
    """A way from an exchange to a queue or to another exchange."""

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

    @cached_property
    def entrances(self) -> frozenset[str]:
        """The names of the exchanges that lead into a delay."""
        return frozenset(level.entrance for level in self.levels)

    @cached_property
    def delay_queues(self) -> frozenset[str]:
        """The names of the queues that messages wait in."""
        return frozenset(level.queue for level in self.levels)

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
