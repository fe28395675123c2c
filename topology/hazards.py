"""What a change would cost: messages lost or hastened, others cut off. One function per kind of change."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import assert_never

from delayctl.topology.arguments import argument_name, policy_settings
from delayctl.topology.duration import Duration
from delayctl.topology.effective import alternate_in_force, winner
from delayctl.topology.live import Live, is_to_hidden_queue
from delayctl.topology.model import Binding, Exchange, Kind, Level, Policy, Queue, Resource, Settings, Topology
from delayctl.topology.moves import Move, Settle
from delayctl.topology.names import ANY, Names, rung_name
from delayctl.topology.order import Delays, way_round
from delayctl.topology.plan import Change, Create, Delete, Replace, Update, resource_of
from delayctl.topology.stakes import Hazard, Scene
from delayctl.topology.wording import plural, typed

_MARK_IT = "mark it 'existing: true'"
# The arguments without which a delay queue loses messages, or lets them out at another time or with another key.
_KEEPS_A_PROMISE = frozenset(map(argument_name, ("ttl", "dead_letter_exchange", "dead_letter_key", "expires")))


def hazard_of(change: Change, scene: Scene) -> Hazard | None:
    """The reason not to make a change, if there is one."""
    match change:
        case Create(resource=Policy() as policy) | Update(after=policy):
            return _of_shorter_queue(policy, scene)
        case Create(resource=Binding() as binding):
            return _of_level_out_of_order(binding, scene)
        case Create() | Move() | Settle():
            return None
        case Replace(after=Queue() as queue):
            return _of_queue_replacement(queue, scene)
        case Replace(after=exchange):
            return _of_exchange_replacement(exchange.name, scene)
        case Delete(covered_by=policy) if policy:
            return None  # What came this way goes round from then on.
        case Delete(resource=resource):
            return _of_removal(resource, scene)
        case _:
            assert_never(change)


def _of_removal(resource: Resource, scene: Scene) -> Hazard | None:
    match resource:
        case Queue(name=name):
            sources = [binding.source for binding in scene.live.bindings_at("queue", name)]
            return (
                _of_queue_loss(name, scene)
                or _of_lost_way_out(name, scene)
                or _of_strangers(name, "queue", scene)
                or _of_entrance_that_stays(name, scene, sources)
                or _of_lost_step(name, scene)
            )
        case Exchange(name=name):
            sources = [binding.source for binding in scene.live.bindings_at("exchange", name) if binding.source != name]
            sources += [entrance for entrance in scene.staying_entrances if way_round(entrance, scene.live) == name]
            return (
                _of_lost_way_out(name, scene)
                or _of_strangers(name, "exchange", scene)
                or _of_entrance_that_stays(name, scene, sources)
                or _of_lost_step(name, scene)
            )
        case Binding(source=source, destination=destination):
            if scene.names.step_of(source) is not None and (hazard := _of_lost_step(source, scene)):
                return hazard
            if source in scene.way_out:
                has_successor = (source, resource.key, resource.arguments) in scene.routed
                hazard = None if has_successor else _of_lost_way_out(destination, scene)
                is_parked = source == scene.desired.exit and scene.waiting and not scene.is_waiting_over_soon
                return replace(hazard, fix=_wait_or_park(destination)) if hazard and is_parked else hazard
            return _of_entrance_that_stays(destination, scene, [source])
        case Policy():
            return _of_what_is_left_without(resource, scene)
        case _:
            assert_never(resource)


def judging_rank(change: Change, delays: Delays) -> int:
    """Whether something can go or be bound depends on what stays: an entrance keeps its queue, a queue its way out.

    With several queues the entrance of the level keeps what spreads, and that the entrances of the shards; each keeps
    the way round a queue that is being changed.
    """
    match change:
        case Create(resource=Binding()):
            return 8
        case Delete(resource=Exchange() as exchange) if exchange.name in delays.entrances:
            return _entrance_rank(exchange.name, delays)
        case Delete(resource=Queue() as queue) if queue.name in delays.queues:
            return 5
        case Delete(resource=Policy()):
            return 7
        case Delete():
            return 6
        case _:
            return 0


def _entrance_rank(name: str, delays: Delays) -> int:
    if name in delays.rounds:
        return 4
    return 1 if name in delays.fronts else 2 if name in delays.spreads else 3


def warnings_of(change: Change, scene: Scene) -> Iterable[str]:
    """What a user should know of a change that is made all the same."""
    match change:
        case Replace(after=Queue() as queue) if change.restore:
            yield (
                f"while {queue.name} is replaced (a moment), what is published to it has no place: "
                "publishers that set mandatory are told, others lose it. Pause them if that matters."
            )
        case Replace(after=Exchange() as exchange) if exchange.name in (
            scene.desired.entrances | {scene.names.entrance(ANY)}
        ):
            yield (
                f"while {exchange.name} is replaced (a moment), publishers meet a missing exchange, "
                "and what other exchanges pass on to it is lost. Pause them if that matters."
            )
        case Replace(after=Exchange() as exchange) if exchange.name in {scene.desired.exit, *scene.desired.gates}:
            yield (
                f"while {exchange.name} is replaced (a moment), what is published to it is refused, "
                "and what expires before its bindings are back is parked or lost."
            )
        case Create(resource=Policy() as policy):
            yield from _of_another_ttl(None, policy, scene)
        case Update(before=before, after=after):
            yield from _of_another_ttl(policy_settings(before.definition).ttl, after, scene)
        case _:
            return


def _of_another_ttl(old: Duration | None, policy: Policy, scene: Scene) -> Iterable[str]:
    """What a TTL by policy means for messages that wait already: theirs was fixed when they came."""
    level, new = _level_of(policy, scene.desired), policy_settings(policy.definition).ttl
    count = scene.backlog(level.queue).messages if level else 0
    if not level or not new or not count:
        return
    queue = scene.live.queues.get(level.queue)
    if old is None and queue is not None and queue.settings.ttl is None:
        yield (
            f"{level.queue} holds {plural(count, 'message')} that may have come without a TTL: such messages never leave, "
            "and hold up all behind them. Take them out by hand."
        )
    elif old is not None and new < old:
        yield (
            f"{level.queue} holds {plural(count, 'message')} with the old delay of {old}; "
            f"what is published now waits behind them, up to {old} instead of {new}."
        )


def queues_to_count(changes: Iterable[Change], desired: Topology, delays: Delays) -> Iterable[str]:
    """The queues whose backlog decides about these changes."""
    needs_way_out = False
    for change in changes:
        resource = resource_of(change)
        if isinstance(resource, Policy) and (level := _level_of(resource, desired)):
            yield level.queue
        if isinstance(resource, Queue) and not isinstance(change, Create):
            yield resource.name
        is_covered = isinstance(change, Delete) and change.covered_by
        needs_way_out = needs_way_out or (isinstance(change, Delete | Replace) and not is_covered)
    yield from delays.queues if needs_way_out else ()


def _of_level_out_of_order(binding: Binding, scene: Scene) -> Hazard | None:
    """A hazard where a binding leads into a delay queue that loses or hastens what enters it, and can't be mended yet."""
    # What leads there from within belongs to a change that has begun, and goes on.
    if (level := scene.broken.get(binding.destination)) and binding.source not in scene.delays.entrances:
        return out_of_order(level, passes=False)
    replaced = {change.after.name: change for change in scene.held if isinstance(change, Replace)}
    broken = {
        name: scene.held[change].passes
        for name, change in replaced.items()
        # What nothing enters stays so until it is empty, and declared anew.
        if scene.held[change].passes or any(d.field in _KEEPS_A_PROMISE for d in change.differences)
    }
    # So does what gets another policy when it is empty.
    broken |= {h.name: True for change, h in scene.held.items() if isinstance(resource_of(change), Policy) and h.passes}
    broken |= scene.unchanged
    for level in scene.desired.waits if broken else ():
        if level.queue in broken and (
            binding.destination in (level.queue, level.entrance, *_before(level, scene))
            or _passes(binding, level, scene)
        ):
            return out_of_order(level, passes=broken[level.queue])
    return None


