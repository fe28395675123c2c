"""How a topology is doing: facts to a Status, without a look at anything."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from delayctl.topology.changes import Comparison
from delayctl.topology.effective import effective
from delayctl.topology.figures import Age, Early, Figures, Node, Rates, Statistics, gone_early, oldest, rates
from delayctl.topology.live import Live
from delayctl.topology.model import Queue, Settings, Sharded, Topology
from delayctl.topology.names import ANY, Names
from delayctl.topology.plan import Plan, Wait
from delayctl.topology.routing import PREDEFINED

_NOTHING = Figures()
_NONE_EARLY = Early(0, None)


@dataclass(frozen=True)
class Facts:
    """All that a status is made of: the file, the broker and what differs between them."""

    desired: Topology
    parks: tuple[str, ...]  # Where retries end, by the file.
    plan: Plan
    live: Live
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class LevelStatus:
    """One queue that messages wait in. What is None is not known; `early` is None where it can't be told at all."""

    name: str  # The level's, or the queue's own where it belongs to none.
    queue: str
    is_there: bool
    wanted: Settings | None  # By the file; None where the file only refers to the queue.
    settings: Settings  # In force, policies included.
    policies: tuple[str, ...]
    figures: Figures
    rates: Rates | None
    oldest: Age | None
    early: Early | None
    is_own: bool = False  # A level or a step of the ladder: nobody but the file has a say in how it waits.
    exit_is_missing: bool = False  # Its dead-letter exchange is not on the broker.
    is_step: bool = False  # Of the ladder.
    shard_of: Sharded | None = None  # The level, where this is one of its several queues.

    @property
    def waiting(self) -> int | None:
        """All messages of the queue."""
        return self.figures.waiting

    @property
    def fullness(self) -> float | None:
        """What waits against the limit in force, of messages or of bytes; None where there is none."""
        limits = ((self.waiting, self.settings.max_length), (self.figures.size, self.settings.max_bytes))
        return max((count / limit for count, limit in limits if count is not None and limit), default=None)

    @property
    def rejects(self) -> bool:
        """Say whether a full queue refuses what comes in, rather than letting the oldest go."""
        return self.settings.overflow == "reject-publish"


@dataclass(frozen=True, slots=True)
class Parked:
    """A queue for messages that went no further."""

    queue: str
    kind: Literal["unrouted", "retry"]
    messages: int | None


@dataclass(frozen=True, slots=True)
class Target:
    """A queue that waited messages come to."""

    queue: str
    messages: int | None
    consumers: int | None


@dataclass(frozen=True, slots=True)
class Status:
    """A topology on a broker, as of a few seconds ago."""

    vhost: str
    version: str
    levels: tuple[LevelStatus, ...]
    parked: tuple[Parked, ...]
    targets: tuple[Target, ...]
    nodes: tuple[Node, ...] | None
    differences: int  # What `plan` would change or refuse.
    is_missing: bool  # Nothing of the topology is on the broker.
    warnings: tuple[str, ...]  # The plan's.


def waiting_queues(desired: Topology, live: Live) -> tuple[str, ...]:
    """The queues of a topology that messages wait in: levels, steps of the ladder, and all others with a TTL and a way out.

    Last come those that no file asks for: they were applied, and what waits there has yet to leave.
    """
    levels = tuple(wait.queue for wait in desired.waits)
    others = [queue.name for queue in desired.queues] + [r.name for r in desired.existing if r.kind == "queue"]
    passing = (live.record.queues & live.queues.keys()).difference(levels, others) if live.record else ()
    found = (
        [name for name in some if name not in levels and _waits(name, desired, live)] for some in (others, passing)
    )
    return levels + tuple(name for names in found for name in sorted(names))


