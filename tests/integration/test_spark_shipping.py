"""A job on Spark workers in processes of their own, where delayctl is not installed: all that it needs is sent along."""

import subprocess
from pathlib import Path

import pytest

from tests.support.rabbit import Rabbit
from tests.support.spark import SparkJobs

pytestmark = pytest.mark.spark_cluster

TOPOLOGY = """
version: 1
delay: {levels: [1s]}
queues: {orders.timeout.queue: {}}
routes: [{key: order.created, delay: 1s, to: orders.timeout.queue}]
"""
ROWS = 200
# The sink writes the first half. The publisher itself writes the second; it gets the topology as a value.
# Spark looks for data sources by name among what is installed; one that was only sent along is registered.
JOB = """
import sys
from pathlib import Path

from delayctl.spark.source import DelaySource
from delayctl.topology.expand import expand
from delayctl.topology.parse import read_spec
from pyspark.sql import SparkSession

url, file = sys.argv[1:]
topology = expand(read_spec(Path(file).read_text(), {}, file=file))


def publish(batches):
    import os

    import delayctl
    import pyarrow
    from delayctl.publishers import DelayPublisher

    home = next((part for part in delayctl.__file__.split("/") if part.endswith(".zip")), delayctl.__file__)
    with DelayPublisher(url, topology=topology) as publisher:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            sent = [publisher.publish(str(n), key="order.created", level="1s", message_id=str(n)) for n in numbers]
            ids = [each.result(timeout=60) for each in sent]
            columns = {"id": ids, "home": [home] * len(ids), "worker": [os.getcwd()] * len(ids)}
            yield pyarrow.RecordBatch.from_pydict(columns)


with SparkSession.builder.getOrCreate() as spark:
    spark.dataSource.register(DelaySource)
    orders = spark.range(0, 100, numPartitions=2).selectExpr(
        "cast(id as string) as body", "'order.created' as routing_key", "'1s' as level", "cast(id as string) as message_id"
    )
    orders.write.format("delayctl").option("url", url).option("topology", file).mode("append").save()
    rows = spark.range(100, 200, numPartitions=2).mapInArrow(publish, "id string, home string, worker string").collect()
print(len({row.id for row in rows}), {row.home for row in rows}, len({row.worker for row in rows}))
"""


@pytest.fixture
def topology_file(rabbit: Rabbit, tmp_path: Path) -> str:
    """A topology of one level, on the broker and in a file."""
    file = tmp_path / "topology.yaml"
    file.write_text(TOPOLOGY, encoding="utf-8")
    ran = rabbit.delayctl("apply", str(file), "--yes")
    assert ran.code == 0, ran.err
    return str(file)


def delivered(rabbit: Rabbit) -> list[int]:
    """Wait for as many messages as there were rows, and take them."""
    rabbit.await_ready("orders.timeout.queue", ROWS)
    return sorted(int(message.body) for message in rabbit.take("orders.timeout.queue"))


def test_the_workers_have_no_delayctl_of_their_own(spark_jobs: SparkJobs, tmp_path: Path) -> None:
    """Nor any library of it: otherwise nothing would be proved below."""
    program = (
        "import importlib.util as u; print([n for n in ('pyarrow', 'delayctl', 'pika', 'yaml') if u.find_spec(n)])"
    )

    ran = subprocess.run([spark_jobs.executor_python, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, check=True)

    assert ran.stdout == b"['pyarrow']\n"


def test_workers_publish_with_what_was_sent_to_them(
    rabbit: Rabbit, spark_jobs: SparkJobs, tmp_path: Path, topology_file: str
) -> None:
    """Both workers do, through the data source and with the publisher, and every message arrives once."""
    job = tmp_path / "job.py"
    job.write_text(JOB, encoding="utf-8")

    ran = spark_jobs.run(job, rabbit.url, topology_file)

    assert (ran.code, ran.out) == (0, "100 {'delayctl-spark.zip'} 2\n"), ran.err
    assert delivered(rabbit) == list(range(ROWS))
