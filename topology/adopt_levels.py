"""Finds delayctl's own shape on a broker: levels with their entrances, a ladder, the exit and its safety net."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, takewhile

from delayctl.topology.arguments import LAZY, policy_settings
from delayctl.topology.diff import diff
from delayctl.topology.duration import MAX_TTL_MS
from delayctl.topology.expand import expand
from delayctl.topology.ladder import most_steps
from delayctl.topology.live import Live
from delayctl.topology.model import OVERFLOWS, Binding, Policy, Queue, Settings, Topology, sorted_bindings
from delayctl.topology.names import ANY, Names, rung_name, shard_name
from delayctl.topology.parse_levels import MAX_LEVEL_BYTES
from delayctl.topology.parse_routes import KEYLESS_TYPES
from delayctl.topology.spec import (
    MOST_SHARDS,
    ExchangeSpec,
    LadderSpec,
    LevelSpec,
    QueueSpec,
    RouteSpec,
    SettingsHome,
    Spec,
    Target,
    WaitSpec,
)
from delayctl.topology.writable import queue_type, route_obstacle

_HOMES: tuple[SettingsHome, ...] = ("arguments", "policy")
_NAME = r"[\w-]+"


@dataclass(frozen=True, slots=True)
class OwnShape:
    """Levels that are on the broker just as delayctl would declare them."""

    spec: Spec
    topology: Topology

    @property
    def exchanges(self) -> frozenset[str]:
        """The exchanges that the levels bring with them."""
        return frozenset(exchange.name for exchange in self.topology.exchanges)

    @property
    def queues(self) -> frozenset[str]:
        """The queues that the levels bring with them."""
        return frozenset(queue.name for queue in self.topology.queues)

    def touches(self, binding: Binding) -> bool:
        """Say whether a binding begins or ends at an object of the levels."""
        ends = self.queues if binding.kind == "queue" else self.exchanges
        return binding.source in self.exchanges or binding.destination in ends


def own_shapes(live: Live, base: Spec) -> Iterator[OwnShape]:
    """The ways to read what is on the broker as levels; none where it has another shape."""
    names = Names(base.prefix)
    if names.exit() not in live.exchanges:
        return
    unrecorded = replace(live, record=None)
    for home in _HOMES:
        spec = replace(base, settings=home, policy_priority=_priority(live, names, base.policy_priority))
        levels = [
            level
            for level in (*_levels(live, names, home), *_spread(live, names, home))
            if _is_there(replace(spec, levels=(level,)), unrecorded)
        ]
        ladder = _ladder(live, names, home)
        if ladder and not _is_there(replace(spec, ladder=ladder), unrecorded):
            ladder = None
        if levels or ladder:
            ordered = sorted(levels, key=lambda level: (level.ttl, level.name))
            whole = replace(spec, levels=tuple(ordered), ladder=ladder)
            yield OwnShape(whole, expand(whole))


def _is_there(spec: Spec, live: Live) -> bool:
    return diff(expand(spec), live).is_empty


def _levels(live: Live, names: Names, home: SettingsHome) -> Iterator[LevelSpec]:
    pattern = re.compile(re.escape(names.prefix) + rf"delay\.({_NAME})\.queue")
    policies = {policy.name: policy for policy in live.policies}
    for queue in live.queues.values():
        match = pattern.fullmatch(queue.name)
        if match and not names.reserved(match[1]) and len(match[1].encode()) <= MAX_LEVEL_BYTES:
            level = _level(match[1], queue, policies.get(names.policy(match[1])) if home == "policy" else None)
            if level:
                yield level


def _spread(live: Live, names: Names, home: SettingsHome) -> Iterator[LevelSpec]:
    """The levels that have several queues, which together have the level's room."""
    policies = {policy.name: policy for policy in live.policies} if home == "policy" else {}
    for exchange in live.exchanges:
        if (level := names.spread_level(exchange)) is None or names.reserved(level):
            continue
        shards = (shard_name(level, number) for number in count(1))
        there = takewhile(lambda name: names.delay_queue(name) in live.queues, shards)
        found = [_level(n, live.queues[names.delay_queue(n)], policies.get(names.policy(n))) for n in there]
        parts = [part.wait for part in found if part is not None]
        if len(parts) == len(found) > 1 and found[0] is not None and len(found) <= MOST_SHARDS:
            wait = replace(
                parts[0], max_length=_sum(p.max_length for p in parts), max_bytes=_sum(p.max_bytes for p in parts)
            )
            yield LevelSpec(level, found[0].ttl, replace(wait, shards=len(parts)))


