"""Spark's twenty thousand classes, read by Java once and kept: every Spark of the tests is up in half of the time.

Java takes an archive of classes for good only where all that they were read from is unchanged, and where no folder on its
class path has anything in it. So it lies beside the Spark that it was made of, with an empty folder for Spark's settings.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from testbed.cache import cached, say
from testbed.java import Java
from testbed.ports import LOOPBACK

MADE_WITHIN = 300
# Jobs of a test are over before it would pay to compile them a second time, to collect garbage beside them, or to verify
# the twenty thousand classes of a Spark that pip has checked.
FRUGAL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
# One Java serves all tests of a process, each of which makes code of its own; what a compiler that is told to stop early reserves, 48m, fills.
ROOM = "-XX:ReservedCodeCacheSize=160m"
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"
# Some of all that the jobs of tests do: tables read and written, rows grouped and joined, Python on the workers, a stream.
USED = """
import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
with SparkSession.builder.master("local[2]").getOrCreate() as spark:
    rows = spark.range(100).selectExpr("id", "id % 7 AS key", "timestamp_seconds(id) AS at")
    for kind in ("parquet", "json", "csv"):
        rows.write.format(kind).save(f"{folder}/{kind}")
    read = spark.read.parquet(f"{folder}/parquet")
    read.groupBy("key").count().join(read, "key").orderBy("at").collect()
    spark.createDataFrame([(1, "a")], "id long, name string").mapInArrow(lambda parts: parts, "id long, name string").count()
    spark.sparkContext.range(4).map(str).collect()
    lines = spark.readStream.format("json").schema("id long").load(f"{folder}/json")
    lines.writeStream.format("noop").option("checkpointLocation", f"{folder}/to").trigger(availableNow=True).start().awaitTermination()
"""


class ClassesUnavailable(Exception):
    """The classes could not be kept; Spark runs without, in twice the time."""


def empty_folder() -> Path:
    """The folder that a Spark has to take for its settings if it is to use the classes; made here, and left empty."""
    folder = Path(sys.prefix) / "spark-classes/nothing"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def archive(java: Java, spark: Path) -> Path:
    """Where the classes of the Spark that is installed there are, or would be, as this Java keeps them; another of each, another."""
    ages = [path.stat().st_mtime_ns for path in (spark / "jars", java.home / "lib/server/libjvm.so")]
    return Path(sys.prefix) / "spark-classes/spark-{}-java-{}.jsa".format(*ages)


def java_options(java: Java, spark: Path) -> str:
    """What every Java of Spark is told; one that has no classes, or can't use them, goes on without a word."""
    return f"{FRUGAL} {ROOM} -XX:SharedArchiveFile={archive(java, spark)} {SILENT}"


def keep_classes(java: Java, spark: Path) -> Path:
    """Let Spark work a little, and keep the classes that it has read, unless they are there."""

    def make(path: Path) -> None:
        say("reading Spark's classes")
        with tempfile.TemporaryDirectory(prefix="delayctl-spark-") as folder:
            _work(java, spark, f"{FRUGAL} -XX:ArchiveClassesAtExit={path} {SILENT}", Path(folder))
        if not path.is_file():
            raise ClassesUnavailable("Java has kept none of Spark's classes")

    return cached(archive(java, spark), make)


def _work(java: Java, spark: Path, options: str, folder: Path) -> None:
    settings, job = folder / "settings", folder / "job.py"
    settings.write_text("spark.ui.enabled false\n")
    job.write_text(USED)
    own = {
        "SPARK_HOME": str(spark),
        "SPARK_CONF_DIR": str(empty_folder()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
    }
    command: list[str | Path] = [
        spark / "bin/spark-submit",
        "--properties-file",
        settings,
        "--driver-java-options",
        options,
        job,
        folder,
    ]
    environment = {**java.environment(os.environ), **own}
    try:
        ran = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, timeout=MADE_WITHIN, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClassesUnavailable(f"Spark's classes could not be read within {MADE_WITHIN} s") from error
    if ran.returncode:
        raise ClassesUnavailable(f"Spark's classes could not be read: {ran.stderr[-1000:]}")
