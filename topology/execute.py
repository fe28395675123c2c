"""Plan to outcomes: the one place that changes a broker."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import assert_never

from delayctl.topology.broker import Broker
from delayctl.topology.errors import BrokerError, Unreachable
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Resource
from delayctl.topology.plan import Change, Create, Delete, Plan, Replace, Update

WORKERS = 8
_WORTH_A_POOL = 16  # Below this many changes, opening connections takes longer than it saves.


@dataclass(frozen=True, slots=True)
class Done:
    """The change was made."""

    change: Change


@dataclass(frozen=True, slots=True)
class Failed:
    """The broker refused the change, or went away."""

    change: Change
    error: BrokerError


@dataclass(frozen=True, slots=True)
class Skipped:
    """The change was not tried, because one before it failed."""

    change: Change


Outcome = Done | Failed | Skipped


def execute(plan: Plan, broker: Broker, *, keep_lock: Callable[[], None] = lambda: None) -> Iterator[Outcome]:
    """Carry out a plan, stage by stage; after a failure later stages are skipped, never run without their base."""
    keep_lock()
    if plan.changes:
        broker.write_record(plan.prefix, plan.intent)
    failed = False
    # One pool for all stages: its threads keep their connections, and it starts none that it does not need.
    with ThreadPoolExecutor(WORKERS) as pool:
        for stage in plan.stages():
            for outcome in _skip(stage) if failed else _run(stage, broker, pool):
                failed = failed or isinstance(outcome, Failed)
                yield outcome
                keep_lock()
    if plan.writes and not failed:
        broker.write_record(plan.prefix, plan.record)


def _skip(stage: tuple[Change, ...]) -> Iterator[Outcome]:
    return (Skipped(change) for change in stage)


def _run(stage: tuple[Change, ...], broker: Broker, pool: Executor) -> Iterator[Outcome]:
    gone = False

    def attempt(change: Change) -> Outcome:
        nonlocal gone
        outcome = Skipped(change) if gone else _attempt(change, broker)
        gone = gone or (isinstance(outcome, Failed) and isinstance(outcome.error, Unreachable))
        return outcome

    if len(stage) < _WORTH_A_POOL:
        yield from map(attempt, stage)
        return
    # Two replacements at once could miss each other: one binds to what the other has just deleted.
    yield from map(attempt, (change for change in stage if isinstance(change, Replace)))
    yield from pool.map(attempt, (change for change in stage if not isinstance(change, Replace)))


def _attempt(change: Change, broker: Broker) -> Outcome:
    try:
        _perform(change, broker)
    except BrokerError as error:
        return Failed(change, error)
    return Done(change)


def _perform(change: Change, broker: Broker) -> None:
    match change:
        case Create(resource=resource):
            _create(resource, broker)
        case Update(after=policy):
            broker.put_policy(policy)
        case Replace():
            _replace(change, broker)
        case Delete(resource=resource, accept_loss=accept_loss):
            _delete(resource, broker, guarded=not accept_loss)
        case _:
            assert_never(change)


def _create(resource: Resource, broker: Broker) -> None:
    match resource:
        case Exchange() | Queue():
            broker.declare(resource)
        case Binding():
            broker.bind(resource)
        case Policy():
            broker.put_policy(resource)
        case _:
            assert_never(resource)


def _delete(resource: Resource, broker: Broker, *, guarded: bool) -> None:
    match resource:
        case Exchange():
            broker.delete_exchange(resource.name, guarded=guarded)
        case Queue():
            broker.delete_queue(resource, guarded=guarded)
        case Binding():
            broker.unbind(resource)
        case Policy():
            broker.delete_policy(resource.name)
        case _:
            assert_never(resource)


def _replace(change: Replace, broker: Broker) -> None:
    """Delete, declare and bind again what was bound before."""
    if isinstance(change.before, Exchange):
        # Its bindings go with it and are put back, so that it is in use is no objection.
        broker.delete_exchange(change.before.name, guarded=False)
    elif change.accept_loss:
        broker.delete_queue(change.before, guarded=False)
    else:
        _delete_when_empty(change.before, change.restore, broker)
    broker.declare(change.after)
    for binding in change.restore:
        broker.bind(binding)


def _delete_when_empty(queue: Queue, bindings: tuple[Binding, ...], broker: Broker) -> None:
    # The broker can't guard the deletion of a quorum queue: nothing may arrive between the count and the deletion.
    unbound = bindings if queue.settings.type == "quorum" else ()
    try:
        for binding in unbound:
            broker.unbind(binding)
        broker.delete_queue(queue, guarded=True)
    except Unreachable:
        raise
    except BrokerError:
        for binding in unbound:
            broker.bind(binding)
        raise
