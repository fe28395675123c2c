"""Looks at the rows of a backfill before anything is sent."""

from collections.abc import Sequence

from delayctl.publishers.choice import Rounding, Ways
from delayctl.spark.backfill_job import SAME_KEY
from delayctl.spark.choose import Chooser
from delayctl.spark.columns import BODY, DELAY, DUE, ID, KEY, LEVEL, REASON
from delayctl.spark.estimate import Estimate, Room, Slice, estimate
from pyspark.sql import Column, DataFrame
from pyspark.sql import Row as Counted
from pyspark.sql import functions as f

_PLACE, _WAIT, _ROWS = "place", "wait", "rows"
# Waits are told apart to a thousandth of themselves: a year has 26 thousand of them, and a second has all its own.
_EXACT_BITS = 10


def look_ahead(
    messages: DataFrame,
    confirmed_before: int,
    ways: Ways,
    rooms: Sequence[Room],
    *,
    rounding: Rounding,
    now_ms: int,
    rate: float | None,
) -> Estimate:
    """Count the rows by when they are due, in one go, and play the backfill through."""
    how = next(name for name in (DUE, DELAY, LEVEL) if name in messages.columns)
    marked = messages.select(_reason(how).alias(REASON), *_places(messages, how, now_ms))
    is_good = f.col(REASON).isNull()
    counted = (
        marked.groupBy(REASON, f.when(is_good, f.col(_PLACE)).alias(_PLACE))
        .agg(f.count("*").alias(_ROWS), f.avg(_WAIT).alias(_WAIT))
        .collect()
    )
    return estimate(
        [_slice(row, how, now_ms) for row in counted if row[REASON] is None],
        rooms,
        Chooser(ways, rounding),
        now_ms=now_ms,
        rate=rate,
        rejected={row[REASON]: row[_ROWS] for row in counted if row[REASON] is not None},
        confirmed_before=confirmed_before,
    )


def _reason(how: str) -> Column:
    """Why a row is bad, as far as it shows without sending it."""
    checks = (
        (f.col(REASON).isNotNull(), SAME_KEY),
        (f.col(ID).isNull() | (f.col(ID) == ""), "its message id, or a part of its key, is null or empty"),
        (f.col(KEY).isNull(), "routing_key is null"),
        (f.col(BODY).isNull(), "body is null"),
        (f.col(how).isNull(), f"{how} is null"),
    )
    found = f.lit(None).cast("string")
    for is_so, reason in reversed(checks):
        found = f.when(is_so, f.lit(reason)).otherwise(found)
    return found


def _places(messages: DataFrame, how: str, now_ms: int) -> tuple[Column, Column]:
    """Where a row belongs among its like, and how long it waits in milliseconds, where that is a number."""
    if how == DUE:
        wait = f.expr(f"unix_micros({DUE}) div 1000") - f.lit(now_ms)
    elif how == DELAY and not _is_text(messages, DELAY):
        span = f"CAST({DELAY} AS INTERVAL DAY TO SECOND)"  # Spark takes out of INTERVAL HOUR no minutes.
        wait = f.expr(f"cast(extract(SECOND FROM {span}) * 1000 as bigint)") + f.expr(
            f"(extract(DAY FROM {span}) * 86400L + extract(HOUR FROM {span}) * 3600L"
            f" + extract(MINUTE FROM {span}) * 60L) * 1000L"
        )
    else:
        return f.col(how).alias(_PLACE), f.lit(None).cast("bigint").alias(_WAIT)
    bits = f.greatest(f.floor(f.log2(f.greatest(wait, f.lit(1)))) - _EXACT_BITS, f.lit(0)).cast("int")
    place = f.when(wait > 0, f.call_function("shiftright", wait, bits) + f.lit(1 << 48) * bits).otherwise(-1)
    return place.alias(_PLACE), wait.alias(_WAIT)


def _is_text(messages: DataFrame, name: str) -> bool:
    return messages.schema[name].dataType.simpleString() == "string"


def _slice(row: Counted, how: str, now_ms: int) -> Slice:
    if how == DUE:
        return Slice(row[_ROWS], due_ms=now_ms + round(row[_WAIT]))
    if how == LEVEL:
        return Slice(row[_ROWS], level=row[_PLACE])
    return Slice(row[_ROWS], delay=row[_PLACE] if row[_WAIT] is None else round(row[_WAIT]))