def out_of_order(level: Level, *, passes: bool) -> Hazard:
    """The reason not to lead messages to a level yet."""
    reason = f"{level.queue} is not as it should be: what enters it would be lost, early or late"
    return Hazard(level.queue, reason, f"see queue {level.queue}", passes=passes)


def _before(shard: Level, scene: Scene) -> Iterable[str]:
    """What leads into a shard: the spread of its level, and the entrance as long as that leads nowhere else."""
    for level in scene.desired.sharded:
        if shard in level.shards:
            yield level.spread
            ways = (b for b in scene.live.bindings_at("exchange", level.entrance) if b.source == level.entrance)
            if all(way.destination == level.spread for way in ways):
                yield level.entrance


def _passes(binding: Binding, level: Level, scene: Scene) -> bool:
    """Say whether a binding leads into the ladder at or above this step of it."""
    step, entered = scene.names.step_of(level.queue), scene.names.step_of(binding.destination)
    is_door = binding.source == scene.names.entrance(ANY)
    return is_door and step is not None and entered is not None and entered >= step


def _of_shorter_queue(policy: Policy, scene: Scene) -> Hazard | None:
    level = _level_of(policy, scene.desired)
    new = policy_settings(policy.definition)
    count = scene.backlog(level.queue).messages if level else 0
    before = _policy_before(policy, scene.live)
    # A queue that is told to refuse lets out what is above its limit first, if it did so until then.
    refuses = before.overflow == "reject-publish"
    if not level or not count or (refuses and new.overflow == "reject-publish"):
        return None
    if new.max_bytes is not None and (before.max_bytes is None or new.max_bytes < before.max_bytes):
        reason = (
            f"{level.queue} holds {plural(count, 'message')}: what is above the new max-length-bytes would leave early"
        )
        return Hazard(level.queue, reason, _wait_or_insist(level.queue), passes=scene.empties_by_itself(level.queue))
    most = count if refuses else min(count, before.max_length or count)
    if new.max_length is not None and new.max_length < most:
        early = plural(count - new.max_length, "message")
        reason = f"{level.queue} holds {plural(count, 'message')}: {early} above the new max-length would leave early"
        return Hazard(level.queue, reason, _wait_or_insist(level.queue), passes=scene.empties_by_itself(level.queue))
    return None


