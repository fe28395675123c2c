"""Finds retries on a broker that wait in their queue: the arguments of a `retry` with `by: broker`."""

from collections.abc import Iterator
from dataclasses import replace

from delayctl.topology.arguments import split_arguments
from delayctl.topology.model import Settings, freeze_arguments, thaw
from delayctl.topology.names import Names
from delayctl.topology.parse_retry import MAX_RETRIES, SET_BY_RETRY
from delayctl.topology.spec import (
    LONGEST_BROKER_WAIT,
    BrokerWaits,
    QueueSpec,
    RetrySpec,
    RouteSpec,
    Spec,
    Target,
    parking_circle,
)


def with_retries(spec: Spec) -> Spec:
    """The same, with a section for the retries that a queue's arguments tell of; whether that fits is for others to see."""
    names = Names(spec.prefix)
    known = {queue.name for queue in spec.queues}
    found = [retry for queue in spec.queues for retry in _retries(queue, names) if retry.park in known]
    parks = {retry.queue: retry.park for retry in found}
    retries = tuple(retry for retry in found if not parking_circle(retry.queue, parks))  # The file takes no circles.
    waiting = {retry.queue for retry in retries}
    keys = {names.park_key(retry.park): Target("queue", retry.park) for retry in retries}
    return replace(
        spec,
        queues=tuple(_without_arguments(queue) if queue.name in waiting else queue for queue in spec.queues),
        routes=tuple(kept for route in spec.routes for kept in _without_keys(route, keys)),
        retries=(*spec.retries, *retries),
    )


def _retries(queue: QueueSpec, names: Names) -> Iterator[RetrySpec]:
    settings, _ = split_arguments({name: thaw(value) for name, value in queue.arguments})
    start, key = names.park_key(""), settings.dead_letter_key or ""
    waits = _waits(settings)
    if waits and queue.type == "quorum" and key.startswith(start):
        yield RetrySpec(queue.name, (), key.removeprefix(start), waits)


def _waits(settings: Settings) -> BrokerWaits | None:
    step, longest, most = settings.retry_min, settings.retry_max, settings.delivery_limit
    if step is None or longest is None or most is None or not settings.waits_between_retries:
        return None
    is_sayable = 1 <= step.ms <= longest.ms <= LONGEST_BROKER_WAIT.ms and 1 <= most <= MAX_RETRIES
    return BrokerWaits(step, longest, most) if is_sayable else None


def _without_arguments(queue: QueueSpec) -> QueueSpec:
    kept = {name: value for name, value in queue.arguments if name not in SET_BY_RETRY}
    return replace(queue, arguments=freeze_arguments(kept))


def _without_keys(route: RouteSpec, keys: dict[str, Target]) -> Iterator[RouteSpec]:
    """What is left of a route without the ways into parking queues."""
    if route.level is None or route.source is not None:
        yield route
        return
    kept = tuple(key for key in route.keys if route.targets != (keys.get(key),))
    if kept:
        yield replace(route, keys=kept)
