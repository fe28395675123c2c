"""Spec to Topology: every object that the file means, derived names and safety nets included."""

import re

from delayctl.topology.arguments import policy_definition, split_arguments
from delayctl.topology.model import (
    Binding,
    Exchange,
    Level,
    Policy,
    Queue,
    Reference,
    Settings,
    Topology,
    sorted_bindings,
    thaw,
)
from delayctl.topology.names import Names
from delayctl.topology.spec import ExchangeSpec, LevelSpec, QueueSpec, RouteSpec, Spec


def expand(spec: Spec) -> Topology:
    """Derive all objects of a file. Reads nothing, writes nothing."""
    names = Names(spec.prefix)
    levels = tuple(
        Level(level.name, level.ttl, names.entrance(level.name), names.delay_queue(level.name)) for level in spec.levels
    )
    exchanges = [
        *(_exit_and_net(names) if levels else ()),
        *(Exchange(level.entrance, "fanout") for level in levels),
        *(_business_exchange(exchange) for exchange in spec.exchanges if not exchange.existing),
    ]
    queues = [
        *([Queue(names.unrouted_queue())] if levels else ()),
        *(_delay_queue(level, names, spec) for level in spec.levels),
        *(_business_queue(queue) for queue in spec.queues if not queue.existing),
    ]
    return Topology(
        prefix=spec.prefix,
        exit=names.exit(),
        levels=levels,
        exchanges=tuple(sorted(exchanges, key=lambda exchange: exchange.name)),
        queues=tuple(sorted(queues, key=lambda queue: queue.name)),
        bindings=sorted_bindings(_bindings(spec, levels, names)),
        policies=tuple(_policy(level, names, spec) for level in spec.levels) if spec.settings == "policy" else (),
        existing=_existing(spec),
    )


def _exit_and_net(names: Names) -> tuple[Exchange, ...]:
    return (
        Exchange(names.exit(), "topic", alternate=names.unrouted_exchange()),
        Exchange(names.unrouted_exchange(), "fanout"),
    )


def _business_exchange(exchange: ExchangeSpec) -> Exchange:
    return Exchange(
        exchange.name,
        exchange.type or "topic",
        exchange.alternate,
        exchange.durable,
        exchange.auto_delete,
        exchange.internal,
        exchange.arguments,
    )


def _delay_queue(level: LevelSpec, names: Names, spec: Spec) -> Queue:
    tunable = Settings() if spec.settings == "policy" else _tunable(level)
    settings = Settings(
        type=level.wait.type,
        ttl=tunable.ttl,
        max_length=tunable.max_length,
        max_bytes=tunable.max_bytes,
        overflow=tunable.overflow,
        # Never a dead-letter routing key: it would overwrite the key that the message carries.
        dead_letter_exchange=names.exit(),
        dead_letter_strategy="at-least-once" if level.wait.at_least_once else None,
    )
    return Queue(names.delay_queue(level.name), settings)


def _tunable(level: LevelSpec) -> Settings:
    """The settings that a policy can carry as well as the queue itself."""
    return Settings(
        ttl=level.ttl, max_length=level.wait.max_length, max_bytes=level.wait.max_bytes, overflow=level.wait.overflow
    )


def _policy(level: LevelSpec, names: Names, spec: Spec) -> Policy:
    pattern = f"^{re.escape(names.delay_queue(level.name))}$"
    return Policy(names.policy(level.name), pattern, "queues", spec.policy_priority, policy_definition(_tunable(level)))


def _business_queue(queue: QueueSpec) -> Queue:
    if queue.type is None and not queue.arguments:
        return Queue(queue.name, durable=queue.durable, auto_delete=queue.auto_delete)
    arguments: dict[str, object] = {name: thaw(value) for name, value in queue.arguments}
    if queue.type:
        arguments["x-queue-type"] = queue.type
    settings, extra = split_arguments(arguments)
    return Queue(queue.name, settings, queue.durable, queue.auto_delete, extra)


def _bindings(spec: Spec, levels: tuple[Level, ...], names: Names) -> list[Binding]:
    entrances = {level.name: level.entrance for level in levels}
    types = {exchange.name: exchange.type for exchange in spec.exchanges}
    bindings = [Binding(names.unrouted_exchange(), "queue", names.unrouted_queue())] if levels else []
    bindings += [Binding(level.entrance, "queue", level.queue) for level in levels]
    bindings += [Binding(names.exit(), "queue", retry.queue, names.retry_key(retry.queue)) for retry in spec.retries]
    for route in spec.routes:
        bindings += _route_bindings(route, entrances, types, names)
    return bindings


def _route_bindings(
    route: RouteSpec, entrances: dict[str, str], types: dict[str, str | None], names: Names
) -> list[Binding]:
    # A fanout or headers exchange takes every key; the keys of a delayed route are those that messages come out with.
    is_keyless = bool(route.headers) or types.get(route.source or "") in ("fanout", "headers")
    ways_in = ("",) if is_keyless else route.keys
    if route.level is None:
        assert route.source is not None
        return [
            Binding(route.source, target.kind, target.name, key, route.headers)
            for target in route.targets
            for key in ways_in
        ]
    out = [Binding(names.exit(), target.kind, target.name, key) for target in route.targets for key in route.keys]
    if route.source is None:
        return out
    return out + [Binding(route.source, "exchange", entrances[route.level], key, route.headers) for key in ways_in]


def _existing(spec: Spec) -> tuple[Reference, ...]:
    exchanges = [
        Reference("exchange", exchange.name, exchange.type) for exchange in spec.exchanges if exchange.existing
    ]
    queues = [Reference("queue", queue.name, queue.type) for queue in spec.queues if queue.existing]
    return tuple(sorted(exchanges + queues, key=lambda reference: (reference.kind, reference.name)))
