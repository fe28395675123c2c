"""Desired and live to Plan: what differs, in which order it is mended, and what must not be done."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby

from delayctl.topology.changes import Comparison
from delayctl.topology.hazards import hazard_of, judging_rank, queues_to_count, warnings_of
from delayctl.topology.live import Live, is_to_hidden_queue
from delayctl.topology.model import (
    Binding,
    Exchange,
    Policy,
    Queue,
    Reference,
    Resource,
    Topology,
)
from delayctl.topology.moves import Move
from delayctl.topology.names import Names
from delayctl.topology.plan import Change, Delete, Plan, Refusal, Replace, Update, Wait, label, resource_of
from delayctl.topology.preconditions import has_other_steps, unmet
from delayctl.topology.record import Record, record_of, to_json
from delayctl.topology.rerouting import names_taken, two_ways_at_once, with_moves
from delayctl.topology.stakes import Hazard, Scene
from delayctl.topology.succession import hold_ways_to_dead_ends, keep_ways_without_successor
from delayctl.topology.surroundings import bent_by_others, remarks
from delayctl.topology.wording import did_you_mean, shorten
from delayctl.topology.work import Work


def diff(desired: Topology, live: Live, *, vhost: str = "/", accept_loss: Iterable[str] = ()) -> Plan:
    """List the changes that turn `live` into `desired`. Reads nothing, writes nothing."""
    return judge(Comparison(desired, live, frozenset(accept_loss)), vhost=vhost)


def judge(both: Comparison, *, vhost: str = "/") -> Plan:
    """Decide what of a comparison is done, in which order, and what is refused."""
    work = Work(both)
    _judge_all(work)
    hold_ways_to_dead_ends(work)
    keep_ways_without_successor(work)
    work.changes = [*both.settles, *with_moves(work.changes, both.desired, both.live)]
    ttls = {name: level.ttl.ms for level in both.desired.waits for name in (level.queue, level.entrance)}
    order = partial(_order, ttls, both.desired)
    held = sorted(work.held, key=order)
    work.refusals += [_refusal(change, work.held[change]) for change in held if not work.held[change].passes]
    scene = work.scene
    work.warnings += [text for change in sorted(work.changes, key=order) for text in warnings_of(change, scene)]
    work.warnings += two_ways_at_once(work.changes, both.live)
    work.refusals += names_taken(work.changes, both.live)
    work.refusals += unmet(both, on_ladder=sum(scene.waiting_above(0).values()), staying=_theirs_that_stay(held, scene))
    work.refusals += bent_by_others(both, vhost)
    work.warnings += remarks(both, [resource_of(change) for change in held])
    work.warnings += _insisted_on_nothing(work)
    emptying = tuple(_emptying_to_wait_for(work, held))
    waited_for = {wait.queue for wait in emptying}
    record = replace(_record_afterwards(work), replaced=both.remembered)
    touched = {b for change in work.changes if isinstance(change, Replace) for b in change.restore}
    intent = both.owned.union(record, restore=touched - both.owned.bindings - record.bindings)
    return Plan(
        vhost=vhost,
        prefix=both.desired.prefix,
        changes=tuple(sorted(work.changes, key=order)),
        refusals=tuple(work.refusals),
        warnings=tuple(work.warnings),
        record=record,
        intent=intent,
        existing=both.desired.existing,
        waits=(*_switches_to_wait_for(work), *emptying),
        afterwards=tuple(c for c in held if work.held[c].passes and _queue_name(c) not in waited_for),
        counted_on_empty=frozenset(name for name in at_stake(both) if not scene.backlog(name).messages),
        # A plan that writes nothing can't become stale, and a digest of thousands of objects takes its time.
        fingerprint=fingerprint(intent, both.desired.existing, both.found)
        if work.changes or record != both.owned
        else "",
    )


def _theirs_that_stay(held: Iterable[Change], scene: Scene) -> frozenset[str]:
    """The exchanges of services that are not as the file says, and are not declared anew."""
    exchanges = (c.after for c in held if isinstance(c, Replace) and isinstance(c.after, Exchange))
    return frozenset(each.name for each in exchanges if not scene.names.is_given(each.name))


def at_stake(both: Comparison) -> frozenset[str]:
    """The queues whose backlog decides what may be done, so that only these need to be counted."""
    names, counted = Names(both.asked.prefix), set(queues_to_count(both.changes, both.desired, both.delays))
    if has_other_steps(both):
        counted |= {name for name in both.delays.queues if names.step_of(name) is not None}
    return frozenset(counted & both.live.queues.keys())


def fingerprint(scope: Record, existing: Iterable[Reference], live: Live) -> str:
    """A digest of all that a plan was computed from, counts of messages left out."""
    exchanges = scope.exchanges | {reference.name for reference in existing if reference.kind == "exchange"}
    queues = scope.queues | {reference.name for reference in existing if reference.kind == "queue"}
    relevant = (
        live.version,  # What may be asked for, and what is refused, depends on it.
        sorted(repr(live.exchanges[name]) for name in exchanges & live.exchanges.keys()),
        sorted(repr(live.queues[name]) for name in queues & live.queues.keys()),
        sorted(
            repr(b)
            for b in live.bindings
            if (b.source in exchanges or b.destination in exchanges or b.destination in queues)
            and not is_to_hidden_queue(b, live)
        ),
        sorted(repr(policy) for policy in (*live.policies, *live.operator_policies)),
        json.dumps(to_json(live.record or Record())),
    )
    return hashlib.sha256(repr(relevant).encode()).hexdigest()


def _judge_all(work: Work) -> None:
    """Decide what is done and what is held back, what others depend on first."""
    rank = partial(judging_rank, delays=work.both.delays)
    for _, changes in groupby(sorted(work.both.changes, key=rank), key=rank):
        scene = work.scene
        for change in changes:
            _judge(work, change, scene)


def _judge(work: Work, change: Change, scene: Scene) -> None:
    """Take a change into the plan, or refuse it."""
    hazard = hazard_of(change, scene)
    if hazard and hazard.name not in work.both.insisted:
        work.held[change] = hazard
        return
    if hazard and isinstance(change, Replace | Delete):
        change = replace(change, accept_loss=True)
    work.changes.append(change)


def _emptying_to_wait_for(work: Work, held: Iterable[Change]) -> Iterator[Wait]:
    """Queues that go, are declared anew or get another policy once what waits in them has left."""
    scene = work.scene
    then = {
        work.held[change].name: "given its new policy"
        for change in held
        if isinstance(change, Update) and work.held[change].passes
    }
    then |= {
        name: "declared anew" if isinstance(change, Replace) else "removed"
        for change in held
        if (name := _queue_name(change)) and work.held[change].passes
    }
    for name, outcome in then.items():
        # A step of the ladder stays while others above it empty; there is nothing to wait for at itself.
        if name in scene.emptying and scene.backlog(name).messages:
            longest = scene.emptying[name]
            yield Wait(name, name, scene.backlog(name).messages, longest, longest, outcome)


def _switches_to_wait_for(work: Work) -> Iterator[Wait]:
    """Queues that empty on the way of a change; none where its next stage is held up, since messages go on coming there."""
    names = Names(work.both.asked.prefix)
    stopped = {change.after.name for change in work.held if isinstance(change, Replace)}
    stopped |= {
        c.resource.destination
        for c in work.held
        if isinstance(c, Delete) and c.covered_by and isinstance(c.resource, Binding)
    }
    return (wait for wait in work.both.course.waits if names.delay_queue(wait.subject) not in stopped)


def _queue_name(change: Change) -> str | None:
    resource = resource_of(change)
    return resource.name if isinstance(resource, Queue) else None


def _refusal(change: Change, hazard: Hazard) -> Refusal:
    differences = change.differences if isinstance(change, Replace | Update) else ()
    return Refusal(label(resource_of(change)), hazard.reason, hazard.fix, differences)


def _record_afterwards(work: Work) -> Record:
    """What is ours once the plan is done: all that is desired, and what is ours already and can't go yet.

    What others made and we refused to replace is not ours, although the file asks for it.
    """
    if not work.held:
        return work.both.wanted
    kept = [resource_of(change) for change in work.held]
    foreign = frozenset(resource for resource in kept if resource not in work.both.owned)
    foreign |= work.both.agreed
    ours = record_of(resource for resource in work.both.desired if resource not in foreign)
    return ours.with_resources(resource for resource in kept if resource in work.both.owned)


def _insisted_on_nothing(work: Work) -> Iterator[str]:
    """Names that a user insists on and that nothing has: most likely a slip, and what was meant is still refused."""
    both, refused = work.both, sorted({hazard.name for hazard in work.held.values() if not hazard.passes})
    known = {resource.name for resource in both.desired if not isinstance(resource, Binding)}
    known |= both.live.exchanges.keys() | both.live.queues.keys() | {policy.name for policy in both.live.policies}
    known.update(refused)
    for name in sorted(both.insisted - known):
        now = f"What is refused now: {', '.join(refused)}." if refused else "Nothing is refused now."
        guess = did_you_mean(name, refused or known)
        yield f"--accept-loss {shorten(name)}: neither the file nor the broker has anything of this name{guess}. {now}"


def _order(delays: dict[str, int], desired: Topology, change: Change) -> tuple[int, int, int, int, str]:
    """Within a stage: kind by kind, short delays first, then by name.

    Ways are moved once all is there that they lead to, and of several, one behind the other, the last comes first.
    """
    resource = resource_of(change)
    kinds: dict[type[Resource], int] = {Policy: 0, Exchange: 1, Queue: 2, Binding: 3}
    name = resource.source if isinstance(resource, Binding) else resource.name
    last = 1 + max(map(desired.onward.distance, change.after)) if isinstance(change, Move) else 0
    return change.stage, last, kinds[type(resource)], delays.get(name, 0), label(resource)


def empty_topology(prefix: str, existing: tuple[Reference, ...] = ()) -> Topology:
    """The topology that asks for nothing: what `destroy` turns the broker into; what others made stays theirs."""
    return replace(Topology(prefix, Names(prefix).exit(), (), (), (), (), (), ()), existing=existing)
