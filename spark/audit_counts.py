"""Counts of a judged join: everything is added up by Spark, and what comes back is small whatever was audited."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from delayctl.spark.audit import (
    Audit,
    LevelTally,
    Lying,
    Records,
    Rules,
    Shown,
    Spread,
    Timeline,
    bars_of,
    by_wait,
    merged,
    tally_of,
    timeline_of,
    width_for,
)
from delayctl.spark.audit_judge import rounded
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)

KINDS = ("lost", "untaken", "duplicated", "early", "late", "unknown")
_LATENESS = ("after_due", "after_expected")
_COLUMNS = ("message_id", "level", "due", "expected", "received", "copies")


def audit_of(judged: DataFrame, records: Records, rules: Rules, *, show: Sequence[str], limit: int) -> Audit:
    """Add everything up; `show` lists up to `limit` messages of each of these kinds."""
    rows = [row.asDict() for row in judged.groupBy("is_sent", "level").agg(*_aggregates(records.last)).collect()]
    spreads = _spreads(judged)
    sent = sorted((row for row in rows if row["is_sent"]), key=lambda row: by_wait(row["level"]))
    levels = tuple(LevelTally(row["level"], tally_of([row], *spreads.of(row["level"]))) for row in sent)
    return Audit(
        rules,
        ledger_rows=sum(row["rows"] for row in sent),
        total=tally_of(sent, *spreads.of_all()),
        levels=levels,
        unknown=sum(row["unknown"] for row in rows),
        records=replace(records, retries=sum((row["deliveries"] or 0) - row["copies"] for row in rows)),
        lying=_lying(judged) if any(row["lying"] for row in sent) else (),
        lost_after_last_record=sum(row["lost_after"] for row in sent),
        bars=tuple(bar for each in levels for bar in bars_of(each.level, spreads.of(each.level)[1])),
        timeline=_timeline(judged, sent),
        shown=tuple(message for kind in show for message in _shown(judged, kind, limit)),
    )


def of_kind(judged: DataFrame, kind: str) -> DataFrame:
    """The messages of one of KINDS; times in milliseconds since 1970."""
    return judged.filter(F.col(f"is_{kind}")).select(*_COLUMNS)


def _aggregates(last_record: int | None) -> list[Column]:
    flags = (
        "delivered",
        "untaken",
        "lost",
        "waiting",
        "duplicated",
        "early",
        "late",
        "before_due",
        "expedited",
        "measured",
        "unknown",
    )
    is_delivered = F.col("is_delivered")
    return [
        F.count_if("is_sent").alias("messages"),
        *(F.count_if(f"is_{flag}").alias(flag) for flag in flags),
        F.count_if(F.size("lying") > 0).alias("lying"),
        F.count_if(F.col("is_lost") & (F.col("expected") > (last_record or 0))).alias("lost_after"),
        F.sum(F.when(is_delivered, F.col("extra"))).alias("extra_copies"),
        F.sum(F.when(is_delivered, F.col("given_again"))).alias("given_again"),
        *(F.sum(name).alias(name) for name in ("rows", "deliveries", "copies")),
        *(F.max(name).alias(f"{name}_most") for name in _LATENESS),
        F.min(F.when(_is_in_sight(), F.least("expected", "received"))).alias("begin"),
        F.max(F.when(_is_in_sight(), F.greatest("expected", "received"))).alias("end"),
    ]


def _is_in_sight() -> Column:
    """What has a place on the timeline: all but what still waits or is not ours."""
    return F.col("is_delivered") | F.col("is_lost")


def _lying(judged: DataFrame) -> tuple[Lying, ...]:
    """The queues that messages of the ledger lie in."""
    each = judged.filter("is_sent").select(F.explode("lying").alias("queue"), "is_untaken")
    counted = each.groupBy("queue").agg(F.count("*").alias("messages"), F.count_if("is_untaken").alias("untaken"))
    return tuple(Lying(**row.asDict()) for row in counted.orderBy("queue").collect())


class _Spreads:
    """How late the messages of each level were, after they were due and after they were expected."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._found: dict[tuple[str | None, str], dict[int, int]] = {}
        for row in rows:
            self._found.setdefault((row["level"], row["measure"]), {})[row["lateness"]] = row["count"]

    def of(self, level: str | None) -> tuple[Spread, Spread]:
        """Those of a level."""
        due, expected = (self._found.get((level, measure), {}) for measure in _LATENESS)
        return due, expected

    def of_all(self) -> tuple[Spread, Spread]:
        """Those of all levels together."""
        due, expected = (merged(s for (_, each), s in self._found.items() if each == m) for m in _LATENESS)
        return due, expected


def _spreads(judged: DataFrame) -> _Spreads:
    """Counts per lateness, rounded: at most some thousand rows per level, however many messages there are."""
    pairs = [F.struct(F.lit(name).alias("measure"), rounded(F.col(name)).alias("lateness")) for name in _LATENESS]
    points = judged.filter("is_measured").select("level", F.explode(F.array(*pairs)).alias("point"))
    return _Spreads(points.select("level", "point.*").groupBy("level", "measure", "lateness").count().collect())


def _timeline(judged: DataFrame, sent: Sequence[dict[str, Any]]) -> Timeline:
    seen = [row for row in sent if row["begin"] is not None]
    if not seen:
        return Timeline()
    begin, end = min(row["begin"] for row in seen), max(row["end"] for row in seen)
    width = width_for(end - begin)
    start = begin - begin % width
    moments = {
        "expected": F.when(_is_in_sight(), F.col("expected")),
        "delivered": F.when(F.col("is_delivered"), F.col("received")),
        "lost": F.when(F.col("is_lost"), F.col("expected")),
    }
    pairs = [F.struct(F.lit(name).alias("series"), moment.alias("at")) for name, moment in moments.items()]
    points = judged.select(F.explode(F.array(*pairs)).alias("point")).select("point.*").filter("at is not null")
    stretch = F.floor((F.col("at") - start) / width).alias("stretch")
    rows = points.groupBy("series", stretch).count().collect()
    return timeline_of(start, end, width, ((row["series"], row["stretch"], row["count"]) for row in rows))


def _shown(judged: DataFrame, kind: str, limit: int) -> list[Shown]:
    rows = of_kind(judged, kind).orderBy("expected", "received", "message_id").limit(limit).collect()
    return [Shown(kind, **row.asDict()) for row in rows]
