"""The order of changes: exits before entrances on the way in, entrances before exits on the way out.

Whatever moment an apply is interrupted at, no message can enter a delay that has no way out yet. And since the
broker refuses to delete a delay queue that holds messages, nothing that these need on their way out goes before it.
"""

from enum import IntEnum
from typing import assert_never

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
    DROP_DELAY_QUEUES = 12
    CUT_WAYS_OUT = 13
    DROP_EXIT = 14
    CUT_SAFETY_NET = 15
    DROP_ENDS = 16
    DROP_POLICIES = 17


def creation_stage(resource: Resource, topology: Topology) -> int:
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
