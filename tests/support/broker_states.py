"""Hypothesis strategies for topologies, and for brokers in any state that people and accidents may leave them in."""

from collections.abc import Callable
from dataclasses import replace

from delayctl.topology.diff import empty_topology
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings, Topology, freeze_arguments
from delayctl.topology.record import Record
from delayctl.topology.spec import ExchangeSpec, LadderSpec, LevelSpec, QueueSpec, RouteSpec, Spec, Target, WaitSpec
from hypothesis import strategies as st

from tests.support.examples import live_of
from tests.support.memory_broker import MemoryBroker

LEVELS = ("1s", "1m", "5m")
EXCHANGES = ("orders.exchange", "site.exchange")
# What exists is made to be of the type that is asked for, and bindings would keep the headers that it looked at before.
TYPES = {"orders.exchange": ("topic", "fanout", "headers"), "site.exchange": ("topic", "fanout")}
QUEUES = ("orders.queue", "site.queue")
KEYS = ("order.created", "store.updated")
PATTERNS = ("^delay", "queue$", "^delay\\.1m\\.", ".*", "[[:digit:]]", "(")
DEFINITIONS: tuple[dict[str, object], ...] = (
    {"message-ttl": 500},
    {"max-length": 1, "overflow": "reject-publish"},
    {"expires": 1000},
    {"dead-letter-routing-key": "theirs"},
    {"queue-mode": "lazy"},
)
HEADERS = (freeze_arguments({"kind": "order"}), freeze_arguments({"x-match": "any", "kind": "order", "vip": True}))
THEIR_EXCHANGE, THEIR_QUEUE = "their.exchange", "their.queue"

Disturbance = Callable[[MemoryBroker], None]

_waits = st.builds(
    WaitSpec,
    type=st.sampled_from(("classic", "quorum")),
    max_length=st.sampled_from((None, 10, 1000)),
    overflow=st.sampled_from(("drop-head", "reject-publish")),
)


