"""Spec to topology.yaml: what `parse` reads back as the same Spec."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from delayctl.topology.duration import Duration
from delayctl.topology.ladder import DEFAULT_STEPS, DEFAULT_UNIT
from delayctl.topology.layout import Plain, block, entry
from delayctl.topology.model import thaw
from delayctl.topology.names import ANY
from delayctl.topology.size import size_text
from delayctl.topology.spec import (
    DEFAULT_PRIORITY,
    ROCKETMQ_FIRST_RETRY_LEVEL,
    ROCKETMQ_LEVELS,
    ROCKETMQ_MAX_RETRIES,
    BrokerWaits,
    ExchangeSpec,
    GrantSpec,
    LadderSpec,
    LevelSpec,
    QueueSpec,
    RetrySpec,
    RouteSpec,
    Silence,
    Spec,
    Target,
    WaitSpec,
    all_steps,
)

_ROCKETMQ = tuple(ROCKETMQ_LEVELS.split())

Part = TypeVar("Part", bound=Plain)


def write_spec(spec: Spec) -> str:
    """The file that says what this Spec says; what is the default is left out."""
    head = entry("version", 1)
    head += entry("vhost", spec.vhost) if spec.vhost is not None else []
    head += entry("prefix", spec.prefix) if spec.prefix else []
    sections = [head, _delay_section(spec)]
    if spec.exchanges:
        sections.append(block("exchanges", {exchange.name: _exchange(exchange) for exchange in spec.exchanges}))
    if spec.queues:
        sections.append(block("queues", {queue.name: _queue(queue) for queue in spec.queues}))
    if spec.routes:
        types = {exchange.name: exchange.type for exchange in spec.exchanges}
        sections.append(block("routes", [_route(route, types.get(route.source or "")) for route in spec.routes]))
    if spec.retries:
        sections.append(block("retry", {retry.queue: _retry(retry) for retry in spec.retries}))
    if spec.grants:
        sections.append(block("permissions", {grant.user: _grant(grant) for grant in spec.grants}))
    if lint := _lint(spec):
        sections.append(block("lint", lint))
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _delay_section(spec: Spec) -> list[str]:
    if not spec.has_delays:
        return entry("delay", "none")
    delay = _delay(spec)
    return entry("delay", ANY) if delay == {"any": True} else block("delay", delay)


def _delay(spec: Spec) -> dict[str, Plain]:
    base = _usual_wait(spec)
    delay: dict[str, Plain] = {"levels": _levels(spec.levels, base)} if spec.levels else {}
    if spec.ladder:
        delay["any"] = _ladder(spec.ladder, base) or True
    if wait := _wait(base, WaitSpec()):
        delay["queue"] = wait
    if spec.settings != "arguments":
        delay["settings"] = spec.settings
    if spec.policy_priority != DEFAULT_PRIORITY:
        delay["policy_priority"] = spec.policy_priority
    if spec.cancel:
        delay["cancel"] = True
    return delay


def _ladder(ladder: LadderSpec, base: WaitSpec) -> dict[str, Plain]:
    fields: dict[str, Plain] = {}
    if ladder.unit != DEFAULT_UNIT:
        fields["unit"] = str(ladder.unit)
    if ladder.steps != DEFAULT_STEPS:
        fields["steps"] = ladder.steps
    return fields | _wait(ladder.wait, replace(base, shards=1))  # A step is one queue.


def _usual_wait(spec: Spec) -> WaitSpec:
    """What most waits have in common; a level can join the profile safe, but not leave it."""
    waits = [level.wait for level in spec.levels] + ([spec.ladder.wait] if spec.ladder else [])
    usual = Counter([wait for wait in waits if not wait.at_least_once] or waits).most_common(1)[0][0]
    # Nor can a level leave an expected rate.
    return usual if all(wait.expected_rate for wait in waits) else replace(usual, expected_rate=None)


def _levels(levels: Sequence[LevelSpec], base: WaitSpec) -> Plain:
    written = {level.name: _level(level, base) for level in levels}
    if any(written.values()):
        return written
    return "rocketmq" if tuple(written) == _ROCKETMQ else list(written)


def _level(level: LevelSpec, base: WaitSpec) -> dict[str, Plain]:
    ttl: dict[str, Plain] = {} if _says_its_duration(level) else {"ttl": str(level.ttl)}
    return ttl | _wait(level.wait, base)


def _says_its_duration(level: LevelSpec) -> bool:
    try:
        return Duration.parse(level.name) == level.ttl
    except ValueError:
        return False


def _wait(wait: WaitSpec, base: WaitSpec) -> dict[str, Plain]:
    """What sets a wait apart from the one it is based on."""
    fields: dict[str, Plain] = {}
    if wait.at_least_once and not base.at_least_once:
        fields["profile"] = "safe"
        base = replace(base, type="quorum", overflow="reject-publish", at_least_once=True)
    if wait.type != base.type:
        fields["type"] = wait.type
    if wait.max_length != base.max_length:
        fields["max_length"] = "unlimited" if wait.max_length is None else wait.max_length
    if wait.max_bytes != base.max_bytes:
        fields["max_bytes"] = "unlimited" if wait.max_bytes is None else wait.max_bytes
    if wait.overflow != base.overflow:
        fields["overflow"] = wait.overflow
    if wait.lazy != base.lazy:
        fields["lazy"] = wait.lazy
    if wait.shards != base.shards:
        fields["shards"] = wait.shards
    if wait.expected_rate != base.expected_rate and wait.expected_rate is not None:
        fields["expected_rate"] = str(wait.expected_rate)
    return fields


def _exchange(exchange: ExchangeSpec) -> dict[str, Plain]:
    fields: dict[str, Plain] = {}
    if exchange.type is not None and (exchange.existing or exchange.type != "topic"):
        fields["type"] = exchange.type
    if exchange.alternate is not None:
        fields["alternate"] = exchange.alternate
    if exchange.existing:
        fields["existing"] = True
    fields |= _lifetime(exchange)
    if exchange.internal:
        fields["internal"] = True
    if exchange.arguments:
        fields["arguments"] = {name: _argument(value) for name, value in exchange.arguments}
    return fields


def _queue(queue: QueueSpec) -> dict[str, Plain]:
    fields: dict[str, Plain] = {}
    if queue.type is not None:
        fields["type"] = queue.type
    if queue.existing:
        fields["existing"] = True
    fields |= _lifetime(queue)
    if queue.arguments:
        fields["arguments"] = {name: _argument(value) for name, value in queue.arguments}
    return fields


def _lifetime(declared: ExchangeSpec | QueueSpec) -> dict[str, Plain]:
    fields: dict[str, Plain] = {}
    if not declared.durable:
        fields["durable"] = False
    if declared.auto_delete:
        fields["auto_delete"] = True
    return fields


def _argument(value: object) -> Plain:
    plain = thaw(value)
    assert isinstance(plain, str | int)
    return plain


def _route(route: RouteSpec, source_type: str | None) -> dict[str, Plain]:
    fields: dict[str, Plain] = {}
    if route.source is not None:
        fields["from"] = route.source
    if route.headers or source_type == "headers":
        fields["headers"] = {name: _argument(value) for name, value in route.headers}
    if route.keys:
        fields["key"] = _one_or_list(route.keys)
    if route.level is not None:
        fields["delay"] = route.level
    fields["to"] = _one_or_list([_target(target) for target in route.targets])
    return fields | ({"replaces": True} if route.replaces else {})


def _target(target: Target) -> Plain:
    return target.name if target.kind == "queue" else {"exchange": target.name}


def _one_or_list(parts: Sequence[Part]) -> Plain:
    return parts[0] if len(parts) == 1 else list(parts)


def _retry(retry: RetrySpec) -> dict[str, Plain]:
    if retry.by_broker:
        return {**_broker_waits(retry.by_broker), "park": retry.park}
    rocketmq = _repeated(_ROCKETMQ[ROCKETMQ_FIRST_RETRY_LEVEL - 1 :], len(retry.waits))
    if retry.waits == rocketmq:
        most: dict[str, Plain] = {} if len(rocketmq) == ROCKETMQ_MAX_RETRIES else {"max": len(rocketmq)}
        return {"levels": "rocketmq", **most, "park": retry.park}
    return {"levels": list(_without_repetition(retry.waits)), "max": len(retry.waits), "park": retry.park}


def _broker_waits(waits: BrokerWaits) -> dict[str, Plain]:
    fields: dict[str, Plain] = {"by": "broker", "step": str(waits.step)}
    if waits.longest != all_steps(waits.step, waits.most):
        fields["longest"] = str(waits.longest)
    return fields if waits.most == ROCKETMQ_MAX_RETRIES else {**fields, "max": waits.most}


def _repeated(waits: tuple[str, ...], count: int) -> tuple[str, ...]:
    """As many waits as asked for, the last one again and again."""
    return (waits + waits[-1:] * (count - len(waits)))[:count]


def _without_repetition(waits: tuple[str, ...]) -> tuple[str, ...]:
    while len(waits) > 1 and waits[-1] == waits[-2]:
        waits = waits[:-1]
    return waits


def _grant(grant: GrantSpec) -> Plain:
    if not grant.only:
        return grant.role
    what = "queues" if grant.role == "consumer" else "exchanges"
    return {"role": grant.role, what: _one_or_list(grant.only)}


def _lint(spec: Spec) -> dict[str, Plain]:
    lint: dict[str, Plain] = {"memory": size_text(spec.memory)} if spec.memory is not None else {}
    if spec.silences:
        lint["ignore"] = [_silence(silence) for silence in spec.silences]
    return lint


def _silence(silence: Silence) -> dict[str, Plain]:
    at: dict[str, Plain] = {} if silence.at is None else {"at": silence.at}
    return {"rule": silence.rule, **at, "reason": silence.reason}
