"""The order in which messages are due, as a column of Spark."""

from delayctl.publishers.choice import Ways
from delayctl.spark.columns import DELAY, DUE, LEVEL
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

_DELAY = r"^(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?\z"  # As `Duration` reads it.
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000, 1)


def due_order(messages: DataFrame, ways: Ways) -> Column:
    """Sorts messages by when they are due; null where a row does not say when, or says what is no delay and no level."""
    if DUE in messages.columns:
        return f.col(DUE)
    if LEVEL in messages.columns:
        return _wait_at_level(ways)
    is_text = messages.schema[DELAY].dataType.simpleString() == "string"
    return _length() if is_text else f.col(DELAY)


def _wait_at_level(ways: Ways) -> Column:
    wait = f.lit(None).cast("bigint")
    for way in ways.levels:
        wait = f.when(f.col(LEVEL).eqNullSafe(f.lit(way.level)), f.lit(way.wait_ms)).otherwise(wait)
    return wait


def _length() -> Column:
    """How long a delay is that is written as text: as texts, 10m would come before 2m."""
    length = f.lit(0.0)
    for group, unit_ms in enumerate(_UNITS_MS, 1):
        count = f.regexp_extract(DELAY, _DELAY, group).try_cast("double")
        length = length + f.coalesce(count, f.lit(0.0)) * unit_ms
    return f.when(f.col(DELAY).rlike(_DELAY), length)
