"""A simulation as a picture: what waits over time, against the room there is, with what went wrong in colour."""

from pathlib import Path
from typing import Any

from delayctl.cli.simulate_views import Simulated
from delayctl.simulator.what_if_answer import Account
from delayctl.simulator.what_if_steps import ROUND_TIMES
from delayctl.simulator.what_if_traffic import Span
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError

FORMATS = (".svg", ".png", ".pdf")
_WAITING, _LIMIT, _TROUBLE, _AWAY = "#2f6db3", "#8a3ffc", "#d1495b", "#9aa5b1"
_MOST_TICKS = 8
_MOST_PANELS = 24
_NEAR = 0.4


def check_plot(file: str) -> None:
    """Make sure that a picture can be drawn and has a format, before anything takes time."""
    if Path(file).suffix.lower() not in FORMATS:
        raise BadOption(f"--plot {file} has none of the endings {', '.join(FORMATS)}", fix="name it backlog.svg, say")
    try:
        import matplotlib  # noqa: F401, PLC0415 (large, and needed for this alone)
    except ImportError as error:
        raise DelayctlError("matplotlib is not installed", fix="pip install 'delayctl[plot]'") from error


def plot(simulated: Simulated, file: str) -> None:
    """Draw one panel per queue that messages waited in, below each other and on one axis of time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = _panels(simulated)
    columns = 1 if len(panels) <= 6 else 2 if len(panels) <= 12 else 3
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(9 if columns == 1 else 4.6 * columns, 1.1 + 1.9 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for axes, (name, account) in zip(grid.flat, panels, strict=False):
        _panel(axes, name, account, simulated)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    for axes in list(grid.flat)[max(len(panels) - columns, 0) : len(panels)]:
        axes.tick_params(labelbottom=True)
    _legend(figure, simulated, panels)
    _save(figure, file)


def _panels(simulated: Simulated) -> list[tuple[str, Account]]:
    waited = [(f"level {name}" if name != a.queue.name else name, a) for name, a in simulated.waits]
    waited += [(name, account) for name, account in simulated.targets if account.peak]
    return waited[:_MOST_PANELS]


def _panel(axes: Any, name: str, account: Account, simulated: Simulated) -> None:
    series, end = account.series, simulated.answer.end
    times = [min(number * series.interval, end) for number in range(len(series.most) + 1)]
    lengths = [*series.most, series.most[-1]]
    limit = _near_limit(account, simulated)
    axes.fill_between(times, lengths, step="post", color=_WAITING, alpha=0.25, linewidth=0)
    axes.step(times, lengths, where="post", color=_WAITING, linewidth=1.3)
    if limit is not None:
        axes.axhline(limit, color=_LIMIT, linewidth=1.1, linestyle="--")
    for occurrence in (account.left_early, account.refused, account.lost):
        for span in occurrence.stretches:
            until = max(span.end, span.start + series.interval)
            axes.axvspan(span.start, until, color=_TROUBLE, alpha=0.14, linewidth=0)
    for span in _away(account, simulated):
        axes.axvspan(span.start, min(span.end, end), facecolor="none", edgecolor=_AWAY, hatch="////", linewidth=0)
    axes.set_title(f"{name}   {_caption(account, simulated)}", loc="left", fontsize=9)
    axes.set_xlim(0, end)
    axes.set_ylim(0, max(account.peak, 1, limit or 0) * 1.12)
    axes.yaxis.set_major_formatter(lambda value, _: _short(value))
    axes.set_xticks(*_ticks(end))
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _near_limit(account: Account, simulated: Simulated) -> int | None:
    """The limit of a queue that comes near it: far below, the line would make the rest small."""
    limit = simulated.limit_of(account)
    return limit.messages if limit is not None and account.peak > _NEAR * limit.messages else None


def _caption(account: Account, simulated: Simulated) -> str:
    limit = simulated.limit_of(account)
    parts = [f"most {account.peak:,}" + (f" of {limit.messages:,}" if limit is not None else "")]
    leaving = "early" if account.queue.settings.ttl is not None else "pushed out"
    troubles = ((account.left_early, leaving), (account.refused, "refused"), (account.lost, "lost"))
    parts += [f"{occurrence.count:,} {word}" for occurrence, word in troubles if occurrence.count]
    return ", ".join(parts)


def _away(account: Account, simulated: Simulated) -> tuple[Span, ...]:
    is_wait = account.queue.settings.ttl is not None
    return simulated.scenario.broker_away if is_wait else simulated.scenario.consumers_away_from(account.queue.name)


def _legend(figure: Any, simulated: Simulated, panels: list[tuple[str, Account]]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415

    handles: list[Any] = [Patch(color=_WAITING, alpha=0.4, label="messages waiting")]
    accounts = [account for _, account in panels]
    if any(_near_limit(account, simulated) is not None for account in accounts):
        handles.append(Line2D([], [], color=_LIMIT, linestyle="--", label="limit"))
    if any(a.left_early.count or a.refused.count or a.lost.count for a in accounts):
        handles.append(Patch(color=_TROUBLE, alpha=0.3, label="leaving early, refused or lost"))
    if any(_away(a, simulated) for a in accounts):
        handles.append(Patch(facecolor="none", edgecolor=_AWAY, hatch="////", label="broker or consumers away"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False)
    figure.suptitle(f"{Path(simulated.file).name}: what waits over time", fontsize=10)


def _ticks(end: int) -> tuple[list[int], list[str]]:
    interval = next((tick for tick in ROUND_TIMES if end <= tick * _MOST_TICKS), max(end // _MOST_TICKS, 1))
    times = list(range(0, end + 1, interval))
    return times, [str(Duration(time)) for time in times]


def _short(count: float) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:g}{unit}"
    return f"{count:g}"


def _save(figure: Any, file: str) -> None:
    # Without a date or a random salt, the same answer is the same picture.
    import matplotlib as mpl  # noqa: PLC0415

    suffix = Path(file).suffix.lower()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix, {})
    try:
        with mpl.rc_context({"svg.hashsalt": "delayctl"}):
            figure.savefig(file, dpi=150, metadata=metadata)
    except OSError as error:
        fix = "name a place that can be written"
        raise DelayctlError(f"the picture can't be written: {error.strerror}", where=file, fix=fix) from error
