"""An audit as text or JSON, and the words that reports share. Pure: nothing is read, nothing is printed."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import click
from delayctl.topology.duration import Duration
from delayctl.topology.wording import plural, shorten

if TYPE_CHECKING:  # Spark's room is entered only by the command that needs it.
    from delayctl.spark.audit import Audit, Lateness, Shown, Tally

Weight = Literal["bad", "notice", "fact"]
COUNTS = ("messages", "delivered", "untaken", "lost", "waiting", "duplicated", "early", "late")
PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "most": "max"}
NOT_KNOWN = "–"
_COLOURS = {"bad": "red", "notice": "yellow", "fact": "cyan"}
_MEASURED = {"after_expected": "after it was expected", "after_due": "after it was due"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know, and how much it weighs."""

    weight: Weight
    text: str


def audit_text(audit: "Audit", *, ledger: str) -> str:
    """An audit as people read it."""
    lines = [
        f"{_verdict(audit)}: {ledger}, {plural(audit.total.messages, 'message')}, as of {moment_text(audit.rules.moment)}",
        "",
        *table_lines(("level", *COUNTS), counts_rows(audit)),
        "",
        *(line for name in _MEASURED for line in _lateness_lines(audit, name)),
        *(f"{click.style(f'{each.weight}:', fg=_COLOURS[each.weight])} {each.text}" for each in findings(audit)),
    ]
    return "\n".join([*lines, *_shown_lines(audit.shown)])


def audit_json(audit: "Audit", *, ledger: str) -> dict[str, Any]:
    """An audit as programs read it; times are milliseconds since 1970, lateness is in milliseconds."""
    return {
        "ledger": ledger,
        "clean": audit.is_clean,
        "rules_ms": asdict(audit.rules),
        "ledger_rows": audit.ledger_rows,
        "total": asdict(audit.total),
        "levels": [{"level": each.level, **asdict(each.tally)} for each in audit.levels],
        "unknown": audit.unknown,
        "lying": [asdict(each) for each in audit.lying],
        "lost_after_last_record": audit.lost_after_last_record,
        "records": asdict(audit.records),
        "findings": [asdict(each) for each in findings(audit)],
        "lateness_bars": [{**asdict(bar), "start": bar.start if bar.start >= 0 else None} for bar in audit.bars],
        "timeline": asdict(audit.timeline),
        "shown": [asdict(each) for each in audit.shown],
    }


def verdict_words(audit: "Audit") -> str:
    """The answer in a few words."""
    total = audit.total
    bad = [(total.lost, "lost"), (total.untaken, "untaken"), (total.early, "early")]
    return ", ".join(f"{count:,} {word}" for count, word in bad if count) or "nothing lost, nothing early"


def _verdict(audit: "Audit") -> str:
    return click.style(verdict_words(audit), fg="green" if audit.is_clean else "red")


def findings(audit: "Audit") -> tuple[Finding, ...]:
    """What is worth a sentence, the worst first."""
    found = (*_of_the_lost(audit), *_of_the_lying(audit), *_of_the_delivered(audit), *_of_the_records(audit))
    return tuple(sorted(found, key=lambda each: tuple(_COLOURS).index(each.weight)))


def _of_the_lost(audit: "Audit") -> Iterator[Finding]:
    total, records = audit.total, audit.records
    if total.lost:
        grace = Duration(audit.rules.grace)
        yield Finding(
            "bad",
            f"{plural(total.lost, 'message')} should have come {grace} ago or earlier, and nobody recorded "
            f"{'it' if total.lost == 1 else 'them'}: see with --look-into QUEUE what lies in the unrouted and parking queues",
        )
    if audit.lost_after_last_record:
        yield Finding(
            "notice",
            f"{audit.lost_after_last_record:,} of the lost were expected after the last record "
            f"({moment_text(records.last)}): if nobody recorded then, they may be fine; see --until",
        )
    if total.early:
        yield Finding(
            "bad",
            f"{plural(total.early, 'message')} came before the broker should have let {'it' if total.early == 1 else 'them'} out: "
            "a full delay queue pushes its oldest out (see delayctl status), or clocks differ (see --tolerance)",
        )


def _of_the_lying(audit: "Audit") -> Iterator[Finding]:
    untaken = ", ".join(f"{each.untaken:,} in {each.queue}" for each in audit.lying if each.untaken)
    if untaken:
        yield Finding(
            "bad",
            f"messages lie in a queue, and no consumer recorded them: {untaken}; they were left there, and delayctl redrive "
            "brings back what is parked",
        )
    taken = ", ".join(f"{left:,} in {each.queue}" for each in audit.lying if (left := each.messages - each.untaken))
    if taken:
        yield Finding("notice", f"consumers recorded messages that lie in a queue now, given up or as copies: {taken}")


