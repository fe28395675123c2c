"""Leading messages elsewhere in one step: no message is lost or doubled while bindings change their destination.

Binding to the new place first delivers twice, unbinding from the old one first loses. So for a moment a toggle stands
between: an exchange bound to the old destinations, with the new ones behind its alternate exchange. A broker gives a
queue a message once, however many ways lead there; so the toggle can be put beside the old bindings, and the new ones
beside the toggle, unnoticed. In between its one binding is cut, and that is the moment of the change.

A broker looks at one exchange after the other while it routes a message. One that was looked at before a step is routed
on after it: so there is a pause where such a message would see the toggle both as it was and as it is.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from delayctl.topology.model import Arguments, Binding, Exchange
from delayctl.topology.names import Names


@dataclass(frozen=True, slots=True)
class Toggle:
    """The three exchanges that make one change of ways happen at once; a topology has one, and uses it for one change at a time."""

    name: str
    before: str
    after: str

    @classmethod
    def of(cls, prefix: str) -> "Toggle":
        """The toggle of the topology with this prefix."""
        return cls(*Names(prefix).toggle())

    @property
    def exchanges(self) -> tuple[str, str, str]:
        """All of them, the one in front first."""
        return self.name, self.before, self.after

    @property
    def as_made(self) -> tuple[Exchange, Exchange, Exchange]:
        """The same as they are declared."""
        front = Exchange(self.name, "fanout", alternate=self.after)
        return front, Exchange(self.before, "fanout"), Exchange(self.after, "fanout")


@dataclass(frozen=True, slots=True)
class Way:
    """What an exchange looks for; several bindings may share it."""

    source: str
    key: str = ""
    arguments: Arguments = ()

    def to_exchange(self, name: str) -> Binding:
        """The binding that leads this way to an exchange."""
        return Binding(self.source, "exchange", name, self.key, self.arguments)


@dataclass(frozen=True, slots=True)
class Move:
    """Lead what goes some ways of one exchange to other destinations."""

    ways: tuple[Way, ...]
    before: tuple[Binding, ...]
    after: tuple[Binding, ...]
    toggle: Toggle
    stage: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Take a toggle away that an interrupted run left behind, and keep the destinations it leads to."""

    entries: tuple[Binding, ...]  # Into the toggle.
    keep: tuple[Binding, ...]  # In its place.
    toggle: Toggle
    stage: int


@dataclass(frozen=True, slots=True)
class Put:
    """One step: declare or bind."""

    resource: Exchange | Binding


@dataclass(frozen=True, slots=True)
class Cut:
    """One step: delete or unbind."""

    resource: Exchange | Binding


@dataclass(frozen=True, slots=True)
class LetPass:
    """One step: wait until what was being routed has arrived."""


Step = Put | Cut | LetPass


def steps(change: Move | Settle) -> Iterator[Step]:
    """What is done, in this order. After each step every message has exactly one set of destinations."""
    toggle = change.toggle
    if isinstance(change, Move):
        entries = tuple(way.to_exchange(toggle.name) for way in change.ways)
        yield from _put_toggle(change)
        yield from map(Put, entries)
        yield from map(Cut, change.before)
        yield LetPass()  # What saw the old bindings beside the toggle must not find it turned.
        yield Cut(_open(toggle))
        yield from map(Put, change.after)
    else:
        entries = change.entries
        yield from map(Put, change.keep)
    yield from map(Cut, entries)
    yield LetPass()  # What saw nothing but the toggle must still find it.
    for name in toggle.exchanges:
        yield Cut(Exchange(name, "fanout"))


def _put_toggle(move: Move) -> Iterator[Step]:
    front, before, after = move.toggle.as_made
    for side, bindings in ((after, move.after), (before, move.before)):
        yield Put(side)
        # A fanout exchange looks at nothing: key and arguments are there to be found again where this is interrupted.
        yield from (Put(binding._replace(source=side.name)) for binding in bindings)
    yield Put(front)
    yield Put(_open(move.toggle))


def _open(toggle: Toggle) -> Binding:
    """The one binding that decides: while it is there messages go the old way."""
    return Binding(toggle.name, "exchange", toggle.before)


def side_in_force(toggle: Toggle, bindings: Iterable[Binding]) -> str:
    """The exchange that a toggle leads to now: that of the old destinations, or that of the new ones."""
    return toggle.before if _open(toggle) in bindings else toggle.after