def wait_name(queue: str, desired: Topology) -> tuple[str, bool]:
    """What a waiting queue is called, and whether that is a name of ours: of a level, a step, or of what was one or stands in for it."""
    known = next((wait.name for wait in desired.waits if wait.queue == queue), None)
    is_asked_for = known is None and any(each.name == queue for each in desired.queues)
    name = known or (None if is_asked_for else Names(desired.prefix).level_of(queue))
    return name or queue, name is not None


def missing_exits(desired: Topology, live: Live) -> frozenset[str]:
    """The dead-letter exchanges of waiting queues that are not among those read; newer brokers don't list internal ones."""
    exits = {
        _in_force(live.queues[name], live)[0].dead_letter_exchange
        for name in waiting_queues(desired, live)
        if name in live.queues
    }
    return frozenset(name for name in exits if name is not None and name not in PREDEFINED) - live.exchanges.keys()


def status_of(facts: Facts) -> Status:
    """Put the facts together."""
    desired, live, plan = facts.desired, facts.live, facts.plan
    fed_by_dead_letters, missing = _DeadLetterFeed(live), missing_exits(desired, live)
    levels = tuple(
        _level_status(name, facts, missing, is_counted=name not in fed_by_dead_letters)
        for name in waiting_queues(desired, live)
    )
    return Status(
        vhost=plan.vhost,
        version=live.version,
        levels=levels,
        parked=tuple(_parked(facts)),
        targets=tuple(_targets(levels, facts)),
        nodes=facts.statistics.nodes,
        differences=len(plan.changes) + len(plan.refusals),
        is_missing=not _is_there(desired, live),
        warnings=(*plan.warnings, *(_told(wait, is_begun=is_begun) for wait, is_begun in waits_begun(facts))),
    )


def waits_begun(facts: Facts) -> Iterator[tuple[Wait, bool]]:
    """What is waited for, and whether an apply has begun with it: of a queue that goes, whether nobody gets into it any more."""
    stages = Comparison(facts.desired, facts.live).course.stages if facts.plan.waits else {}
    for wait in facts.plan.waits:
        stage = stages.get(wait.subject)
        yield wait, _is_closed(wait.queue, facts) if stage is None else stage != "due"


def _is_closed(queue: str, facts: Facts) -> bool:
    names, live = Names(facts.desired.prefix), facts.live
    door = names.entrance(ANY)
    # The entrance of a step of the ladder stays for what comes from above; its door is closed.
    return all(
        names.step_of(way.source) is not None
        and all(binding.source != door for binding in live.bindings_at("exchange", way.source))
        for way in live.bindings_at("queue", queue)
    )


def _told(wait: Wait, *, is_begun: bool) -> str:
    return f"a change is {'under way' if is_begun else 'due, and begins with the next apply'}: {wait}"


def _is_there(desired: Topology, live: Live) -> bool:
    queues, exchanges = {q.name for q in desired.queues}, {e.name for e in desired.exchanges}
    return bool(queues & live.queues.keys() or exchanges & live.exchanges.keys()) or not (queues or exchanges)


def _waits(name: str, desired: Topology, live: Live) -> bool:
    settings = _wanted(name, desired) if name not in live.queues else _in_force(live.queues[name], live)[0]
    return settings is not None and settings.ttl is not None and settings.dead_letter_exchange is not None


def _wanted(name: str, desired: Topology) -> Settings | None:
    queue = next((queue for queue in desired.queues if queue.name == name), None)
    return None if queue is None else effective(queue, desired.policies, ()).settings


def _in_force(queue: Queue, live: Live) -> tuple[Settings, tuple[str, ...]]:
    found = effective(queue, live.policies, live.operator_policies)
    named = (("policy", found.policy), ("operator policy", found.operator_policy))
    return found.settings, tuple(f"{kind} {policy.name}" for kind, policy in named if policy)


