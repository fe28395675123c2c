"""A status as text or JSON. Pure: nothing is read, nothing is printed."""

from collections.abc import Iterator, Sequence
from typing import Any

import click
from delayctl.topology.duration import Duration
from delayctl.topology.figures import INTERVAL_MS, Age, Early
from delayctl.topology.model import Settings
from delayctl.topology.status import LevelStatus, Parked, Status
from delayctl.topology.status_shards import wholes
from delayctl.topology.verdict import SEVERITIES, Reason, is_healthy
from delayctl.topology.wording import plural, shorten, visible

WIDTH = 100
_HEADINGS = ("level", "waiting", "full", "in/s", "out/s", "oldest", "early", "ttl", "max-length")
_SHORTEST_NAME = 8
_UNKNOWN = "?"
_COLOURS = {"unhealthy": "red", "warning": "yellow", "note": "cyan"}
NEARLY_FULL = 0.8
_CLOSE_MS = 40_000  # How far apart the bounds of a fresh age are anyway.
_LEGEND = (
    f"Figures are up to {INTERVAL_MS // 1000} s old; rates are of the last minute, oldest is worked out from them.",
    "early: left before the time was up; 3+ means 3 or more, since brokers don't count why messages leave.",
)
_WHY_NOT_EXACT = "the broker does not count dead letters by queue and reason; at_least is what came in during the window and is not there any more"
_WHY_NO_EARLY = "the ttl is too short to tell, the queue is fed by other queues, or the broker has not said yet"
_WHY_AGE = {
    "samples": "worked out from what was published and what waits",
    "timestamp": "by the publisher's timestamp on the first message",
    "ttl": "not known; nothing waits longer than the ttl",
}


def status_text(status: Status, reasons: Sequence[Reason], *, source: str) -> str:
    """A status as people read it, in lines of a hundred columns but for the reasons."""
    return "\n".join(
        [
            _headline(status, reasons, source),
            "",
            *(_waits([level for level, _ in wholes(status.levels)]) if status.levels else ["No queue waits."]),
            "",
            f"parked: {_parked_text(status.parked)}",
            f"drift: {plural(status.differences, 'difference') if status.differences else 'none'}",
            *(["", *_LEGEND] if status.levels else []),
            *(["", *(line for reason in reasons for line in _reason_lines(reason))] if reasons else []),
        ]
    )


def _headline(status: Status, reasons: Sequence[Reason], source: str) -> str:
    healthy = is_healthy(tuple(reasons))
    word = click.style("healthy", fg="green") if healthy else click.style("not healthy", fg="red")
    counts = [(sum(r.severity == severity for r in reasons), severity) for severity in SEVERITIES[:2]]
    words = [plural(count, "reason" if severity == "unhealthy" else severity) for count, severity in counts if count]
    return f"{word}: {visible(f'{source} → virtual host {status.vhost}, RabbitMQ {status.version}')}" + (
        f" ({', '.join(words)})" if words else ""
    )


def _parked_text(parked: Sequence[Parked]) -> str:
    return ", ".join(f"{count_text(item.messages)} in {visible(item.queue)}" for item in parked) or "nowhere to park"


def _reason_lines(reason: Reason) -> Iterator[str]:
    yield f"{click.style(reason.severity.capitalize() + ':', fg=_COLOURS[reason.severity])} {visible(reason.what)}"
    if reason.fix:
        yield f"  fix: {visible(reason.fix)}"


def _waits(levels: Sequence[LevelStatus]) -> list[str]:
    """A line for each, but for the steps of the ladder that are there and empty: these share one."""
    idle = [level for level in levels if level.is_step and level.is_there and level.waiting == 0]
    shown = [_row(level) for level in levels if level not in idle]
    more = "more " if any(level.is_step for level in levels if level not in idle) else ""
    summary = [f"any: {plural(len(idle), f'{more}step')} of the ladder, with nothing in it"] if idle else []
    return [*(_table(shown) if shown else []), *summary]


def _row(level: LevelStatus) -> tuple[str, ...]:
    if not level.is_there:
        return (level.name, click.style("missing", fg="red"), *["-"] * 5, *limit_texts(level.settings))
    return (
        level.name,
        count_text(level.waiting),
        share_text(level.fullness),
        rate_text(level.rates.into if level.rates else None),
        rate_text(level.rates.out_of if level.rates else None),
        age_text(level),
        early_text(level.early),
        *limit_texts(level.settings),
    )


def limit_texts(settings: Settings) -> tuple[str, str]:
    """The TTL and the length that are in force."""
    ttl = "-" if settings.ttl is None else str(settings.ttl)
    return ttl, "-" if settings.max_length is None else f"{settings.max_length:,}"


def count_text(count: int | None) -> str:
    """A number of messages."""
    return _UNKNOWN if count is None else f"{count:,}"


