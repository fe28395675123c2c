"""Ledger, broker and consumers tell the same of a backfill; `make million` runs it with a million rows."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from testbed.wait import until
from tests.support.backfills import Backfill
from tests.support.rabbit import Rabbit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = int(os.environ.get("DELAYCTL_BACKFILL_ROWS", "6000"))
RATE = "5000/s"  # What one small broker can take in, let out and deliver all at once.
LEVELS = ("1s", "5s", "15s")
TOPOLOGY = """
version: 1
delay: {levels: [1s, 5s, 15s]}
queues: {orders: {}}
routes: [{key: order.created, delay: 1s, to: orders}]
"""
CONSUMER = """
import sys
from delayctl.consumers import DONE, DelayConsumer

url, topology, record = sys.argv[1:]
consumer = DelayConsumer(url, topology=topology, prefetch=2000)
consumer.handle("orders", lambda message: DONE)
consumer.record(record)
consumer.run()
"""


@pytest.fixture
def backfill(rabbit: Rabbit, tmp_path: Path, spark: "SparkSession") -> Backfill:
    """A table of orders, a third of them for each level."""
    job = Backfill(rabbit, tmp_path / "topology.yaml", tmp_path)
    job.apply(TOPOLOGY)
    numbers = range(ROWS)
    job.write(pa.table({"order_id": numbers, "wait": [LEVELS[number % len(LEVELS)] for number in numbers]}))
    return job


@contextmanager
def consuming(backfill: Backfill, record: Path) -> Iterator[None]:
    """A service that records what it handles; stopped as services are."""
    command = [sys.executable, "-c", CONSUMER, backfill.rabbit.url, str(backfill.topology), str(record)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said


def lines_in(record: Path) -> int:
    """How many messages were recorded so far."""
    return sum(file.read_bytes().count(b"\n") for file in record.glob("*.ndjson"))


def test_all_tell_the_same(backfill: Backfill) -> None:
    """Every row is in the ledger once, went through its level once, and was handled once, not before its time."""
    record = backfill.folder / "record"
    with consuming(backfill, record):
        code, answer = backfill.answer("--level-column", "wait", "--partitions", "2", "--rate", RATE)
        until(lambda: lines_in(record) >= ROWS, 600, every=0.5, what="the last message")

    per_level = {level: len(range(place, ROWS, len(LEVELS))) for place, level in enumerate(LEVELS)}
    outcome = answer["outcome"]
    assert (code, outcome["confirmed"], outcome["in_ledger"]) == (0, ROWS, ROWS)
    ledger = pq.read_table(backfill.checkpoint / "ledger", columns=["message_id", "level"])
    assert Counter(ledger.column("level").to_pylist()) == per_level
    assert len(set(ledger.column("message_id").to_pylist())) == ROWS
    until(lambda: taken_in(backfill.rabbit) == per_level, 60, every=1, what="the broker's counts")
    left = [*(f"delay.{level}.queue" for level in LEVELS), "orders", "delay.unrouted.queue"]
    assert [backfill.rabbit.ready(queue) for queue in left] == [0] * len(left)

    audit = backfill.rabbit.delayctl(
        "audit", "--ledger", str(backfill.checkpoint), "--record", str(record), "--grace", "0s", "--output", "json"
    )

    assert audit.code == 0, audit.err
    said = json.loads(audit.out)
    total = said["total"]
    print(json.dumps({"outcome": outcome, "audit": total}, indent=1))  # For `make million`, which shows it.
    assert (total["messages"], total["delivered"], said["ledger_rows"]) == (ROWS, ROWS, ROWS)
    assert (total["lost"], total["duplicated"], total["early"], said["unknown"]) == (0, 0, 0, 0)


def taken_in(rabbit: Rabbit) -> dict[str, int]:
    """How many messages each level has taken in, as the broker counts them."""
    queues = {level: rabbit.queue(f"delay.{level}.queue") for level in LEVELS}
    return {level: queue.get("message_stats", {}).get("publish", 0) for level, queue in queues.items()}
