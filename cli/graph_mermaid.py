"""A picture as text for Mermaid, which GitHub, GitLab and many wikis draw by themselves."""

from collections.abc import Iterator

from delayctl.cli.graph_cards import colours_of, mark_colours
from delayctl.cli.graph_text import fitted
from delayctl.cli.graph_theme import Theme
from delayctl.topology.picture import SYMBOLS, Card, Edge, Mark, Picture

_ROOM = 60  # Letters on one line of a card.
_MOST_KEYS = 6  # On one arrow.
_SHAPES = {
    "exit": ("{{", "}}"),
    "level": ("[(", ")]"),
    "ladder": ("[(", ")]"),
    "source": ("([", "])"),
    "exchange": ("([", "])"),
    "publishers": (">", "]"),
}
_ARROWS = {"alternate": "-.->", "retry": "-.->", "dead-letter": "-.->"}


def mermaid(picture: Picture, theme: Theme) -> str:
    """Write a picture for Mermaid: a flow chart from left to right."""
    ids = {card.id: f"c{number}" for number, card in enumerate(card for card in picture.cards if not card.echo_of)}
    ids |= {card.id: ids[card.echo_of] for card in picture.cards if card.echo_of}
    lines = ["---", f"title: {_quoted(picture.title)}", "---", "flowchart LR"]
    lines += [f"  {ids[card.id]}{_box(card)}" for card in picture.cards if not card.echo_of]
    arrows = [*_arrows(picture, ids)]
    lines += [f"  {arrow}" for arrow, _ in arrows]
    lines += _styles(picture, theme, ids)
    marked = [(number, mark) for number, (_, mark) in enumerate(arrows) if mark != "same"]
    lines += [f"  linkStyle {number} stroke:{mark_colours(mark, theme)[0]},stroke-width:3px" for number, mark in marked]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A text that means nothing but itself: Mermaid reads #code; where a sign would mean something to it, or to HTML."""
    shown = fitted(text, _ROOM, 1.0, 1.0)
    return (
        '"'
        + "".join(
            char if char.isalnum() or char in " .,-_/…≤·:+~=" or ord(char) > 127 else f"#{ord(char)};" for char in shown
        )
        + '"'
    )


def _box(card: Card) -> str:
    begin, end = _SHAPES.get(card.role, ("[", "]"))
    sign = f"{SYMBOLS[card.mark]} " if SYMBOLS[card.mark] else ""
    badge = f"{card.badge}: " if card.badge else ""
    count = [f"{card.messages:,} messages"] if card.messages is not None else []
    remarks = [row.text + (f" {row.note}" if row.note else "") for row in card.rows if row.is_remark]
    lines = [f"{sign}{badge}{card.title}", *([card.subtitle] if card.subtitle else []), *count, *remarks]
    return begin + '"' + "<br/>".join(_quoted(line)[1:-1] for line in lines) + '"' + end


def _arrows(picture: Picture, ids: dict[str, str]) -> Iterator[tuple[str, Mark]]:
    """One arrow for all keys that lead the same way and fare the same."""
    together: dict[tuple[str, str, str, Mark], list[Edge]] = {}
    for edge in picture.edges:
        together.setdefault((ids[edge.source], ids[edge.target], edge.way, edge.mark), []).append(edge)
    for (source, target, way, mark), edges in together.items():
        keys = [edge.label for edge in edges if edge.label]
        shown = keys if len(keys) <= _MOST_KEYS else [*keys[: _MOST_KEYS - 1], f"… {len(keys) - _MOST_KEYS + 1} more"]
        sign = f"{SYMBOLS[mark]} " if SYMBOLS[mark] else ""
        words = "<br/>".join(_quoted(f"{sign}{key}")[1:-1] for key in shown) or _quoted(sign)[1:-1].strip()
        label = f'|"{words}"|' if words else ""
        yield f"{source} {_ARROWS.get(way, '-->')}{label} {target}", mark


def _styles(picture: Picture, theme: Theme, ids: dict[str, str]) -> Iterator[str]:
    for card in picture.cards:
        if card.echo_of:
            continue
        if card.mark != "same":
            ink, tint = mark_colours(card.mark, theme)
            yield f"  style {ids[card.id]} fill:{tint},stroke:{ink},stroke-width:3px,color:{theme.ink}"
        elif card.role in ("level", "ladder"):
            ink, tint = colours_of(card.badge, picture, theme)
            yield f"  style {ids[card.id]} fill:{tint},stroke:{ink},color:{theme.ink}"
        else:
            yield f"  style {ids[card.id]} fill:{theme.card},stroke:{theme.roles[card.role]},color:{theme.ink}"
