"""A plan: what apply would do, in which order, and what it would refuse to do."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import assert_never

from delayctl.topology.duration import Duration
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Reference, Resource
from delayctl.topology.moves import Move, Settle
from delayctl.topology.record import Record
from delayctl.topology.wording import plural


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that is not as it should be."""

    field: str
    live: object
    desired: object


@dataclass(frozen=True, slots=True)
class Create:
    """Declare what is not there."""

    resource: Resource
    stage: int
    node: str = ""  # Where a queue is declared, if that matters.


@dataclass(frozen=True, slots=True)
class Update:
    """Change in place; only policies can be."""

    before: Policy
    after: Policy
    differences: tuple[Difference, ...]
    stage: int


@dataclass(frozen=True, slots=True)
class Replace:
    """Delete and declare anew, since arguments are immutable; `restore` is bound again afterwards."""

    before: Exchange | Queue
    after: Exchange | Queue
    differences: tuple[Difference, ...]
    restore: tuple[Binding, ...]
    stage: int
    accept_loss: bool = False
    node: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove what was applied earlier and is no longer asked for."""

    resource: Resource
    stage: int
    accept_loss: bool = False
    covered_by: str = ""  # The policy that must be in force at a binding's source before the binding goes.


Change = Create | Update | Replace | Delete | Move | Settle


@dataclass(frozen=True, slots=True)
class Refusal:
    """What apply will not do, why, and what to do about it."""

    subject: str
    reason: str
    fix: str
    differences: tuple[Difference, ...] = ()
    blocking: bool = False  # Nothing at all is applied while it stands.


@dataclass(frozen=True, slots=True)
class Wait:
    """What has to pass before the rest can be done: a queue that nothing enters any more empties by itself."""

    subject: str  # The level, as the file calls it, or the queue.
    queue: str
    messages: int
    longest: Duration  # Until the queue is empty, from the moment on in which nothing enters it.
    altogether: Duration  # Until all is done, this wait included.
    then: str  # What becomes of the queue, in words.
    differences: tuple[Difference, ...] = ()

    def __str__(self) -> str:
        level = f"level {self.subject}: " if self.subject != self.queue else ""
        count = f"{plural(self.messages, 'message')} now, up to {self.longest}"
        return f"{level}{self.queue} empties by itself ({count}), then it is {self.then}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes in their order. `record` is what the broker shall remember after all of them."""

    vhost: str
    prefix: str
    changes: tuple[Change, ...]
    refusals: tuple[Refusal, ...]
    warnings: tuple[str, ...]
    record: Record
    intent: Record  # Written before the first change: nothing made is ever forgotten.
    existing: tuple[Reference, ...]
    fingerprint: str  # Of the live state that the plan was made from; empty where nothing is written at all.
    counted_on_empty: frozenset[str] = frozenset()  # Queues whose emptiness made a change harmless.
    waits: tuple[Wait, ...] = ()  # Another plan has to follow once these are over.
    afterwards: tuple[Change, ...] = ()  # Removals that it will make, of what waiting messages still need.

    @property
    def writes(self) -> bool:
        """Say whether carrying it out would write anything, be it only the record."""
        return bool(self.fingerprint)

    @property
    def is_empty(self) -> bool:
        """Say whether the broker is as it should be."""
        return not (self.changes or self.refusals or self.waits or self.afterwards)

    @property
    def altogether(self) -> Duration:
        """How long all waits take at most; they run side by side."""
        return max((wait.altogether for wait in self.waits), default=Duration(0))

    @property
    def is_blocked(self) -> bool:
        """Say whether nothing can be applied."""
        return any(refusal.blocking for refusal in self.refusals)

    def stages(self) -> Iterator[tuple[Change, ...]]:
        """Groups of changes that don't depend on each other, in their order."""
        for _, group in groupby(self.changes, key=lambda change: change.stage):
            yield tuple(group)


def resource_of(change: Change) -> Resource:
    """The object that a change leaves behind, or removes."""
    match change:
        case Create() | Delete():
            return change.resource
        case Update() | Replace():
            return change.after
        case Move():
            return change.after[0]
        case Settle():
            return Exchange(change.toggle.name, "fanout")
        case _:
            assert_never(change)


def title(change: Change) -> str:
    """A change's object as people speak of it."""
    match change:
        case Move(ways=ways):
            keys = ", ".join(way.key for way in ways if way.key)
            sides = (", ".join(dict.fromkeys(b.destination for b in side)) for side in (change.before, change.after))
            return f"way {ways[0].source}{f' [{keys}]' if keys else ''}: {' ⇒ '.join(sides)}"
        case _:
            return label(resource_of(change))


def label(resource: Resource) -> str:
    """An object as people speak of it."""
    match resource:
        case Exchange():
            return f"exchange {resource.name}"
        case Queue():
            return f"queue {resource.name}"
        case Policy():
            return f"policy {resource.name}"
        case Binding():
            key = f" [{resource.key}]" if resource.key else ""
            return f"binding {resource.source} →{key} {resource.destination}"
        case _:
            assert_never(resource)
