"""From DelayPublisher through a broker to a recording DelayConsumer, and the audit of it: nothing is lost, or it is found."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from delayctl.consumers.outcome import DONE, RETRY, Park
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import delayctl_process
from tests.support.consuming import Seen, running
from tests.support.rabbit import Rabbit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from testbed.spark import SparkHome

QUEUE = "orders.timeout.queue"
LEVELS = {"100ms": 100, "300ms": 300, "500ms": 500}
FILE = f"""\
version: 1
delay: {{levels: [{", ".join(LEVELS)}]}}
queues: {{{QUEUE}: {{}}}}
routes:
  - {{key: order.created, delay: 100ms, to: {QUEUE}}}
retry:
  {QUEUE}: {{levels: 100ms, max: 3, park: orders.dlq}}
"""
COUNT = 3_000


@pytest.fixture
def applied(rabbit: Rabbit, topology: TopologyFile) -> Rabbit:
    """A virtual host with the topology."""
    assert rabbit.delayctl("apply", topology.write(FILE), "--yes").code == 0
    return rabbit


def send(rabbit: Rabbit, topology: TopologyFile, checkpoint: Path, ids: list[str]) -> str:
    """Publish as a backfill does, level by level, and keep its ledger of what was confirmed."""
    from tests.support.audited import write_ledger  # noqa: PLC0415 (needs pyarrow)

    rows = []
    with DelayPublisher(rabbit.url, topology=topology.path) as publisher:
        for number, message_id in enumerate(ids):
            level = list(LEVELS)[number % len(LEVELS)]
            sent = time.time_ns() // 1_000_000
            publisher.publish("4711", key="order.created", level=level, message_id=message_id)
            rows.append(_row(message_id, level, sent))
    return write_ledger(checkpoint, rows)


def _row(message_id: str, level: str, sent_ms: int) -> dict[str, Any]:
    sent, due = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (sent_ms, sent_ms + LEVELS[level]))
    place = {"routing_key": "order.created", "exchange": f"delay.{level}.exchange", "run": 1, "partition": 0}
    times = {"sent_at": sent, "confirmed_at": sent, "due_at": due, "expected_at": due}
    return {"message_id": message_id, "level": level, **place, **times}


def recorded(folder: Path) -> list[dict[str, Any]]:
    """All that was recorded."""
    return [json.loads(line) for file in sorted(folder.glob("*.ndjson")) for line in file.read_text().splitlines()]


def audited(spark: "SparkSession", ledger: str, records: Path) -> Any:
    """What the audit says as of now, without mercy."""
    from delayctl.spark.audit import Rules  # noqa: PLC0415 (Spark need not be there for the rest)
    from delayctl.spark.audit_job import audit  # noqa: PLC0415

    return audit(spark, ledger, [str(records)], Rules(moment=time.time_ns() // 1_000_000, grace=0))


def test_all_that_was_sent_came(spark: "SparkSession", applied: Rabbit, topology: TopologyFile, tmp_path: Path) -> None:
    """Over three levels, some of it retried: 0 lost, 0 early, none twice."""
    seen = Seen(lambda message: RETRY if str(message.message_id)[-1] == "7" and not message.attempt else DONE)
    with running(applied.url, topology.path, {QUEUE: seen}, record=tmp_path / "records"):
        ledger = send(applied, topology, tmp_path / "checkpoint", [f"m-{number}" for number in range(COUNT)])
        seen.await_count(COUNT + COUNT // 10, deadline=60)

    found = audited(spark, ledger, tmp_path / "records")

    total = found.total
    assert (total.messages, total.delivered, total.lost, total.waiting) == (COUNT, COUNT, 0, 0)
    assert (total.duplicated, total.early, found.unknown, found.records.broken) == (0, 0, 0, 0)
    assert (found.records.deliveries, found.records.retries) == (COUNT + COUNT // 10, COUNT // 10)
    assert [(each.level, each.tally.messages) for each in found.levels] == [(level, COUNT // 3) for level in LEVELS]
    assert total.after_expected.p50 is not None
    assert 0 <= total.after_expected.p50 < 5_000
    assert found.is_clean


def test_what_is_recorded_of_every_outcome(applied: Rabbit, topology: TopologyFile, tmp_path: Path) -> None:
    """Done, retried and parked deliveries have their lines, with the attempt and the key that they first came with."""
    answers: dict[str, Any] = {"done": DONE, "park": Park("broken")}
    seen = Seen(lambda message: answers.get(message.text) or (DONE if message.attempt else RETRY))
    with running(applied.url, topology.path, {QUEUE: seen}, record=tmp_path):
        with DelayPublisher(applied.url, topology=topology.path) as publisher:
            for name in ("done", "park", "retry"):
                publisher.publish(name, key="order.created", level="100ms", message_id=name)
        seen.await_count(4)
        applied.await_ready("orders.dlq", 1)

    found = recorded(tmp_path)
    assert sorted((each["message_id"], each["attempt"]) for each in found) == [
        ("done", 0),
        ("park", 0),
        ("retry", 0),
        ("retry", 1),
    ]
    assert {(each["queue"], each["routing_key"], each["level"]) for each in found} == {
        (QUEUE, "order.created", "100ms")
    }
    assert all(0 <= each["received_at"] - each["due"] < 10_000 for each in found)


CONSUMER = """\
import resource, sys
from delayctl.consumers import DelayConsumer
from delayctl.topology.errors import DelayctlError
url, topology, records, most = sys.argv[1:]
if int(most):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(most), int(most)))
consumer = DelayConsumer(url, topology=topology)
consumer.handle("orders.timeout.queue", lambda message: None)
consumer.record(records)
try:
    consumer.run()
