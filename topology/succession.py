"""What one way means for others while it can't come: none leads to where it begins, and what it is to follow goes on.

Of a way that waits, the one before it stays with all that is behind that, and no other leads messages to a dead end.
"""

from collections import defaultdict
from dataclasses import replace

from delayctl.topology.effective import alternate_in_force, winner
from delayctl.topology.hazards import out_of_order
from delayctl.topology.live import Live
from delayctl.topology.model import CONSISTENT_HASH, Binding, Policy, Resource
from delayctl.topology.moves import Way
from delayctl.topology.plan import Change, Create, Delete
from delayctl.topology.rerouting import share_messages, way_of
from delayctl.topology.stakes import Hazard
from delayctl.topology.work import Work


def hold_ways_to_dead_ends(work: Work) -> None:
    """A way to an exchange waits where what it leads could not go on from there yet: it would be lost."""
    live, into = work.both.live, defaultdict[str, list[Create]](list)
    for change in work.changes:
        if isinstance(change, Create) and isinstance(change.resource, Binding) and change.resource.kind == "exchange":
            into[change.resource.destination].append(change)
    held = [(change.resource, hazard) for change, hazard in work.held.items() if isinstance(change, Create)]
    ahead = [(way, hazard) for way, hazard in held if isinstance(way, Binding) and way.source not in work.entrances]
    for on, hazard in ahead:
        if not into[on.source] or _is_led_on(on, live):
            continue
        for change in into[on.source]:
            way = change.resource
            assert isinstance(way, Binding)
            if change not in work.held and work.may_go_on(way, on):
                work.held[change] = replace(hazard, reason=f"waits for the way on from {on.source}: {hazard.reason}")
                ahead.append((way, hazard))
    work.changes = [change for change in work.changes if change not in work.held]


def _is_led_on(way: Binding, live: Live) -> bool:
    """Say whether what a new way shall lead goes another way now: that stays as long as the new one can't come."""
    ways = (binding for binding in live.bindings_at("exchange", way.source) if binding.source == way.source)
    return any(share_messages(way_of(binding, live), way_of(way, live), live) for binding in ways)


def keep_ways_without_successor(work: Work) -> None:
    """Where a way can't lead to its new destination yet, it goes on leading to the old one."""
    live = work.both.live
    waiting_for = {
        way_of(change.resource, live): hazard
        for change, hazard in work.held.items()
        if isinstance(change, Create) and isinstance(change.resource, Binding)
    } | _bent_ways(work)
    for change in [c for c in work.changes if isinstance(c, Delete) and isinstance(c.resource, Binding)]:
        assert isinstance(change.resource, Binding)
        if change not in work.changes:
            continue  # It is behind another way that stays.
        left = way_of(change.resource, live)
        if change.covered_by:
            continue  # Its successor is there.
        if hazard := next((hazard for way, hazard in waiting_for.items() if share_messages(left, way, live)), None):
            stays = replace(hazard, reason=f"stays as long as its successor can't come: {hazard.reason}")
            reached = _reached(change.resource, work)
            kept = [change, *_going(change.resource, reached, work)]
            kept += _coming(kept, reached, work)
            for each in dict.fromkeys(kept):  # A way may lead back to where it begins.
                work.changes.remove(each)
                work.held[each] = stays


def _bent_ways(work: Work) -> dict[Way, Hazard]:
    """The ways that would lead round a queue, and for another time than the file says, were it not for what is bound there."""
    bent = [level for level in work.both.desired.waits if level.queue in work.both.course.bent]
    return {
        way_of(Binding(level.entrance, "queue", level.queue), work.both.live): out_of_order(level, passes=True)
        for level in bent
    }


def _reached(way: Binding, work: Work) -> list[str]:
    """What the messages of a way come to now."""
    live, exchanges = work.both.live, work.both.live.exchanges
    reached = [way.destination]
    for name in reached:
        bindings = (b for b in live.bindings_at("exchange", name) if b.source == name)
        ahead = [b.destination for b in bindings if work.may_go_on(way, b)]
        # A queue that is being changed has a way round.
        alternate = alternate_in_force(exchanges[name], live.policies) if name in exchanges else None
        reached += [each for each in (*ahead, alternate) if each is not None and each not in reached]
    return reached


def _going(way: Binding, reached: list[str], work: Work) -> list[Change]:
    """What would go from behind a way that stays: exchanges, queues, what leads there the messages of this way, and what rules them."""
    exchanges = work.both.live.exchanges
    queues = [work.both.live.queues[name] for name in reached if name in work.both.live.queues]

    def goes_from_there(resource: Resource) -> bool:
        match resource:
            case Binding(source=source):
                return source in reached and work.may_go_on(way, resource)
            case Policy():
                bare = (replace(exchanges[name], alternate=None) for name in reached if name in exchanges)
                leads_round = any(alternate_in_force(exchange, (resource,)) for exchange in bare)
                return leads_round or any(winner(queue, (resource,)) for queue in queues)
            case _:
                return resource.name in reached

    return [change for change in work.changes if isinstance(change, Delete) and goes_from_there(change.resource)]


def _coming(kept: list[Change], reached: list[str], work: Work) -> list[Change]:
    """What would come for the messages of ways that stay: in their place it would double them, and beside others some would go there."""
    live = work.both.live
    ways = {way_of(c.resource, live) for c in kept if isinstance(c, Delete) and isinstance(c.resource, Binding)}
    choosing = {name for name in reached if name in live.exchanges and live.exchanges[name].type == CONSISTENT_HASH}

    def takes_some(resource: Resource) -> bool:
        return isinstance(resource, Binding) and (way_of(resource, live) in ways or resource.source in choosing)

    return [change for change in work.changes if isinstance(change, Create) and takes_some(change.resource)]
