"""The order of changes: exits before entrances on the way in, entrances before exits on the way out.

Whatever moment an apply is interrupted at, no message can enter a delay that has no way out yet.
"""

from typing import assert_never

from delayctl.topology.model import Binding, Exchange, Policy, Queue, Resource, Topology
from delayctl.topology.names import Names

_POLICIES, _ENDS, _EXIT, _WAYS_OUT, _DELAY_QUEUES, _ENTRANCES, _INTO_QUEUES, _WAYS_IN = range(8)
_AFTER_CREATION = 10


def creation_stage(resource: Resource, topology: Topology) -> int:
    """When an object is declared: a lower stage is complete before the next begins."""
    match resource:
        case Policy():
            return _POLICIES
        case Exchange():
            return {topology.exit: _EXIT}.get(
                resource.name, _ENTRANCES if resource.name in topology.entrances else _ENDS
            )
        case Queue():
            return _DELAY_QUEUES if resource.name in topology.delay_queues else _ENDS
        case Binding():
            if resource.source == Names(topology.prefix).unrouted_exchange():
                return _EXIT
            if resource.source == topology.exit:
                return _WAYS_OUT
            return _INTO_QUEUES if resource.source in topology.entrances else _WAYS_IN
        case _:
            assert_never(resource)


def deletion_stage(resource: Resource, topology: Topology) -> int:
    """When an object is removed: after all creation, and in the opposite order."""
    match resource:
        case Binding():
            return _AFTER_CREATION + (2 if resource.source == topology.exit else 0)
        case Exchange():
            return _AFTER_CREATION + (4 if resource.name == topology.exit else 1)
        case Queue():
            # A queue that dead-letters goes before the queues its messages may still reach.
            return _AFTER_CREATION + (1 if resource.settings.dead_letter_exchange == topology.exit else 3)
        case Policy():
            return _AFTER_CREATION + 5
        case _:
            assert_never(resource)
