"""A backfill on Spark workers in processes of their own, where delayctl is not installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.backfills import Backfill, orders
from tests.support.commands import delayctl_process
from tests.support.rabbit import Rabbit
from tests.support.spark import SparkJobs

pytestmark = pytest.mark.spark_cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_backfill.py"
TOPOLOGY = """
version: 1
delay: {levels: [1h]}
queues: {orders: {}}
routes: [{key: order.created, delay: 1h, to: orders}]
"""
ROWS = 500


@pytest.fixture
def backfill(rabbit: Rabbit, tmp_path: Path) -> Backfill:
    """Orders in a lake, and the topology on the broker."""
    found = Backfill(rabbit, tmp_path / "topology.yaml", tmp_path)
    found.apply(TOPOLOGY)
    found.write(orders(*[3000] * ROWS))
    return found


def test_by_spark_submit(backfill: Backfill, spark_jobs: SparkJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script of the examples, with the archive that delayctl makes; passwords come by the environment."""
    script = Path(shutil.copy(EXAMPLE, backfill.folder))
    monkeypatch.setenv("DELAYCTL_URL", backfill.rabbit.url)
    monkeypatch.setenv("DELAYCTL_MANAGEMENT_URL", backfill.rabbit.broker.management_url)

    ran = spark_jobs.run(script, *backfill.arguments("--yes"))

    assert ran.code == 0, ran.out + ran.err
    assert f"{ROWS} rows: {ROWS} confirmed" in ran.out
    assert backfill.rabbit.ready("delay.1h.queue") == ROWS
    assert {row["partition"] for row in backfill.table("ledger")} == {0, 1}


def test_by_the_command_alone(backfill: Backfill, spark_jobs: SparkJobs) -> None:
    """It sends itself along; a checkpoint by a path from here is the same folder for the workers, who work elsewhere."""
    process = delayctl_process(
        *backfill.arguments("--yes", "--checkpoint", "here", "--master", spark_jobs.master),
        *backfill.rabbit.options,
        env=spark_jobs.home.environment(os.environ, executor_python=spark_jobs.executor_python),
        cwd=backfill.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    out, err = process.communicate(timeout=300)

    assert (process.returncode, err) == (0, ""), out
    assert f"{ROWS} rows: {ROWS} confirmed" in out
    assert backfill.rabbit.ready("delay.1h.queue") == ROWS
    assert pq.read_table(backfill.folder / "here" / "ledger").num_rows == ROWS
