"""Of what kind the values of a key are: rows keep their ids while that stays the same."""

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from delayctl.spark.backfill_job import BackfillJob, key_part, key_types
from delayctl.spark.columns import ID
from delayctl.spark.identity import id_of_texts
from delayctl.topology.errors import DelayctlError
from delayctl.topology.wording import quoted
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

KINDS = "key_kinds"
_WHOLE = re.compile(r"tinyint|smallint|int|bigint|decimal\(\d+,0\)")
_TEXT = re.compile(r"string|(?:var)?char\(\d+\)")
# What was taken for a number, or for a truth, and has another text as such.
_READ_OTHERWISE = r"^(?!(?:0|-?[1-9]\d*)\z)\s*[+-]?\d+\s*\z|^(?!true\z|false\z)(?i:true|false)\z"


def kinds_of_key(rows: DataFrame, job: BackfillJob) -> tuple[str, ...]:
    """The kind of each part of the key; types that write the same value alike are one kind."""
    return tuple(
        "whole numbers" if _WHOLE.fullmatch(each) else "text" if _TEXT.fullmatch(each) else each
        for each in key_types(rows, job)
    )


def check_kinds(known: Mapping[str, object], job: BackfillJob, kinds: Sequence[str], *, where: str) -> None:
    """Make sure that the key is read as the last run read it."""
    before = known.get(KINDS)
    if not isinstance(before, list) or before == list(kinds):
        return
    part, was, is_ = next(each for each in zip(job.key, [*before, *kinds], kinds, strict=False) if each[1] != each[2])
    raise DelayctlError(
        f"the key column {quoted(part)} was read as {was} by the last run, and is {is_} now: "
        "rows may have other ids, and would be sent again",
        where=where,
        fix=f"have it read as before; where the texts are the same (7 and '7'), remove {KINDS} from job.json",
    )


def check_texts(rows: DataFrame, job: BackfillJob, ledger: DataFrame, *, where: str) -> None:
    """Make sure that no row of a csv was sent as the number that an earlier release took its key for."""
    texts = [key_part(part).cast("string") for part in job.key]
    chosen = rows.where(job.where) if job.where else rows
    asked = chosen.where(reduce(or_, (text.rlike(_READ_OTHERWISE) for text in texts))).select(
        id_of_texts(texts, job.id_prefix).alias(ID),
        id_of_texts([*map(_formerly, texts)], job.id_prefix).alias("former"),
    )
    unsent = asked.join(ledger, asked[ID] == ledger[ID], "left_anti")
    if found := unsent.join(ledger, unsent["former"] == ledger[ID], "left_semi").first():
        raise DelayctlError(
            f"an earlier release sent the row {quoted(found[ID])} as {quoted(found['former'])}, since it took keys in csv for "
            "numbers: it would be sent again, with another id",
            where=where,
            fix="give a folder of its own (--checkpoint), and leave out what was sent (--where); or finish with that release",
        )


def _formerly(text: Column) -> Column:
    number = f.trim(text).try_cast("decimal(38,0)").cast("string")
    return f.when(text.rlike(_READ_OTHERWISE), f.coalesce(number, f.lower(text))).otherwise(text)
