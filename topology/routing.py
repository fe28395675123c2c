"""Where an exchange sends a message, as RabbitMQ decides it: the one routing function of delayctl."""

import zlib
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from delayctl.topology.arguments import HASH_HEADER, HASH_PROPERTY
from delayctl.topology.effective import alternate_in_force, effective
from delayctl.topology.live import Live, is_to_hidden_queue
from delayctl.topology.model import (
    CONSISTENT_HASH,
    EXCHANGE_TYPES,
    Arguments,
    Binding,
    Exchange,
    Policy,
    Queue,
    Settings,
    Topology,
    binding_order,
)

DEFAULT_EXCHANGE = ""  # Leads to every queue by its name.
FURTHER_KEYS = ("CC", "BCC")  # Headers with more keys to route by; nobody gets to see the second.
_NO_VALUE = "undefined"
PREDEFINED = {
    DEFAULT_EXCHANGE: "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.headers": "headers",
    "amq.match": "headers",
    "amq.rabbitmq.trace": "topic",
    "amq.topic": "topic",
}


@dataclass(frozen=True)
class Message:
    """What routing looks at: the key, further keys in the headers CC and BCC, the headers, and the id."""

    key: str
    headers: Mapping[str, object] = field(default_factory=dict)
    id: str | None = None  # The property message_id.

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Every key that it is routed by."""
        if not self.headers:
            return (self.key,)
        lists = (self.headers.get(name) for name in FURTHER_KEYS)
        further = (key for keys in lists if isinstance(keys, list | tuple) for key in keys if isinstance(key, str))
        return tuple(dict.fromkeys((self.key, *further)))


@dataclass(frozen=True)
class Network:
    """Exchanges, queues with the settings in force, and the bindings between them."""

    exchanges: Mapping[str, Exchange]
    queues: Mapping[str, Queue]
    bindings: Collection[Binding]
    assumed: frozenset[str] = frozenset()  # Exchanges whose type nobody said; they are taken for topic.
    open_ended: frozenset[str] = frozenset()  # Exchanges that others bind to: not all of their bindings are known.

    @classmethod
    def of_topology(cls, topology: Topology) -> "Network":
        """What a file describes; of what exists elsewhere, as much as the file says of it."""
        named = [reference for reference in topology.existing if reference.kind == "exchange"]
        existing = [Exchange(reference.name, reference.type or "topic") for reference in named]
        elsewhere = [Queue(r.name, Settings(type=r.type)) for r in topology.existing if r.kind == "queue"]
        return cls(
            _exchanges_in_force([*existing, *topology.exchanges], topology.policies),
            _queues_in_force([*elsewhere, *topology.queues], topology.policies, ()),
            topology.bindings,
            frozenset(reference.name for reference in named if reference.type is None),
            frozenset(reference.name for reference in named) | _left_to_others(topology),
        )

    @classmethod
    def of_live(cls, live: Live) -> "Network":
        """What is on a broker."""
        # Exclusive queues are in no definitions, but what is bound to them shows that they are there.
        hidden = {binding.destination for binding in live.bindings if is_to_hidden_queue(binding, live)}
        return cls(
            _exchanges_in_force(live.exchanges.values(), live.policies),
            _queues_in_force([*map(Queue, hidden), *live.queues.values()], live.policies, live.operator_policies),
            frozenset(map(_read_back, live.bindings)),
        )

    @cached_property
    def bindings_from(self) -> Mapping[str, tuple[Binding, ...]]:
        """The bindings of each exchange, in the order in which they are shown."""
        found: dict[str, list[Binding]] = defaultdict(list)
        for binding in self.bindings:
            found[binding.source].append(binding)
        return {source: tuple(sorted(bindings, key=binding_order)) for source, bindings in found.items()}

    def bindings_for(self, exchange: str, message: Message) -> tuple[Binding, ...]:  # noqa: ARG002 (for an index)
        """The bindings of an exchange that may take the message: all of them, unless there is an index."""
        return self.bindings_from.get(exchange, ())


@dataclass(frozen=True, slots=True)
class Hop:
    """One exchange on the way: what it matched, and the alternate that took over where it matched nothing."""

    exchange: str
    matched: tuple[Binding, ...] = ()
    alternate: str | None = None
    is_missing: bool = False
    is_unknown: bool = False  # Of a plugin's type: where it leads is not ours to guess.
    one_of: int = 0  # How many bindings it was chosen from, where the exchange gives a message to one of them.


@dataclass(frozen=True, slots=True)
class Routed:
    """Every queue that gets a copy, each once, and the exchanges that were passed."""

    queues: tuple[str, ...]
    hops: tuple[Hop, ...]


def route(network: Network, exchange: str, message: Message) -> Routed:
    """Follow a message from an exchange to the queues: through other exchanges, each of which is passed once."""
    if exchange == DEFAULT_EXCHANGE:
        return Routed(tuple(key for key in message.keys if key in network.queues), (Hop(exchange),))
    queues: dict[str, None] = {}
    hops: list[Hop] = []
    seen, ahead = {exchange}, deque([exchange])
    while ahead:
        hop = _pass(network, ahead.popleft(), message)
        hops.append(hop)
        queues.update((b.destination, None) for b in hop.matched if b.kind == "queue")
        for name in _following(hop):
            if name not in seen:
                seen.add(name)
                ahead.append(name)
    return Routed(tuple(name for name in queues if name in network.queues), tuple(hops))


def _following(hop: Hop) -> Sequence[str]:
    if hop.alternate is not None:
        return (hop.alternate,)
    return [binding.destination for binding in hop.matched if binding.kind == "exchange"]


def _pass(network: Network, name: str, message: Message) -> Hop:
    exchange = network.exchanges.get(name)
    if exchange is None:
        return Hop(name, is_missing=True)
    if exchange.type == CONSISTENT_HASH:
        return _choose(exchange, network.bindings_for(name, message), message)
    if exchange.type not in EXCHANGE_TYPES:
        return Hop(name, is_unknown=True)
    # The default exchange has no bindings: as an alternate it leads nowhere, but to the alternate of its own policy.
    matched = tuple(b for b in network.bindings_for(name, message) if matches(b, exchange.type, message))
    # Any match counts, also of an exchange that then matches nothing itself.
    return Hop(name, matched, None if matched else exchange.alternate)


def _choose(exchange: Exchange, bindings: Sequence[Binding], message: Message) -> Hop:
    """One of the bindings, each as often as its key says: always the same for the same message, but not the broker's choice.

    A message without what the exchange looks at goes to the first, as on a broker all such messages go to one.
    """
    places = [b for b in sorted(bindings, key=binding_order) for _ in range(_weight(b))]
    if not places:
        return Hop(exchange.name, alternate=exchange.alternate)
    value = _hashed(exchange, message)
    number = 0 if value is None else zlib.crc32(str(value).encode("utf-8", "surrogatepass")) % len(places)
    return Hop(exchange.name, (places[number],), one_of=len({(b.kind, b.destination) for b in places}))


def _weight(binding: Binding) -> int:
    return int(binding.key) if binding.key.isascii() and binding.key.isdigit() else 0


def _hashed(exchange: Exchange, message: Message) -> object:
    """What such an exchange looks at: a header, a property, or the key where it is told of neither."""
    arguments = dict(exchange.extra)
    if header := arguments.get(HASH_HEADER):
        return message.headers.get(str(header))
    if arguments.get(HASH_PROPERTY):
        return message.id if arguments[HASH_PROPERTY] == "message_id" else None
    return message.key


def matches(binding: Binding, exchange_type: str, message: Message) -> bool:
    """Say whether a binding of an exchange of this type takes the message."""
    match exchange_type:
        case "fanout":
            return True
        case "direct":
            return binding.key in message.keys
        case "topic":
            return any(topic_matches(binding.key, key) for key in message.keys)
        case "headers":
            return headers_match(binding.arguments, message.headers)
        case _:
            return False


def topic_matches(pattern: str, key: str) -> bool:
    """Say whether a topic pattern takes a key: `*` stands for one word, `#` for any number of them."""
    words = key.split(".") if key else []
    reached = {0}  # Every number of words that the pattern so far can stand for.
    for part in pattern.split(".") if pattern else []:
        if part == "#":
            reached = set(range(min(reached), len(words) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(words) and part in ("*", words[n])}
        if not reached:
            return False
    return len(words) in reached


def headers_match(arguments: Arguments, headers: Mapping[str, object]) -> bool:
    """Say whether a headers binding takes these headers; without `-with-x` what begins with x- is not looked at."""
    wanted = dict(arguments)
    how = wanted.pop("x-match", "all")
    if how not in ("all-with-x", "any-with-x"):
        wanted = {name: value for name, value in wanted.items() if not name.startswith("x-")}
    # A binding that names a header without a value asks for no more than that it is there.
    found = (
        name in headers and name != "BCC" and (value is None or _same(value, headers[name]))
        for name, value in wanted.items()
    )
    return any(found) if how in ("any", "any-with-x") else all(found)


def _same(wanted: object, given: object) -> bool:
    return type(wanted) is type(given) and wanted == given


def _read_back(binding: Binding) -> Binding:
    """A binding as it was declared: the management API shows a header without a value as the text `undefined`."""
    if not any(value == _NO_VALUE for _, value in binding.arguments):
        return binding
    arguments = tuple((name, None if value == _NO_VALUE else value) for name, value in binding.arguments)
    return binding._replace(arguments=arguments)


def _left_to_others(topology: Topology) -> frozenset[str]:
    """The broker's own exchanges, and those of the file that it leads nowhere from: who needs them binds there."""
    bound = {binding.source for binding in topology.bindings}
    own = {e.name for e in topology.exchanges if e.name not in bound and e.alternate is None}
    return frozenset(own | PREDEFINED.keys() - {DEFAULT_EXCHANGE})


def _exchanges_in_force(exchanges: Collection[Exchange], policies: Sequence[Policy]) -> dict[str, Exchange]:
    found = {name: Exchange(name, kind) for name, kind in PREDEFINED.items()}
    found |= {exchange.name: exchange for exchange in exchanges}
    if not policies:
        return found
    return {
        name: replace(exchange, alternate=alternate_in_force(exchange, policies)) for name, exchange in found.items()
    }


def _queues_in_force(
    queues: Collection[Queue], policies: Sequence[Policy], operator_policies: Sequence[Policy]
) -> dict[str, Queue]:
    if not policies and not operator_policies:
        return {queue.name: queue for queue in queues}
    return {
        queue.name: replace(queue, settings=effective(queue, policies, operator_policies).settings) for queue in queues
    }
