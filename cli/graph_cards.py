"""The cards of a picture as SVG."""

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from delayctl.cli.graph_layout import (
    BADGE,
    NAME,
    PAD,
    ROW,
    SMALL,
    WAIT_HEAD,
    Box,
    head_height,
    pill_width,
    side_text,
    side_width,
    sign_width,
)
from delayctl.cli.graph_text import BOLD, SANS, fitted, whole, width
from delayctl.cli.graph_theme import Theme
from delayctl.topology.picture import SYMBOLS, Card, Mark, Picture, Row

MONO_FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', 'Noto Sans Mono', monospace"
SANS_FONTS = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', 'Liberation Sans', 'Noto Sans', sans-serif"
_MOST_PILLS = 3


def number(value: float) -> str:
    """A length without more digits than can be seen."""
    return f"{round(value, 1):g}"


def text(
    x: float,
    y: float,
    content: str,
    *,
    size: float,
    fill: str,
    weight: int = 400,
    family: str = MONO_FONTS,
    anchor: str = "start",
    spacing: float = 0,
    turn: str = "",
    role: str = "",
) -> str:
    """A line of text; `y` is its baseline."""
    extra = f' font-weight="{weight}"' if weight != 400 else ""
    extra += f' text-anchor="{anchor}"' if anchor != "start" else ""
    extra += f' letter-spacing="{spacing}"' if spacing else ""
    extra += f' transform="{turn}"' if turn else ""
    extra += f' class="{role}"' if role else ""
    return f'<text x="{number(x)}" y="{number(y)}" font-family="{family}" font-size="{size:g}" fill="{fill}"{extra}>{escape(whole(content))}</text>'


def mark_colours(mark: Mark, theme: Theme) -> tuple[str, str]:
    """Ink and tint of a mark."""
    return theme.marks.get(mark, (theme.neutral, theme.card))


def colours_of(level: str, picture: Picture, theme: Theme) -> tuple[str, str]:
    """Ink and tint of a level; where changes are shown, only these have colours."""
    if picture.view == "plan" or level not in picture.levels:
        return theme.soft, theme.frame
    return theme.levels[picture.levels.index(level) % len(theme.levels)]


def handles(picture: Picture, **names: str) -> str:
    """Attributes by which whoever shows a live picture finds its parts again, to renew the counts."""
    if picture.view != "live":
        return ""
    return "".join(f" data-{name}={quoteattr(whole(value))}" for name, value in names.items())


def card_svg(box: Box, picture: Picture, theme: Theme, badge_width: float) -> Iterator[str]:
    """A card with all that is on it."""
    card = box.card
    yield f"<g{handles(picture, card=card.id)}><title>{escape(_whole_story(card))}</title>"
    if card.role == "exit":
        yield from _bus(box, picture, theme)
    else:
        yield from _outline(box, picture, theme)
        is_wait = card.role in ("level", "ladder")
        yield from _wait_head(box, picture, theme, badge_width) if is_wait else _head(box, theme)
        yield from _side(box, theme)
        yield from _sign(box, theme)
        for position, row in enumerate(card.rows):
            yield from _row(box, position, row, picture, theme)
    yield "</g>"


def _whole_story(card: Card) -> str:
    things = [f"{kind} {name}" for kind, name in card.things]
    rows = [f"{SYMBOLS[row.mark]} {row.text} {row.note}".strip() for row in card.rows]
    keys = [
        f"{b.source} → {b.destination} [{b.key}]" for row in card.rows if len(row.bindings) > 1 for b in row.bindings
    ]
    return whole("; ".join([*(things or [card.title]), *rows, *keys]))


def _accent(card: Card, picture: Picture, theme: Theme) -> str:
    if card.mark != "same":
        return mark_colours(card.mark, theme)[0]
    return theme.neutral if picture.view == "plan" else theme.roles[card.role]


