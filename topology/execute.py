"""Plan to outcomes: the one place that changes a broker."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import assert_never

from delayctl.topology.broker import Broker
from delayctl.topology.errors import BrokerError, StillHolds, Unreachable
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Resource
from delayctl.topology.moves import Cut, LetPass, Move, Put, Settle, steps
from delayctl.topology.order import Stage
from delayctl.topology.plan import Change, Create, Delete, Plan, Replace, Update, resource_of
from delayctl.topology.wording import plural

WORKERS = 8
# What an exchange has given to a queue may arrive there a little after the binding between them is gone.
_SETTLING = frozenset({Stage.PUT_DELAY_QUEUES, *range(Stage.DROP_DELAY_QUEUES, Stage.CUT_WAYS_OUT)})
_SHARDS_LEFT = frozenset({Stage.CUT_WAYS_INTO_SHORTER_SHARDS, Stage.CUT_WAYS_INTO_SHARDS})
_AT_ONCE = 32  # So many are made before an answer is awaited.
_WORTH_A_POOL = 16  # Below this many changes, opening connections takes longer than it saves.
# Two replacements at once could miss each other: one binds to what the other has just deleted. Moves share a toggle.
_ONE_AT_A_TIME = (Replace, Move, Settle)


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
            for outcome in _skip(stage) if failed else _run_unless_needed(stage, plan, broker, pool):
                failed = failed or isinstance(outcome, Failed)
                yield outcome
                keep_lock()
            if stage[0].stage in _SHARDS_LEFT and not failed:
                broker.let_pass()  # What was given to a shard before must still find its queue.
    if plan.writes and not failed:
        broker.write_record(plan.prefix, plan.record)


def _skip(changes: Iterable[Change]) -> Iterator[Outcome]:
    return (Skipped(change) for change in changes)


def _run_unless_needed(stage: tuple[Change, ...], plan: Plan, broker: Broker, pool: Executor) -> Iterator[Outcome]:
    """Run a stage; ways out stay where messages have come to wait since all delays were counted as empty."""
    needed = _needed_by(plan, broker) if stage[0].stage == Stage.CUT_WAYS_OUT else None
    return _run(stage, broker, pool) if needed is None else (Failed(change, needed) for change in stage)


def _needed_by(plan: Plan, broker: Broker) -> StillHolds | None:
    changed = {resource.name for resource in map(resource_of, plan.changes) if isinstance(resource, Queue)}
    for queue in sorted(plan.counted_on_empty - changed):
        if count := broker.count(queue):
            what = f"{plural(count, 'message')} came into {queue} meanwhile and may still need it on the way out"
            return StillHolds(what, fix="run it again once they have left")
    return None


def _run(stage: tuple[Change, ...], broker: Broker, pool: Executor) -> Iterator[Outcome]:
    gone = False
    try:
        restless = _restless(stage, broker)
    except BrokerError as error:
        yield Failed(stage[0], error)
        yield from _skip(stage[1:])
        return

    def attempt(change: Change) -> Outcome:
        nonlocal gone
        if change in restless:
            return Failed(change, restless[change])
        outcome = Skipped(change) if gone else _attempt(change, broker)
        gone = gone or (isinstance(outcome, Failed) and _ends_the_stage(outcome))
        return outcome

    if len(stage) < _WORTH_A_POOL:
        yield from map(attempt, stage)
        return

    simple = _simple(stage)

    def attempt_all(changes: Sequence[Change]) -> list[Outcome]:
        nonlocal gone
        if gone:
            return [*_skip(changes)]
        try:
            broker.put_all([simple[change] for change in changes])
        except Unreachable as error:
            gone = True
            return [Failed(changes[0], error), *_skip(changes[1:])]
        except BrokerError:
            # Which one it was comes out one by one; what is there already does no harm.
            return [attempt(change) for change in changes]
        return [Done(change) for change in changes]

    def one_by_one(*kinds: type[Change]) -> Iterator[Outcome]:
        return map(attempt, (change for change in stage if isinstance(change, kinds)))

    yield from one_by_one(Replace, Settle)
    for outcomes in pool.map(attempt_all, _parts(list(simple))):
        yield from outcomes
    others = (change for change in stage if change not in simple and not isinstance(change, _ONE_AT_A_TIME))
    yield from pool.map(attempt, others)
    yield from one_by_one(Move)  # Once all is there that they lead to.


def _simple(stage: Iterable[Change]) -> dict[Change, Exchange | Queue | Binding]:
    """What is made by saying so, and may be said again."""
    return {
        change: change.resource
        for change in stage
        if isinstance(change, Create) and not isinstance(change.resource, Policy) and not change.node
    }


def _parts(changes: list[Change]) -> list[list[Change]]:
    return [changes[start : start + _AT_ONCE] for start in range(0, len(changes), _AT_ONCE)]


def _ends_the_stage(outcome: Failed) -> bool:
    """Say whether nothing more can be tried: the broker is gone, or the one toggle is still in the way."""
    return isinstance(outcome.error, Unreachable) or isinstance(outcome.change, Move | Settle)


def _restless(stage: tuple[Change, ...], broker: Broker) -> dict[Change, BrokerError]:
    """The changes that would delete a delay queue which holds messages after all, or gets them while it is watched."""
    going = {change: queue for change in stage if (queue := _guarded_queue(change)) is not None}
    settled = broker.settled(list(going.values())) if going else frozenset()
    return {
        change: StillHolds(f"queue {queue.name} holds messages", fix="run it again: it goes on once the queue is empty")
        for change, queue in going.items()
        if queue.name not in settled
    }


def _guarded_queue(change: Change) -> Queue | None:
    """The delay queue that a change deletes if it is empty, be it to declare it anew."""
    match change:
        case Delete(resource=Queue() as queue, accept_loss=False) | Replace(before=Queue() as queue, accept_loss=False):
            return queue if change.stage in _SETTLING else None
        case _:
            return None


def _attempt(change: Change, broker: Broker) -> Outcome:
    try:
        _perform(change, broker)
    except BrokerError as error:
        return Failed(change, error)
    return Done(change)


def _perform(change: Change, broker: Broker) -> None:
    match change:
        case Create(resource=Queue() as queue, node=node) if node:
            broker.declare_at(queue, node)
        case Create(resource=resource):
            _create(resource, broker)
        case Update(after=policy):
            broker.put_policy(policy)
        case Replace():
            _replace(change, broker)
        case Delete(resource=Binding() as binding, covered_by=policy) if policy:
            broker.await_cover(binding, policy)
            broker.unbind(binding)
        case Delete(resource=resource, accept_loss=accept_loss):
            _delete(resource, broker, guarded=not accept_loss)
        case Move() | Settle():
            _reroute(change, broker)
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


def _reroute(change: Move | Settle, broker: Broker) -> None:
    """One step after the other, on one connection: their order is what keeps messages from being lost or doubled."""
    for step in steps(change):
        match step:
            case Put(resource=resource):
                _create(resource, broker)
            case Cut(resource=resource):
                _delete(resource, broker, guarded=False)
            case LetPass():
                broker.let_pass()
            case _:
                assert_never(step)


def _replace(change: Replace, broker: Broker) -> None:
    """Delete, declare and bind again what was bound before."""
    if isinstance(change.before, Exchange):
        # Its bindings go with it and are put back, so that it is in use is no objection.
        broker.delete_exchange(change.before.name, guarded=False)
    elif change.accept_loss:
        broker.delete_queue(change.before, guarded=False)
    else:
        _delete_when_empty(change.before, change.restore, broker)
    if change.node and isinstance(change.after, Queue):
        broker.declare_at(change.after, change.node)
    else:
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
