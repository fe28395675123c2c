"""Spec to Topology: every object that the file means, derived names and safety nets included."""

import re
from dataclasses import replace

from delayctl.topology.arguments import LAZY, STREAM_SEGMENT, policy_definition, split_arguments
from delayctl.topology.expand_ladder import ladder_bindings, ladder_exchanges, ladder_of, rung_specs
from delayctl.topology.expand_shards import level_of, part_specs, spread_bindings, spread_exchanges
from delayctl.topology.model import (
    Binding,
    Exchange,
    Ladder,
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
from delayctl.topology.spec import BrokerWaits, ExchangeSpec, LevelSpec, QueueSpec, RetrySpec, RouteSpec, Spec

_CANCELLATION_BYTES = 20_000_000  # About 100,000 of them.


def expand(spec: Spec) -> Topology:
    """Derive all objects of a file. Reads nothing, writes nothing."""
    names = Names(spec.prefix)
    retried = {retry.queue: retry for retry in spec.retries}
    levels = tuple(level_of(level, names) for level in spec.levels)
    parts = tuple(part for level in levels for part in level.parts)
    ladder = ladder_of(spec.ladder, names) if spec.ladder else None
    waits = (*parts, *(ladder.rungs if ladder else ()))
    exits = [(part, names.exit()) for level in spec.levels for part in part_specs(level)]
    exits += rung_specs(spec.ladder, names) if spec.ladder else ()
    exchanges = [
        *(_exit_and_net(names) if waits else ()),
        *(Exchange(wait.entrance, "fanout") for wait in waits),
        *(exchange for level in levels for exchange in spread_exchanges(level)),
        *(ladder_exchanges(ladder, names) if ladder else ()),
        *(_business_exchange(exchange) for exchange in spec.exchanges if not exchange.existing),
    ]
    queues = [
        *([Queue(names.unrouted_queue())] if waits else ()),
        *([_cancellations(names)] if waits and spec.cancel else ()),
        *(_delay_queue(wait, exit, names, spec) for wait, exit in exits),
        *(_business_queue(queue, retried.get(queue.name), names) for queue in spec.queues if not queue.existing),
    ]
    return Topology(
        prefix=spec.prefix,
        exit=names.exit(),
        levels=levels,
        exchanges=tuple(sorted(exchanges, key=lambda exchange: exchange.name)),
        queues=tuple(sorted(queues, key=lambda queue: queue.name)),
        bindings=sorted_bindings(_bindings(spec, levels, waits, ladder, names)),
        policies=tuple(_policy(wait, names, spec) for wait, _ in exits) if spec.settings == "policy" else (),
        existing=_existing(spec),
        ladder=ladder,
        replaced=sorted_bindings(_replaced(spec)),
    )


def _exit_and_net(names: Names) -> tuple[Exchange, ...]:
    return (
        Exchange(names.exit(), "topic", alternate=names.unrouted_exchange()),
        Exchange(names.unrouted_exchange(), "fanout"),
    )


def _cancellations(names: Names) -> Queue:
    """A stream: every consumer reads all of it, from the beginning, and takes nothing away. The oldest leave by size."""
    settings = Settings(type="stream", max_bytes=_CANCELLATION_BYTES)
    return Queue(names.cancellations(), settings, extra=((STREAM_SEGMENT, _CANCELLATION_BYTES // 10),))


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


def _delay_queue(level: LevelSpec, exit: str, names: Names, spec: Spec) -> Queue:
    tunable = Settings() if spec.settings == "policy" else _tunable(level)
    settings = Settings(
        type=level.wait.type,
        ttl=tunable.ttl,
        max_length=tunable.max_length,
        max_bytes=tunable.max_bytes,
        overflow=tunable.overflow,
        # Never a dead-letter routing key: it would overwrite the key that the message carries.
        dead_letter_exchange=exit,
        dead_letter_strategy="at-least-once" if level.wait.at_least_once else None,
    )
    is_lazy = level.wait.lazy and level.wait.type == "classic"
    return Queue(names.delay_queue(level.name), settings, extra=(LAZY,) if is_lazy else ())


def _tunable(level: LevelSpec) -> Settings:
    """The settings that a policy can carry as well as the queue itself."""
    return Settings(
        ttl=level.ttl, max_length=level.wait.max_length, max_bytes=level.wait.max_bytes, overflow=level.wait.overflow
    )


def _policy(level: LevelSpec, names: Names, spec: Spec) -> Policy:
    pattern = f"^{re.escape(names.delay_queue(level.name))}$"
    return Policy(names.policy(level.name), pattern, "queues", spec.policy_priority, policy_definition(_tunable(level)))


def _business_queue(queue: QueueSpec, retry: RetrySpec | None, names: Names) -> Queue:
    if queue.type is None and not queue.arguments:
        return Queue(queue.name, durable=queue.durable, auto_delete=queue.auto_delete)
    arguments: dict[str, object] = {name: thaw(value) for name, value in queue.arguments}
    if queue.type:
        arguments["x-queue-type"] = queue.type
    settings, extra = split_arguments(arguments)
    if retry and retry.by_broker:
        settings = _waiting(settings, retry.by_broker, retry.park, names)
    return Queue(queue.name, settings, queue.durable, queue.auto_delete, extra)


def _waiting(settings: Settings, waits: BrokerWaits, park: str, names: Names) -> Settings:
    """The settings of a queue that makes what failed wait by itself, and parks it in the end."""
    return replace(
        settings,
        # What is counted as failed: rejected with requeue, or held by a consumer that died. What is merely given back
        # (nack with requeue) comes again at once, and is not counted.
        retry_type="failed",
        retry_min=waits.step,
        retry_max=waits.longest,
        delivery_limit=waits.most,
        dead_letter_exchange=names.exit(),
        dead_letter_key=names.park_key(park),
        # Parked at least once, or it would be lost with a node; this needs reject-publish.
        dead_letter_strategy="at-least-once",
        overflow="reject-publish",
    )


def _bindings(
    spec: Spec, levels: tuple[Level, ...], waits: tuple[Level, ...], ladder: Ladder | None, names: Names
) -> list[Binding]:
    entrances = {wait.name: wait.entrance for wait in (*levels, *waits)}
    types = {exchange.name: exchange.type for exchange in spec.exchanges}
    bindings = [Binding(names.unrouted_exchange(), "queue", names.unrouted_queue())] if waits else []
    if waits and spec.cancel:
        bindings.append(Binding(names.exit(), "queue", names.cancellations(), names.cancel_key()))
    bindings += [Binding(wait.entrance, "queue", wait.queue) for wait in waits]
    bindings += [binding for level in levels for binding in spread_bindings(level)]
    bindings += ladder_bindings(ladder) if ladder else ()
    bindings += [
        Binding(names.exit(), "queue", retry.queue, names.retry_key(retry.queue))
        for retry in spec.retries
        if retry.by_broker is None
    ]
    bindings += [Binding(names.exit(), "queue", retry.park, names.park_key(retry.park)) for retry in spec.retries]
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


def _replaced(spec: Spec) -> list[Binding]:
    """The direct ways whose place delayed routes take: the same routes without their delay."""
    types = {exchange.name: exchange.type for exchange in spec.exchanges}
    direct = (replace(route, level=None) for route in spec.routes if route.replaces)
    return [binding for route in direct for binding in _route_bindings(route, {}, types, Names(spec.prefix))]


def _existing(spec: Spec) -> tuple[Reference, ...]:
    exchanges = [
        Reference("exchange", exchange.name, exchange.type) for exchange in spec.exchanges if exchange.existing
    ]
    queues = [Reference("queue", queue.name, queue.type) for queue in spec.queues if queue.existing]
    return tuple(sorted(exchanges + queues, key=lambda reference: (reference.kind, reference.name)))
