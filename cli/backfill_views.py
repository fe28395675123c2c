"""A backfill as text and as JSON: what it would do, and what it did."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from delayctl.topology.duration import Duration
from delayctl.topology.wording import plural

if TYPE_CHECKING:
    from delayctl.spark.estimate import Estimate, LevelForecast
    from delayctl.spark.outcome import Outcome

_MOST_HOURS = 24
_BAR = 40


@dataclass(frozen=True, slots=True)
class Scene:
    """What a backfill is called in sentences."""

    source: str
    topology: str
    broker: str
    longest: Duration
    beyond: str
    checkpoint: str


def estimate_text(found: "Estimate", scene: Scene) -> str:
    """What a backfill would do."""
    pace = f"at {found.rate:,.0f}/s" if found.rate else "as fast as the broker takes it"
    lines = [f"Backfill of {scene.source} into {scene.topology} at {scene.broker}, {pace}", ""]
    lines += [f"  {count:>12,}  {what}" for count, what in _counts(found, scene)]
    lines += [f"  {count:>12,}  rejected: {reason}" for reason, count in sorted(found.rejected.items())]
    return "\n".join(lines + (_course(found) if found.to_send else []))


def _course(found: "Estimate") -> list[str]:
    """How it goes on from there: through the levels, hour by hour."""
    assumed = "" if found.rate else ", if the broker takes 10,000/s"
    takes = f"Takes {Duration(_rounded(found.takes_ms))}{assumed}."
    warnings = [_warning(level) for level in found.overflowing]
    return ["", *_levels(found.levels), "", *_hours(found), "", *warnings, takes]


def _estimate_json(found: "Estimate") -> dict[str, Any]:
    return {
        "to_send": found.to_send,
        "overdue": found.overdue,
        "beyond": found.beyond,
        "rejected": dict(found.rejected),
        "confirmed_before": found.confirmed_before,
        "levels": [
            {
                "level": level.room.level,
                "rows": level.rows,
                "waiting": level.room.waiting,
                "peak": level.peak,
                "max_length": level.room.max_length,
                "overflow": level.overflow,
                "when_full": "reject-publish" if level.room.rejects else "drop-head",
            }
            for level in found.levels
        ],
        "hours": [{"hour": _iso(hour), "rows": rows} for hour, rows in found.hours.items()],
        "takes_ms": found.takes_ms,
        "rate": found.rate,
    }


def nothing_text(found: "Estimate", scene: Scene) -> str:
    """That there is nothing to do, and why."""
    if not found.confirmed_before:
        return f"Nothing to do: there are no such rows in {scene.source}."
    confirmed = plural(found.confirmed_before, "message")
    return f"Nothing to do: all is confirmed, {confirmed}; the ledger is in {scene.checkpoint}/ledger."


def outcome_text(done: "Outcome", confirmed_before: int, scene: Scene) -> str:
    """How a run ended."""
    account, place = done.account, scene.checkpoint
    what = f"{done.in_ledger:,} confirmed" if done.errors else str(account)
    lines = [
        f"{done.state.capitalize()} after {Duration(_rounded(done.took_ms))} (run {done.run}): {what}.",
        f"In all {confirmed_before + done.in_ledger:,} confirmed; the ledger is in {place}/ledger.",
    ]
    lines += [f"  {count:>12,}  {reason}" for reason, count in done.reasons]
    if account.refused:
        lines.append(f"The rows that were refused are in {place}/rejects, each with the reason.")
    if account.later:
        lines.append(
            f"{plural(account.later, 'row')} due later put aside in {place}/later; run it again when it is time."
        )
    for error, fix in done.errors:
        lines += [f"Error: {error}", *([f"  fix: {fix}"] if fix else [])]
    if done.state != "done":
        lines.append("Run the same command again: only what is not confirmed is sent.")
    return "\n".join(lines)


def answer_json(found: "Estimate", done: "Outcome | None", scene: Scene) -> dict[str, Any]:
    """The whole for programs; `outcome` is null where nothing was sent."""
    outcome = None if done is None else _outcome_json(done)
    return {
        "source": scene.source,
        "checkpoint": scene.checkpoint,
        "confirmed": found.confirmed_before + (0 if done is None else done.in_ledger),
        "estimate": _estimate_json(found),
        "outcome": outcome,
    }


def _outcome_json(done: "Outcome") -> dict[str, Any]:
    account = done.account
    counts = {name: getattr(account, name) for name in account.__dataclass_fields__}
    return {
        "run": done.run,
        "state": done.state,
        **counts,
        "sent": account.sent,
        "in_ledger": done.in_ledger,
        "took_ms": done.took_ms,
        "reasons": [{"reason": reason, "rows": count} for reason, count in done.reasons],
        "errors": [{"error": what, "fix": fix} for what, fix in done.errors],
    }


def _counts(found: "Estimate", scene: Scene) -> list[tuple[int, str]]:
    late = {"refuse": "rejected", "later": "put aside for a later run"}[scene.beyond]
    counts = [
        (found.to_send, "to send"),
        (found.overdue, "of these overdue: they come out at once"),
        (found.confirmed_before, "confirmed before, not sent again"),
        (found.beyond, f"due later than the longest level ({scene.longest}) waits: {late}"),
    ]
    return [(count, what) for number, (count, what) in enumerate(counts) if count or not number]


def _levels(levels: "Sequence[LevelForecast]") -> list[str]:
    head = f"  {'level':<10}{'rows':>12}{'waiting now':>14}{'most at once':>14}{'holds':>12}"
    return [head] + [
        f"  {level.room.level:<10}{level.rows:>12,}{_number(level.room.waiting):>14}{level.peak:>14,}"
        f"{_number(level.room.max_length):>12}" + (f"  {level.overflow:,} too many" if level.overflow else "")
        for level in levels
    ]


def _hours(found: "Estimate") -> list[str]:
    shown = list(found.hours.items())[:_MOST_HOURS]
    most = max((rows for _, rows in shown), default=0)
    lines = ["  comes out in the hour from (UTC)"] if shown else []
    for hour, rows in shown:
        lines.append(f"  {_iso(hour)[:16].replace('T', ' ')}  {rows:>12,}  {'#' * max(1, rows * _BAR // most)}")
    if len(found.hours) > len(shown):
        lines.append(f"  … and {plural(len(found.hours) - len(shown), 'more hour')}")
    return lines


def _warning(level: "LevelForecast") -> str:
    what = (
        "the broker refuses them, and the job waits" if level.room.rejects else "as many of the oldest leave it early"
    )
    return f"Level {level.room.level} has no room for {level.overflow:,} at the worst moment: {what}."


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def _rounded(ms: int) -> int:
    """Nobody wants the milliseconds of seconds."""
    return ms if ms < 2_000 else ms // 1000 * 1000
