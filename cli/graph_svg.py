"""A picture as SVG: a text that any browser shows, and that is the same whenever the picture is."""

from collections.abc import Iterator
from itertools import pairwise
from xml.sax.saxutils import escape

from delayctl.cli.graph_cards import SANS_FONTS, card_svg, colours_of, handles, mark_colours, number, text
from delayctl.cli.graph_layout import MARGIN, TITLE_HEIGHT, Layout, Path, Point, lay_out
from delayctl.cli.graph_text import BOLD, SANS, fitted, whole, width
from delayctl.cli.graph_theme import LIVE_MEANINGS, MEANINGS, Theme
from delayctl.topology.picture import SYMBOLS, Edge, Mark, Picture, Way

_LEGEND_STEP = 22.0
_CORNER = 7.0
_NARROWEST_SHEET = 460.0
_DASHES: dict[Way, str] = {"alternate": "6 4", "retry": "2 4", "dead-letter": "6 3 2 3"}
_WAYS: dict[Way, str] = {
    "direct": "a binding without a delay",
    "alternate": "what has no route",
    "dead-letter": "dead letters",
    "retry": "failed: waits, and comes again",
}


def svg(picture: Picture, theme: Theme) -> str:
    """Write a picture as SVG."""
    layout = lay_out(picture)
    wide = max(layout.width, _NARROWEST_SHEET)
    legend, height = _legend(picture, theme, layout.foot, wide)
    size = f'width="{number(wide)}" height="{number(height)}" viewBox="0 0 {number(wide)} {number(height)}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc" xml:space="preserve">',
        f'<title id="title">{escape(whole(picture.title))}</title>',
        f'<desc id="desc">{escape(_description(picture))}</desc>',
        f'<rect width="100%" height="100%" rx="10" fill="{theme.sheet}"/>',
        *_heading(picture, theme, wide),
        *_frame(layout, theme),
        *_columns(layout, theme),
        *(
            line
            for path in sorted(layout.paths, key=lambda p: p.edge.mark != "same")
            for line in _path(path, picture, theme)
        ),
        *(line for box in layout.boxes for line in card_svg(box, picture, theme, layout.badge_width)),
        *legend,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _description(picture: Picture) -> str:
    """The picture in words, for those who can't see it."""
    titles = {card.id: card.title for card in picture.cards}
    ways = dict.fromkeys(
        f"{titles[edge.source]} to {titles[edge.target]}{f' by {edge.label}' if edge.label else ''}"
        for edge in picture.edges
    )
    return whole(f"{picture.subtitle}. Ways: {'; '.join(ways)}.")


def _heading(picture: Picture, theme: Theme, wide: float) -> Iterator[str]:
    title = fitted(picture.title, wide - 2 * MARGIN, 19, BOLD)
    yield text(MARGIN, MARGIN + 12, title, size=19, fill=theme.ink, weight=700, family=SANS_FONTS)
    subtitle = fitted(picture.subtitle, wide - 2 * MARGIN, 12.5, SANS)
    yield text(MARGIN, MARGIN + 32, subtitle, size=12.5, fill=theme.soft, family=SANS_FONTS)
    y = TITLE_HEIGHT + 6
    yield f'<path d="M{number(MARGIN)} {number(y)}H{number(wide - MARGIN)}" stroke="{theme.line}"/>'


def _frame(layout: Layout, theme: Theme) -> Iterator[str]:
    if layout.frame:
        x, y, wide, high = map(number, layout.frame)
        yield f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="14" fill="{theme.frame}" stroke="{theme.line}"/>'


def _columns(layout: Layout, theme: Theme) -> Iterator[str]:
    for x, y, word in layout.headings:
        yield text(x, y, word.upper(), size=10, fill=theme.soft, weight=600, family=SANS_FONTS, spacing=1.2)


def _path(path: Path, picture: Picture, theme: Theme) -> Iterator[str]:
    colour, is_marked = _edge_colour(path.edge, picture, theme)
    dashes = f' stroke-dasharray="{_DASHES[path.edge.way]}"' if path.edge.way in _DASHES else ""
    dashes = ' stroke-dasharray="4 4"' if path.edge.mark in ("delete", "missing") else dashes
    stroke = f'stroke="{colour}" stroke-width="{2 if is_marked else 1.4}" opacity="{1 if is_marked else 0.85}"'
    edge = path.edge
    ends = handles(picture, source=edge.source, target=edge.target, level=edge.level, way=edge.way)
    line = _curve(path.points) if path.is_curve else _rounded(path.points)
    yield f'<path d="{line}" fill="none" {stroke}{dashes}{ends}/>'
    yield _arrow(path.points, colour)


