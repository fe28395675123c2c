"""The Spark sink as a contestant: rows from Parquet files into a delay, in so many partitions."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from delayctl.spark.session import spark_session

from benchmarks.contest import Go, child, mib_of
from benchmarks.publish_ways import BODY, KEY, LEVEL, TOPOLOGY
from testbed.java import find_java

_FILES = 4
_WARM_UP = 2_000
_PER_GROUP = 50_000  # Rows that are in memory while a table is written.


@contextmanager
def sink(url: str, count: int, *, partitions: int, cores: int) -> Iterator[Go]:
    """One write, into a session that has written before."""
    os.environ.update(find_java().environment({}))
    with (
        tempfile.TemporaryDirectory(prefix="delayctl-bench-") as name,
        spark_session("bench", f"local[{cores}]", {}) as spark,
    ):
        folder = Path(name)
        (folder / "topology.yaml").write_text(TOPOLOGY)
        spark.sparkContext.setLogLevel("OFF")

        def write(rows: str) -> None:
            frame = spark.read.parquet(rows).coalesce(partitions)
            options = {"url": url, "topology": str(folder / "topology.yaml"), "window": "4096"}
            frame.write.format("delayctl").options(**options).mode("append").save()

        write(_rows(folder / "few", _WARM_UP))
        yield partial(write, _rows(folder / "many", count))


def _rows(folder: Path, count: int) -> str:
    """A table of messages, in several files."""
    folder.mkdir()
    for number in range(_FILES):
        ids = range(number, count, _FILES)
        schema = pa.schema([(name, pa.string()) for name in ("message_id", "routing_key", "delay", "body")])
        with pq.ParquetWriter(folder / f"{number}.parquet", schema) as writer:
            for start in range(0, len(ids), _PER_GROUP):
                some = [f"order-{id_}" for id_ in ids[start : start + _PER_GROUP]]
                same = ([value] * len(some) for value in (KEY, LEVEL, BODY.decode()))
                writer.write_table(pa.table([some, *same], schema))
    return str(folder)


def workers_mib() -> float:
    """The most memory that any of Spark's Python workers has had."""
    mine = [path for path in Path("/proc").glob("[0-9]*") if _is_worker(path)]
    return max((mib_of(path.name) for path in mine), default=0.0)


def _is_worker(process: Path) -> bool:
    try:
        command = (process / "cmdline").read_bytes()
        return b"pyspark.daemon" in command and os.getsid(int(process.name)) == os.getsid(0)
    except (FileNotFoundError, ProcessLookupError):
        return False


WAYS = {
    "Spark, 1 partition": partial(sink, partitions=1, cores=1),
    "Spark, 2 partitions": partial(sink, partitions=2, cores=2),
    "Spark, 4 partitions": partial(sink, partitions=4, cores=2),
}

if __name__ == "__main__":
    child(WAYS, workers_mib)