def _sum(limits: Iterable[int | None]) -> int | None:
    every = tuple(limits)
    return None if None in every else sum(limit for limit in every if limit is not None)


def _ladder(live: Live, names: Names, home: SettingsHome) -> LadderSpec | None:
    """The ladder that has as many steps as there are queues for them, all alike."""
    steps = next(step for step in count() if names.delay_queue(rung_name(step)) not in live.queues)
    policies = {policy.name: policy for policy in live.policies}
    if not steps:
        return None
    name = rung_name(0)
    policy = policies.get(names.policy(name)) if home == "policy" else None
    first = _level(name, live.queues[names.delay_queue(name)], policy)
    return LadderSpec(first.ttl, steps, first.wait) if first and steps <= most_steps(first.ttl) else None


def _level(name: str, queue: Queue, policy: Policy | None) -> LevelSpec | None:
    tunable = policy_settings(policy.definition) if policy else queue.settings
    overflow = next((known for known in OVERFLOWS if known == (tunable.overflow or "drop-head")), None)
    if tunable.ttl is None or overflow is None or not 1 <= tunable.ttl.ms <= MAX_TTL_MS or not _has_limits(tunable):
        return None
    is_safe = queue.settings.dead_letter_strategy == "at-least-once"
    if is_safe and (overflow != "reject-publish" or queue.settings.type != "quorum"):
        return None
    kind = queue_type(queue) or "classic"
    wait = WaitSpec(kind, tunable.max_length, tunable.max_bytes, overflow, is_safe, lazy=LAZY in queue.extra)
    return LevelSpec(name, tunable.ttl, wait)


def _has_limits(settings: Settings) -> bool:
    return settings.max_length != 0 and settings.max_bytes != 0


def _priority(live: Live, names: Names, default: int) -> int:
    pattern = re.compile(re.escape(names.prefix) + rf"delay\.{_NAME}(?:\.\d+)?\.policy")
    return next((policy.priority for policy in live.policies if pattern.fullmatch(policy.name)), default)


def routes_of_levels(
    shape: OwnShape,
    bindings: Iterable[Binding],
    exchanges: Mapping[str, ExchangeSpec],
    queues: Mapping[str, QueueSpec],
) -> tuple[RouteSpec, ...] | None:
    """The bindings between the levels and the business as routes; None where one of them can't be said so."""
    ways_out: dict[str, list[Target]] = {}
    ways_in: list[tuple[Binding, str]] = []
    levels = {level.entrance: level.name for level in shape.topology.levels}
    for b in sorted_bindings(set(bindings) - set(shape.topology.bindings)):
        listed = queues if b.kind == "queue" else exchanges
        if b.source == shape.topology.exit and b.destination in listed and not route_obstacle(b, "topic"):
            ways_out.setdefault(b.key, []).append(Target(b.kind, b.destination))
        elif b.destination in levels and b.source in exchanges and not route_obstacle(b, exchanges[b.source].type):
            ways_in.append((b, levels[b.destination]))
        else:
            return None
    routes = [_route(b, level, exchanges[b.source].type, ways_out) for b, level in ways_in]
    entered = [route for route in routes if route is not None]
    if len(entered) < len(routes):
        return None
    said = {(key, target) for route in entered for key in route.keys for target in route.targets}
    rest = {key: tuple(t for t in ends if (key, t) not in said) for key, ends in ways_out.items()}
    first = next((level.name for level in shape.topology.levels), ANY)
    straight = [RouteSpec((key,), ends, level=first) for key, ends in rest.items() if ends]
    return _together((*entered, *straight))


def _route(
    way_in: Binding, level: str, source_type: str | None, ways_out: Mapping[str, list[Target]]
) -> RouteSpec | None:
    """A way into a level together with the ways out that its messages take."""
    is_keyless = source_type in KEYLESS_TYPES or way_in.arguments
    itself = Target("exchange", way_in.source)
    for key in ways_out if is_keyless else (way_in.key,):
        # What leads back to its source is a route of its own.
        if targets := tuple(target for target in ways_out.get(key, ()) if target != itself):
            return RouteSpec((key,), targets, way_in.source, level, way_in.arguments if source_type != "fanout" else ())
    return None


def _together(routes: Iterable[RouteSpec]) -> tuple[RouteSpec, ...]:
    """Routes that differ in nothing but their key, as one."""
    keys: dict[RouteSpec, list[str]] = {}
    for route in routes:
        keys.setdefault(replace(route, keys=()), []).extend(route.keys)
    return tuple(replace(route, keys=tuple(dict.fromkeys(together))) for route, together in keys.items())
