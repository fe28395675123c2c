"""What Spark complains about, in one line and with a fix."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from delayctl.spark.troubles import telling, told
from delayctl.topology.errors import BadOption, DelayctlError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/task.py", line 3, in __call__
    raise Fenced
delayctl.spark.journal.Fenced: Error: run 2 of this job has begun, and run 1 ends here
  fix: let it finish
"""
MODULE = """Job aborted due to stage failure: Could not recover from a failed barrier ResultStage.
org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/serializers.py", line 483, in loads
ModuleNotFoundError: No module named 'delayctl'
 SQLSTATE: 38000
	at org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
"""
JAVA = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times
	at org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
Caused by: java.io.IOException: No space left on device
	at java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


def shape(error: DelayctlError) -> tuple[type, str, str | None]:
    """What there is to compare."""
    return type(error), error.what, error.fix


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            PySparkException(PYTHON),
            (DelayctlError, "run 2 of this job has begun, and run 1 ends here", "let it finish"),
        ),
        (
            PySparkException(MODULE),
            (
                DelayctlError,
                "Spark: ModuleNotFoundError: No module named 'delayctl'",
                "send it along (spark-submit --py-files delayctl-spark.zip), "
                "or let PYSPARK_PYTHON name a Python that has it",
            ),
        ),
        (
            PySparkException(JAVA),
            (
                DelayctlError,
                "Spark: No space left on device",
                "look at the executors' logs, and run it again: it goes on where it stopped",
            ),
        ),
        (
            PySparkException("Job aborted: [SPARK-24819]: Barrier execution mode does not allow more slots"),
            (
                DelayctlError,
                "Spark: Job aborted: [SPARK-24819]: Barrier execution mode does not allow more slots",
                "give fewer --partitions, or more executors; with dynamic allocation on: "
                "--conf spark.dynamicAllocation.enabled=false",
            ),
        ),
        (
            ConnectionRefusedError("[Errno 111] Connection refused"),
            (
                DelayctlError,
                "Spark: [Errno 111] Connection refused",
                "look at the executors' logs, and run it again: it goes on where it stopped",
            ),
        ),
        (
            PySparkException("Encountered error while reading file https://u:geheim@host/x.csv?v=1&sig=geheim&b=2."),
            (
                DelayctlError,
                "Spark: Encountered error while reading file https://host/x.csv?v=1&&b=2.",
                "look at the executors' logs, and run it again: it goes on where it stopped",
            ),
        ),
        (
            RuntimeError(),
            (
                DelayctlError,
                "Spark: RuntimeError",
                "look at the executors' logs, and run it again: it goes on where it stopped",
            ),
        ),
    ],
)
def test_one_line_and_a_fix(error: Exception, expected: tuple[Any, ...]) -> None:
    """The cause, not the place; an error of ours from an executor is itself again."""
    assert shape(told(error)) == expected


def test_a_name_that_is_wrong_is_an_option_that_is_wrong(spark: SparkSession) -> None:
    """With what Spark suggests, and without its codes."""
    with pytest.raises(AnalysisException) as found:
        spark.range(1).selectExpr("idd")

    error = told(found.value)

    assert isinstance(error, BadOption)
    assert error.what == (
        "Spark: A column, variable, or function parameter with name `idd` cannot be resolved. "
        "Did you mean one of the following? [`id`]."
    )


def test_whatever_java_throws_is_told(spark: SparkSession) -> None:
    """Also what PySpark hands on as it is."""
    with pytest.raises(DelayctlError, match="Spark: No suitable driver") as found, telling():
        spark.read.format("jdbc").options(url="jdbc:sqlite:/x", dbtable="t").load()

    assert found.value.fix == (
        "give Spark the driver of the database: --conf spark.jars.packages=org.postgresql:postgresql:42.7.4"
    )


def untouched(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does."""
    yield from batches


VALUES_FIX = (
    "correct the expression: try_to_timestamp, try_cast and the like give null, which rejects that row alone;"
    " or leave such rows out: --where"
)


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("cast(concat('x', id) as int)", "The value 'x0' of the type"),
        ("to_timestamp(concat('x', id))", "The value 'x0' of the type"),
        ("to_timestamp(concat('x', id), 'yyyy')", "x0"),
        ("1 / id", "Division by zero"),
        ("map(if(id = 0, null, 'a'), 1)", "null as map key"),
        ("cast(id + 300 as tinyint)", "cannot be cast to"),
    ],
)
@pytest.mark.parametrize("is_in_barrier", [False, True])
def test_a_value_that_an_expression_can_do_nothing_with(
    spark: SparkSession, expression: str, what: str, is_in_barrier: bool
) -> None:
    """To run it again would help nobody; the job says so whether a look meets it or a task."""
    rows = spark.range(1).selectExpr(f"to_json(struct({expression} AS x)) AS x")
    asked = rows.mapInArrow(untouched, "x string", barrier=True) if is_in_barrier else rows

    with pytest.raises(DelayctlError) as found, telling():
        asked.collect()

    assert (what in found.value.what, found.value.fix) == (True, VALUES_FIX), found.value
    assert "[" not in found.value.what
