"""What an audit reads: the ledger of a backfill, and the records of consumers, both as columns of plain milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn
from urllib.parse import unquote

import pyarrow as pa
from delayctl.spark.audit import Broken, Records
from delayctl.spark.folder import as_no_pattern
from delayctl.spark.journal import LEDGER, RUNS
from delayctl.spark.places import no_ledger, no_record
from delayctl.topology.errors import DelayctlError
from delayctl.topology.wording import quoted
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)
from pyspark.sql.types import TimestampNTZType, TimestampType

_LEDGER_COLUMNS = ("message_id", "level", "due_at", "expected_at")
_RECORD = (
    "message_id string, queue string, received_at long, level string, attempt int, redelivered boolean, drained boolean, "
    "expedited boolean"
)
_RECORD_COLUMNS = tuple(column.split()[0] for column in _RECORD.split(", "))
_LINES = "*.{ndjson,jsonl,json,ndjson.gz,jsonl.gz,json.gz}"
_NOT_THERE = "PATH_NOT_FOUND"
_NO_FILES = "UNABLE_TO_INFER_SCHEMA"
_MOST_BROKEN = 20


class Seen(NamedTuple):
    """A message that lies in a queue, and when it was seen there, in milliseconds since 1970."""

    message_id: str | None
    queue: str
    attempt: int
    at: int


@dataclass(frozen=True)
class Recorded:
    """All that was recorded, lines that are no records included: these have no `received_at`."""

    lines: DataFrame

    def deliveries(self, seen: Sequence[Seen] = ()) -> DataFrame:
        """What can be used, and beside it what was seen in queues."""
        usable = self.lines.filter(~_is_broken())
        return usable.unionByName(_of_queues(self.lines.sparkSession, seen)) if seen else usable

    def summary(self) -> Records:
        """What it is, in counts; retries are known only when deliveries are compared."""
        is_good, is_drained = ~_is_broken(), F.coalesce("drained", F.lit(False))
        found = self.lines.agg(
            F.count_distinct("file").alias("files"),
            F.count_if(is_good & ~is_drained).alias("deliveries"),
            F.count_if(is_good & is_drained).alias("drained"),
            F.count_if(is_good & F.col("message_id").isNull()).alias("without_id"),
            F.min(F.when(~is_drained, F.col("received_at"))).alias("first"),
            F.max(F.when(~is_drained, F.col("received_at"))).alias("last"),
            F.count_if(_is_broken()).alias("broken"),
        ).collect()[0]
        return Records(**found.asDict(), broken_files=self._broken_files() if found["broken"] else ())

    def _broken_files(self) -> tuple[Broken, ...]:
        counted = self.lines.filter(_is_broken()).groupBy("file").count().orderBy(F.desc("count"), "file")
        return tuple(Broken(_path(row["file"]), row["count"]) for row in counted.limit(_MOST_BROKEN).collect())


def read_ledger(spark: SparkSession, place: str) -> DataFrame:
    """The ledger in a checkpoint folder, or the folder of its files itself: message_id, level, due and expected."""
    fix = "name the folder that was given to delayctl backfill --checkpoint"
    if not (folder := _found(spark, place)):
        raise no_ledger(place)
    inside, runs = (f"{folder.rstrip('/')}/{table}" for table in (LEDGER, RUNS))
    has_ledger = _is_there(spark, inside)
    found = _parquet(spark, [inside if has_ledger else folder]) if has_ledger or not _is_there(spark, runs) else None
    if found is None:
        raise DelayctlError("the ledger is empty: nothing was confirmed", where=place, fix=fix)
    if missing := [name for name in _LEDGER_COLUMNS if name not in found.columns]:
        raise DelayctlError(
            f"this is not a ledger: {', '.join(missing)} missing among its columns {', '.join(found.columns[:8])}",
            where=place,
            fix=fix,
        )
    due, expected = _ms(found, "due_at", place), _ms(found, "expected_at", place)
    return found.select("message_id", "level", due.alias("due"), F.coalesce(expected, due).alias("expected"))


def read_records(spark: SparkSession, places: Sequence[str]) -> Recorded:
    """The records in files and folders, NDJSON and Parquet alike."""
    found = [_found(spark, place) or _missing(place) for place in places]
    lines, parquet = _ndjson(spark, found), _parquet(spark, found) if found else None
    return Recorded(lines if parquet is None else lines.unionByName(_of_parquet(parquet, places)))


def _missing(place: str) -> NoReturn:
    raise no_record(place)


def _found(spark: SparkSession, place: str) -> str | None:
    """A place as Spark takes it: as it is called, be there brackets in its name, or else as a pattern."""
    return next((each for each in dict.fromkeys((as_no_pattern(place), place)) if _is_there(spark, each)), None)


def _is_broken() -> Column:
    return F.col("received_at").isNull()


def _path(uri: str) -> str:
    """A file as people name it."""
    return unquote(uri.removeprefix("file://").removeprefix("file:")) if uri.startswith("file:/") else uri


def _of_queues(spark: SparkSession, seen: Sequence[Seen]) -> DataFrame:
    """What was seen in queues, as if it had been taken out of them by nobody."""
    columns: dict[str, pa.Array] = {
        "message_id": pa.array([each.message_id for each in seen], pa.string()),
        "queue": pa.array([each.queue for each in seen], pa.string()),
        "received_at": pa.array([each.at for each in seen], pa.int64()),
        "attempt": pa.array([each.attempt for each in seen], pa.int32()),
    }
    given = {"level": F.lit(None), "redelivered": F.lit(False), "drained": F.lit(True), "expedited": F.lit(False)}
    found = spark.createDataFrame(pa.table(columns)).withColumns({**given, "file": F.lit(None).cast("string")})
    return _as_recorded(found)


def _as_recorded(found: DataFrame) -> DataFrame:
    """These columns in the types that a record has."""
    schema = dict(column.split() for column in _RECORD.split(", "))
    return found.select(*(F.col(name).cast(kind).alias(name) for name, kind in schema.items()), "file")


def _ndjson(spark: SparkSession, places: Sequence[str]) -> DataFrame:
    if not places:
        return spark.createDataFrame([], f"{_RECORD}, file string")
    files = spark.read.option("pathGlobFilter", _LINES).option("recursiveFileLookup", "true")
    text = files.text(list(places)).select("value", F.col("_metadata.file_path").alias("file"))
    parsed = text.filter(F.trim("value") != "").withColumn("record", F.from_json("value", _RECORD))
    return parsed.select("record.*", "file")


def _of_parquet(found: DataFrame, places: Sequence[str]) -> DataFrame:
    where = ", ".join(places)
    missing = [name for name in ("message_id", "received_at") if name not in found.columns]
    if missing:
        raise DelayctlError(
            f"these Parquet files are no records: they have no {' and no '.join(missing)}",
            where=where,
            fix="name the folder that consumers record to; the ledger is named by --ledger",
        )
    received = _ms(found, "received_at", where)
    others = {name: F.lit(None) for name in _RECORD_COLUMNS if name not in found.columns}
    complete = found.withColumns({**others, "received_at": received, "file": F.col("_metadata.file_path")})
    return _as_recorded(complete)


def _ms(frame: DataFrame, column: str, where: str) -> Column:
    """A column of times as milliseconds since 1970."""
    kind = frame.schema[column].dataType
    if isinstance(kind, TimestampType | TimestampNTZType):
        return F.unix_millis(F.col(column).cast("timestamp"))
    if kind.simpleString() in ("bigint", "int"):
        return F.col(column).cast("long")
    raise DelayctlError(
        f"column {quoted(column)} is of type {kind.simpleString()}, not a time",
        where=where,
        fix="make it a timestamp, or milliseconds since 1970",
    )


def _parquet(spark: SparkSession, places: Sequence[str]) -> DataFrame | None:
    """The Parquet files in these places; None where there are none."""
    files = spark.read.option("pathGlobFilter", "*.parquet").option("recursiveFileLookup", "true")
    try:
        return files.parquet(*places)
    except AnalysisException as error:
        if error.getCondition() in (_NOT_THERE, _NO_FILES):
            return None
        raise


def _is_there(spark: SparkSession, place: str) -> bool:
    try:
        spark.read.text(place)
    except AnalysisException as error:
        if error.getCondition() != _NOT_THERE:
            raise
        return False
    return True