def _outline(box: Box, picture: Picture, theme: Theme) -> Iterator[str]:
    card, accent = box.card, _accent(box.card, picture, theme)
    is_marked = card.mark != "same"
    dashes = ' stroke-dasharray="6 4"' if card.mark in ("delete", "missing", "foreign") or card.echo_of else ""
    fill = mark_colours(card.mark, theme)[1] if is_marked else theme.card
    place = f'x="{number(box.x)}" y="{number(box.y)}" width="{number(box.width)}" height="{number(box.height)}"'
    stroke = f'stroke="{accent if is_marked else theme.line}" stroke-width="{2 if is_marked else 1.2}"'
    yield f'<rect {place} rx="9" fill="{fill}" {stroke}{dashes}/>'
    if card.role not in ("level", "ladder"):
        left, top, low = box.x + 1, box.y + 9, box.height - 18
        yield f'<rect x="{number(left)}" y="{number(top)}" width="3.5" height="{number(low)}" rx="1.7" fill="{accent}"/>'
    if card.rows:
        y = box.y + head_height(card)
        yield f'<path d="M{number(box.x + PAD)} {number(y)}H{number(box.right - PAD)}" stroke="{theme.line}" stroke-width="1"/>'


def _head(box: Box, theme: Theme) -> Iterator[str]:
    room = box.width - 2 * PAD - 2 - side_width(box.card) - sign_width(box.card.mark)
    yield text(box.x + PAD + 2, box.y + 22, fitted(box.card.title, room, NAME), size=NAME, fill=theme.ink, weight=600)


def _wait_head(box: Box, picture: Picture, theme: Theme, badge_width: float) -> Iterator[str]:
    card = box.card
    ink, tint = mark_colours(card.mark, theme) if card.mark != "same" else colours_of(card.badge, picture, theme)
    plate = f'x="{number(box.x + 5)}" y="{number(box.y + 5)}" width="{number(badge_width - 10)}" height="{WAIT_HEAD - 10:g}"'
    yield f'<rect {plate} rx="6" fill="{tint}"/>'
    badge, middle = fitted(card.badge, badge_width - 12, BADGE, BOLD), box.x + badge_width / 2
    baseline = box.y + WAIT_HEAD / 2 + 6
    yield text(middle, baseline, badge, size=BADGE, fill=ink, weight=700, family=SANS_FONTS, anchor="middle")
    x, room = box.x + badge_width + 4, box.width - badge_width - 4 - PAD - sign_width(card.mark)
    name = fitted(card.title, room - side_width(card), NAME)
    yield text(x, box.y + 21, name, size=NAME, fill=theme.ink, weight=600)
    limits = fitted(card.subtitle, room, SMALL, SANS)
    yield text(x, box.y + 37, limits, size=SMALL, fill=theme.soft, family=SANS_FONTS)
    yield from _gauge(box, theme, ink, badge_width)


def _side(box: Box, theme: Theme) -> Iterator[str]:
    """How many messages there are, or what it is."""
    side, is_count = side_text(box.card), box.card.messages is not None
    if side:
        x, fill, weight = (
            box.right - PAD - sign_width(box.card.mark),
            theme.ink if is_count else theme.soft,
            600 if is_count else 400,
        )
        role = "count" if is_count else ""
        yield text(
            x, box.y + 21.5, side, size=SMALL, fill=fill, weight=weight, family=SANS_FONTS, anchor="end", role=role
        )


def _gauge(box: Box, theme: Theme, ink: str, badge_width: float) -> Iterator[str]:
    """How full it is."""
    if box.card.fullness is None:
        return
    x, y, wide = box.x + badge_width + 4, box.y + WAIT_HEAD - 7, box.width - badge_width - 4 - PAD
    filled = max(min(box.card.fullness, 1.0) * wide, 2.0 if box.card.fullness else 0.0)
    yield f'<rect x="{number(x)}" y="{number(y)}" width="{number(wide)}" height="3" rx="1.5" fill="{theme.line}"/>'
    yield f'<rect class="gauge" x="{number(x)}" y="{number(y)}" width="{number(filled)}" height="3" rx="1.5" fill="{ink}"/>'


