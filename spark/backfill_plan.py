"""Looks at the rows of a backfill before anything is sent."""

from collections.abc import Sequence

from delayctl.publishers.choice import Rounding, Ways
from delayctl.spark.backfill_job import SAME_KEY
from delayctl.spark.choose import Chooser
from delayctl.spark.columns import BODY, DELAY, DUE, ID, KEY, LEVEL, REASON
from delayctl.spark.due_order import due_order
from delayctl.spark.estimate import Estimate, More, Room, Slice, Unrouted, estimate
from delayctl.spark.taken_keys import Routes, is_taken
from pyspark.sql import Column, DataFrame
from pyspark.sql import Row as Counted
from pyspark.sql import functions as f

_PLACE, _WAIT, _ODD, _ROWS = "place", "wait", "odd", "rows"
_BYTES, _UNROUTED, _KEY = "bytes", "unrouted", "unrouted_key"
# Waits are told apart to a thousandth of themselves: a year has 26 thousand of them, and a second has all its own.
_EXACT_BITS = 10
_LONGEST_MS = 1 << 62
_MOST_ODD = 20


def look_ahead(
    messages: DataFrame,
    confirmed_before: int,
    ways: Ways,
    rooms: Sequence[Room],
    *,
    rounding: Rounding,
    now_ms: int,
    rate: float | None,
    routes: Routes | None = None,
) -> Estimate:
    """Count the rows by when they are due, in one go, and play the backfill through.

    However rows differ, what comes to the driver is small: of texts that are no delay and no level, the most frequent.
    """
    how = next(name for name in (DUE, DELAY, LEVEL) if name in messages.columns)
    counted = _counted(messages, how, ways, now_ms, routes, weighs=any_weighs(rooms)).persist()
    try:
        told, more = _collected(counted)
    finally:
        counted.unpersist()
    good = [row for row in told if row[REASON] is None]
    return estimate(
        [_slice(row, how, now_ms) for row in good],
        rooms,
        Chooser(ways, rounding),
        now_ms=now_ms,
        rate=rate,
        rejected={row[REASON]: row[_ROWS] for row in told if row[REASON] is not None},
        confirmed_before=confirmed_before,
        more=more,
        unrouted=Unrouted(
            sum(row[_UNROUTED] for row in good), min(filter(None, (row[_KEY] for row in good)), default=None)
        ),
    )


def any_weighs(rooms: Sequence[Room]) -> bool:
    """Whether a level has a limit of bytes, so that bodies have to be read to know whether they fit."""
    return any(room.max_bytes is not None for room in rooms)


def _counted(
    messages: DataFrame, how: str, ways: Ways, now_ms: int, routes: Routes | None, *, weighs: bool
) -> DataFrame:
    size = f.octet_length(BODY) if weighs else f.lit(0)
    is_unrouted = f.lit(False) if routes is None else ~is_taken(routes)
    places = _places(messages, how, ways, now_ms)
    marked = messages.select(
        _reason(how).alias(REASON), *places, size.alias(_BYTES), is_unrouted.alias(_UNROUTED), f.col(KEY)
    )
    is_good = f.col(REASON).isNull()
    return marked.groupBy(
        REASON, f.when(is_good, f.col(_PLACE)).alias(_PLACE), f.when(is_good, f.col(_ODD)).alias(_ODD)
    ).agg(
        f.count("*").alias(_ROWS),
        f.avg(_WAIT).alias(_WAIT),
        f.avg(_BYTES).alias(_BYTES),
        f.count_if(_UNROUTED).alias(_UNROUTED),
        f.min(f.when(f.col(_UNROUTED), f.col(KEY))).alias(_KEY),
    )


def _collected(counted: DataFrame) -> tuple[list[Counted], More]:
    """What was counted, but of odd texts the most frequent alone; and how many more there are."""
    odd = counted.filter(f.col(_ODD).isNotNull())
    shown = odd.orderBy(f.desc(_ROWS), _ODD).limit(_MOST_ODD).collect()
    (all_odd,) = odd.agg(f.count("*").alias("texts"), f.coalesce(f.sum(_ROWS), f.lit(0)).alias(_ROWS)).collect()
    more = More(all_odd["texts"] - len(shown), all_odd[_ROWS] - sum(row[_ROWS] for row in shown))
    return [*counted.filter(f.col(_ODD).isNull()).collect(), *shown], more


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


def _places(messages: DataFrame, how: str, ways: Ways, now_ms: int) -> tuple[Column, Column, Column]:
    """Where a row belongs among its like, how long it waits in milliseconds, and the text that says so, where that is odd."""
    if how == LEVEL:
        is_known = f.col(LEVEL).isin([way.level for way in ways.levels])
        place, wait, odd = f.when(is_known, f.col(LEVEL)), f.lit(None).cast("bigint"), f.when(~is_known, f.col(LEVEL))
    else:
        wait = _wait(messages, how, ways, now_ms)
        is_odd = wait.isNull() if how == DELAY and _is_text(messages, DELAY) else f.lit(False)
        place, odd = _near(wait, ways), f.when(is_odd, f.col(how).cast("string"))
    return place.alias(_PLACE), wait.alias(_WAIT), odd.alias(_ODD)


def _wait(messages: DataFrame, how: str, ways: Ways, now_ms: int) -> Column:
    if how == DUE:
        return f.expr(f"unix_micros({DUE}) div 1000") - f.lit(now_ms)
    if _is_text(messages, DELAY):
        length = due_order(messages, ways)
        return f.when(length.isNotNull(), f.least(length, f.lit(float(_LONGEST_MS))).cast("bigint"))
    span = f"CAST({DELAY} AS INTERVAL DAY TO SECOND)"  # Spark takes out of INTERVAL HOUR no minutes.
    return f.expr(f"cast(extract(SECOND FROM {span}) * 1000 as bigint)") + f.expr(
        f"(extract(DAY FROM {span}) * 86400L + extract(HOUR FROM {span}) * 3600L"
        f" + extract(MINUTE FROM {span}) * 60L) * 1000L"
    )


def _near(wait: Column, ways: Ways) -> Column:
    """What waits about as long has the same place, and what waits exactly as long as a level one of its own."""
    bits = f.greatest(f.floor(f.log2(f.greatest(wait, f.lit(1)))) - _EXACT_BITS, f.lit(0)).cast("int")
    place = f.call_function("shiftright", wait, bits) + f.lit(1 << 48) * bits
    exact = f.when(wait.isin([way.wait_ms for way in ways.levels]), -wait - 2).otherwise(place)
    return f.when(wait > 0, exact).otherwise(-1).cast("string")


def _is_text(messages: DataFrame, name: str) -> bool:
    return messages.schema[name].dataType.simpleString() == "string"


def _slice(row: Counted, how: str, now_ms: int) -> Slice:
    rows, size = row[_ROWS], row[_BYTES] or 0
    if how == DUE:
        return Slice(rows, due_ms=now_ms + round(row[_WAIT]), body_bytes=size)
    if how == LEVEL:
        return Slice(rows, level=row[_PLACE] or row[_ODD], body_bytes=size)
    return Slice(rows, delay=row[_ODD] if row[_WAIT] is None else round(row[_WAIT]), body_bytes=size)
