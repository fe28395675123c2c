"""The order of changes: exits before entrances on the way in, entrances before exits on the way out.

Whatever moment an apply is interrupted at, no message can enter a delay that has no way out yet. And since the
broker refuses to delete a delay queue that holds messages, nothing that these need on their way out goes before it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import assert_never

from delayctl.topology.duration import Duration
from delayctl.topology.effective import alternate_in_force
from delayctl.topology.ladder import most_steps
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Resource, Topology
from delayctl.topology.names import ANY, Names


class Stage(IntEnum):
    """One stage is complete before the next begins."""

    PUT_POLICIES = 0
    PUT_ENDS = 1
    PUT_WAYS_BETWEEN_ENDS = 2  # Before the exit, or a route, leads to where they begin.
    PUT_SAFETY_NET = 3
    PUT_EXIT = 4
    PUT_WAYS_OUT = 5
    PUT_DELAY_QUEUES = 6
    DROP_POLICIES_OF_RENEWED = 7  # Before anything enters queues that were declared anew with settings of their own.
    PUT_ENTRANCES = 8
    PUT_WAYS_INTO_QUEUES = 9
    # What gets longer does so before ways are led there, and what gets shorter once they lead elsewhere: until a route has
    # moved, what comes by it waits as long as it did, and afterwards as long as the file says.
    LEAD_ROUND_SHORTER = 10
    PUT_WAYS_INTO_SHARDS = 11
    CUT_WAYS_INTO_SHORTER_SHARDS = 12
    PUT_WAYS_INTO_SPREADS = 13
    PUT_WAYS_FURTHER_IN = 14  # From exchanges that routes lead to.
    PUT_WAYS_IN = 15
    PUT_WAYS_INTO_SHORTER_QUEUES = 16
    PUT_WAYS_INTO_SHORTER_SHARDS = 17
    PUT_WAYS_INTO_SHORTER_SPREADS = 18
    PUT_WAYS_INTO_LADDER = 19  # Last: a message needs every gate below the step that it enters at.
    CUT_WAYS_INTO_LADDER = 20
    CUT_WAYS_IN = 21
    CUT_WAYS_INTO_SPREADS = 22
    CUT_WAYS_INTO_SHARDS = 23
    CUT_WAYS_INTO_QUEUES = 24
    DROP_ENTRANCES = 25
    DROP_DELAY_QUEUES = 26
    DROP_STEPS = 27  # Two for each step of the ladder, the longest first.
    CUT_WAYS_OUT = 110
    DROP_EXIT = 111
    CUT_SAFETY_NET = 112
    DROP_ENDS = 113
    DROP_POLICIES = 114


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays on the broker, wanted or not: queues that expire into our exit or a gate, exchanges that lead only into these."""

    queues: frozenset[str]
    entrances: frozenset[str]  # Those of levels that are spread included, of their shards, and what spreads them.
    fronts: frozenset[str] = frozenset()  # Of these the entrances of levels that are spread,
    spreads: frozenset[str] = frozenset()  # and what spreads them.
    rounds: frozenset[str] = frozenset()  # And of these what leads round queues that are being changed.


def delays_on(live: Live, topology: Topology) -> Delays:
    """Find the delays on the broker."""
    queues = frozenset(
        name
        for name, queue in live.queues.items()
        if _leaves_by_the_exit(queue, topology) or name in topology.delay_queues
    )
    sources = {binding.source for name in queues for binding in live.bindings_at("queue", name)} - {topology.exit}
    entrances = {source for source in sources if _leads_only_into(queues, source, live)}
    names = Names(topology.prefix)
    spreads = {name: level for name in live.exchanges if (level := names.spread_level(name)) is not None}
    fronts = {names.entrance(level) for level in spreads.values()} & live.exchanges.keys()
    shards = {name for name in live.exchanges if names.shard_level(name) is not None}  # Whatever others bound to them.
    led_round = {name: round for name in live.exchanges if (round := way_round(name, live)) is not None}
    entrances |= fronts | spreads.keys() | shards | led_round.keys()
    rounds = frozenset(led_round.values())
    return Delays(queues, frozenset(entrances), frozenset(fronts), frozenset(spreads), rounds)


def way_round(entrance: str, live: Live) -> str | None:
    """What leads round the queue behind an entrance while that is being changed, if it is."""
    meanwhile = Names.next_entrance(entrance)
    if meanwhile not in live.exchanges:
        return None
    return meanwhile if alternate_in_force(live.exchanges[entrance], live.policies) == meanwhile else None


