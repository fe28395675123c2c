"""Messages that are cancelled while they wait, on a real broker: nobody handles them, and nothing else is touched."""

import json
import logging
from pathlib import Path

import pytest
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.consuming import Seen, running
from tests.support.rabbit import Rabbit

FILE = """version: 1
delay:
  levels: [300ms, 2s]
  cancel: true
routes:
  - {key: order.created, delay: 2s, to: orders.queue}
retry:
  orders.queue: {levels: [300ms], max: 2, park: orders.dlq}
"""


@pytest.fixture
def file(rabbit: Rabbit, topology: TopologyFile) -> str:
    """A file with cancellations, applied."""
    path = topology.write(FILE)
    ran = rabbit.delayctl("apply", path, "--yes")
    assert ran.code == 0, ran.err
    return path


def publish(rabbit: Rabbit, file: str, *ids: str) -> None:
    """Messages that wait two seconds."""
    with DelayPublisher(rabbit.url, topology=file) as publisher:
        for name in ids:
            publisher.publish(name, key="order.created", level="2s", message_id=name)


def test_cancelled_while_the_consumer_runs(
    rabbit: Rabbit, topology: TopologyFile, file: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The handler never sees it; it is acknowledged, counted, logged and recorded as cancelled."""
    caplog.set_level(logging.INFO, "delayctl.consumer")
    seen, record = Seen(), tmp_path / "records"
    with running(rabbit.url, topology.path, {"orders.queue": seen}, record=record) as consumer:
        publish(rabbit, file, "a", "b", "c")
        ran = rabbit.delayctl("cancel", file, "b")
        seen.await_count(2)
        until(lambda: consumer.cancelled == 1, 10)

    lines = [json.loads(line) for each in record.iterdir() for line in each.read_text().splitlines()]
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Cancelled: 1 message, remembered until ")
    assert sorted(str(message.message_id) for message in seen.messages) == ["a", "c"]
    assert [line["message_id"] for line in lines if line.get("cancelled")] == ["b"]
    assert "cancelled: message b of orders.queue" in caplog.messages
    assert rabbit.ready("orders.queue") == 0


def test_cancelled_before_the_consumer_starts(rabbit: Rabbit, topology: TopologyFile, file: str) -> None:
    """Every consumer reads all cancellations first, however many come one after the other; what was taken back counts not."""
    publish(rabbit, file, "a", "b", "c", "d")
    assert rabbit.delayctl("cancel", file, "a", "b", "c").code == 0
    assert rabbit.delayctl("cancel", file, "c", "--undo").code == 0
    assert rabbit.delayctl("cancel", file, "d", "--for", "1ms").code == 0
    rabbit.await_ready("orders.queue", 4)
    rabbit.publish("delay.exchange", "delay.cancel", "no JSON")

    for _ in range(2):
        seen = Seen()
        with running(rabbit.url, topology.path, {"orders.queue": seen}) as consumer:
            seen.await_count(2)
            until(lambda: consumer.cancelled == 2, 10)
        assert sorted(str(message.message_id) for message in seen.messages) == ["c", "d"]
        publish(rabbit, file, "a", "b", "c", "d")
        rabbit.await_ready("orders.queue", 4)


def test_a_retry_can_be_cancelled(rabbit: Rabbit, topology: TopologyFile, file: str) -> None:
    """What failed and waits for its next try comes no more."""

    def fail(message: object) -> None:
        rabbit.delayctl("cancel", file, "a")
        raise RuntimeError("no luck")

    seen = Seen(fail)
    with running(rabbit.url, topology.path, {"orders.queue": seen}) as consumer:
        publish(rabbit, file, "a")
        until(lambda: consumer.cancelled == 1, 20)

    assert len(seen.messages) == 1
    assert rabbit.ready("orders.dlq") == 0


def test_the_stream_is_part_of_the_topology(rabbit: Rabbit, topology: TopologyFile, file: str) -> None:
    """A second plan changes nothing; it goes with the topology, and is missed where it is not there."""
    again = rabbit.delayctl("plan", file, "--detailed-exitcode")
    status = rabbit.delayctl("status", file)
    rabbit.api("DELETE", "queues/{vhost}/delay.cancelled.stream")
    missing = rabbit.delayctl("cancel", file, "x")
    mended = rabbit.delayctl("apply", file, "--yes")
    assert rabbit.delayctl("cancel", file, "x").code == 0
    destroyed = rabbit.delayctl("destroy", file, "--yes", "--accept-loss", "delay.cancelled.stream")

    assert again.code == 0, again.out
    assert status.code == 0, status.out
    assert (missing.code, "is not on the broker" in missing.err) == (1, True)
    assert mended.code == 0
    assert destroyed.code == 0, destroyed.out + destroyed.err
    assert rabbit.api("GET", "queues/{vhost}") == []


def test_a_topology_without_cancellations(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Says what to do."""
    path = topology.write(FILE.replace("  cancel: true\n", ""))

    ran = rabbit.delayctl("cancel", path, "x")

    assert ran.code == 1
    assert ran.err == (
        f"Error: this topology has no cancellations\n  at {path}\n"
        "  fix: write delay: {cancel: true}, apply it, and restart the consumers\n"
    )
