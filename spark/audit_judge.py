"""The join of an audit: one row per message id, with what became of it as columns."""

from delayctl.spark.audit import Rules
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)


def judged(ledger: DataFrame, deliveries: DataFrame, rules: Rules) -> DataFrame:
    """Everything that is in the ledger or was recorded, by message id.

    Columns: message_id, level, due, expected, rows (in the ledger; null: unknown to it), received (null: never), copies,
    given_again, deliveries, drained (by no consumer), lying (queues), and the judgements of `_judgement`.
    """
    joined = _sent(ledger).join(_came(deliveries), "message_id", "full_outer")
    counted = joined.withColumn("copies", F.coalesce("copies", F.lit(0)))
    return counted.withColumns(_judgement(rules)).withColumns(_measures())


def _sent(ledger: DataFrame) -> DataFrame:
    """One row per message: what was confirmed twice was first expected at the earlier time."""
    return ledger.groupBy("message_id").agg(
        F.min_by("level", "expected").alias("level"),
        F.min_by("due", "expected").alias("due"),
        F.min("expected").alias("expected"),
        F.count("*").alias("rows"),
    )


def _came(deliveries: DataFrame) -> DataFrame:
    """One row per message: its first attempt in each queue counts, later ones are retries.

    A key may lead to several queues, and a message that failed comes again with a higher attempt: neither is a copy
    too many. The same attempt twice in the same queue is.
    """
    # Spread by id alone once, so that none of the groups, nor the join, moves them again.
    spread = deliveries.filter(F.col("message_id").isNotNull()).repartition("message_id")
    is_drained = F.coalesce("drained", F.lit(False))
    attempts = spread.groupBy("message_id", "queue", F.coalesce("attempt", F.lit(0)).alias("attempt")).agg(
        F.count("*").alias("copies"),
        F.count_if("redelivered").alias("given_again"),
        F.min("received_at").alias("received"),
        F.bool_or(F.coalesce("expedited", F.lit(False))).alias("expedited"),
        F.bool_and(is_drained).alias("drained"),
        F.bool_or(is_drained & F.col("file").isNull()).alias(
            "lies"
        ),  # What a record says was drained is gone from there.
    )
    first = F.min(F.struct("attempt", "copies", "given_again", "received", "drained", "expedited")).alias("first")
    queues = attempts.groupBy("message_id", "queue").agg(
        first, F.sum("copies").alias("deliveries"), F.bool_or("lies").alias("lies")
    )
    return queues.groupBy("message_id").agg(
        F.min("first.received").alias("received"),
        F.sum(F.col("first.copies") - 1).alias("extra"),
        F.sum(F.least(F.col("first.copies") - 1, F.col("first.given_again"))).alias("given_again"),
        F.sum("deliveries").alias("deliveries"),
        F.sum("first.copies").alias("copies"),
        F.bool_and("first.drained").alias("drained"),
        F.bool_or("first.expedited").alias("expedited"),
        F.collect_set(F.when(F.col("lies"), F.col("queue"))).alias("lying"),
    )


def _judgement(rules: Rules) -> dict[str, Column]:
    sent, received = F.col("rows").isNotNull(), F.col("received")
    due, expected = F.col("due"), F.col("expected")
    is_drained = F.coalesce("drained", F.lit(False))
    is_missing, is_there = sent & received.isNull(), sent & received.isNotNull()
    is_delivered = is_there & ~is_drained
    # Somebody took it out of its delay on purpose: when it came says nothing.
    is_expedited = F.coalesce("expedited", F.lit(False))
    is_over = expected + rules.grace <= rules.moment
    # A task that was killed has sent copies that are not in the ledger, and nobody knows when they were to come.
    is_known = F.col("extra") - F.col("given_again") < F.col("rows")
    return {
        "is_sent": sent,
        "is_delivered": is_delivered,
        "is_untaken": is_there & is_drained,
        "is_lost": is_missing & is_over,
        "is_waiting": is_missing & ~is_over,
        "is_unknown": ~sent & ~is_drained,  # Whatever else lies in a queue is nobody's business here.
        "is_duplicated": is_delivered & (F.col("extra") > 0),
        "is_early": is_there & ~is_expedited & is_known & (received < expected - rules.tolerance),
        "is_late": is_delivered & (received > F.greatest(due, expected) + rules.late_after),
        "is_expedited": is_delivered & is_expedited,
        "is_before_due": is_there & ~is_expedited & (received < due - rules.tolerance),
        "is_measured": is_delivered & ~is_expedited,
    }


def _measures() -> dict[str, Column]:
    """Lateness, where it is known when a message came."""
    received, is_measured = F.col("received"), F.col("is_measured")
    return {
        "after_due": F.when(is_measured, received - F.col("due")),
        "after_expected": F.when(is_measured, received - F.col("expected")),
    }


def rounded(lateness: Column) -> Column:
    """A lateness to the millisecond below a second, to three digits above: so few that they can be counted one by one."""
    size = F.abs(lateness)
    step = F.pow(F.lit(10), F.floor(F.log10(size) + 1e-9) - 2).cast("long")
    return F.when(size < 1_000, lateness).otherwise(lateness - lateness % step)
