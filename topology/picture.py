"""A topology as a picture, before anything is drawn: cards with rows, and the ways between them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from delayctl.topology.model import Binding

Role = Literal["publishers", "source", "level", "ladder", "exit", "queue", "exchange", "park", "net"]
Mark = Literal["same", "create", "update", "replace", "delete", "move", "refused", "missing", "foreign"]
SYMBOLS: dict[Mark, str] = {
    "same": "",
    "create": "+",
    "update": "~",
    "replace": "-/+",
    "delete": "-",
    "move": "=>",
    "refused": "!",
    "missing": "!",
    "foreign": "?",
}
Way = Literal["binding", "direct", "expiry", "alternate", "dead-letter", "retry"]
View = Literal["file", "live", "plan"]


class Thing(NamedTuple):
    """An object of the broker by its kind and name: `exchange`, `queue` or `policy`."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a card: a key that leads in or out, or a remark."""

    text: str
    waits: tuple[str, ...] = ()  # The levels that it waits at.
    note: str = ""
    mark: Mark = "same"
    bindings: tuple[Binding, ...] = ()  # All that it stands for.
    is_remark: bool = False
    leads_to: str = ""  # The queue where messages are parked in the end.


@dataclass(frozen=True, slots=True)
class Card:
    """One box of the picture; a level's entrance and queue share one, and so do all objects of the ladder."""

    id: str
    role: Role
    title: str
    subtitle: str = ""
    badge: str = ""  # How long messages wait here.
    rows: tuple[Row, ...] = ()
    mark: Mark = "same"
    things: tuple[Thing, ...] = ()
    bindings: tuple[Binding, ...] = ()  # Those that lie within it.
    messages: int | None = None
    fullness: float | None = None  # What is in it against its limit.
    column: int = 0
    echo_of: str = ""  # It stands for another card, so that no way has to lead back.


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from a card, or one of its rows, to a card, or one of its rows."""

    source: str
    target: str
    way: Way
    source_row: int | None = None
    target_row: int | None = None
    label: str = ""
    mark: Mark = "same"
    level: str = ""  # The level at one of its ends.


@dataclass(frozen=True, slots=True)
class Picture:
    """All that is drawn, in its order: cards by column and then from the top."""

    title: str
    subtitle: str
    view: View
    cards: tuple[Card, ...]
    edges: tuple[Edge, ...]

    def card(self, id: str) -> Card:
        """The card of this id."""
        return next(card for card in self.cards if card.id == id)

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels from the top."""
        return tuple(card.badge for card in self.cards if card.role in ("level", "ladder"))

    @property
    def marks(self) -> frozenset[Mark]:
        """Every mark that is on something."""
        on_rows = {row.mark for card in self.cards for row in card.rows}
        return frozenset({card.mark for card in self.cards} | on_rows | {edge.mark for edge in self.edges})
