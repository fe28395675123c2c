"""A streaming query is killed again and again, and begun again from its checkpoint: nothing is lost, little comes twice."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.spark import SparkHome
from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.arrived import take_all
from tests.support.order_stream import OrderStream
from tests.support.rabbit import Rabbit

KILLS = int(os.environ.get("DELAYCTL_FAULTS_KILLS", "1"))
ROWS_PER_BATCH = 250
BATCHES = 3 * KILLS
REPOSITORY = Path(__file__).parents[2]
JOB = """
import json
import sys

sys.path.append(sys.argv[1])

from pyspark.sql import SparkSession
from tests.support.order_stream import start_query

spark = SparkSession.builder.master("local[2]").getOrCreate()
start_query(spark, sys.argv[2], json.loads(sys.argv[3])).awaitTermination()
"""


@contextmanager
def driver(stream: OrderStream, home: SparkHome) -> Iterator["subprocess.Popen[bytes]"]:
    """A driver in a process group of its own, which is killed in the end with its JVM and its Python workers."""
    script = stream.folder / "job.py"
    script.write_text(JOB)
    arguments = [str(REPOSITORY), str(stream.folder / "orders"), json.dumps(stream.options())]
    with (stream.folder / "job.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), *arguments],
            env=home.environment(os.environ),
            cwd=stream.folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def test_a_query_killed_again_and_again_loses_nothing(
    rabbit: Rabbit,
    topology: TopologyFile,
    tmp_path: Path,
    spark_folder: SparkHome,
    record_property: Callable[[str, object], None],
) -> None:
    """Every row arrives; what comes twice has the same id, and is no more than one micro-batch for each kill."""
    stream, total = OrderStream(rabbit, topology, tmp_path), BATCHES * ROWS_PER_BATCH
    for number in range(BATCHES):
        stream.add(f"{number:03}.json", range(number * ROWS_PER_BATCH, (number + 1) * ROWS_PER_BATCH))
    chance, arrived = random.Random(20260316), Counter[str]()

    def take() -> int:
        arrived.update(each.message_id for each in take_all(rabbit, "target"))
        return len(arrived)

    def await_goal(running: "subprocess.Popen[bytes]", goal: int) -> None:
        until(lambda: take() >= goal or running.poll() is not None, 180, what=f"{goal} rows", every=0.01)
        assert running.poll() is None, (tmp_path / "job.log").read_text()[-3000:]

    for _ in range(KILLS):
        # Somewhere within the next two batches, counted from what has arrived so far.
        goal = min(total - ROWS_PER_BATCH, take() + chance.randrange(1, 2 * ROWS_PER_BATCH))
        with driver(stream, spark_folder) as running:
            await_goal(running, goal)
    with driver(stream, spark_folder) as running:
        assert running.wait(180) == 0, (tmp_path / "job.log").read_text()[-3000:]
    until(lambda: take() == total, 30, what="the last rows")

    twice = sum(arrived.values()) - total
    record_property("account", f"a stream killed {KILLS} times: {total:,} rows, 0 lost, {twice:,} twice")
    assert set(arrived) == {str(number) for number in range(total)}
    assert twice <= KILLS * ROWS_PER_BATCH
