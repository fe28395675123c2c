"""The order of changes: exits before entrances on the way in, entrances before exits on the way out.

Whatever moment an apply is interrupted at, no message can enter a delay that has no way out yet. And since the
broker refuses to delete a delay queue that holds messages, nothing that these need on their way out goes before it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import assert_never

from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Resource, Topology
from delayctl.topology.names import Names


class Stage(IntEnum):
    """One stage is complete before the next begins."""

    PUT_POLICIES = 0
    PUT_ENDS = 1
    PUT_SAFETY_NET = 2
    PUT_EXIT = 3
    PUT_WAYS_OUT = 4
    PUT_DELAY_QUEUES = 5
    PUT_ENTRANCES = 6
    PUT_WAYS_INTO_QUEUES = 7
    PUT_WAYS_IN = 8
    CUT_WAYS_IN = 10
    CUT_WAYS_INTO_QUEUES = 11
    DROP_ENTRANCES = 12
    DROP_DELAY_QUEUES = 13
    CUT_WAYS_OUT = 14
    DROP_EXIT = 15
    CUT_SAFETY_NET = 16
    DROP_ENDS = 17
    DROP_POLICIES = 18


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays on the broker, wanted or not: queues that expire into our exit, exchanges that lead only into these."""

    queues: frozenset[str]
    entrances: frozenset[str]


def delays_on(live: Live, topology: Topology) -> Delays:
    """Find the delays on the broker."""
    queues = frozenset(
        name
        for name, queue in live.queues.items()
        if queue.settings.dead_letter_exchange == topology.exit or name in topology.delay_queues
    )
    sources = {binding.source for name in queues for binding in live.bindings_at("queue", name)} - {topology.exit}
    return Delays(queues, frozenset(source for source in sources if _leads_only_into(queues, source, live)))


def creation_stage(resource: Resource, topology: Topology) -> Stage:
    """When an object is declared."""
    match resource:
        case Policy():
            return Stage.PUT_POLICIES
        case Exchange():
            if resource.name == topology.exit:
                return Stage.PUT_EXIT
            return Stage.PUT_ENTRANCES if resource.name in topology.entrances else Stage.PUT_ENDS
        case Queue():
            return Stage.PUT_DELAY_QUEUES if resource.name in topology.delay_queues else Stage.PUT_ENDS
        case Binding():
            if resource.source == Names(topology.prefix).unrouted_exchange():
                return Stage.PUT_SAFETY_NET
            if resource.source == topology.exit:
                return Stage.PUT_WAYS_OUT
            return Stage.PUT_WAYS_INTO_QUEUES if resource.source in topology.entrances else Stage.PUT_WAYS_IN
        case _:
            assert_never(resource)


def deletion_stage(resource: Resource, topology: Topology, delays: Delays) -> Stage:
    """When an object is removed: after all creation, and in the opposite order."""
    match resource:
        case Binding():
            return _cutting_stage(resource, topology, delays)
        case Exchange():
            if resource.name == topology.exit:
                return Stage.DROP_EXIT
            return Stage.DROP_ENTRANCES if resource.name in delays.entrances else Stage.DROP_ENDS
        case Queue():
            return Stage.DROP_DELAY_QUEUES if resource.name in delays.queues else Stage.DROP_ENDS
        case Policy():
            return Stage.DROP_POLICIES
        case _:
            assert_never(resource)


def _cutting_stage(binding: Binding, topology: Topology, delays: Delays) -> Stage:
    if binding.source == Names(topology.prefix).unrouted_exchange():
        return Stage.CUT_SAFETY_NET
    if binding.source == topology.exit:
        return Stage.CUT_WAYS_OUT
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
