"""A picture as text for Graphviz."""

from collections.abc import Iterator
from itertools import groupby

from delayctl.cli.graph_cards import colours_of, mark_colours
from delayctl.cli.graph_text import fitted, whole
from delayctl.cli.graph_theme import Theme
from delayctl.topology.picture import SYMBOLS, Card, Edge, Picture, Row

_STYLES = {"alternate": "dashed", "retry": "dotted", "dead-letter": "dashed"}
_ROOM = 60  # Letters on one line of a card.


def dot(picture: Picture, theme: Theme) -> str:
    """Write a picture for Graphviz: cards are tables with a port for each row."""
    shown = [card for card in picture.cards if not card.echo_of]
    lines = [
        "digraph delayctl {",
        "  rankdir=LR; ranksep=1.2; nodesep=0.25; concentrate=false;",
        f"  bgcolor={_text(theme.sheet)}; label={_text(picture.title)}; labelloc=t; fontname={_text('Helvetica')}; fontcolor={_text(theme.ink)};",
        f"  node [shape=plain fontname={_text('Helvetica')} fontsize=11 fontcolor={_text(theme.ink)}];",
        f"  edge [fontname={_text('Helvetica')} fontsize=9 fontcolor={_text(theme.soft)} arrowsize=0.7];",
    ]
    for column, cards in groupby(shown, key=lambda card: card.column):
        lines.append(f"  {{ rank=same; // column {column + 1}")
        lines += [f"    {_id(card.id)} [{_attributes(card, theme)}];" for card in cards]
        lines.append("  }")
    lines += [f"  {line};" for edge in picture.edges for line in _edge(edge, picture, theme)]
    return "\n".join([*lines, "}"]) + "\n"


def _id(id: str) -> str:
    return _text(id)


def _text(text: str) -> str:
    escaped = whole(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _html(text: str, room: int = _ROOM) -> str:
    shown = fitted(text, room, 1.0, 1.0)
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        shown = shown.replace(sign, name)
    return shown or " "


def _attributes(card: Card, theme: Theme) -> str:
    return f"tooltip={_text(card.title)} label=<{_table(card, theme)}>"


def _table(card: Card, theme: Theme) -> str:
    ink, tint = mark_colours(card.mark, theme) if card.mark != "same" else (theme.roles[card.role], theme.card)
    sign = f"{SYMBOLS[card.mark]} " if SYMBOLS[card.mark] else ""
    badge = f"{card.badge}: " if card.badge else ""
    count = f", {card.messages:,} messages" if card.messages is not None else ""
    head = f'<B>{_html(f"{sign}{badge}{card.title}")}</B><BR/><FONT POINT-SIZE="9">{_html(f"{card.subtitle}{count}")}</FONT>'
    rows = "".join(_row(number, row, theme) for number, row in enumerate(card.rows))
    style = f'BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="4" STYLE="ROUNDED" COLOR="{ink}" BGCOLOR="{tint}"'
    return f'<TABLE {style}><TR><TD PORT="head" COLSPAN="2" ALIGN="LEFT">{head}</TD></TR>{rows}</TABLE>'


def _row(number: int, row: Row, theme: Theme) -> str:
    ink = mark_colours(row.mark, theme)[0] if row.mark != "same" else theme.ink
    sign = f"{SYMBOLS[row.mark]} " if SYMBOLS[row.mark] else ""
    text = f'<TD PORT="i{number}" ALIGN="LEFT"><FONT COLOR="{ink}">{_html(f"{sign}{row.text}")}</FONT></TD>'
    note = ", ".join(row.waits) or row.note
    return f'<TR>{text}<TD PORT="o{number}" ALIGN="RIGHT">{_html(note)}</TD></TR>'


def _edge(edge: Edge, picture: Picture, theme: Theme) -> Iterator[str]:
    target = next((card.echo_of for card in picture.cards if card.id == edge.target and card.echo_of), edge.target)
    begin = f"o{edge.source_row}:e" if edge.source_row is not None else "head:e"
    end = f"i{edge.target_row}:w" if edge.target_row is not None else "head:w"
    colour = colours_of(edge.level, picture, theme)[0] if edge.mark == "same" else mark_colours(edge.mark, theme)[0]
    options = [f"color={_text(colour)}"]
    options += [f"style={_STYLES[edge.way]}"] if edge.way in _STYLES else []
    options += [f"label={_text(edge.label)}"] if edge.way in ("alternate", "retry") else []
    options += ["constraint=false"] if edge.way == "retry" or target != edge.target else []
    options += [f"penwidth=2 xlabel={_text(SYMBOLS[edge.mark])}"] if edge.mark != "same" else []
    yield f"{_id(edge.source)}:{begin} -> {_id(target)}:{end} [{' '.join(options)}]"
