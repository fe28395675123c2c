"""Of what kind the values of a key are, and what is said where rows would have other ids than before."""

from typing import Any

import pytest
from delayctl.spark.backfill_job import BackfillJob
from delayctl.spark.key_kinds import check_kinds, check_texts, kinds_of_key
from delayctl.spark.origin import Origin
from delayctl.topology.errors import DelayctlError
from pyspark.sql import SparkSession

JOB = BackfillJob(Origin("csv", "orders"), ("id",), "key", due="pay_by")
FIX = "have it read as before; where the texts are the same (7 and '7'), remove key_kinds from job.json"


@pytest.mark.parametrize(
    ("type_name", "kind"),
    [
        ("int", "whole numbers"),
        ("bigint", "whole numbers"),
        ("decimal(20,0)", "whole numbers"),
        ("decimal(20,2)", "decimal(20,2)"),
        ("string", "text"),
        ("date", "date"),
    ],
)
def test_types_that_write_a_value_alike_are_one_kind(spark: SparkSession, type_name: str, kind: str) -> None:
    """A column that became wider has the ids that it had."""
    rows = spark.sql(f"SELECT CAST(NULL AS {type_name}) AS id")

    assert kinds_of_key(rows, JOB) == (kind,)


def test_a_key_that_is_read_otherwise_is_refused() -> None:
    """Not silently sent again; what an earlier release did not write down is no difference."""
    check_kinds({}, JOB, ["text"], where="here")
    check_kinds({"key_kinds": ["text"]}, JOB, ["text"], where="here")

    with pytest.raises(DelayctlError) as error:
        check_kinds({"key_kinds": ["whole numbers"]}, JOB, ["text"], where="here")

    assert str(error.value) == (
        "Error: the key column 'id' was read as whole numbers by the last run, and is text now: "
        f"rows may have other ids, and would be sent again\n  at here\n  fix: {FIX}"
    )


@pytest.mark.parametrize(
    ("ids", "sent", "again"),
    [
        (["007", "8"], ["7", "8"], "'007' as '7'"),
        (["+7"], ["7"], "'+7' as '7'"),
        (["TRUE"], ["true"], "'TRUE' as 'true'"),
        (["007", "A8"], ["007", "A8"], None),
        (["007", "7"], ["007", "7"], None),
        (["7", "8", "0"], ["7", "8"], None),
        (["007"], ["9"], None),
    ],
)
def test_rows_of_a_csv_that_an_earlier_release_sent_as_numbers(
    spark: SparkSession, ids: list[str], sent: list[str], again: str | None
) -> None:
    """They are refused where they would be sent again, and only there."""
    rows: Any = spark.createDataFrame([(each,) for each in ids], "id string")
    ledger = spark.createDataFrame([(each,) for each in sent], "message_id string")

    if again is None:
        check_texts(rows, JOB, ledger, where="here")
        return
    with pytest.raises(DelayctlError) as error:
        check_texts(rows, JOB, ledger, where="here")

    assert error.value.what == (
        f"an earlier release sent the row {again}, since it took keys in csv for numbers: "
        "it would be sent again, with another id"
    )
