"""What a picture is made of: objects, what is to be said of each, and how many messages they hold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from delayctl.topology.effective import default_of
from delayctl.topology.figures import Statistics
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Resource, Settings, Topology, sorted_bindings
from delayctl.topology.moves import Move, Settle
from delayctl.topology.names import Names
from delayctl.topology.picture import Mark, Thing, View
from delayctl.topology.plan import Change, Create, Delete, Difference, Plan, Refusal, Replace, Update, Wait, label
from delayctl.topology.routing import PREDEFINED, Network
from delayctl.topology.spec import RetrySpec, RouteSpec, Spec
from delayctl.topology.wording import plural

_COMPARED = ("ttl", "max_length", "max_bytes", "overflow", "dead_letter_exchange", "dead_letter_key")
UNKNOWN_TYPE = ""


@dataclass(frozen=True)
class Subject:
    """The objects of a picture; settings are those in force."""

    title: str
    view: View
    prefix: str
    exchanges: Mapping[str, Exchange]
    queues: Mapping[str, Queue]
    bindings: tuple[Binding, ...]
    routes: tuple[RouteSpec, ...] = ()
    retries: tuple[RetrySpec, ...] = ()
    marks: Mapping[Thing | Binding, Mark] = field(default_factory=dict)
    remarks: Mapping[Thing, tuple[str, ...]] = field(default_factory=dict)
    figures: Statistics | None = None
    subtitle: str = ""  # Else what is on the picture is counted.

    @property
    def names(self) -> Names:
        """The names that the file gives."""
        return Names(self.prefix)

    def mark(self, of: Thing | Binding) -> Mark:
        """What is to be said of an object."""
        return self.marks.get(of, "same")


def subject_of_file(spec: Spec, desired: Topology, *, title: str) -> Subject:
    """What a file describes."""
    network = Network.of_topology(desired)
    exchanges = {
        name: Exchange(name, UNKNOWN_TYPE) if name in network.assumed else exchange
        for name, exchange in network.exchanges.items()
        if name not in PREDEFINED or any(reference.name == name for reference in desired.existing)
    }
    return Subject(title, "file", spec.prefix, exchanges, network.queues, desired.bindings, spec.routes, spec.retries)


def subject_of_live(spec: Spec, desired: Topology, live: Live, statistics: Statistics, *, title: str) -> Subject:
    """What is on a broker of a file's objects and right behind the delays, and how that differs from the file."""
    wanted, found = subject_of_file(spec, desired, title=title), Network.of_live(live)
    near = _NearTheDelays(wanted, live)
    exchanges = {name: found.exchanges.get(name, wanted.exchanges.get(name)) for name in near.exchanges}
    queues = {name: found.queues.get(name, wanted.queues.get(name)) for name in near.queues}
    marks: dict[Thing | Binding, Mark] = {
        **{Thing("exchange", name): near.mark_of_exchange(name) for name in near.exchanges},
        **{Thing("queue", name): near.mark_of_queue(name) for name in near.queues},
        **{binding: "missing" for binding in desired.bindings if binding not in live.bindings},
        **{binding: "foreign" for binding in near.bindings if binding not in set(desired.bindings)},
    }
    differing = {Thing("queue", name): _differing(queue, found.queues) for name, queue in wanted.queues.items()}
    remarks = {thing: lines for thing, lines in differing.items() if lines}
    marks |= dict.fromkeys(remarks, "update")
    return Subject(
        title,
        "live",
        spec.prefix,
        {name: exchange or Exchange(name, UNKNOWN_TYPE) for name, exchange in exchanges.items()},
        {name: queue or Queue(name) for name, queue in queues.items()},
        sorted_bindings([*near.bindings, *desired.bindings]),
        spec.routes,
        spec.retries,
        {of: mark for of, mark in marks.items() if mark != "same"},
        remarks,
        statistics,
    )


class _NearTheDelays:
    """The part of a broker that belongs to a file: its objects, and what others put right before or behind the delays."""

    def __init__(self, wanted: Subject, live: Live) -> None:
        self._wanted, self._live = wanted, live
        names, record = wanted.names, live.record
        self.exchanges = set(wanted.exchanges) | set(record.exchanges if record else ())
        self.queues = set(wanted.queues) | set(record.queues if record else ())
        ours = f"{names.prefix}delay."
        self.exchanges |= {name for name in live.exchanges if name.startswith(ours)}
        self.queues |= {name for name in live.queues if name.startswith(ours)} - {names.lock()}
        for binding in live.bindings:
            # A delay leads only where it is bound to, so whoever is bound there gets what has waited.
            if binding.source.startswith(ours) or (binding.kind == "exchange" and binding.destination.startswith(ours)):
                self.exchanges.add(binding.source)
                (self.exchanges if binding.kind == "exchange" else self.queues).add(binding.destination)
        self._ends = {end for b in live.bindings for end in (("exchange", b.source), (b.kind, b.destination))}

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """The bindings between these."""
        return tuple(
            binding
            for binding in self._live.bindings
            if binding.source in self.exchanges
            and binding.destination in (self.exchanges if binding.kind == "exchange" else self.queues)
        )

    def mark_of_exchange(self, name: str) -> Mark:
        """Newer brokers don't list internal exchanges; what is bound shows that they are there."""
        if name not in self._live.exchanges and name not in PREDEFINED and ("exchange", name) not in self._ends:
            return "missing"
        return "same" if name in self._wanted.exchanges else "foreign"

    def mark_of_queue(self, name: str) -> Mark:
        """Whether a queue is there and in the file."""
        if name not in self._live.queues and ("queue", name) not in self._ends:
            return "missing"
        return "same" if name in self._wanted.queues else "foreign"