def _leaves_by_the_exit(queue: Queue, topology: Topology) -> bool:
    """Say whether what expires in a queue comes out of the exit, or of a gate; a queue that only parks there by key is no delay."""
    names, exit = Names(topology.prefix), queue.settings.dead_letter_exchange or ""
    if exit != topology.exit and not names.is_gate(exit):
        return False
    return not (queue.settings.dead_letter_key or "").startswith(names.park_key(""))


def creation_stage(resource: Resource, topology: Topology) -> Stage:
    """When an object is declared."""
    match resource:
        case Policy():
            return Stage.PUT_POLICIES
        case Exchange():
            if resource.name == topology.exit or resource.name in topology.gates:
                return Stage.PUT_EXIT
            if resource.name == Names(topology.prefix).entrance(ANY):
                return Stage.PUT_WAYS_IN
            return Stage.PUT_ENTRANCES if resource.name in topology.entrances else Stage.PUT_ENDS
        case Queue():
            return Stage.PUT_DELAY_QUEUES if resource.name in topology.delay_queues else Stage.PUT_ENDS
        case Binding():
            if resource.source == Names(topology.prefix).unrouted_exchange():
                return Stage.PUT_SAFETY_NET
            if resource.source == topology.exit:
                return Stage.PUT_WAYS_OUT
            if resource.source == Names(topology.prefix).entrance(ANY):
                return Stage.PUT_WAYS_INTO_LADDER
            if resource.source in topology.spreads:
                return Stage.PUT_WAYS_INTO_SHARDS
            if resource.source in topology.fronts:
                return Stage.PUT_WAYS_INTO_SPREADS
            if resource.source in topology.entrances:
                return Stage.PUT_WAYS_INTO_QUEUES
            return _stage_of_way_on(resource, topology) if resource.source in topology.passed else Stage.PUT_WAYS_IN
        case _:
            assert_never(resource)


def _stage_of_way_on(binding: Binding, topology: Topology) -> Stage:
    """When an exchange that others lead to gets a way: what is led there first would be lost."""
    if topology.ladder and topology.onward.leads_to(binding, {topology.ladder.entrance}):
        return Stage.PUT_WAYS_IN  # Its door is made then.
    is_later = topology.onward.leads_to(binding, topology.inside)
    return Stage.PUT_WAYS_FURTHER_IN if is_later else Stage.PUT_WAYS_BETWEEN_ENDS


def deletion_stage(resource: Resource, topology: Topology, delays: Delays) -> int:
    """When an object is removed: after all creation, and in the opposite order."""
    match resource:
        case Binding():
            return _cutting_stage(resource, topology, delays)
        case Exchange():
            if resource.name == topology.exit or Names(topology.prefix).step_of(resource.name) is not None:
                return Stage.DROP_EXIT
            if resource.name == Names(topology.prefix).entrance(ANY):
                return Stage.CUT_WAYS_IN  # As soon as it leads nowhere: publishers that look for it are told.
            return Stage.DROP_ENTRANCES if resource.name in delays.entrances else Stage.DROP_ENDS
        case Queue():
            step = Names(topology.prefix).step_of(resource.name)
            if step is not None:
                return _step_stage(step) + 1
            return Stage.DROP_DELAY_QUEUES if resource.name in delays.queues else Stage.DROP_ENDS
        case Policy():
            return Stage.DROP_POLICIES
        case _:
            assert_never(resource)


def _step_stage(step: int) -> int:
    """When a step of the ladder is cut off: a longer one may hold what has to wait there, and goes before it."""
    return Stage.DROP_STEPS + 2 * (most_steps(Duration(1)) - 1 - step)


def _cutting_stage(binding: Binding, topology: Topology, delays: Delays) -> int:
    if binding.source == Names(topology.prefix).unrouted_exchange():
        return Stage.CUT_SAFETY_NET
    if binding.source == topology.exit:
        return Stage.CUT_WAYS_OUT
    if binding.source == Names(topology.prefix).entrance(ANY):
        return Stage.CUT_WAYS_INTO_LADDER
    if Names(topology.prefix).spread_level(binding.source) is not None:
        return Stage.CUT_WAYS_INTO_SHARDS
    if Names(topology.prefix).spread_level(binding.destination) is not None:
        return Stage.CUT_WAYS_INTO_SPREADS
    step = Names(topology.prefix).step_of(binding.source)
    if step is not None:
        return _step_stage(step)
    if binding.kind == "queue" and binding.destination in delays.queues:
        return Stage.CUT_WAYS_INTO_QUEUES
    if binding.kind == "exchange" and binding.destination in delays.entrances:
        return Stage.CUT_WAYS_IN
    return Stage.CUT_WAYS_OUT


def _leads_only_into(queues: frozenset[str], exchange: str, live: Live) -> bool:
    return all(
        binding.kind == "queue" and binding.destination in queues
        for binding in live.bindings_at("exchange", exchange)
        if binding.source == exchange
    )
