"""Keys, ids and headers that are no UTF-8, which any client can send: shown escaped, and nothing breaks over them."""

import json
import os
import subprocess
from typing import Any

import pytest
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import delayctl_process
from tests.support.rabbit import Rabbit

FILE = """version: 1
delay: {levels: [100ms, 1h]}
routes:
  - {key: order.created, delay: 100ms, to: orders.queue}
retry:
  orders.queue: {levels: [100ms], max: 1, park: orders.dlq}
"""
KEY, SHOWN = "r\udcff", r"r\xff"
HEADERS = {"h\udcfe": "v\udcfd", "raw": b"\xfc"}


@pytest.fixture
def file(rabbit: Rabbit, topology: TopologyFile) -> str:
    """A file on a broker where such a message waits, another had no way out, and a third is parked."""
    path = topology.write(FILE)
    assert rabbit.delayctl("apply", path, "--yes").code == 0
    odd: dict[str, Any] = {"key": KEY, "message_id": "i\udcfb", "headers": HEADERS}
    with DelayPublisher(rabbit.url, topology=path) as publisher:
        publisher.publish(b"\xff", level="100ms", **odd)
        publisher.publish(b"\xff", level="1h", **odd)
        parked = {**HEADERS, "delay-parked": "why \udcff", "delay-origin": {"exchange": "", "key": KEY}}
        publisher.publish(b"\xff", key="orders.dlq", exchange="", headers=parked)
    rabbit.await_ready("delay.unrouted.queue", 1)
    return path


def ran(rabbit: Rabbit, *arguments: str) -> tuple[int, str]:
    """What a command answers on a stdout that takes nothing but UTF-8."""
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    process = delayctl_process(
        *arguments, *rabbit.options, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    out, err = process.communicate(timeout=120)
    assert "did not foresee" not in err, err
    assert "Traceback" not in err, err
    return process.returncode, out


def test_pending(rabbit: Rabbit, file: str) -> None:
    """As text and as JSON."""
    code, text = ran(rabbit, "pending", file, "--list", "--disturb")
    also, told = ran(rabbit, "pending", file, "--output", "json", "--disturb")

    assert (code, also) == (0, 0)
    assert text.count(SHOWN) == 6
    found = {each["queue"]: each["seen"] for each in json.loads(told)["queues"] if each["seen"]}
    assert {queue: [one["key"] for one in seen] for queue, seen in found.items()} == {
        "delay.1h.queue": [SHOWN],
        "orders.dlq": [SHOWN],
        "delay.unrouted.queue": [SHOWN],
    }
    assert found["delay.unrouted.queue"][0]["message_id"] == r"i\xfb"
    assert found["orders.dlq"][0]["reason"] == r"why \xff"


def test_doctor(rabbit: Rabbit, file: str) -> None:
    """It looks for a route by the bytes of the key."""
    # The figures that it goes by come late.
    until(lambda: ran(rabbit, "doctor", file)[0] == 1, 60, what="figures", every=0.5)
    _, text = ran(rabbit, "doctor", file)
    _, told = ran(rabbit, "doctor", file, "--output", "json")

    assert rf"1 × key '{SHOWN}', waited in delay.100ms.queue: no route" in text
    assert rf"1 × key '{SHOWN}': why \xff" in text
    assert any(SHOWN in line for each in json.loads(told)["findings"] for line in each["seen"])


def test_redrive(rabbit: Rabbit, file: str) -> None:
    """What is sent on has the bytes that it came with."""
    _, text = ran(rabbit, "redrive", file, "--queue", "delay.unrouted.queue", "--dry-run")
    code, told = ran(rabbit, "redrive", file, "--queue", "orders.dlq", "--origin", "--dry-run", "--output", "json")
    ran(rabbit, "redrive", file, "--queue", "delay.unrouted.queue", "--to", "orders.queue")

    assert rf"no route for key '{SHOWN}'" in text
    assert (code, json.loads(told)["to"]) == (0, [{"place": rf"the default exchange with key {SHOWN}", "count": 1}])
    with rabbit.channel() as channel:
        _, properties, body = channel.basic_get("orders.queue", auto_ack=True)
    headers: Any = properties.headers if properties else None  # What is no text stays bytes with pika, names too.
    assert (body, headers[b"h\xfe"], headers["raw"]) == (b"\xff", b"v\xfd", b"\xfc")


def test_consume(rabbit: Rabbit, file: str) -> None:
    """Every line is JSON, header names and values included."""
    code, text = ran(rabbit, "consume", "delay.unrouted.queue", "--requeue", "--wait", "1s")
    also, told = ran(rabbit, "consume", "delay.unrouted.queue", "--wait", "1s", "--output", "json")

    assert (code, also) == (0, 0)
    assert SHOWN in text
    (line,) = [json.loads(each) for each in told.splitlines()]
    assert (line["key"], line["message_id"], line["body_base64"]) == (SHOWN, r"i\xfb", "/w==")
    assert {name: line["headers"][name] for name in (r"h\xfe", "raw")} == {
        r"h\xfe": r"v\xfd",
        "raw": r"\xfc",
    }


@pytest.mark.parametrize("output", ["text", "json"])
def test_publish(rabbit: Rabbit, file: str, output: str) -> None:
    """A key that was typed so is sent as it is, and the answer shows it escaped."""
    code, told = ran(rabbit, "publish", file, "--key", KEY, "--level", "1h", "--output", output, "x")

    assert code == 0
    assert (json.loads(told)["key"] if output == "json" else told.split()[4]) == SHOWN
    rabbit.await_ready("delay.1h.queue", 2)
