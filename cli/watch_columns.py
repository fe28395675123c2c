"""The levels of a frame as a table: which columns there is room for, and what is in them. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from delayctl.cli.status_views import (
    NEARLY_FULL,
    age_text,
    count_text,
    early_text,
    limit_texts,
    rate_text,
    share_text,
)
from delayctl.cli.verify_views import signed
from delayctl.topology.canary import Proof
from delayctl.topology.figures import Samples
from delayctl.topology.status import LevelStatus
from delayctl.topology.wording import shorten
from rich.cells import cell_len, set_cell_size
from rich.text import Text

_WINDOW_MS = 600_000  # For so long brokers keep samples of five seconds.
_RAMP = "▁▂▃▄▅▆▇█"
_TREND, _TREND_LEAST, _TREND_MOST = "last 10 min", 8, 40
_STILL = (rate_text(0), rate_text(None))
_PARTS = " ▏▎▍▌▋▊▉"
_GAUGE = 8
_GAP = 2
_LONGEST_NAME, _SHORTEST_NAME = 30, 8

Proofs = Mapping[str, Proof]


@dataclass(frozen=True)
class Column:
    """A column; those that are worth least give way first, and those that are worth the same together."""

    heading: str
    worth: int
    cell: Callable[[LevelStatus, Proofs], Text]
    is_name: bool = False


def table(levels: Sequence[LevelStatus], proofs: Proofs, *, width: int, with_late: bool) -> list[Text]:
    """A line with headings, and a line for each level."""
    columns = [column for column in _COLUMNS if with_late or column.heading != "late"]
    cells = {c.heading: [Text(c.heading), *(_cell(c, level, proofs) for level in levels)] for c in columns}
    widths = {heading: max(cell.cell_len for cell in column) for heading, column in cells.items()}
    widths["level"] = min(widths["level"], _LONGEST_NAME)
    kept = _fitting(columns, widths, width)
    room = width - sum(widths[c.heading] + _GAP for c in kept) + _GAP
    if room < 0:
        widths["level"] = max(_SHORTEST_NAME, widths["level"] + room)
    with_trend = room >= _TREND_LEAST + _GAP
    trend = [_trend_cell(level, min(_TREND_MOST, room - _GAP)) for level in levels] if with_trend else []
    heads = [Text(_TREND if room - _GAP >= len(_TREND) else _TREND.removeprefix("last "))] if with_trend else []
    return [
        _line([_sized(cells[c.heading][row], widths[c.heading], c) for c in kept], [*heads, *trend], row, width)
        for row in range(len(levels) + 1)
    ]


def _cell(column: Column, level: LevelStatus, proofs: Proofs) -> Text:
    if column.is_name or level.is_there or column.heading in _KNOWN_OF_MISSING:
        return column.cell(level, proofs)
    return Text("missing", "red") if column.heading == "waiting" else Text("-" if column.heading else "")


def _fitting(columns: Sequence[Column], widths: Mapping[str, int], width: int) -> list[Column]:
    """The columns that there is room for, in their order: those that are worth most beside a trend."""
    kept: set[str] = set()
    for worth in sorted({column.worth for column in columns}, reverse=True):
        more = kept | {column.heading for column in columns if column.worth == worth}
        reserved = _TREND_LEAST if worth < _TREND_WORTH else -_GAP
        if worth >= _NEEDED or sum(widths[heading] + _GAP for heading in more) + reserved <= width:
            kept = more
    return [column for column in columns if column.heading in kept]


def _sized(cell: Text, width: int, column: Column) -> Text:
    if column.is_name:
        return Text(set_cell_size(cell.plain, width), cell.style)
    return Text(" " * max(0, width - cell.cell_len)) + cell


def _line(cells: Sequence[Text], trend: Sequence[Text], row: int, width: int) -> Text:
    line = Text(" " * _GAP).join([*cells, *trend[row : row + 1]])
    line.truncate(width)
    if not row:
        line.stylize("dim")
    return line


def _name(level: LevelStatus, _: Proofs) -> Text:
    name = shorten(level.name, 255)
    return Text(name if cell_len(name) <= _LONGEST_NAME else set_cell_size(name, _LONGEST_NAME - 1) + "…", "bold")


def _waiting(level: LevelStatus, _: Proofs) -> Text:
    return Text(count_text(level.waiting), "bold" if level.waiting else "")


def _full(level: LevelStatus, _: Proofs) -> Text:
    return Text.from_ansi(share_text(level.fullness))


def _gauge(level: LevelStatus, _: Proofs) -> Text:
    share = level.fullness
    if share is None:
        return Text(" " * _GAUGE)
    return bar(share, _GAUGE, "red" if share >= 1 else "yellow" if share >= NEARLY_FULL else "green")


def bar(share: float, width: int, style: str) -> Text:
    """A bar that is this full; nothing at all looks different from hardly anything."""
    eighths = min(8 * width, max(int(share * 8 * width), 1 if share > 0 else 0))
    drawn = "█" * (eighths // 8) + _PARTS[eighths % 8].strip()
    return Text.assemble((drawn, style), ("░" * (width - len(drawn)), "dim"))


def _into(level: LevelStatus, _: Proofs) -> Text:
    rate = rate_text(level.rates.into if level.rates else None)
    return Text.assemble(rate, (" →" if rate not in _STILL else "  ", "green"))


def _out(level: LevelStatus, _: Proofs) -> Text:
    rate = rate_text(level.rates.out_of if level.rates else None)
    return Text.assemble(("→ " if rate not in _STILL else "  ", "green"), rate)


def _late(level: LevelStatus, proofs: Proofs) -> Text:
    proof = proofs.get(level.name)
    if proof is None:
        return Text("?", "dim")
    if not proof.is_proved:
        return Text("FAILED", "red")
    if proof.lateness:
        return Text(signed(proof.lateness[-1]))
    return Text("ok" if proof.how == "hastened" else "-", "dim")


def _trend_cell(level: LevelStatus, width: int) -> Text:
    heights, most = trend(level.figures.lengths, level.waiting, width), level.settings.max_length
    peak = max((height for height in heights if height is not None), default=0)
    text = Text()
    for height in heights:
        is_high = height is not None and bool(most) and height >= NEARLY_FULL * (most or 0)
        style = "dim" if not height else "red" if is_high and height >= (most or 0) else "yellow" if is_high else "cyan"
        text.append(_glyph(height, peak), style)
    return text


def _glyph(height: int | None, peak: int) -> str:
    if height is None:
        return " "
    return _RAMP[0] if not height else _RAMP[max(1, round(height / peak * (len(_RAMP) - 1)))]


def trend(lengths: Samples, waiting: int | None, width: int) -> list[int | None]:
    """The most messages that waited in each part of the window; None where nobody has looked."""
    if not lengths:
        return [None] * width
    end = lengths[-1][0]
    parts: list[int | None] = [None] * width
    for at, value in lengths:
        index = width - 1 - (end - at) * width // _WINDOW_MS
        if index >= 0:
            parts[index] = max(value, parts[index] or 0)
    return _carried([*parts[:-1], parts[-1] if waiting is None else waiting])


def is_idle(level: LevelStatus) -> bool:
    """Say whether nothing has waited there for as long as a trend goes back, so that lines don't come and go."""
    return level.is_there and level.waiting == 0 and not any(trend(level.figures.lengths, None, 1))


def _carried(parts: Sequence[int | None]) -> list[int | None]:
    """Where parts are finer than samples, what was seen last holds."""
    carried: list[int | None] = []
    for part in parts:
        carried.append(part if part is not None or not carried else carried[-1])
    return carried


_COLUMNS = (
    Column("level", 100, _name, is_name=True),
    Column("in/s", 70, _into),
    Column("waiting", 99, _waiting),
    Column("out/s", 70, _out),
    Column("", 30, _gauge),
    Column("full", 90, _full),
    Column("oldest", 60, lambda level, _: Text(age_text(level))),
    Column("early", 65, lambda level, _: Text.from_ansi(early_text(level.early))),
    Column("late", 66, _late),
    Column("ttl", 20, lambda level, _: Text(limit_texts(level.settings)[0], "dim")),
    Column("max-length", 10, lambda level, _: Text(limit_texts(level.settings)[1], "dim")),
)
_NEEDED, _TREND_WORTH = 99, 80
_KNOWN_OF_MISSING = ("ttl", "max-length")
