"""The Spark of the tests finds its classes where Java kept them; without, all would be as it is, in twice the time."""

from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from testbed.needs import give_up
from testbed.spark import SparkHome, installed
from testbed.spark_classes import archive


def test_java_takes_the_classes_from_where_they_are_kept(spark_folder: SparkHome, spark: SparkSession) -> None:
    """They are mapped into the process, which says that nothing they were made of has changed."""
    kept = archive(spark_folder.java, installed("pyspark"))
    if not kept.is_file():
        give_up("no classes are kept: run python -m testbed prepare, as make test does")
    assert spark.range(1).count() == 1
    gateway = SparkContext._gateway
    assert gateway is not None

    maps = Path(f"/proc/{gateway.proc.pid}/maps").read_text()

    assert str(kept) in maps, "run: python -m testbed prepare"