except DelayctlError as error:
    sys.exit(str(error))
"""


class TestUnkind:
    """What was not recorded was not acknowledged: every message is in the record, in the queue, or in both."""

    IDS = frozenset(f"m-{number}" for number in range(20_000))

    @pytest.fixture
    def full(self, applied: Rabbit, topology: TopologyFile) -> Rabbit:
        """A queue with many messages; their bodies are their ids."""
        with DelayPublisher(applied.url, topology=topology.path) as publisher:
            for message_id in self.IDS:
                publisher.publish(message_id, key=QUEUE, exchange="", message_id=message_id)
        return applied

    def _consume(self, rabbit: Rabbit, topology: TopologyFile, records: Path, most: int) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-c", CONSUMER, rabbit.url, str(topology.path), str(records), str(most)]
        return subprocess.Popen(arguments, text=True, stderr=subprocess.PIPE)

    def _await_the_rest(self, rabbit: Rabbit, file: Path, noted: set[str]) -> None:
        """What was not noted is in the queue, at the latest when the broker has noticed that its consumer is gone."""
        seen = Seen()
        with running(rabbit.url, file, {QUEUE: seen}):
            until(
                lambda: noted | {message.text for message in [*seen.messages]} == self.IDS,
                60,
                every=0.5,
                what="every message in the record or in the queue",
            )

    def test_killed(self, full: Rabbit, topology: TopologyFile, tmp_path: Path) -> None:
        """In the middle of it, by a signal that nobody hears."""
        records = tmp_path / "records"
        process = self._consume(full, topology, records, 0)
        until(lambda: any(file.stat().st_size > 100_000 for file in records.glob("*")), 30, every=0.005)
        process.kill()
        process.communicate()

        noted = {each["message_id"] for each in recorded(records)}

        assert 0 < len(noted) < len(self.IDS)
        self._await_the_rest(full, topology.path, noted)

    def test_a_full_disk(self, full: Rabbit, topology: TopologyFile, tmp_path: Path) -> None:
        """The consumer ends and says so."""
        records = tmp_path / "records"
        process = self._consume(full, topology, records, 200_000)
        _, error = process.communicate(timeout=60)

        # What was still handled when the disk was full begins another file; of the full one the last line is cut.
        whole = [line for file in records.iterdir() for line in file.read_text().split("\n")[:-1]]
        noted = {json.loads(line)["message_id"] for line in whole}

        assert process.returncode == 1
        assert error.startswith("Error: the record can't be written: File too large")
        assert 0 < len(noted) < len(self.IDS)
        self._await_the_rest(full, topology.path, noted)


def test_consume_records_what_it_takes(applied: Rabbit, topology: TopologyFile, tmp_path: Path) -> None:
    """The command does what a consumer does; looking on is no delivery."""
    with DelayPublisher(applied.url, topology=topology.path) as publisher:
        publisher.publish("x", key=QUEUE, exchange="", message_id="m-1")

    ran = applied.delayctl("consume", QUEUE, "--count", "1", "--wait", "20s", "--record", str(tmp_path))
    refused = applied.delayctl("consume", QUEUE, "--requeue", "--record", str(tmp_path))

    assert ran.code == 0
    assert [(each["message_id"], each["queue"], each["due"]) for each in recorded(tmp_path)] == [("m-1", QUEUE, None)]
    assert (refused.code, "--requeue takes nothing" in refused.err) == (64, True)


def test_the_command(spark_folder: "SparkHome", applied: Rabbit, topology: TopologyFile, tmp_path: Path) -> None:
    """What lies in a queue that nobody consumes from is untaken, and stays as it is; the one that never was is lost."""
    ledger = send(applied, topology, tmp_path / "checkpoint", ["a", "b", "c"])
    applied.await_ready(QUEUE, 3)
    ledger = add_to(ledger, "never sent")
    applied.delayctl("consume", QUEUE, "--count", "1", "--wait", "20s", "--record", str(tmp_path / "records"))
    report, records = tmp_path / "audit.html", tmp_path / "records"
    process = delayctl_process(
        "audit", "--ledger", ledger, "--record", str(records), "--look-into", QUEUE, "--grace", "0s",
        "--show", "lost", "--report", str(report), "--output", "json", "--master", "local[2]", *applied.options,
        env=spark_folder.environment(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = process.communicate(timeout=300)

    answer = json.loads(out)
    assert process.returncode == 1, err
    assert err == f"Looked at 2 messages in {QUEUE}, and left all there.\nWrote {report}.\n"
    assert [answer["total"][name] for name in ("delivered", "untaken", "lost")] == [1, 2, 1]
    assert answer["lying"] == [{"queue": QUEUE, "messages": 2, "untaken": 2}]
    assert [each["message_id"] for each in answer["shown"]] == ["never sent"]
    assert "1 lost, 2 untaken" in report.read_text(encoding="utf-8")
    assert [(each.body, each.key) for each in applied.take(QUEUE)] == [("4711", "order.created")] * 2


def test_what_was_drained_once_is_looked_at(
    spark: "SparkSession", applied: Rabbit, topology: TopologyFile, tmp_path: Path
) -> None:
    """The former option takes nothing any more, from the queue of what no route takes; and a delay is not looked into."""
    with DelayPublisher(applied.url, topology=topology.path) as publisher:
        publisher.publish("precious", key="typo.created", message_id="a", headers={"customer": "x"})
    from tests.support.audited import sent, write_ledger  # noqa: PLC0415 (needs pyarrow)

    ledger = write_ledger(tmp_path / "checkpoint", [sent("a")])
    applied.await_ready("delay.unrouted.queue", 1)

    looked = applied.delayctl("audit", "--ledger", ledger, "--drain", "delay.unrouted.queue", "--yes")
    refused = applied.delayctl("audit", "--ledger", ledger, "--look-into", "delay.100ms.queue")

    assert (looked.code, looked.out.partition(":")[0]) == (1, "1 untaken"), looked.err
    (left,) = applied.take("delay.unrouted.queue")
    assert (left.body, left.headers["customer"]) == ("precious", "x")
    assert (refused.code, "delay.100ms.queue is a delay" in refused.err) == (64, True)


def add_to(ledger: str, message_id: str) -> str:
    """One more row in a ledger."""
    from delayctl.spark.folder import Folder, Part  # noqa: PLC0415
    from delayctl.spark.journal import LEDGER, LEDGER_SCHEMA  # noqa: PLC0415

    Folder(ledger).write_part(LEDGER, Part(2, 0, 0, 0, 1), [_row(message_id, "100ms", 0)], LEDGER_SCHEMA)
    return ledger