def _differing(wanted: Queue, found: Mapping[str, Queue]) -> tuple[str, ...]:
    """What a delay queue does otherwise than the file says; of other queues the file says little."""
    if wanted.name not in found or wanted.settings.ttl is None:
        return ()
    pairs = ((name, _set(found[wanted.name].settings, name), _set(wanted.settings, name)) for name in _COMPARED)
    return tuple(_difference(Difference(name, live, file)) for name, live, file in pairs if live != file)


def _set(settings: Settings, name: str) -> object:
    value = getattr(settings, name)
    return default_of(name) if value is None else value


def subject_of_plan(plan: Plan, file: Subject | None, *, title: str, subtitle: str) -> Subject:
    """What a plan adds, changes and removes, amid all that stays; without its file, what the plan itself knows."""
    base, known = file or _remembered(plan, title), _remembered(plan, title)
    marked = [pair for change in plan.changes for pair in _marked(change)]
    exchanges = {resource.name: resource for resource, _ in marked if isinstance(resource, Exchange)}
    queues = {resource.name: resource for resource, _ in marked if isinstance(resource, Queue)}
    bindings = sorted_bindings(
        [*base.bindings, *known.bindings, *(resource for resource, _ in marked if isinstance(resource, Binding))]
    )
    refused = _refused(plan, bindings)
    marks: dict[Thing | Binding, Mark] = {thing_of(resource): mark for resource, mark in marked}
    marks |= {Thing("queue", wait.queue): _mark_of_wait(wait) for wait in plan.waits}
    reasons = {of: (reason,) for of, reason in refused.items() if isinstance(of, Thing)}
    return Subject(
        title,
        "plan",
        plan.prefix,
        # A file knows the settings in force, a plan those that are declared; a plan's memory knows names alone.
        {**known.exchanges, **exchanges, **(file.exchanges if file else {})},
        {**known.queues, **queues, **(file.queues if file else {})},
        bindings,
        base.routes,
        base.retries,
        {**marks, **dict.fromkeys(refused, "refused")},
        {**_differences(plan), **_waits(plan), **reasons},
        subtitle=subtitle,
    )


def _refused(plan: Plan, bindings: tuple[Binding, ...]) -> dict[Thing | Binding, str]:
    """What is refused, by the words in which a refusal speaks of it."""
    by_label: dict[str, Binding] = {label(binding): binding for binding in bindings}
    return {by_label.get(refusal.subject) or _subject_of(refusal): refusal.reason for refusal in plan.refusals}


def _subject_of(refusal: Refusal) -> Thing:
    kind, _, name = refusal.subject.partition(" ")
    return Thing(kind, name)


def _differences(plan: Plan) -> dict[Thing, tuple[str, ...]]:
    changed = [change for change in plan.changes if isinstance(change, Update | Replace)]
    return {_thing(change.after): tuple(map(_difference, change.differences)) for change in changed}


def _mark_of_wait(wait: Wait) -> Mark:
    return "replace" if wait.differences else "delete"


def _waits(plan: Plan) -> dict[Thing, tuple[str, ...]]:
    """What is said of queues that change or go once they have emptied by themselves."""
    return {
        Thing("queue", wait.queue): (
            *map(_difference, wait.differences),
            *([f"{plural(wait.messages, 'message')} leave first, within {wait.longest}"] if wait.messages else ()),
        )
        for wait in plan.waits
    }


def thing_of(resource: Resource) -> Thing | Binding:
    """The object by which marks are found."""
    return resource if isinstance(resource, Binding) else _thing(resource)


def _thing(resource: Exchange | Queue | Policy) -> Thing:
    return Thing(type(resource).__name__.lower(), resource.name)


def _marked(change: Change) -> Iterator[tuple[Resource, Mark]]:
    match change:
        case Create():
            yield change.resource, "create"
        case Delete():
            yield change.resource, "delete"
        case Update():
            yield change.after, "update"
        case Replace():
            yield change.after, "replace"
        case Move():
            yield from ((binding, "delete") for binding in change.before)
            yield from ((binding, "move") for binding in change.after)
        case Settle():
            yield Exchange(change.toggle.name, "fanout"), "delete"
            yield from ((binding, "delete") for binding in change.entries)
            yield from ((binding, "move") for binding in change.keep)
        case _:
            assert_never(change)


def _difference(difference: Difference) -> str:
    live, desired = (
        "not set" if value in (None, ()) else _plain(value) for value in (difference.live, difference.desired)
    )
    return f"{difference.field.replace('_', '-')}: {live} → {desired}"


def _plain(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _remembered(plan: Plan, title: str) -> Subject:
    """What a saved plan knows of the objects that it leaves alone: their names, and what is bound."""
    known = plan.intent.union(plan.record)
    exchanges = {name: Exchange(name, UNKNOWN_TYPE) for name in known.exchanges}
    return Subject(
        title, "plan", plan.prefix, exchanges, {name: Queue(name) for name in known.queues}, tuple(known.bindings)
    )
