"""What differs between desired and live, before anyone asks whether it may be changed."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

from delayctl.topology.compare import compare_exchange, compare_policy, compare_queue
from delayctl.topology.effective import winner
from delayctl.topology.former import former
from delayctl.topology.live import Live, is_to_hidden_queue
from delayctl.topology.model import (
    Binding,
    Exchange,
    Policy,
    Queue,
    Resource,
    Topology,
    sorted_bindings,
)
from delayctl.topology.moves import Settle
from delayctl.topology.order import Delays, Stage, creation_stage, delays_on, deletion_stage
from delayctl.topology.placement import places_of
from delayctl.topology.plan import Change, Create, Delete, Replace, Update
from delayctl.topology.record import Record, record_of
from delayctl.topology.rerouting import place_of, settled, way_of
from delayctl.topology.switch import Course, course
from delayctl.topology.wait_lengths import WaitLengths


@dataclass(frozen=True)
class Comparison:
    """Two states side by side; what both readers of it need is worked out once.

    Delay queues named in `insisted` are replaced at once, whatever that costs; all others are switched.
    """

    asked: Topology
    found: Live
    insisted: frozenset[str] = frozenset()

    @property
    def desired(self) -> Topology:
        """What is aimed at now: what is asked for, and the next stage of what takes longer."""
        return self.course.aim

    @cached_property
    def course(self) -> Course:
        """How delay queues come to be what is asked for."""
        ours = record_of(self.asked).policies | self.owned.policies
        others = (policy for policy in self.live.policies if policy.name not in ours)
        return course(self.asked, self.live, others=others, insisted=self.insisted)

    @cached_property
    def live(self) -> Live:
        """The broker as it is without what an interrupted move left behind."""
        return self._settled[0]

    @property
    def settles(self) -> tuple[Settle, ...]:
        """How that goes away."""
        return self._settled[1]

    @cached_property
    def _settled(self) -> tuple[Live, tuple[Settle, ...]]:
        return settled(self.found, self.asked.prefix)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Every change that turns `live` into `desired`, in no particular order."""
        first = tuple(_missing_or_different(self))
        renewed = {change.after.name for change in first if isinstance(change, Replace)}
        return (*first, *_no_longer_wanted(self, renewed))

    @cached_property
    def owned(self) -> Record:
        """What delayctl made earlier; by their names also what a level consisted of when it had another number of queues."""
        record = Record() if self.live.record is None else self.live.record
        earlier = [resource for level in self.asked.levels for resource in former(level, self.asked.prefix, self.live)]
        return record.with_resources(earlier) if earlier else record

    @cached_property
    def wanted(self) -> Record:
        """What delayctl shall have made."""
        return record_of(resource for resource in self.desired if resource not in self.agreed)

    @cached_property
    def agreed(self) -> frozenset[Binding]:
        """Bindings of the file that others have made between objects of theirs: they are there, and not ours to remove."""
        theirs = {(reference.kind, reference.name) for reference in self.desired.existing}
        shared = self.live.bindings.intersection(self.desired.bindings) - self.owned.bindings if theirs else frozenset()
        return frozenset(b for b in shared if {("exchange", b.source), (b.kind, b.destination)} <= theirs)

    @cached_property
    def shared(self) -> Record:
        """What topologies with other prefixes count on."""
        return reduce(Record.union, self.live.neighbours.values(), Record())

    @cached_property
    def unwanted_bindings(self) -> frozenset[Binding]:
        """Bindings of ours that are removed."""
        return self.owned.bindings - self.wanted.bindings - self.shared.bindings

    @cached_property
    def replaced(self) -> frozenset[Binding]:
        """Direct ways, whoever made them, that delayed routes take or took the place of."""
        places = {place_of(binding, self.live) for binding in self.desired.replaced}
        there = (b for r in self.desired.replaced for b in self.live.bindings_at(r.kind, r.destination))
        return frozenset(b for b in (*there, *self.owned.replaced) if place_of(b, self.live) in places)

    @cached_property
    def remembered(self) -> frozenset[Binding]:
        """Direct ways of others that come back when their delayed routes go, be it that these say no longer what they replace."""
        into = {way_of(b, self.live) for b in self.desired.bindings if b.destination in self.desired.entrances}
        out = {(b.kind, b.destination) for b in self.desired.bindings if b.source == self.desired.exit}
        kept = (b for b in self.owned.replaced if way_of(b, self.live) in into and (b.kind, b.destination) in out)
        return self.replaced.union(kept) - (self.owned.bindings - self.owned.replaced)

    @cached_property
    def put_back(self) -> frozenset[Binding]:
        """Direct ways that a delayed route took the place of, and whose route is gone."""
        return frozenset(b for b in self.owned.replaced - self.remembered - self.wanted.bindings if self._stay(b))

    def _stay(self, binding: Binding) -> bool:
        """Say whether both ends of a binding are there, and will be; what is predefined is always there, and never listed."""
        exchanges = self.live.exchanges.keys() - (self.owned.exchanges - self.wanted.exchanges)
        queues = self.live.queues.keys() - (self.owned.queues - self.wanted.queues)
        is_source_there = binding.source in exchanges or binding.source.startswith("amq.")
        return is_source_there and binding.destination in (queues if binding.kind == "queue" else exchanges)

    @cached_property
    def delays(self) -> Delays:
        """The levels that are or shall be on the broker."""
        return delays_on(self.live, self.desired)

    @cached_property
    def places(self) -> dict[str, str]:
        """The nodes that queues are declared on, where that matters."""
        return places_of(self.asked, self.live.nodes)

    @cached_property
    def policies_afterwards(self) -> tuple[Policy, ...]:
        """The policies in force once all is done."""
        ours = self.wanted.policies | self.owned.policies
        return (*(policy for policy in self.live.policies if policy.name not in ours), *self.desired.policies)

    @cached_property
    def wait_lengths(self) -> WaitLengths:
        """How long messages wait by the ways into delays, now and then."""
        return WaitLengths(self.live, self.desired, self.policies_afterwards)


