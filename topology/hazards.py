"""What a change would cost: messages lost or hastened, others cut off. One function per kind of change."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from delayctl.topology.arguments import policy_settings
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Binding, Exchange, Kind, Level, Policy, Queue, Topology
from delayctl.topology.names import Names
from delayctl.topology.plan import Change, Create, Delete, Replace, Update
from delayctl.topology.record import Record
from delayctl.topology.wording import plural


@dataclass(frozen=True, slots=True)
class Hazard:
    """Why a change must not be made, and the name by which a user may insist on it."""

    name: str
    reason: str
    fix: str


@dataclass(frozen=True)
class Scene:
    """All that a judgement looks at."""

    desired: Topology
    live: Live
    owned: Record
    accepted: frozenset[str] = frozenset()

    def backlog(self, queue: str) -> Backlog:
        """What is in a queue, as far as it was counted."""
        return self.live.backlog.get(queue, Backlog(0))

    @cached_property
    def waiting(self) -> int:
        """How many messages wait in delay queues and still need the way out."""
        return sum(
            self.backlog(name).messages for name in waiting_queues(self.desired, self.live) if name not in self.accepted
        )

    @cached_property
    def way_out(self) -> frozenset[str]:
        """Every name that an expiring message may pass or reach."""
        names = Names(self.desired.prefix)
        reached = frozenset(
            binding.destination for binding in self.owned.bindings if binding.source == self.desired.exit
        )
        return reached | {self.desired.exit, names.unrouted_exchange(), names.unrouted_queue()}


def hazard_of(change: Change, scene: Scene) -> Hazard | None:
    """The reason not to make a change, if there is one."""
    match change:
        case Create():
            return None
        case Update():
            return _of_policy_update(change, scene)
        case Replace(after=Queue() as queue):
            return _of_queue_replacement(queue, scene)
        case Replace(after=exchange):
            return _of_exchange_replacement(exchange.name, scene)
        case Delete(resource=Queue() as queue):
            return (
                _of_lost_way_out(queue.name, scene)
                or _of_queue_loss(queue.name, scene)
                or _of_strangers(queue.name, "queue", scene)
            )
        case Delete(resource=Exchange() as exchange):
            return _of_lost_way_out(exchange.name, scene) or _of_strangers(exchange.name, "exchange", scene)
        case Delete(resource=Binding() as binding):
            return _of_lost_way_out(binding.destination, scene) if binding.source == scene.desired.exit else None
        case Delete():
            return None


def warnings_of(change: Change, scene: Scene) -> Iterable[str]:
    """What a user should know of a change that is made all the same."""
    match change:
        case Replace(after=Queue() as queue) if queue.name in scene.desired.delay_queues:
            yield (
                f"while {queue.name} is replaced (a moment), what is published to it has no place: "
                "publishers that set mandatory are told, others lose it. Pause them if that matters."
            )
        case Update(before=before, after=after):
            old, new = policy_settings(before.definition), policy_settings(after.definition)
            level = _level_of(after, scene.desired)
            if level and old.ttl and new.ttl and new.ttl < old.ttl and (count := scene.backlog(level.queue).messages):
                yield (
                    f"{plural(count, 'message')} in {level.queue} keep the old delay of {old.ttl}; "
                    f"what is published now waits behind them, up to {old.ttl} instead of {new.ttl}."
                )
        case _:
            return


def queues_to_count(change: Change, desired: Topology, live: Live) -> Iterable[str]:
    """The queues whose backlog decides about a change."""
    if isinstance(change, Update):
        level = _level_of(change.after, desired)
        return [level.queue] if level else []
    if isinstance(change, Create):
        return []
    resource = change.after if isinstance(change, Replace) else change.resource
    own = [resource.name] if isinstance(resource, Queue) else []
    return (
        [*own, *waiting_queues(desired, live)] if isinstance(change, Delete) or isinstance(resource, Exchange) else own
    )


def waiting_queues(desired: Topology, live: Live) -> list[str]:
    """The delay queues on the broker, wanted or not: all that expire into our exit."""
    return [
        name
        for name, queue in live.queues.items()
        if queue.settings.dead_letter_exchange == desired.exit or name in desired.delay_queues
    ]


def _of_policy_update(change: Update, scene: Scene) -> Hazard | None:
    level = _level_of(change.after, scene.desired)
    new = policy_settings(change.after.definition)
    count = scene.backlog(level.queue).messages if level else 0
    if level and new.max_length is not None and new.max_length < count:
        early = plural(count - new.max_length, "message")
        reason = f"{level.queue} holds {plural(count, 'message')}: {early} above the new max-length would leave early"
        return Hazard(level.queue, reason, _wait_or_insist(level.queue))
    return None


def _of_queue_replacement(queue: Queue, scene: Scene) -> Hazard | None:
    if queue.name not in scene.desired.delay_queues and queue not in scene.owned:
        fix = f"list its real arguments in the file, mark it 'existing: true', or replace it with --accept-loss {queue.name}"
        return Hazard(queue.name, "exists with other settings, and delayctl did not make it", fix)
    return _of_queue_loss(queue.name, scene)


def _of_queue_loss(name: str, scene: Scene) -> Hazard | None:
    backlog = scene.backlog(name)
    if backlog.messages:
        return Hazard(name, f"holds {plural(backlog.messages, 'message')} that would be lost", _wait_or_insist(name))
    if backlog.consumers:
        reason = f"{plural(backlog.consumers, 'consumer')} would be cut off"
        return Hazard(name, reason, f"stop them first, or give --accept-loss {name}")
    return None


def _of_exchange_replacement(name: str, scene: Scene) -> Hazard | None:
    if name == scene.desired.exit and scene.waiting:
        reason = f"{plural(scene.waiting, 'message')} would be lost if they expire while it is away"
        return Hazard(name, reason, _wait_or_insist(name))
    if name in scene.desired.entrances or name in (scene.desired.exit, Names(scene.desired.prefix).unrouted_exchange()):
        return None
    reason = "its type or arguments differ, and publishers would meet a missing exchange while it is replaced"
    return Hazard(name, reason, f"change the file to match it, mark it 'existing: true', or give --accept-loss {name}")


def _of_lost_way_out(name: str, scene: Scene) -> Hazard | None:
    """A hazard where messages still wait that may need this object when they expire."""
    if name not in scene.way_out or not scene.waiting:
        return None
    return Hazard(
        name, f"{plural(scene.waiting, 'waiting message')} may still need it when they expire", _wait_or_insist(name)
    )


def _of_strangers(name: str, kind: Kind, scene: Scene) -> Hazard | None:
    """A hazard where bindings that are not ours begin or end at what would go away."""
    strangers = [binding for binding in scene.live.bindings_at(kind, name) if binding not in scene.owned.bindings]
    if not strangers:
        return None
    fix = f"remove the bindings first, list it under {kind}s: to keep it, or give --accept-loss {name}"
    return Hazard(name, f"{plural(len(strangers), 'binding')} of others would go with it", fix)


def _level_of(policy: Policy, desired: Topology) -> Level | None:
    names = Names(desired.prefix)
    return next((level for level in desired.levels if names.policy(level.name) == policy.name), None)


def _wait_or_insist(name: str) -> str:
    return f"wait until the messages have left and apply again, or give --accept-loss {name}"