def share_text(share: float | None) -> str:
    """How full a queue is."""
    if share is None:
        return "-"
    colour = "red" if share >= 1 else "yellow" if share >= NEARLY_FULL else None
    # Rounded down: a queue is called full only when it is.
    return click.style(f"{int(share * 100)}%", fg=colour) if colour else f"{int(share * 100)}%"


def rate_text(rate: float | None) -> str:
    """Messages per second."""
    return _UNKNOWN if rate is None else f"{rate:,.1f}"


def age_text(level: LevelStatus) -> str:
    """How long the first message has waited, as closely as it is known."""
    age = level.oldest
    if age is None:
        return _UNKNOWN if level.waiting is None else "-"
    if age.at_most_ms is None:
        return f">{_rounded(age.at_least_ms)}"
    if age.at_most_ms > 2 * age.at_least_ms + _CLOSE_MS:
        return f"≤{_rounded(age.at_most_ms)}"
    return f"~{_rounded((age.at_least_ms + age.at_most_ms) // 2)}"


def _rounded(ms: int) -> Duration:
    """As exact as an estimate deserves: seconds below ten minutes, then minutes."""
    grain = 1000 if ms < 600_000 else 60_000
    return Duration(max(1, round(ms / grain)) * grain)


def early_text(early: Early | None) -> str:
    """How many left before their time was up."""
    if early is None:
        return _UNKNOWN
    shown = f"{early.at_least:,}" + ("" if early.window is None else "+")
    return click.style(shown, fg="yellow") if early.at_least else shown


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns side by side: names to the left, figures to the right; long names give way."""
    cells = [_HEADINGS, *rows]
    widths = [max(len(click.unstyle(row[i])) for row in cells) for i in range(len(_HEADINGS))]
    widths[0] = min(widths[0], max(_SHORTEST_NAME, WIDTH - sum(widths[1:]) - 2 * len(widths[1:])))
    return [_line(row, widths) for row in cells]


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    name = shorten(row[0], widths[0]).ljust(widths[0])
    figures = (" " * (width - len(click.unstyle(cell))) + cell for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join((name, *figures))


def status_json(status: Status, reasons: Sequence[Reason]) -> dict[str, Any]:
    """A status as programs read it; what is not known is null."""
    return {
        "healthy": is_healthy(tuple(reasons)),
        "vhost": status.vhost,
        "rabbitmq_version": status.version,
        "figures_age_max_ms": INTERVAL_MS,
        "drift": status.differences > 0,
        "differences": status.differences,
        "levels": [
            {**_level_json(level), **({"shards": list(map(_shard_json, shards))} if shards else {})}
            for level, shards in wholes(status.levels)
        ],
        "parked": [{"queue": p.queue, "kind": p.kind, "messages": p.messages} for p in status.parked],
        "targets": [{"queue": t.queue, "messages": t.messages, "consumers": t.consumers} for t in status.targets],
        "reasons": [{"severity": r.severity, "what": r.what, "fix": r.fix} for r in reasons],
    }


def _level_json(level: LevelStatus) -> dict[str, Any]:
    return {
        "level": level.name,
        "queue": level.queue,
        "exists": level.is_there,
        "state": level.figures.state or None,
        "waiting": level.waiting,
        "dead_lettering": level.figures.dead_lettering if level.is_there else None,
        "fullness": None if level.fullness is None else round(level.fullness, 4),
        "rate_in": None if level.rates is None else round(level.rates.into, 3),
        "rate_out": None if level.rates is None else round(level.rates.out_of, 3),
        "oldest": _age_json(level.oldest),
        "early": _early_json(level.early),
        "consumers": level.figures.consumers,
        "effective": _settings_json(level.settings) if level.is_there else None,
        "wanted": _settings_json(level.wanted) if level.wanted else None,
        "policies": list(level.policies),
    }


def _shard_json(shard: LevelStatus) -> dict[str, Any]:
    return {**_level_json(shard), "node": shard.figures.node or None}


def _age_json(age: Age | None) -> dict[str, Any] | None:
    if age is None:
        return None
    return {
        "at_least_ms": age.at_least_ms,
        "at_most_ms": age.at_most_ms,
        "source": age.source,
        "how": _WHY_AGE[age.source],
    }


def _early_json(early: Early | None) -> dict[str, Any]:
    if early is None:
        return {"count": None, "at_least": None, "window_ms": None, "why": _WHY_NO_EARLY}
    if early.window is None:
        return {
            "count": 0,
            "at_least": 0,
            "window_ms": None,
            "why": "a queue that is never full, or refuses what comes",
        }
    return {"count": None, "at_least": early.at_least, "window_ms": early.window.ms, "why": _WHY_NOT_EXACT}


def _settings_json(settings: Settings) -> dict[str, Any]:
    return {
        "type": settings.type or "classic",
        "ttl_ms": settings.ttl.ms if settings.ttl else None,
        "max_length": settings.max_length,
        "max_bytes": settings.max_bytes,
        "overflow": settings.overflow or "drop-head",
        "dead_letter_exchange": settings.dead_letter_exchange,
    }