def _missing_or_different(both: Comparison) -> Iterator[Change]:
    live, desired = both.live, both.desired
    policies_now = {policy.name: policy for policy in live.policies}
    policies_then = both.policies_afterwards
    for policy in desired.policies:
        yield from _policy_changes(policy, policies_now.get(policy.name), desired)
    for exchange in desired.exchanges:
        found = live.exchanges.get(exchange.name)
        if found is None:
            yield Create(exchange, creation_stage(exchange, desired))
        elif differences := compare_exchange(exchange, found):
            yield Replace(found, exchange, differences, _restore(exchange, both), creation_stage(exchange, desired))
    for queue in desired.queues:
        there = live.queues.get(queue.name)
        if there is None:
            yield Create(queue, creation_stage(queue, desired), both.places.get(queue.name, ""))
            continue
        differences = compare_queue(queue, there, live, policies_then)
        if differences:
            restore, node = _restore(queue, both), both.places.get(queue.name, "")
            yield Replace(there, queue, differences, restore, creation_stage(queue, desired), node=node)
    fanouts = {name for name, exchange in live.exchanges.items() if exchange.type == "fanout"}
    fanouts -= {exchange.name for exchange in desired.exchanges if exchange.type != "fanout"}
    missing = (binding for binding in desired.bindings if binding not in live.bindings)
    wanted = (b for b in missing if b.source not in fanouts or not _is_bound_under_another_key(b, both))
    for binding in (*wanted, *_to_restore(both), *sorted_bindings(both.put_back - live.bindings)):
        yield Create(binding, both.wait_lengths.stage_to_put(binding, creation_stage(binding, desired)))


def _is_bound_under_another_key(binding: Binding, both: Comparison) -> bool:
    """Say whether a fanout exchange reaches the destination already, and will: it does not look at keys."""
    return any(
        (other.source, other.kind, other.destination) == (binding.source, binding.kind, binding.destination)
        for other in both.live.bindings_at(binding.kind, binding.destination)
        if other not in both.unwanted_bindings
    )


def _policy_changes(policy: Policy, found: Policy | None, desired: Topology) -> Iterator[Change]:
    if found is None:
        yield Create(policy, creation_stage(policy, desired))
    elif differences := compare_policy(policy, found):
        yield Update(found, policy, differences, creation_stage(policy, desired))


def _restore(resource: Exchange | Queue, both: Comparison) -> tuple[Binding, ...]:
    """The bindings that a replacement takes away and has to put back; those to be removed go later, in their turn."""
    touching = both.live.bindings_at("queue" if isinstance(resource, Queue) else "exchange", resource.name)
    return sorted_bindings(binding for binding in touching if not is_to_hidden_queue(binding, both.live))


def _to_restore(both: Comparison) -> tuple[Binding, ...]:
    """Bindings of others that an interrupted replacement took away; both ends must still be there."""
    exchanges = both.live.exchanges.keys() | {exchange.name for exchange in both.desired.exchanges}
    queues = both.live.queues.keys() | {queue.name for queue in both.desired.queues}
    return sorted_bindings(
        binding
        for binding in both.owned.restore - both.wanted.bindings - both.live.bindings
        # What is predefined is always there, and never listed.
        if (binding.source in exchanges or binding.source.startswith("amq."))
        and binding.destination in (queues if binding.kind == "queue" else exchanges)
    )


def _no_longer_wanted(both: Comparison, renewed: Collection[str]) -> Iterator[Change]:
    live, owned, wanted = both.live, both.owned, both.wanted
    existing = {(reference.kind, reference.name) for reference in both.desired.existing}
    existing |= {("exchange", name) for name in both.shared.exchanges}
    existing |= {("queue", name) for name in both.shared.queues}
    gone_exchanges = owned.exchanges - wanted.exchanges - {name for kind, name in existing if kind == "exchange"}
    gone_queues = owned.queues - wanted.queues - {name for kind, name in existing if kind == "queue"}
    gone_policies = owned.policies - wanted.policies
    covered = {binding: policy for binding, policy in both.course.covered.items() if binding in live.bindings}
    gone: Iterable[Resource] = (
        *sorted_bindings((both.unwanted_bindings | both.replaced) & live.bindings - both.put_back - covered.keys()),
        *(live.exchanges[name] for name in sorted(gone_exchanges) if name in live.exchanges),
        *(live.queues[name] for name in sorted(gone_queues) if name in live.queues),
        *(policy for policy in live.policies if policy.name in gone_policies),
    )
    for resource in gone:
        stage = deletion_stage(resource, both.desired, both.delays)
        if isinstance(resource, Policy) and _rules_at_most(renewed, resource, live):
            stage = Stage.DROP_POLICIES_OF_RENEWED
        yield Delete(resource, both.wait_lengths.stage_to_cut(resource, stage))
    for binding, policy in covered.items():
        later = deletion_stage(binding, both.desired, both.delays)
        stage = Stage.LEAD_ROUND_SHORTER if binding in both.course.lengthened else later
        yield Delete(binding, stage, covered_by=policy)


def _rules_at_most(queues: Collection[str], policy: Policy, live: Live) -> bool:
    """Say whether a policy is about queues, and no others than these have their settings from it."""
    ruled = (queue.name for queue in live.queues.values() if winner(queue, (policy,)))
    return policy.apply_to != "exchanges" and all(name in queues for name in ruled)
