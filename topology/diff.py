"""Desired and live to Plan: what differs, in which order it is mended, and what must not be done."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby

from delayctl.topology.compare import compare_exchange, compare_policy, compare_queue, policy_drift
from delayctl.topology.effective import is_readable
from delayctl.topology.hazards import Hazard, Scene, hazard_of, judging_rank, queues_to_count, warnings_of
from delayctl.topology.live import Live
from delayctl.topology.model import (
    Binding,
    Exchange,
    Policy,
    Queue,
    Reference,
    Resource,
    Topology,
    binding_order,
    sorted_bindings,
)
from delayctl.topology.names import Names
from delayctl.topology.order import Delays, creation_stage, delays_on, deletion_stage
from delayctl.topology.plan import Change, Create, Delete, Plan, Refusal, Replace, Update, label, resource_of
from delayctl.topology.record import Record, record_of, to_json


def diff(desired: Topology, live: Live, *, vhost: str = "/", accept_loss: Iterable[str] = ()) -> Plan:
    """List the changes that turn `live` into `desired`. Reads nothing, writes nothing."""
    work = _Work(desired, live, frozenset(accept_loss))
    _judge_all(work)
    order = partial(_order, {name: level.ttl.ms for level in desired.levels for name in (level.queue, level.entrance)})
    work.refusals += [_refusal(change, work.held[change]) for change in sorted(work.held, key=order)]
    scene = work.scene
    work.warnings += [text for change in sorted(work.changes, key=order) for text in warnings_of(change, scene)]
    _check_existing(work)
    _check_surroundings(work)
    record = _record_afterwards(work)
    touched = {b for change in work.changes if isinstance(change, Replace) for b in change.restore}
    return Plan(
        vhost=vhost,
        prefix=desired.prefix,
        changes=tuple(sorted(work.changes, key=order)),
        refusals=tuple(work.refusals),
        warnings=tuple(work.warnings),
        record=record,
        intent=work.owned.union(record, restore=touched - work.owned.bindings - record.bindings),
        existing=desired.existing,
        fingerprint=fingerprint(work.owned.union(record), desired.existing, live),
    )


def at_stake(desired: Topology, live: Live) -> frozenset[str]:
    """The queues whose backlog decides what may be done, so that only these need to be counted."""
    work = _Work(desired, live, frozenset())
    return frozenset(queues_to_count(_all_changes(work), desired, work.delays)) & frozenset(live.queues)


def fingerprint(scope: Record, existing: Iterable[Reference], live: Live) -> str:
    """A digest of all that a plan was computed from, counts of messages left out."""
    exchanges = scope.exchanges | {reference.name for reference in existing if reference.kind == "exchange"}
    queues = scope.queues | {reference.name for reference in existing if reference.kind == "queue"}
    relevant = (
        sorted(repr(live.exchanges[name]) for name in exchanges & live.exchanges.keys()),
        sorted(repr(live.queues[name]) for name in queues & live.queues.keys()),
        sorted(
            repr(b)
            for b in live.bindings
            if b.source in exchanges or b.destination in exchanges or b.destination in queues
        ),
        sorted(repr(policy) for policy in (*live.policies, *live.operator_policies)),
        json.dumps(to_json(live.record or Record())),
    )
    return hashlib.sha256(repr(relevant).encode()).hexdigest()


@dataclass
class _Work:
    """The state of one comparison."""

    desired: Topology
    live: Live
    accept_loss: frozenset[str]
    changes: list[Change] = field(default_factory=list)
    held: dict[Change, Hazard] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def owned(self) -> Record:
        return Record() if self.live.record is None else self.live.record

    @cached_property
    def unwanted_bindings(self) -> frozenset[Binding]:
        """Bindings of ours that are removed."""
        return self.owned.bindings - frozenset(self.desired.bindings)

    @cached_property
    def delays(self) -> Delays:
        return delays_on(self.live, self.desired)

    @property
    def scene(self) -> Scene:
        """What a judgement looks at, as far as judgement has come."""
        return Scene(self.desired, self.live, self.owned, self.delays, self.accept_loss, tuple(self.held))

    @cached_property
    def policies_afterwards(self) -> tuple[Policy, ...]:
        """The policies in force once the plan is done."""
        ours = {policy.name for policy in self.desired.policies} | self.owned.policies
        return (*(policy for policy in self.live.policies if policy.name not in ours), *self.desired.policies)


def _all_changes(work: _Work) -> Iterator[Change]:
    yield from _missing_or_different(work)
    yield from _no_longer_wanted(work)


def _missing_or_different(work: _Work) -> Iterator[Change]:
    live, desired = work.live, work.desired
    policies_now = {policy.name: policy for policy in live.policies}
    policies_then = work.policies_afterwards
    for policy in desired.policies:
        yield from _policy_changes(policy, policies_now.get(policy.name), desired)
    for exchange in desired.exchanges:
        found = live.exchanges.get(exchange.name)
        if found is None:
            yield Create(exchange, creation_stage(exchange, desired))
        elif differences := compare_exchange(exchange, found):
            yield Replace(found, exchange, differences, _restore(exchange, work), creation_stage(exchange, desired))
    for queue in desired.queues:
        there = live.queues.get(queue.name)
        if there is None:
            yield Create(queue, creation_stage(queue, desired))
            continue
        differences = compare_queue(queue, there, live, policies_then)
        if differences:
            yield Replace(there, queue, differences, _restore(queue, work), creation_stage(queue, desired))
    fanouts = {name for name, exchange in live.exchanges.items() if exchange.type == "fanout"}
    fanouts -= {exchange.name for exchange in desired.exchanges if exchange.type != "fanout"}
    missing = (binding for binding in desired.bindings if binding not in live.bindings)
    wanted = (b for b in missing if b.source not in fanouts or not _is_bound_under_another_key(b, work))
    for binding in (*wanted, *_to_restore(work)):
        yield Create(binding, creation_stage(binding, desired))


def _is_bound_under_another_key(binding: Binding, work: _Work) -> bool:
    """Say whether a fanout exchange reaches the destination already, and will: it does not look at keys."""
    return any(
        (other.source, other.kind, other.destination) == (binding.source, binding.kind, binding.destination)
        for other in work.live.bindings_at(binding.kind, binding.destination)
        if other not in work.unwanted_bindings
    )


def _policy_changes(policy: Policy, found: Policy | None, desired: Topology) -> Iterator[Change]:
    if found is None:
        yield Create(policy, creation_stage(policy, desired))
    elif differences := compare_policy(policy, found):
        yield Update(found, policy, differences, creation_stage(policy, desired))


def _restore(resource: Exchange | Queue, work: _Work) -> tuple[Binding, ...]:
    """The bindings that a replacement takes away and has to put back; those to be removed go later, in their turn."""
    return sorted_bindings(work.live.bindings_at("queue" if isinstance(resource, Queue) else "exchange", resource.name))


def _to_restore(work: _Work) -> tuple[Binding, ...]:
    """Bindings of others that an interrupted replacement took away; both ends must still be there."""
    exchanges = work.live.exchanges.keys() | {exchange.name for exchange in work.desired.exchanges}
    queues = work.live.queues.keys() | {queue.name for queue in work.desired.queues}
    return sorted_bindings(
        binding
        for binding in work.owned.restore - frozenset(work.desired.bindings) - work.live.bindings
        # What is predefined is always there, and never listed.
        if (binding.source in exchanges or binding.source.startswith("amq."))
        and binding.destination in (queues if binding.kind == "queue" else exchanges)
    )


def _no_longer_wanted(work: _Work) -> Iterator[Change]:
    live, owned, wanted = work.live, work.owned, record_of(work.desired)
    existing = {(reference.kind, reference.name) for reference in work.desired.existing}
    gone_exchanges = owned.exchanges - wanted.exchanges - {name for kind, name in existing if kind == "exchange"}
    gone_queues = owned.queues - wanted.queues - {name for kind, name in existing if kind == "queue"}
    gone_policies = owned.policies - wanted.policies
    gone: Iterable[Resource] = (
        *sorted_bindings(work.unwanted_bindings & live.bindings),
        *(live.exchanges[name] for name in sorted(gone_exchanges) if name in live.exchanges),
        *(live.queues[name] for name in sorted(gone_queues) if name in live.queues),
        *(policy for policy in live.policies if policy.name in gone_policies),
    )
    for resource in gone:
        yield Delete(resource, deletion_stage(resource, work.desired, work.delays))


def _judge_all(work: _Work) -> None:
    """Decide what is done and what is held back, what others depend on first."""
    rank = partial(judging_rank, delays=work.delays)
    for _, changes in groupby(sorted(_all_changes(work), key=rank), key=rank):
        scene = work.scene
        for change in changes:
            _judge(work, change, scene)


def _judge(work: _Work, change: Change, scene: Scene) -> None:
    """Take a change into the plan, or refuse it."""
    hazard = hazard_of(change, scene)
    if hazard and hazard.name not in work.accept_loss:
        work.held[change] = hazard
        return
    if hazard and isinstance(change, Replace | Delete):
        change = replace(change, accept_loss=True)
    work.changes.append(change)


def _refusal(change: Change, hazard: Hazard) -> Refusal:
    differences = change.differences if isinstance(change, Replace | Update) else ()
    return Refusal(label(resource_of(change)), hazard.reason, hazard.fix, differences)


def _record_afterwards(work: _Work) -> Record:
    """What is ours once the plan is done: all that is desired, and what is ours already and can't go yet.

    What others made and we refused to replace is not ours, although the file asks for it.
    """
    kept = [resource_of(change) for change in work.held]
    foreign = frozenset(resource for resource in kept if resource not in work.owned)
    ours = record_of(resource for resource in work.desired if resource not in foreign)
    return ours.with_resources(resource for resource in kept if resource in work.owned)


def _check_existing(work: _Work) -> None:
    for reference in work.desired.existing:
        found = (work.live.exchanges if reference.kind == "exchange" else work.live.queues).get(reference.name)
        subject = f"{reference.kind} {reference.name}"
        if found is None:
            fix = "create it first, or remove 'existing: true' so that delayctl declares it"
            work.refusals.append(Refusal(subject, "is marked existing and is not on the broker", fix, blocking=True))
            continue
        kind = found.type if isinstance(found, Exchange) else found.settings.type or "classic"
        if reference.type and kind != reference.type:
            reason = f"is marked existing with type {reference.type}, but is of type {kind}"
            work.refusals.append(Refusal(subject, reason, f"write type: {kind}", blocking=True))


def _check_surroundings(work: _Work) -> None:
    """What others did that changes how ours behaves, and that is not ours to undo."""
    policies, live, desired = work.policies_afterwards, work.live, work.desired
    for queue in desired.queues:
        drift = policy_drift(queue, live, policies, desired.policies, is_delay=queue.name in desired.delay_queues)
        if drift:
            work.refusals.append(drift)
    for policy in (*policies, *live.operator_policies):
        if not is_readable(policy.pattern):
            work.warnings.append(
                f"policy {policy.name}: the pattern {policy.pattern!r} can't be evaluated here; whether it touches this topology is not known."
            )
    ours = work.owned.bindings.union(desired.bindings)
    queues = {level.entrance: level.queue for level in desired.levels}
    strangers = (b for b in live.bindings - ours if b.source in queues and b.destination != queues[b.source])
    for binding in sorted(strangers, key=binding_order):
        work.warnings.append(
            f"{label(binding)} is not delayctl's: what enters there reaches {binding.destination} without any delay."
        )


def _order(delays: dict[str, int], change: Change) -> tuple[int, int, int, str]:
    """Within a stage: kind by kind, short delays first, then by name."""
    resource = resource_of(change)
    kinds: dict[type[Resource], int] = {Policy: 0, Exchange: 1, Queue: 2, Binding: 3}
    name = resource.source if isinstance(resource, Binding) else resource.name
    return change.stage, kinds[type(resource)], delays.get(name, 0), label(resource)


def empty_topology(prefix: str) -> Topology:
    """The topology that asks for nothing: what `destroy` turns the broker into."""
    return Topology(prefix, Names(prefix).exit(), (), (), (), (), (), ())
