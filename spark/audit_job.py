"""The audit job: reads, joins and counts with Spark, and answers with an `Audit`."""

from collections.abc import Sequence

from delayctl.spark.audit import Audit, Rules
from delayctl.spark.audit_counts import KINDS, audit_of, of_kind
from delayctl.spark.audit_inputs import Seen, read_ledger, read_records
from delayctl.spark.audit_judge import judged
from delayctl.spark.troubles import telling
from delayctl.topology.errors import DelayctlError
from delayctl.topology.wording import plural
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

_LOCAL_PARTITIONS = "16"


def suit(spark: SparkSession) -> None:
    """Have a session on this machine alone cut its work into fewer pieces than a cluster would; a third of the time."""
    if (spark.sparkContext.master or "").startswith("local["):
        spark.conf.set("spark.sql.shuffle.partitions", _LOCAL_PARTITIONS)


def audit(
    spark: SparkSession,
    ledger: str,
    records: Sequence[str],
    rules: Rules,
    *,
    seen: Sequence[Seen] = (),
    show: Sequence[str] = (),
    limit: int = 20,
    write: str | None = None,
) -> Audit:
    """Compare the ledger of a backfill with what consumers recorded, and with what was `seen` in queues.

    `write` is a folder for the tables of trouble.
    """
    with telling():
        sent, recorded = read_ledger(spark, ledger), read_records(spark, records)
        summary = recorded.summary()
        if not (summary.deliveries or summary.drained or seen):
            raise DelayctlError(
                "the record is empty" + (f": {plural(summary.broken, 'broken line')}" if summary.broken else ""),
                where=", ".join(records) or None,
                fix="name the folder of *.ndjson or *.parquet files that was given to consumer.record(…)",
            )
        joined = judged(sent, recorded.deliveries(seen), rules).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            answer = audit_of(joined, summary, rules, show=show, limit=limit)
            if write is not None:
                _write(joined, write)
        finally:
            joined.unpersist()
    if not answer.total.messages:
        raise DelayctlError("the ledger is empty: nothing was confirmed", where=ledger, fix="run the backfill first")
    return answer


def _write(joined: DataFrame, folder: str) -> None:
    for kind in KINDS:
        table = f"{folder.rstrip('/')}/{kind}"
        try:
            of_kind(joined, kind).write.mode("errorifexists").parquet(table)
        except AnalysisException as error:
            if error.getCondition() != "PATH_ALREADY_EXISTS":
                raise
            raise DelayctlError("the table is there already", where=table, fix="name a new folder") from error
