"""A picture to places on a sheet: boxes in columns, and paths between them that cross as little as they can."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from delayctl.cli.graph_text import BOLD, SANS, width
from delayctl.topology.picture import SYMBOLS, Card, Edge, Mark, Picture
from delayctl.topology.wording import plural

MARGIN, HEADINGS, GAP, LANE = 28.0, 26.0, 12.0, 10.0
HEAD, ROW, FOOT, WAIT_HEAD = 34.0, 21.0, 6.0, 50.0
_MOST_GAP = 44.0  # A column that is shorter than others is spread, so far.
PAD, BUS = 12.0, 62.0
NAME, SMALL, BADGE = 13.0, 11.0, 17.0
TITLE_HEIGHT = 62.0
_NARROWEST, _WIDEST = 190.0, 400.0
_WAITING = ("level", "ladder")


@dataclass(frozen=True, slots=True)
class Box:
    """A card in its place."""

    card: Card
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right side."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower side."""
        return self.y + self.height

    def row_y(self, row: int | None) -> float:
        """The height of a row's middle, or of the head's."""
        head = head_height(self.card)
        return self.y + head / 2 if row is None else self.y + head + ROW * (row + 0.5)


Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Path:
    """An edge in its place: through points with rounded corners, or in one curve from the first to the last."""

    edge: Edge
    points: tuple[Point, ...]
    is_curve: bool = True


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything in its place."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    paths: tuple[Path, ...]
    headings: tuple[tuple[float, float, str], ...]
    frame: tuple[float, float, float, float] | None
    badge_width: float
    foot: float  # Where the legend begins.


def head_height(card: Card) -> float:
    """The height of a card's upper part."""
    return WAIT_HEAD if card.role in _WAITING else HEAD


def card_height(card: Card) -> float:
    """The height of a card with all its rows."""
    return head_height(card) + ROW * len(card.rows) + (FOOT if card.rows else 0)


def lay_out(picture: Picture) -> Layout:
    """Put everything in its place."""
    return _Sheet(picture).layout()