def _edge_colour(edge: Edge, picture: Picture, theme: Theme) -> tuple[str, bool]:
    if edge.mark != "same":
        return mark_colours(edge.mark, theme)[0], True
    if edge.way in ("alternate", "retry") and picture.view != "plan":
        return theme.roles["net"] if edge.way == "alternate" else theme.soft, False
    return (colours_of(edge.level, picture, theme)[0] if edge.level else theme.neutral), False


def _curve(points: tuple[Point, ...]) -> str:
    (x1, y1), (x2, y2) = points[0], points[-1]
    if abs(y1 - y2) < 0.5:
        return f"M{number(x1)} {number(y1)}H{number(x2 - 5)}"
    half = (x2 - x1) / 2
    return f"M{number(x1)} {number(y1)}C{number(x1 + half)} {number(y1)} {number(x2 - half)} {number(y2)} {number(x2 - 5)} {number(y2)}"


def _rounded(points: tuple[Point, ...]) -> str:
    """Straight lines with rounded corners; the last one ends where the arrow begins."""
    ends = [*points[:-1], _towards(points[-1], points[-2], 5)]
    parts = [f"M{number(ends[0][0])} {number(ends[0][1])}"]
    for before, corner, after in zip(ends, ends[1:], ends[2:], strict=False):
        room = min(
            _CORNER, *(abs(a[0] - b[0]) / 2 + abs(a[1] - b[1]) / 2 for a, b in pairwise((before, corner, after)))
        )
        begin, end = _towards(corner, before, room), _towards(corner, after, room)
        parts.append(
            f"L{number(begin[0])} {number(begin[1])}Q{number(corner[0])} {number(corner[1])} {number(end[0])} {number(end[1])}"
        )
    return "".join([*parts, f"L{number(ends[-1][0])} {number(ends[-1][1])}"])


def _towards(point: Point, other: Point, far: float) -> Point:
    """The point that lies so far from one in the direction of another, along an axis."""
    dx, dy = other[0] - point[0], other[1] - point[1]
    if abs(dx) >= abs(dy):
        return (point[0] + (far if dx > 0 else -far if dx < 0 else 0), point[1])
    return (point[0], point[1] + (far if dy > 0 else -far))


def _arrow(points: tuple[Point, ...], colour: str) -> str:
    (x, y), before = points[-1], points[-2]
    if abs(before[0] - x) < 0.01 and len(points) > 2:  # From below.
        return f'<path d="M{number(x)} {number(y)}l-4 8h8z" fill="{colour}"/>'
    return f'<path d="M{number(x)} {number(y)}l-8 -4v8z" fill="{colour}"/>'


def _legend(picture: Picture, theme: Theme, top: float, wide: float) -> tuple[list[str], float]:
    """What is used in the picture and no more, in as many lines as it takes; also says where it ends."""
    lines, x, y = [], MARGIN, top + 18
    for sample, words in (*_mark_samples(picture, theme), *_way_samples(picture, theme)):
        room = 40 + width(words, 11, SANS) + 14
        if x + room > wide - MARGIN and x > MARGIN:
            x, y = MARGIN, y + _LEGEND_STEP
        lines += [
            f'<g transform="translate({number(x)} {number(y)})">{sample}',
            text(38, 4, words, size=11, fill=theme.soft, family=SANS_FONTS) + "</g>",
        ]
        x += room
    return lines, y + 24


def _mark_samples(picture: Picture, theme: Theme) -> Iterator[tuple[str, str]]:
    meanings = LIVE_MEANINGS if picture.view == "live" else MEANINGS
    shown: tuple[Mark, ...] = tuple(mark for mark in meanings if mark in picture.marks)
    for mark in shown:
        ink, _ = mark_colours(mark, theme)
        sign = text(15, 4, SYMBOLS[mark], size=11, fill=theme.sheet, weight=700, anchor="middle")
        yield f'<rect y="-9" width="30" height="18" rx="9" fill="{ink}"/>{sign}', meanings[mark]


def _way_samples(picture: Picture, theme: Theme) -> Iterator[tuple[str, str]]:
    used = {edge.way for edge in picture.edges}
    for way, meaning in _WAYS.items():
        if way in used:
            dashes = f' stroke-dasharray="{_DASHES[way]}"' if way in _DASHES else ""
            colour = theme.roles["net"] if way == "alternate" and picture.view != "plan" else theme.soft
            yield (
                f'<path d="M0 0H24" stroke="{colour}" stroke-width="1.6"{dashes}/><path d="M30 0l-8 -4v8z" fill="{colour}"/>',
                meaning,
            )