def _policy_before(policy: Policy, live: Live) -> Settings:
    """The settings of the policy that this one takes the place of."""
    found = next((found for found in live.policies if found.name == policy.name), None)
    return policy_settings(found.definition) if found else Settings()


def _of_queue_replacement(queue: Queue, scene: Scene) -> Hazard | None:
    if queue.name not in scene.desired.delay_queues and queue not in scene.owned:
        fix = f"list its real arguments in the file, {_MARK_IT}, or replace it with --accept-loss {typed(queue.name)}"
        return Hazard(queue.name, "exists with other settings, and delayctl did not make it", fix)
    needed = queue.name in scene.safety_net and scene.waiting
    loss = _of_queue_loss(queue.name, scene)
    if loss and scene.empties_by_itself(queue.name):
        return replace(loss, passes=True)
    return loss or (_of_absence(queue.name, scene) if needed else None)


def _of_queue_loss(name: str, scene: Scene) -> Hazard | None:
    backlog = scene.backlog(name)
    if backlog.messages:
        reason = f"holds {plural(backlog.messages, 'message')} that would be lost"
        return Hazard(name, reason, _wait_or_insist(name), passes=name in scene.draining and not backlog.consumers)
    if backlog.consumers:
        reason = f"{plural(backlog.consumers, 'consumer')} would be cut off"
        return Hazard(name, reason, f"stop them first, or give --accept-loss {typed(name)}")
    return None


def _of_exchange_replacement(name: str, scene: Scene) -> Hazard | None:
    hidden = [b for b in scene.live.bindings_at("exchange", name) if is_to_hidden_queue(b, scene.live)]
    if hidden:
        reason = (
            f"{plural(len(hidden), 'binding')} to exclusive queues would be lost: only their owners can make them again"
        )
        return Hazard(name, reason, f"let the owners bind again afterwards: give --accept-loss {typed(name)}")
    if name not in scene.owned.exchanges and (theirs := _bindings_of_others(name, scene)):
        reason = f"is there as another exchange with {plural(theirs, 'binding')}, and delayctl did not make it"
        is_ours = scene.names.is_given(name)  # And moves with the prefix, as names of the file do not.
        fix = "give the file a prefix of its own" if is_ours else f"change the file to match it, {_MARK_IT}"
        return Hazard(name, reason, f"{fix}, or replace it with --accept-loss {typed(name)}")
    if name == scene.desired.exit or name in scene.safety_net or scene.names.step_of(name) is not None:
        return _of_absence(name, scene) if scene.waiting else None
    if name in scene.desired.entrances or name == scene.names.entrance(ANY):
        return None
    reason = "its type or arguments differ, and publishers would meet a missing exchange while it is replaced"
    return Hazard(name, reason, f"change the file to match it, {_MARK_IT}, or give --accept-loss {typed(name)}")


def _bindings_of_others(exchange: str, scene: Scene) -> int:
    there = frozenset(scene.live.bindings_at("exchange", exchange))
    return len(there - scene.owned.bindings - scene.owned.restore - frozenset(scene.desired.bindings))


def _of_absence(name: str, scene: Scene) -> Hazard:
    reason = f"{plural(scene.waiting, 'message')} would be lost if they expire while it is away"
    return Hazard(name, reason, _wait_or_insist(name))


def _of_lost_way_out(name: str, scene: Scene) -> Hazard | None:
    """A hazard where messages wait, or may still come to wait, that need this object when they expire."""
    if name not in scene.way_out:
        return None
    if scene.waiting:
        reason = f"{plural(scene.waiting, 'waiting message')} may still need it on the way out"
        return Hazard(name, reason, _wait_or_insist(name), passes=scene.is_waiting_over_soon)
    return _of_what_stays(name, scene.staying & scene.delays.queues, "may still need it", scene)