def _sign(box: Box, theme: Theme) -> Iterator[str]:
    symbol = SYMBOLS[box.card.mark]
    if symbol:
        wide, ink = width(symbol, NAME, BOLD) + 12, mark_colours(box.card.mark, theme)[0]
        x, y = box.right - wide - 8, box.y + 8
        yield f'<rect x="{number(x)}" y="{number(y)}" width="{number(wide)}" height="19" rx="9.5" fill="{ink}"/>'
        yield text(x + wide / 2, y + 14, symbol, size=NAME, fill=theme.sheet, weight=700, anchor="middle")


def _row(box: Box, position: int, row: Row, picture: Picture, theme: Theme) -> Iterator[str]:
    middle = box.row_y(position)
    x, right, ink = box.x + PAD + 2, box.right - PAD, theme.soft if row.is_remark else theme.ink
    if symbol := SYMBOLS[row.mark]:
        ink, tint = mark_colours(row.mark, theme)
        yield f'<rect x="{number(box.x + 7)}" y="{number(middle - ROW / 2 + 1)}" width="{number(box.width - 14)}" height="{number(ROW - 2)}" rx="5" fill="{tint}"/>'
        yield text(x, middle + 4, symbol, size=12, fill=ink, weight=700)
        x += width(symbol, 12, BOLD) + 6
    for wait in reversed(_shown_waits(row)):
        right -= pill_width(wait)
        yield from _pill(right, middle, wait, picture, theme)
        right -= 4
    if row.note:
        note = fitted(row.note, (right - x) * 0.6, SMALL, SANS)
        yield text(right, middle + 4, note, size=SMALL, fill=theme.soft, family=SANS_FONTS, anchor="end")
        right -= width(note, SMALL, SANS) + 8
    family, per_em, size = (SANS_FONTS, SANS, SMALL) if row.is_remark and not row.bindings else (MONO_FONTS, None, 12.0)
    shown = fitted(row.text, right - x, size, per_em) if per_em else fitted(row.text, right - x, size)
    line = ' text-decoration="line-through"' if row.mark == "delete" else ""
    yield text(x, middle + 4, shown, size=size, fill=ink, family=family).replace("<text", f"<text{line}", 1)


def _shown_waits(row: Row) -> list[str]:
    return list(row.waits) if len(row.waits) <= _MOST_PILLS else [*row.waits[: _MOST_PILLS - 1], "…", row.waits[-1]]


def _pill(x: float, middle: float, wait: str, picture: Picture, theme: Theme) -> Iterator[str]:
    ink, tint = colours_of(wait, picture, theme)
    yield f'<rect x="{number(x)}" y="{number(middle - 8)}" width="{number(pill_width(wait))}" height="16" rx="8" fill="{tint}"/>'
    yield text(
        x + pill_width(wait) / 2, middle + 4, wait, size=SMALL, fill=ink, weight=600, family=SANS_FONTS, anchor="middle"
    )


def _bus(box: Box, picture: Picture, theme: Theme) -> Iterator[str]:
    """The exit stands across all ways, so that none has to bend."""
    accent = _accent(box.card, picture, theme)
    place = f'x="{number(box.x)}" y="{number(box.y)}" width="{number(box.width)}" height="{number(box.height)}"'
    yield f'<rect {place} rx="12" fill="{accent}"/>'
    x, y = box.x + box.width / 2, box.y + box.height / 2
    sign = f"{SYMBOLS[box.card.mark]} " if SYMBOLS[box.card.mark] else ""
    title = fitted(f"{sign}{box.card.title}", box.height - 2 * PAD, 14)
    turn = f"rotate(-90 {number(x)} {number(y)})"
    yield text(x, y - 2, title, size=14, fill=theme.sheet, weight=700, anchor="middle", turn=turn)
    subtitle = fitted(f"{box.card.subtitle} · the exit", box.height - 2 * PAD, SMALL, SANS)
    yield text(x, y + 16, subtitle, size=SMALL, fill=theme.sheet, family=SANS_FONTS, anchor="middle", turn=turn)