def _level_status(name: str, facts: Facts, missing: frozenset[str], *, is_counted: bool) -> LevelStatus:
    live, wanted = facts.live, _wanted(name, facts.desired)
    level, is_own = wait_name(name, facts.desired)
    is_step = any(rung.queue == name for rung in facts.desired.rungs)
    shard_of = next((whole for whole in facts.desired.sharded if name in whole.queues), None)
    if name not in live.queues:
        nothing = LevelStatus(level, name, False, wanted, wanted or Settings(), (), _NOTHING, None, None, None, is_own)
        return replace(nothing, is_step=is_step, shard_of=shard_of)
    settings, policies = _in_force(live.queues[name], live)
    figures = facts.statistics.queues.get(name, _NOTHING)
    if not is_counted:  # The broker counts what clients publish, and nothing that other queues hand on.
        figures = replace(figures, published=())
    age = oldest(figures, settings.ttl) if settings.ttl else None
    shown_rates = rates(figures) if is_counted else None
    early = _early(settings, figures, is_counted=is_counted)
    return LevelStatus(
        level,
        name,
        True,
        wanted,
        settings,
        policies,
        figures,
        shown_rates,
        age,
        early,
        is_own,
        exit_is_missing=settings.dead_letter_exchange in missing,
        is_step=is_step,
        shard_of=shard_of,
    )


def _early(settings: Settings, figures: Figures, *, is_counted: bool) -> Early | None:
    has_limit = settings.max_length is not None or settings.max_bytes is not None
    if not has_limit or settings.overflow == "reject-publish":
        return _NONE_EARLY  # Nothing ever has to make room.
    return gone_early(figures, settings.ttl) if settings.ttl and is_counted else None


def _parked(facts: Facts) -> Iterator[Parked]:
    unrouted = Names(facts.desired.prefix).unrouted_queue()
    if facts.desired.waits:
        yield Parked(unrouted, "unrouted", facts.statistics.queues.get(unrouted, _NOTHING).waiting)
    for name in sorted(set(facts.parks)):
        yield Parked(name, "retry", facts.statistics.queues.get(name, _NOTHING).waiting)


def _targets(levels: tuple[LevelStatus, ...], facts: Facts) -> Iterator[Target]:
    """The queues right behind the ways out; left out are those that only wait or park, and what delayctl itself has there."""
    ours = Names(facts.desired.prefix)
    exits = {level.settings.dead_letter_exchange for level in levels if level.is_there}
    apart = {level.queue for level in levels} | {parked.queue for parked in _parked(facts)}
    # Canaries are caught for a while, and cancellations are a stream: neither is waited for, nor ever used up.
    apart |= {ours.verify_queue(), ours.cancellations()}
    names = {
        binding.destination
        for name in exits
        if name
        for binding in facts.live.bindings_at("exchange", name)
        if binding.source == name and binding.kind == "queue"
    }
    for name in sorted((names & facts.statistics.queues.keys()) - apart):
        figures = facts.statistics.queues[name]
        yield Target(name, figures.waiting, figures.consumers)


class _DeadLetterFeed:
    """The queues that other queues hand messages on to."""

    def __init__(self, live: Live) -> None:
        self._live = live
        settings = [_in_force(queue, live)[0] for queue in live.queues.values()]
        self._exits = {s.dead_letter_exchange for s in settings if s.dead_letter_exchange}
        self._by_name = {s.dead_letter_key for s in settings if s.dead_letter_exchange == ""}

    def __contains__(self, queue: str) -> bool:
        return queue in self._by_name or not self._exits.isdisjoint(self._exchanges_before(queue))

    def _exchanges_before(self, queue: str) -> set[str]:
        """Every exchange from which a message may come into the queue."""
        found: set[str] = set()
        ahead = [b.source for b in self._live.bindings_at("queue", queue)]
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                bindings = self._live.bindings_at("exchange", name)
                ahead += [b.source for b in bindings if b.kind == "exchange" and b.destination == name]
                ahead += [exchange.name for exchange in self._live.exchanges.values() if exchange.alternate == name]
        return found