_ladders = st.builds(LadderSpec, st.just(Duration(1_000)), st.integers(1, 3), _waits)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Any topology of a few levels, exchanges, queues and routes; all that it calls existing has a fixed type."""
    levels = draw(st.lists(st.sampled_from(LEVELS), unique=True, max_size=3))
    exchanges = draw(st.lists(st.sampled_from(EXCHANGES), unique=True))
    queues = draw(st.lists(st.sampled_from(QUEUES), unique=True))
    targets = [*(Target("queue", name) for name in queues), *(Target("exchange", name) for name in exchanges)]
    types = {name: draw(st.sampled_from(TYPES[name])) for name in exchanges}
    routes = draw(st.lists(_routes(levels, exchanges, targets), max_size=3)) if targets else []
    return expand(
        Spec(
            levels=tuple(LevelSpec(name, Duration.parse(name), draw(_waits)) for name in levels),
            ladder=draw(st.none() | _ladders),
            settings=draw(st.sampled_from(("arguments", "policy"))),
            exchanges=tuple(
                ExchangeSpec(
                    name,
                    types[name],
                    existing=name == "site.exchange",
                    durable=draw(st.booleans()),
                    internal=draw(st.booleans()),
                )
                for name in exchanges
            ),
            queues=tuple(
                QueueSpec(name, "classic", existing=draw(st.booleans()), durable=draw(st.booleans())) for name in queues
            ),
            routes=tuple(
                route if types.get(route.source or "") == "headers" else replace(route, headers=()) for route in routes
            ),
        )
    )


def aims() -> st.SearchStrategy[Topology]:
    """What apply and destroy may want the broker to become."""
    return st.one_of(topologies(), st.just(empty_topology("")))


def _routes(levels: list[str], exchanges: list[str], targets: list[Target]) -> st.SearchStrategy[RouteSpec]:
    route = st.builds(
        RouteSpec,
        keys=st.lists(st.sampled_from(KEYS), unique=True, min_size=1).map(tuple),
        targets=st.lists(st.sampled_from(targets), unique=True, min_size=1).map(tuple),
        source=st.sampled_from((None, *exchanges)),
        level=st.sampled_from((None, *levels)),
        headers=st.sampled_from(((), *HEADERS)),
    )
    return route.filter(lambda route: bool(route.source or route.level))


@st.composite
def brokers(draw: st.DrawFn, desired: Topology) -> MemoryBroker:
    """A broker that once was as some topology says, and then met people; what must exist for `desired` does."""
    before = draw(st.one_of(st.just(desired), topologies(), st.none()))
    broker = MemoryBroker.holding(live_of(before) if before else Live())
    for disturbance in draw(st.lists(_disturbances(), max_size=6)):
        disturbance(broker)
    for name in sorted(broker.queues):
        broker.backlog[name] = Backlog(draw(st.sampled_from((0, 0, 3, 30))), draw(st.sampled_from((0, 0, 0, 1))))
    for reference in desired.existing:
        if reference.kind == "exchange":
            broker.exchanges[reference.name] = Exchange(reference.name, reference.type or "topic")
        else:
            broker.queues[reference.name] = Queue(reference.name, Settings(type="classic"))
    return broker


def _disturbances() -> st.SearchStrategy[Disturbance]:
    index = st.integers(0, 20)
    return st.one_of(
        st.builds(_without_exchange, index),
        st.builds(_without_queue, index),
        st.builds(_without_binding, index),
        st.builds(_without_policy, index),
        st.builds(_other_exchange, index),
        st.builds(_other_queue, index, st.sampled_from((1, 3_600_000))),
        st.builds(_their_binding_in, index),
        st.builds(_their_binding_out, index),
        st.builds(_their_policy, st.sampled_from(PATTERNS), st.sampled_from(DEFINITIONS), st.integers(0, 20)),
        st.builds(_operator_policy, st.sampled_from(PATTERNS)),
        st.builds(_stale_record, index),
        st.just(_no_record),
    )


def _nth(names: "dict[str, object] | dict[str, Exchange] | dict[str, Queue] | dict[str, Policy]", index: int) -> str:
    return sorted(names)[index % len(names)]


def _without_exchange(index: int) -> Disturbance:
    def disturb(broker: MemoryBroker) -> None:
        if broker.exchanges:
            broker.delete_exchange(_nth(broker.exchanges, index), guarded=False)

    return disturb


def _without_queue(index: int) -> Disturbance:
    def disturb(broker: MemoryBroker) -> None:
        if broker.queues:
            broker.delete_queue(broker.queues[_nth(broker.queues, index)], guarded=False)
            broker.lost.clear()

    return disturb


def _without_binding(index: int) -> Disturbance:
    def disturb(broker: MemoryBroker) -> None:
        if broker.bindings:
            broker.bindings.discard(sorted(broker.bindings, key=repr)[index % len(broker.bindings)])

    return disturb


def _without_policy(index: int) -> Disturbance:
    def disturb(broker: MemoryBroker) -> None:
        if broker.policies:
            broker.policies.pop(_nth(broker.policies, index))

    return disturb


def _other_exchange(index: int) -> Disturbance:
    def disturb(broker: MemoryBroker) -> None:
        if broker.exchanges:
            name = _nth(broker.exchanges, index)
            broker.exchanges[name] = replace(broker.exchanges[name], type="direct", alternate=None)

    return disturb


def _other_queue(index: int, ttl: int) -> Disturbance:
    def disturb(broker: MemoryBroker) -> None:
        if broker.queues:
            found = broker.queues[_nth(broker.queues, index)]
            other = replace(found.settings, ttl=Duration(ttl), max_length=7)
            broker.queues[found.name] = replace(found, settings=other)

    return disturb


def _their_binding_in(index: int) -> Disturbance:
    def disturb(broker: MemoryBroker) -> None:
        ends = [*(("exchange", name) for name in broker.exchanges), *(("queue", name) for name in broker.queues)]
        broker.exchanges.setdefault(THEIR_EXCHANGE, Exchange(THEIR_EXCHANGE))
        for kind, name in sorted(ends)[index % len(ends) : index % len(ends) + 1] if ends else ():
            broker.bindings.add(Binding(THEIR_EXCHANGE, "queue" if kind == "queue" else "exchange", name, "their.key"))

    return disturb


def _their_binding_out(index: int) -> Disturbance:
    def disturb(broker: MemoryBroker) -> None:
        broker.queues.setdefault(THEIR_QUEUE, Queue(THEIR_QUEUE, Settings(type="classic")))
        if broker.exchanges:
            broker.bindings.add(Binding(_nth(broker.exchanges, index), "queue", THEIR_QUEUE, "their.key"))

    return disturb


def _their_policy(pattern: str, definition: dict[str, object], priority: int) -> Disturbance:
    def disturb(broker: MemoryBroker) -> None:
        policy = Policy("their-policy", pattern, "queues", priority, freeze_arguments(definition))
        broker.policies[policy.name] = policy

    return disturb


def _operator_policy(pattern: str) -> Disturbance:
    def disturb(broker: MemoryBroker) -> None:
        definition = freeze_arguments({"message-ttl": 700})
        broker.operator_policies = (Policy("operators-policy", pattern, "queues", 0, definition),)

    return disturb


def _stale_record(index: int) -> Disturbance:
    """A record of a run that died: it names what was never made, and bindings of others to put back."""

    def disturb(broker: MemoryBroker) -> None:
        broker.exchanges.setdefault(THEIR_EXCHANGE, Exchange(THEIR_EXCHANGE))
        broker.queues.setdefault(THEIR_QUEUE, Queue(THEIR_QUEUE, Settings(type="classic")))
        name = _nth(broker.exchanges, index)
        stale = Record(
            exchanges=frozenset({"never.made.exchange"}),
            queues=frozenset({"never.made.queue"}),
            policies=frozenset({"never.made.policy"}),
            bindings=frozenset({Binding("never.made.exchange", "queue", "never.made.queue")}),
            restore=frozenset(
                {Binding(name, "queue", THEIR_QUEUE, "restored"), Binding(THEIR_EXCHANGE, "exchange", name, "restored")}
            ),
        )
        broker.records[""] = broker.records.get("", Record()).union(stale)

    return disturb


def _no_record(broker: MemoryBroker) -> None:
    broker.records.clear()
