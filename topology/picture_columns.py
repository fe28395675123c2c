"""Where the cards of a picture stand: columns from left to right, the order within each, and no way that leads back."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from delayctl.topology.picture import Card, Edge
from delayctl.topology.picture_cast import EXIT

_WAITS, _EXIT, _TARGETS = 0, 1, 2
_MOST_BEFORE = 6  # Exchanges in a row before a level; in a circle of exchanges there is no first.


def arranged(
    cards: Iterable[Card], edges: tuple[Edge, ...], waits: tuple[str, ...]
) -> tuple[tuple[Card, ...], tuple[Edge, ...]]:
    """Give every card its column and its place there; a way back leads to an echo of its target instead."""
    by_id = {card.id: card for card in cards}
    columns = _columns(by_id, edges, waits)
    first = min(columns.values(), default=0)
    by_id = {id: replace(card, column=columns[id] - first) for id, card in by_id.items()}
    edges = _with_echoes(by_id, edges)
    return _ordered(by_id, edges, waits), edges


def _columns(cards: dict[str, Card], edges: tuple[Edge, ...], waits: tuple[str, ...]) -> dict[str, int]:
    found = dict.fromkeys(waits, _WAITS) | ({EXIT: _EXIT} if EXIT in cards else {})
    sources = {id for id, card in cards.items() if card.role in ("source", "publishers")}
    return found | _before(sources, edges) | _behind(cards.keys() - sources - found.keys(), edges)


def _before(sources: set[str], edges: tuple[Edge, ...]) -> dict[str, int]:
    found = dict.fromkeys(sources, -1)
    pairs = [(edge.source, edge.target) for edge in edges if {edge.source, edge.target} <= sources]
    for _ in range(_MOST_BEFORE - 1):
        for source, target in pairs:
            found[source] = max(min(found[source], found[target] - 1), -_MOST_BEFORE)
    return found


def _behind(others: set[str], edges: tuple[Edge, ...]) -> dict[str, int]:
    """As many columns behind the exit as there are steps to it; what is bound to no exit is right behind it too."""
    onward = defaultdict(set)
    for edge in edges:
        if edge.source in others and edge.target in others and edge.way != "retry":
            onward[edge.source].add(edge.target)
    entered = {edge.target for edge in edges if edge.source not in others and edge.target in others}
    fed = {target for targets in onward.values() for target in targets}
    found: dict[str, int] = {}
    ahead = sorted(entered or others) + sorted(others - fed - entered)
    column = _TARGETS
    while ahead:
        found |= {id: column for id in ahead if id not in found}
        ahead = sorted({target for id in ahead for target in onward[id]} - found.keys())
        column += 1
    return found | dict.fromkeys(others - found.keys(), _TARGETS)  # What is left goes in circles among itself.


def _with_echoes(cards: dict[str, Card], edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    turned = []
    for edge in edges:
        source, target = cards[edge.source], cards[edge.target]
        if edge.way == "retry" or target.column > source.column:
            turned.append(edge)
            continue
        id = f"echo {source.column + 1} {target.id}"
        rows = tuple(row for row in target.rows[: _incoming(target, edges)])
        cards[id] = Card(
            id, target.role, target.title, "goes on at its other card", target.badge, rows, target.mark,
            column=source.column + 1, echo_of=target.id,
        )  # fmt: skip
        turned.append(replace(edge, target=id))
    return tuple(turned)


def _incoming(card: Card, edges: tuple[Edge, ...]) -> int:
    return sum(edge.source == EXIT and edge.target == card.id for edge in edges)


def _ordered(cards: dict[str, Card], edges: tuple[Edge, ...], waits: tuple[str, ...]) -> tuple[Card, ...]:
    """From the top: levels by their length, and all others near those that they deal with."""
    height = {id: float(position) for position, id in enumerate(waits)}
    level = {card.badge: height[id] for id, card in cards.items() if id in height}
    for id, card in cards.items():
        places = [level[wait] for row in card.rows for wait in row.waits if wait in level]
        if id not in height and places:
            height[id] = sum(places) / len(places)
    for _ in range(3):
        _settle(height, cards, edges, waits)
    owners = {row.leads_to: card for card in cards.values() for row in card.rows if row.leads_to}
    return tuple(sorted(cards.values(), key=lambda card: (card.column, *_place(card, owners, height))))


def _settle(height: dict[str, float], cards: dict[str, Card], edges: tuple[Edge, ...], waits: tuple[str, ...]) -> None:
    near: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        if EXIT not in (edge.source, edge.target) and edge.way != "retry":
            is_before = cards[edge.target].role == "source" and not cards[edge.target].echo_of
            near[edge.source if is_before else edge.target].append(edge.target if is_before else edge.source)
    for id in sorted(cards.keys() - set(waits)):
        if not any(row.waits for row in cards[id].rows):
            places = [height[other] for other in near[id] if other in height]
            height |= {id: sum(places) / len(places)} if places else {}


def _place(card: Card, owners: dict[str, Card], height: dict[str, float]) -> tuple[float, float, str]:
    owner = owners.get(card.title) if card.role == "park" else None
    anchor = owner or card
    return (
        float(card.role == "net"),
        height.get(anchor.id, 99.0),
        f"{anchor.title}\0{'1' if owner else '0'}{card.title}",
    )