def _of_the_delivered(audit: "Audit") -> Iterator[Finding]:
    total = audit.total
    if total.duplicated:
        sent_again = total.extra_copies - total.given_again
        parts = [(total.given_again, "given again by the broker"), (sent_again, "sent more than once")]
        why = ", ".join(f"{count:,} {words}" for count, words in parts if count)
        yield Finding(
            "notice",
            f"{plural(total.duplicated, 'message')} came more than once, "
            f"{plural(total.extra_copies, 'copy')} too many: {why}; each with the same message id",
        )
    if total.late:
        yield Finding(
            "notice", f"{plural(total.late, 'message')} came more than {Duration(audit.rules.late_after)} late"
        )
    if total.before_due > total.early:
        yield Finding(
            "fact",
            f"{total.before_due:,} came before they were due: their levels let them out before that, or they are early",
        )
    if total.expedited:
        yield Finding(
            "fact",
            f"{plural(total.expedited, 'message')} {'was' if total.expedited == 1 else 'were'} expedited: let out on purpose, "
            "and neither early nor measured",
        )
    if audit.sent_twice:
        yield Finding("fact", f"{plural(audit.sent_twice, 'row')} of the ledger confirm a message again")


def _of_the_records(audit: "Audit") -> Iterator[Finding]:
    records = audit.records
    if records.broken:
        files = ", ".join(f"{each.file} ({each.lines:,})" for each in records.broken_files)
        yield Finding("notice", f"{plural(records.broken, 'line')} of the record can't be read: {files}")
    if audit.unknown:
        yield Finding("notice", f"{plural(audit.unknown, 'message id')} recorded that the ledger does not know")
    if records.without_id:
        yield Finding("notice", f"{plural(records.without_id, 'delivery')} recorded without a message id")
    if records.retries:
        yield Finding(
            "fact", f"{plural(records.retries, 'further attempt')} of messages that had failed; no duplicates"
        )
    if records.drained:
        yield Finding(
            "notice",
            f"{plural(records.drained, 'message')} taken out of a queue by an audit of an earlier release, and by no consumer",
        )


def counts_rows(audit: "Audit") -> list[tuple[str, ...]]:
    """The table of counts: a row per level, then all."""
    return [(name, *(f"{getattr(tally, count):,}" for count in COUNTS)) for name, tally in _named(audit)]


def lateness_rows(audit: "Audit", name: str) -> list[tuple[str, ...]]:
    """The table of one lateness: a row per level, then all."""
    return [(level, *_percentiles(getattr(tally, name))) for level, tally in _named(audit)]


def _named(audit: "Audit") -> "list[tuple[str, Tally]]":
    levels = [(level_text(each.level), each.tally) for each in audit.levels]
    return [*levels, ("all", audit.total)]


def _percentiles(lateness: "Lateness") -> tuple[str, ...]:
    return tuple(span_text(getattr(lateness, name)) for name in PERCENTILES)


def _lateness_lines(audit: "Audit", name: str) -> list[str]:
    return [*table_lines((_MEASURED[name], *PERCENTILES.values()), lateness_rows(audit, name)), ""]


def _shown_lines(shown: "Sequence[Shown]") -> Iterator[str]:
    kind = ""
    for each in shown:
        if each.kind != kind:
            kind = each.kind
            yield from ("", f"{kind}:")
        times = (f"{word} {moment_text(at)}" for word, at in _times(each) if at is not None)
        copies = [plural(each.copies, "copy")] if each.copies > 1 else []
        yield "  " + ", ".join([shorten(each.message_id, 80), level_text(each.level), *times, *copies])


def _times(shown: "Shown") -> tuple[tuple[str, int | None], ...]:
    return ("due", shown.due), ("expected", shown.expected), ("received", shown.received)


def level_text(level: str | None) -> str:
    """A level as people name it."""
    return "at once" if level is None else level


def span_text(ms: int | None) -> str:
    """A lateness, in the unit that suits it."""
    if ms is None:
        return NOT_KNOWN
    sign, size = ("-" if ms < 0 else ""), abs(ms)
    if size < 1_000:
        return f"{sign}{size} ms"
    if size < 60_000:
        return f"{sign}{size / 1000:.2f} s"
    return f"{sign}{Duration(size // 1000 * 1000)}"


def moment_text(ms: int | None) -> str:
    """A moment, UTC."""
    if ms is None:
        return NOT_KNOWN
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in columns: names to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    return [
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in (headings, *rows)
    ]