def _of_lost_step(name: str, scene: Scene) -> Hazard | None:
    """A hazard where messages wait at the ladder that may have to pass this part of it."""
    step = scene.names.step_of(name)
    if step is None or _is_way_round_that_nothing_takes(name, rung_name(step), scene):
        return None
    if waiting := scene.waiting_above(step):
        count = plural(sum(waiting.values()), "message")
        reason = f"{count} at this step of the ladder or above it may still have to wait there"
        passes = all(queue in scene.draining and not scene.backlog(queue).consumers for queue in waiting)
        return Hazard(name, reason, _wait_or_insist(name), passes=passes)
    above = {queue for queue in scene.staying & scene.delays.queues if (scene.names.step_of(queue) or 0) > step}
    return _of_what_stays(name, above if scene.names.is_gate(name) else (), "comes out there", scene)


def _is_way_round_that_nothing_takes(name: str, rung: str, scene: Scene) -> bool:
    """Say whether something stands in for the queue of a step of the ladder that takes messages itself again."""
    own = scene.names.wait(rung)
    return name in scene.names.next(rung) and Binding(own.entrance, "queue", own.queue) in scene.live.bindings


def _of_entrance_that_stays(name: str, scene: Scene, sources: Iterable[str]) -> Hazard | None:
    """A hazard where an entrance can't go, and what enters it would be lost without the queue, spread or shard behind it."""
    return _of_what_stays(name, scene.staying_entrances & frozenset(sources), "leads into it", scene)


def _of_what_is_left_without(policy: Policy, scene: Scene) -> Hazard | None:
    """A hazard where a queue can't go yet, whose messages would never leave without a TTL, or an entrance that leads round one."""
    bare = (replace(scene.live.exchanges[name], alternate=None) for name in scene.staying_entrances)
    led_round = {exchange.name for exchange in bare if alternate_in_force(exchange, (policy,))}
    if led_round:
        return _of_what_stays(policy.name, led_round, "has its way round from it", scene)
    before = (change.before if isinstance(change, Replace) else resource_of(change) for change in scene.held)
    governed = {queue.name for queue in before if isinstance(queue, Queue) and winner(queue, (policy,))}
    return _of_what_stays(policy.name, governed, "has its settings from it", scene)


def _of_what_stays(name: str, staying: Collection[str], why: str, scene: Scene) -> Hazard | None:
    if not staying:
        return None
    first = min(staying)
    held = [hazard for change, hazard in scene.held.items() if _name_of(change) in staying]
    fix = f"see {first}, or give --accept-loss {typed(name)}"
    return Hazard(name, f"{first} can't go yet and {why}", fix, passes=all(hazard.passes for hazard in held))


def _name_of(change: Change) -> str | None:
    resource = resource_of(change)
    return None if isinstance(resource, Binding) else resource.name


def _of_strangers(name: str, kind: Kind, scene: Scene) -> Hazard | None:
    """A hazard where bindings that are not ours begin or end at what would go away, or others send there what they can't keep."""
    there = frozenset(scene.live.bindings_at(kind, name)) - scene.owned.bindings
    strangers = there | {binding for binding in scene.owned.restore if binding.touches(kind, name)}
    if strangers:
        fix = f"remove the bindings first, list it under {kind}s: to keep it, or give --accept-loss {typed(name)}"
        return Hazard(name, f"{plural(len(strangers), 'binding')} of others would go with it", fix)
    if senders := scene.led_to_by_others.get((kind, name)):
        reason = f"{_named(senders)} of others, which {'leads' if len(senders) == 1 else 'lead'} there by dead-letter or alternate exchange, would lose messages"
        fix = f"lead {'it' if len(senders) == 1 else 'them'} elsewhere first, list it under {kind}s: to keep it, or give --accept-loss {typed(name)}"
        return Hazard(name, reason, fix)
    return None


def _named(names: Collection[str]) -> str:
    """The first of these names, and how many more there are."""
    first, more = min(names), len(names) - 1
    return f"{first} and {more:,} more" if more else first


def _level_of(policy: Policy, desired: Topology) -> Level | None:
    names = Names(desired.prefix)
    return next((level for level in desired.waits if names.policy(level.name) == policy.name), None)


def _wait_or_park(name: str) -> str:
    """What to do about a way out of levels that stay in use: these may never be empty."""
    return (
        "wait until the messages have left and run it again; where others keep coming, wait for the longest delay and give "
        f"--accept-loss {typed(name)}: what still needs it then is parked, not lost"
    )


def _wait_or_insist(name: str) -> str:
    return f"wait until the messages have left and run it again, or give --accept-loss {typed(name)}"
