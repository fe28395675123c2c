"""The picture of an audit: how late messages were, and when they came against when they were expected."""

import io
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from delayctl.cli.audit_views import level_text

if TYPE_CHECKING:  # Spark's room is entered only by the command that needs it.
    from delayctl.spark.audit import Audit, Bar, Timeline

# Colours that people who tell red from green badly can tell apart, each with a line of its own.
_LEVELS = (
    ("#0072b2", "-"),
    ("#d55e00", "--"),
    ("#009e73", "-."),
    ("#cc79a7", ":"),
    ("#56b4e9", "-"),
    ("#e69f00", "--"),
)
_EXPECTED, _DELIVERED, _LOST = "#333f4d", "#56b4e9", "#d1495b"
_SHOWN_FROM, _MOST_TICKS = 0.6, 8
_ROUND = [float(step * 10**power) for power in range(13) for step in (1, 2, 5)]
_UNITS = ((3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms"))
_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "delayctl", "font.family": "sans-serif", "font.size": 10}


def audit_svg(audit: "Audit") -> str | None:
    """The picture as an `<svg>` element; None without matplotlib, or where nothing was delivered or lost."""
    if not audit.timeline.expected:
        return None
    try:
        import matplotlib  # noqa: PLC0415 (large, and needed for this alone)
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        return None
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(10.5, 7.2), layout="constrained")
        panels: dict[str, Any] = figure.subplot_mosaic([["bars", "share"], ["time", "time"]], height_ratios=[1, 1.05])
        _bars(panels["bars"], audit.bars)
        _shares(panels["share"], audit.bars)
        _timeline(panels["time"], audit.timeline)
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None})
    text = target.getvalue()
    return text[text.index("<svg") :]


def _bars(axes: Any, bars: "Sequence[Bar]") -> None:
    """How many messages were how late, levels on top of each other."""
    below: dict[float, int] = {}
    for (level, of_level), (colour, _) in zip(_by_level(bars), _colours(bars), strict=True):
        coarse = _coarse(of_level)
        starts, counts = [start for start, _ in coarse], list(coarse.values())
        widths, bottoms = [end - start for start, end in coarse], [below.get(start, 0) for start in starts]
        axes.bar(
            starts,
            counts,
            widths,
            bottoms,
            align="edge",
            color=colour,
            edgecolor="white",
            linewidth=0.5,
            label=level_text(level),
        )
        below |= {start: bottom + count for start, bottom, count in zip(starts, bottoms, counts, strict=True)}
    _titled(axes, "How late messages came", "after they were expected", "messages")
    _spans(axes, bars)
    if bars:
        axes.legend(frameon=False, fontsize=9, title="level", title_fontsize=9)
    else:
        axes.text(0.5, 0.5, "nobody knows how late", transform=axes.transAxes, ha="center", color=_EXPECTED)


def _shares(axes: Any, bars: "Sequence[Bar]") -> None:
    """Which share of a level came within which time."""
    for (level, of_level), (colour, dashes) in zip(_by_level(bars), _colours(bars), strict=True):
        total, so_far, times, shares = sum(bar.count for bar in of_level), 0, [_SHOWN_FROM], [0.0]
        for bar in of_level:
            so_far += bar.count
            times.append(max(bar.end, _SHOWN_FROM))
            shares.append(100 * so_far / total)
        axes.plot(times, shares, color=colour, linestyle=dashes, linewidth=2, label=level_text(level))
    axes.set_ylim(0, 102)
    _titled(axes, "Share that had come", "after they were expected", "% of the level's messages")
    _spans(axes, bars)


def _timeline(axes: Any, line: "Timeline") -> None:
    """What came when, against what was expected when."""
    starts = [line.start + number * line.width for number in range(len(line.expected) + 1)]
    edges = [datetime.fromtimestamp(start / 1000, UTC) for start in starts]
    axes.stairs(line.delivered, edges, fill=True, color=_DELIVERED, label="delivered")
    axes.stairs(line.expected, edges, color=_EXPECTED, linewidth=1.4, label="expected")
    if any(line.lost):
        # Few among a million would not be seen as an area: each stretch that lost any has its mark.
        lost = [edge for edge, count in zip(edges, line.lost, strict=False) if count]
        axes.plot(
            lost, [0] * len(lost), "X", color=_LOST, markersize=9, clip_on=False, label=f"lost: {sum(line.lost):,}"
        )
    axes.set_ylim(bottom=0)
    _titled(axes, "Deliveries over time", "UTC", f"messages per {_span(line.width)}")
    _clock(axes)
    axes.legend(frameon=False, fontsize=9, ncols=3, loc="upper right", bbox_to_anchor=(1, 1.14))


def _coarse(bars: "Sequence[Bar]") -> dict[tuple[float, float], int]:
    """Counts between 1, 2, 5, 10 and so on, which are about equally wide on the axis; all below 1 ms is one."""
    counts: dict[tuple[float, float], int] = {}
    for bar in bars:
        at = bisect_right(_ROUND, bar.start)
        edges = (_ROUND[at - 1], _ROUND[at]) if at else (_SHOWN_FROM, _ROUND[0])
        counts[edges] = counts.get(edges, 0) + bar.count
    return counts


def _by_level(bars: "Sequence[Bar]") -> "list[tuple[str | None, list[Bar]]]":
    levels: dict[str | None, list[Bar]] = {}
    for bar in bars:
        levels.setdefault(bar.level, []).append(bar)
    return list(levels.items())


def _colours(bars: "Sequence[Bar]") -> list[tuple[str, str]]:
    return [_LEVELS[number % len(_LEVELS)] for number in range(len(_by_level(bars)))]


def _titled(axes: Any, title: str, below: str, beside: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
    axes.set_xlabel(below)
    axes.set_ylabel(beside)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if beside.startswith("messages"):
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value == int(value) else "")


def _spans(axes: Any, bars: "Sequence[Bar]") -> None:
    """An axis of powers of ten, from what is early to the latest."""
    axes.set_xscale("log")
    last = max((bar.end for bar in bars), default=10.0)
    axes.set_xlim(_SHOWN_FROM, max(last, 10.0) * 1.1)
    ticks = [ms for ms in (1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000) if ms <= last]
    axes.set_xticks(ticks, [_span(ms) for ms in ticks])
    axes.minorticks_off()


def _clock(axes: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415

    locator = AutoDateLocator(tz=UTC, maxticks=_MOST_TICKS)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))


def _span(ms: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if ms >= size)
    return f"{ms / size:g} {unit}"
