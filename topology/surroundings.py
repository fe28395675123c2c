"""What others did that changes how ours behaves, and that is not ours to undo."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from delayctl.topology.changes import Comparison
from delayctl.topology.compare import breaks_a_promise, policy_drift
from delayctl.topology.effective import is_readable
from delayctl.topology.insertion import ways_beside
from delayctl.topology.model import Binding, Level, Resource, binding_order, sorted_bindings
from delayctl.topology.names import Names
from delayctl.topology.neighbours import shared_with_neighbours
from delayctl.topology.plan import Refusal, label
from delayctl.topology.rerouting import way_of
from delayctl.topology.wording import plural


def bent_by_others(both: Comparison, vhost: str) -> Iterator[Refusal]:
    """The queues that policies of others give other settings, or would while they are changed."""
    policies, live, desired = both.policies_afterwards, both.live, both.desired
    has_strangers = bool(live.operator_policies) or bool(set(policies) - set(desired.policies))
    # Nobody else has a say in how delays wait, nor in how long lost messages are kept.
    strict = desired.delay_queues | ({Names(desired.prefix).unrouted_queue()} if desired.waits else set())
    for queue in desired.queues if has_strangers else ():
        drift = policy_drift(queue, live, policies, desired.policies, is_delay=queue.name in strict, vhost=vhost)
        if drift:
            yield drift
    for name, meanwhile in both.course.held.items():
        drift = policy_drift(meanwhile, live, policies, desired.policies, is_delay=True, vhost=vhost)
        if drift:
            reason = f"stays as it is: messages would wait in {meanwhile.name} while it is changed, and {drift.reason}"
            yield replace(drift, subject=f"queue {name}", reason=reason)
            continue
        [asked] = (queue for queue in both.asked.queues if queue.name == name)
        if in_the_end := policy_drift(asked, live, policies, both.asked.policies, is_delay=True, vhost=vhost):
            yield replace(in_the_end, reason=f"stays as it is: once it is declared anew, {in_the_end.reason}")


def broken_by_others(both: Comparison) -> dict[str, Level]:
    """By their entrances the levels, or steps of the ladder, with a queue that loses messages, keeps them or lets them go at another time.

    A policy of others sees to that: ways that are there stay, but none is led there anew.
    """
    policies, live, desired = both.policies_afterwards, both.live, both.desired
    if not live.operator_policies and not set(policies) - set(desired.policies):
        return {}
    waits = {queue.name: queue for queue in desired.queues if queue.name in desired.delay_queues}
    drifts = {
        name: policy_drift(queue, live, policies, desired.policies, is_delay=True) for name, queue in waits.items()
    }
    broken = {name for name, drift in drifts.items() if drift and breaks_a_promise(drift)}
    ways_in = [(level.entrance, part) for level in desired.levels for part in level.parts]
    ways_in += [(desired.ladder.entrance, rung) for rung in desired.rungs] if desired.ladder else []
    return {entrance: wait for entrance, wait in ways_in if wait.queue in broken}


def remarks(both: Comparison, held: Collection[Resource]) -> Iterator[str]:
    """What is worth knowing of it; these can't be done yet."""
    for policy in (*both.policies_afterwards, *both.live.operator_policies):
        if not is_readable(policy.pattern):
            yield (
                f"policy {policy.name}: the pattern {policy.pattern!r} can't be evaluated here; whether it touches this topology is not known."
            )
    yield from _adoption(both, held)
    yield from _another_file(both)
    yield from ways_beside(both)
    yield from shared_with_neighbours(both)
    for binding in _ways_round_delays(both):
        yield f"{label(binding)} is not delayctl's: what enters there reaches {binding.destination} without any delay."
    for binding in _ways_beside_routes(both):
        yield (
            f"{label(binding)} is not delayctl's, and a route leads the same messages into another delay: they come twice. "
            "Unbind it, if an earlier file left it."
        )


def _ways_round_delays(both: Comparison) -> list[Binding]:
    """What others hung behind our entrances."""
    desired, ours = both.desired, both.owned.bindings.union(both.desired.bindings)
    own = {(b.source, b.destination) for b in desired.bindings if b.source in desired.entrances}
    own |= {(wait.entrance, wait.queue) for wait in desired.waits}
    strangers = (
        b for b in both.live.bindings - ours if b.source in desired.entrances and (b.source, b.destination) not in own
    )
    return sorted(strangers, key=binding_order)


def _ways_beside_routes(both: Comparison) -> tuple[Binding, ...]:
    """What leads messages of routes into another of our delays as well: bound by hand, or by us, and the record is lost."""
    desired, ours, live = both.desired, both.owned.bindings.union(both.desired.bindings), both.live
    entrances = desired.entrances | both.delays.entrances
    routes = {
        way_of(b, live) for b in desired.bindings if b.destination in desired.entrances and b.source not in entrances
    }
    strangers = (b for b in live.bindings - ours if b.destination in entrances)
    return sorted_bindings(b for b in strangers if way_of(b, live) in routes)


def _adoption(both: Comparison, held: Collection[Resource]) -> Iterator[str]:
    """What others made and the file describes as it is: from now on it is ours, and goes with `destroy`."""
    live, desired, record = both.live, both.desired, both.owned
    unknown_exchanges, unknown_queues = live.exchanges.keys() - record.exchanges, live.queues.keys() - record.queues
    names = [exchange.name for exchange in desired.exchanges if exchange.name in unknown_exchanges]
    names += [queue.name for queue in desired.queues if queue.name in unknown_queues]
    staying = {resource.name for resource in held if not isinstance(resource, Binding)}
    adopted = [name for name in names if name not in staying]
    if adopted:
        shown = ", ".join(adopted[:5]) + (", …" if len(adopted) > 5 else "")
        yield (
            f"{plural(len(adopted), 'object')} on the broker that delayctl has no record of ({shown}) will be managed from now on; "
            "destroy would remove them. Mark what belongs to others with existing: true."
        )


def _another_file(both: Comparison) -> Iterator[str]:
    """Where all that was applied before goes but for the delays, and other things come: two files may have one record."""
    live, owned, asked = both.live, both.owned, both.asked
    recorded = (owned.exchanges & live.exchanges.keys()) | (owned.queues & live.queues.keys())
    described = {thing.name for things in (asked.exchanges, asked.queues, asked.existing) for thing in things}
    before, after = (
        {name for name in names if not Names(asked.prefix).is_given(name)} for names in (recorded, described)
    )
    if before and after and not before & after:
        shown = ", ".join(sorted(before)[:5]) + (", …" if len(before) > 5 else "")
        yield (
            f"nothing that was applied here before is in this file but for delays; it goes ({shown}). If that is another file's, "
            "give one of the two a prefix: without one, each takes the place of the other."
        )
