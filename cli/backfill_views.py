"""A backfill as text and as JSON: what it would do, and what it did."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from delayctl.topology.duration import Duration
from delayctl.topology.wording import plural, quoted

if TYPE_CHECKING:
    from delayctl.spark.estimate import Estimate, LevelForecast, Unrouted
    from delayctl.spark.outcome import Outcome

_MOST_HOURS, _MOST_REASONS = 24, 20
_BAR = 40
_UNITS = (("s", 1), ("m", 60), ("h", 3_600))
_EXACT = 1e-6


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
    pace = f"at {rate_text(found.rate)}" if found.rate else "as fast as the broker takes it"
    lines = [f"Backfill of {scene.source} into {scene.topology} at {scene.broker}, {pace}", ""]
    lines += [f"  {count:>12,}  {what}" for count, what in _counts(found, scene)]
    lines += [f"  {count:>12,}  {what}" for count, what in _rejected(found)]
    lines += [_unrouted(found.unrouted)] if found.unrouted.rows else []
    return "\n".join(lines + (_course(found) if found.to_send else []))


def rate_text(per_s: float) -> str:
    """A rate by a time that gives it a whole number, where there is one: 5,000/s, 10/m, 1/h."""
    rates = [(per_s * seconds, unit) for unit, seconds in _UNITS]
    whole = next(((rate, unit) for rate, unit in rates if rate > _EXACT and abs(rate - round(rate)) < _EXACT), None)
    if whole is not None:
        return f"{round(whole[0]):,}/{whole[1]}"
    rate, unit = next((each for each in rates if each[0] >= 1), rates[-1])
    return f"{rate:,.2f}/{unit}"


def _rejected(found: "Estimate") -> list[tuple[int, str]]:
    """The most frequent reasons, and how many there are beside them."""
    in_order = sorted(found.rejected.items(), key=lambda each: (-each[1], each[0]))
    shown, left = in_order[:_MOST_REASONS], in_order[_MOST_REASONS:]
    reasons = len(left) + found.more.reasons
    rows = sum(count for _, count in left) + found.more.rows
    lines = [(count, f"rejected: {reason}") for reason, count in shown]
    return [*lines, *([(rows, f"rejected: … and {plural(reasons, 'more reason')}")] if reasons else [])]


def _unrouted(found: "Unrouted") -> str:
    what = "row has a routing key" if found.rows == 1 else "rows have a routing key"
    return (
        f"\nWarning: {found.rows:,} {what} that no route takes, such as {quoted(found.example or '')}: "
        "what has waited with such a key is parked as unrouted, and nobody gets it."
    )


def _course(found: "Estimate") -> list[str]:
    """How it goes on from there: through the levels, hour by hour."""
    assumed = "" if found.rate else ", if the broker takes 10,000/s"
    takes = f"Takes {Duration(_rounded(found.takes_ms))}{assumed}."
    warnings = [text for level in found.overflowing for text in _warnings(level)]
    return ["", *_levels(found.levels), "", *_hours(found), "", *warnings, takes]


def _estimate_json(found: "Estimate") -> dict[str, Any]:
    return {
        "to_send": found.to_send,
        "overdue": found.overdue,
        "beyond": found.beyond,
        "hastened": found.hastened,
        "rejected": dict(found.rejected),
        "rejected_otherwise": {"reasons": found.more.reasons, "rows": found.more.rows},
        "unrouted": {"rows": found.unrouted.rows, "example": found.unrouted.example},
        "confirmed_before": found.confirmed_before,
        "levels": [
            {
                "level": level.room.level,
                "rows": level.rows,
                "waiting": level.room.waiting,
                "peak": level.peak,
                "max_length": level.room.max_length,
                "overflow": level.overflow,
                "peak_bytes": level.peak_bytes if level.room.max_bytes is not None else None,
                "max_bytes": level.room.max_bytes,
                "overflow_bytes": level.overflow_bytes,
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
        (found.hastened, "of these due sooner than any level waits, by --rounding: they come out at once, early"),
        (found.confirmed_before, "confirmed before, not sent again"),
        (found.beyond, f"due later than the longest level ({scene.longest}) waits: {late}"),
    ]
    return [(count, what) for number, (count, what) in enumerate(counts) if count or not number]


def _levels(levels: "Sequence[LevelForecast]") -> list[str]:
    head = f"  {'level':<10}{'rows':>12}{'waiting now':>14}{'most at once':>14}{'holds':>12}"
    return [head] + [
        f"  {level.room.level:<10}{level.rows:>12,}{_number(level.room.waiting):>14}{level.peak:>14,}"
        f"{_number(level.room.max_length):>12}{_excess(level)}"
        for level in levels
    ]


def _excess(level: "LevelForecast") -> str:
    too_many = f"  {level.overflow:,} too many" if level.rows and level.overflow else ""
    if level.room.max_bytes is None:
        return too_many
    return f"{too_many}  {level.peak_bytes:,} of {level.room.max_bytes:,} bytes"


def _hours(found: "Estimate") -> list[str]:
    shown = list(found.hours.items())[:_MOST_HOURS]
    most = max((rows for _, rows in shown), default=0)
    lines = ["  comes out in the hour from (UTC)"] if shown else []
    for hour, rows in shown:
        lines.append(f"  {_iso(hour)[:16].replace('T', ' ')}  {rows:>12,}  {'#' * max(1, rows * _BAR // most)}")
    if len(found.hours) > len(shown):
        lines.append(f"  … and {plural(len(found.hours) - len(shown), 'more hour')}")
    return lines


def _warnings(level: "LevelForecast") -> Iterator[str]:
    what = (
        "the broker refuses them, and the job waits" if level.room.rejects else "as many of the oldest leave it early"
    )
    too_many = [f"{level.overflow:,}"] if level.overflow else []
    too_many += [f"{level.overflow_bytes:,} bytes of bodies (max_bytes)"] if level.overflow_bytes else []
    for each in too_many:
        yield f"Level {level.room.level} has no room for {each} at the worst moment: {what}."


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def _rounded(ms: int) -> int:
    """Nobody wants the milliseconds of seconds."""
    return ms if ms < 2_000 else ms // 1000 * 1000