class _Sheet:
    """The sheet on which a picture is laid out."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.columns = {column: tuple(cards) for column, cards in groupby(picture.cards, key=lambda card: card.column)}
        self.cards = {card.id: card for card in picture.cards}
        badges = (width(card.badge, BADGE, BOLD) for card in picture.cards if card.role in _WAITING)
        self.badge_width = max(badges, default=0) + 2 * PAD
        self.lanes = self._lanes()
        self.has_loops = any(edge.way == "retry" for edge in picture.edges)

    def layout(self) -> Layout:
        boxes, paths = self.boxes, self.paths()
        right = max((box.right for box in boxes.values()), default=_NARROWEST) + MARGIN + (14 if self.has_loops else 0)
        foot = self.floor + (26 if self.has_loops else 14)
        return Layout(right, foot, tuple(boxes.values()), paths, self._headings(), self.frame, self.badge_width, foot)

    def _lanes(self) -> dict[tuple[str, str], int]:
        """The ways that pass over other columns, each with its lane above them."""
        passing = [
            (edge.source, edge.target)
            for edge in self.picture.edges
            if edge.way != "retry" and self.cards[edge.target].column > self.cards[edge.source].column + 1
        ]
        return {pair: number for number, pair in enumerate(dict.fromkeys(passing))}

    @property
    def top(self) -> float:
        """Where the cards begin."""
        lanes = len(self.lanes) * LANE + (8 if self.lanes else 0)
        return TITLE_HEIGHT + MARGIN + HEADINGS + lanes

    @cached_property
    def content_height(self) -> float:
        """The height of the fullest column."""
        return max((self._column_height(cards) for cards in self.columns.values()), default=0)

    @property
    def floor(self) -> float:
        """Where the cards end."""
        return self.top + self.content_height + GAP

    def _column_height(self, cards: tuple[Card, ...]) -> float:
        if cards[0].role == "exit":
            return max(140.0, width(cards[0].title, NAME) + 2 * PAD)
        return sum(map(card_height, cards)) + GAP * (len(cards) - 1)

    @cached_property
    def boxes(self) -> dict[str, Box]:
        """Every card in its place."""
        found, x = {}, MARGIN
        for column, cards in self.columns.items():
            wide = max(map(self._card_width, cards))
            gap = self._gap_within(cards)
            y = self.top + (self.content_height - self._column_height(cards) - (gap - GAP) * (len(cards) - 1)) / 2
            for card in cards:
                is_bus = card.role == "exit"
                box_y, height = (self.top, self.content_height) if is_bus else (y, card_height(card))
                found[card.id] = Box(card, x, box_y, wide, height)
                y += height + gap
            x += wide + self._gap_after(column)
        return found

    def _gap_within(self, cards: tuple[Card, ...]) -> float:
        spare = self.content_height - self._column_height(cards)
        return GAP + min(spare / max(len(cards) - 1, 1), _MOST_GAP - GAP)

    def _card_width(self, card: Card) -> float:
        if card.role == "exit":
            return BUS
        lead = self.badge_width + 4 if card.role in _WAITING else PAD + 2
        names = width(card.title, NAME) + side_width(card)
        if card.role in _WAITING:  # Its limits are on a line of their own.
            names = max(names, width(card.subtitle, SMALL, SANS))
        head = lead + names + sign_width(card.mark) + PAD
        rows = max((row_width(row.text, row.note, row.waits, SYMBOLS[row.mark]) for row in card.rows), default=0)
        return min(max(head, rows, _NARROWEST), _WIDEST)

    def _gap_after(self, column: int) -> float:
        leaving = [edge for edge in self.picture.edges if self.cards[edge.source].column == column]
        into_waits = sum(self.cards[edge.target].role in _WAITING for edge in leaving if edge.way != "retry")
        passing = sum(self.cards[pair[0]].column == column for pair in self.lanes)
        return 64.0 + min(into_waits * 4.0, 130.0) + min(passing * 5.0, 60.0) + (24 if self.has_loops else 0)

    @property
    def frame(self) -> tuple[float, float, float, float] | None:
        """The room of all waits."""
        waits = [box for box in self.boxes.values() if box.card.role in _WAITING]
        if not waits:
            return None
        x, y = min(box.x for box in waits) - PAD, min(box.y for box in waits) - PAD
        return x, y, max(box.right for box in waits) + PAD - x, max(box.bottom for box in waits) + PAD - y

    def _headings(self) -> tuple[tuple[float, float, str], ...]:
        y = TITLE_HEIGHT + MARGIN + 4
        found, seen, is_behind = [], set[str](), False
        for cards in self.columns.values():
            is_wait, is_exit = cards[0].role in _WAITING, cards[0].role == "exit"
            is_behind |= is_exit
            word = "waits" if is_wait else "comes out" if is_exit else "arrives at" if is_behind else "published to"
            found.append((self.boxes[cards[0].id].x, y, "and on to" if word in seen else word))
            seen.add(word)
        return tuple(found)

    def paths(self) -> tuple[Path, ...]:
        """Every edge in its place."""
        ports = self._ports()
        return tuple(self._path(number, edge, ports) for number, edge in enumerate(self.picture.edges))

    def _ports(self) -> dict[int, float]:
        """The heights at which edges arrive that lead to no row: spread over the head, in the order of where they begin."""
        arriving = defaultdict(list)
        for number, edge in enumerate(self.picture.edges):
            if edge.target_row is None and edge.way != "retry":
                arriving[edge.target].append((self._begin(edge), number))
        return {
            number: height
            for id, edges in arriving.items()
            for number, height in _spread(sorted(edges), self.boxes[id])
        }

    def _begin(self, edge: Edge) -> float:
        if (edge.source, edge.target) in self.lanes:
            return -self.lanes[edge.source, edge.target]  # It comes from above, and all of one lane arrive together.
        return self.boxes[edge.source].row_y(edge.source_row)

    def _path(self, number: int, edge: Edge, ports: dict[int, float]) -> Path:
        source, target = self.boxes[edge.source], self.boxes[edge.target]
        if edge.way == "retry":
            return self._loop(edge, source)
        end = target.row_y(edge.target_row) if edge.target_row is not None else ports[number]
        begin = source.row_y(edge.source_row)
        if source.card.role == "exit":
            begin = end
        if target.card.role == "exit":
            end = begin
        if (lane := self.lanes.get((edge.source, edge.target))) is not None:
            return Path(edge, self._over(lane, (source.right, begin), (target.x, end)), is_curve=False)
        return Path(edge, ((source.right, begin), (target.x, end)))

    def _over(self, lane: int, begin: Point, end: Point) -> tuple[Point, ...]:
        height = self.top - 14 - lane * LANE
        out, into = begin[0] + 14 + lane % 9 * 5, end[0] - 14 - lane % 9 * 5
        return begin, (out, begin[1]), (out, height), (into, height), (into, end[1]), end

    def _loop(self, edge: Edge, source: Box) -> Path:
        assert self.frame is not None
        x, y, wide, high = self.frame
        begin, side, floor = source.row_y(edge.source_row), source.right + 18, self.floor + 12
        points = (source.right, begin), (side, begin), (side, floor), (x + wide / 2, floor), (x + wide / 2, y + high)
        return Path(edge, points, is_curve=False)


def _spread(edges: list[tuple[float, int]], box: Box) -> Iterable[tuple[int, float]]:
    """A height for each edge; those that begin at the same height end at the same."""
    if box.card.role == "exit":
        return [(number, box.y) for _, number in edges]  # Everything arrives there at its own height.
    begins = sorted({begin for begin, _ in edges})
    room = head_height(box.card)
    step = (room - 16) / max(len(begins) - 1, 1)
    start = box.y + (room / 2 if len(begins) == 1 else 8)
    return [(number, start + begins.index(begin) * step) for begin, number in edges]


def side_text(card: Card) -> str:
    """What stands at the right of a card's head."""
    if card.messages is not None:
        return f"{card.messages:,} waiting" if card.role in _WAITING else plural(card.messages, "message")
    return "" if card.role in _WAITING else card.subtitle


def side_width(card: Card) -> float:
    """The room for it."""
    side = side_text(card)
    return width(side, SMALL, BOLD if card.messages is not None else SANS) + PAD if side else 0.0


def sign_width(mark: Mark) -> float:
    """The room for the sign of a change."""
    return width(SYMBOLS[mark], NAME, BOLD) + 20 if SYMBOLS[mark] else 0.0


def pill_width(text: str) -> float:
    """The width of a little sign with a level in it."""
    return width(text, SMALL, BOLD) + 12


def row_width(text: str, note: str, waits: tuple[str, ...], symbol: str) -> float:
    """The width that a row would like to have."""
    signs = sum(pill_width(wait) + 4 for wait in waits[:3]) + (pill_width("…") if len(waits) > 3 else 0)
    sign = width(symbol, 12, BOLD) + 6 if symbol else 0
    return 2 * PAD + sign + width(text, 12) + (width(note, SMALL, SANS) + 10 if note else 0) + signs + 8
