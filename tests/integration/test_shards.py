"""Levels that are spread over several queues, on a real broker: to users one level, whatever command they ask."""

import json
from collections import Counter
from typing import Any

import pytest
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import delayctl
from tests.support.consuming import Seen, raise_, running
from tests.support.rabbit import Rabbit

MESSAGES = 300
FILE = """
version: 1
delay:
  settings: HOME
  levels:
    300ms: {shards: 2, type: quorum}
    1h: {shards: 3, max_length: 10000}
exchanges: {orders: {}}
routes:
  - {from: orders, key: order.created, delay: 300ms, to: orders.queue}
  - {from: orders, key: order.shipped, delay: 1h, to: orders.queue}
retry:
  orders.queue: {levels: [300ms], max: 2, park: orders.dlq}
"""
SHARDS = ["delay.1h.1.queue", "delay.1h.2.queue", "delay.1h.3.queue"]


@pytest.fixture
def home() -> str:
    """Where settings are kept, unless a test says otherwise."""
    return "arguments"


@pytest.fixture
def file(rabbit: Rabbit, topology: TopologyFile, home: str) -> str:
    """A file with two levels that are spread, applied."""
    path = topology.write(FILE.replace("HOME", home))
    applied = rabbit.delayctl("apply", path, "--yes")
    assert applied.code == 0, applied.out + applied.err
    return path


def answered(rabbit: Rabbit, *arguments: str) -> Any:
    """What a command answers to programs."""
    ran = rabbit.delayctl(*arguments, "--output", "json")
    assert ran.code == 0, ran.out + ran.err
    return json.loads(ran.out)


def test_each_queue_gets_its_part_and_every_command_speaks_of_the_level(rabbit: Rabbit, file: str) -> None:
    """By the file or by the broker's record; with ids or, from other clients, without."""
    with DelayPublisher(rabbit.url, topology=file) as publisher:
        for _ in range(MESSAGES // 2):
            publisher.publish(b"x", key="order.shipped", level="1h")
    with DelayPublisher(rabbit.url, management_url=rabbit.broker.management_url) as publisher:
        for _ in range(MESSAGES // 2):
            publisher.publish(b"x", key="order.shipped", level="1h")
    counts = [rabbit.ready(name) for name in SHARDS]
    rabbit.publish("orders", "order.shipped", "no id", "no id either")
    until(
        lambda: answered(rabbit, "status", file)["levels"][1]["waiting"] == MESSAGES + 2,
        30,
        what="figures of all shards",
    )
    (_, hour) = answered(rabbit, "status", file)["levels"]
    pending = answered(rabbit, "pending", file, "--level", "1h", "--sample", "0")
    plan = rabbit.delayctl("plan", file, "--detailed-exitcode")
    expedited = rabbit.delayctl("expedite", file, "--level", "1h", "--all")
    rabbit.await_ready("orders.queue", MESSAGES + 2)

    assert sum(counts) == MESSAGES
    # By their ids they fall as dice do: below half its share a shard comes once in a billion runs.
    assert all(count > MESSAGES / 3 / 2 for count in counts), counts
    assert (hour["level"], hour["queue"], hour["effective"]["max_length"]) == ("1h", "delay.1h.*.queue", 10_000)
    assert [shard["queue"] for shard in hour["shards"]] == SHARDS
    limits = [shard["effective"]["max_length"] for shard in hour["shards"]]
    assert limits == [3334, 3333, 3333]
    assert sum(shard["waiting"] for shard in hour["shards"]) == MESSAGES + 2
    assert [place["queue"] for place in pending["queues"]] == SHARDS
    assert plan.code == 0, plan.out
    assert expedited.code == 0, expedited.out + expedited.err
    assert {message.key for message in rabbit.take("orders.queue")} == {"order.shipped"}


def test_what_fails_waits_in_a_shard_again(rabbit: Rabbit, topology: TopologyFile, file: str) -> None:
    """With its key and its id, until it is parked."""
    with DelayPublisher(rabbit.url, topology=file) as publisher:
        for number in range(6):
            publisher.publish(b"x", key="order.created", level="300ms", message_id=f"m{number}")
    seen = Seen(raise_)
    with running(rabbit.url, topology.path, {"orders.queue": seen}):
        rabbit.await_ready("orders.dlq", 6)

    tries = Counter(message.message_id for message in seen.messages)
    assert tries == {f"m{number}": 3 for number in range(6)}
    assert {message.key for message in rabbit.take("orders.dlq")} == {"delay.park.orders.dlq"}


def test_verify_proves_every_shard_and_doctor_has_nothing_to_say(rabbit: Rabbit, file: str) -> None:
    """Canaries go to each by its own entrance, and to the level by its own."""
    verified = rabbit.delayctl("verify", file, "--output", "json")
    doctor, by_record = rabbit.delayctl("doctor", file), rabbit.delayctl("doctor")

    assert verified.code == 0, verified.out + verified.err
    ways = [(way["kind"], way["name"]) for way in json.loads(verified.out)["ways"]]
    assert ("level", "1h") in ways
    assert [name for kind, name in ways if kind == "shard"] == ["300ms.1", "300ms.2", "1h.1", "1h.2", "1h.3"]
    assert (doctor.code, by_record.code) == (0, 0), doctor.out + by_record.out + by_record.err


@pytest.mark.parametrize("home", ["arguments", "policy"])
def test_import_finds_the_level_again(rabbit: Rabbit, file: str) -> None:
    """As one level with its shards and all its room; planning that file changes nothing."""
    imported = rabbit.delayctl("import")

    assert imported.code == 0, imported.err
    assert "shards: 3" in imported.out
    assert "max_length: 10000" in imported.out
    assert rabbit.plan_text(imported.out, "--detailed-exitcode").code == 0


def test_definitions_make_the_same(rabbit: Rabbit, file: str) -> None:
    """What is exported, imported by the broker itself, is what was applied."""
    exported = delayctl("export", file, "--format", "definitions", "--vhost", rabbit.vhost)
    before = rabbit.definitions()
    assert rabbit.delayctl("destroy", file, "--yes").code == 0

    rabbit.api("POST", "definitions/{vhost}", json.loads(exported.out))

    assert rabbit.definitions() == before
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0


def test_over_amqp_alone_the_number_of_queues_does_not_change(rabbit: Rabbit, topology: TopologyFile) -> None:
    """The former ones would stay bound, and every message come twice or wait where none shall; the first apply is fine."""
    alone = topology.write("version: 1\ndelay: {levels: [1h]}\n")
    first = rabbit.delayctl("apply", alone, "--yes", "--no-management")
    topology.write("version: 1\ndelay: {levels: {1h: {shards: 3}}}\n")
    second = rabbit.delayctl("apply", alone, "--yes", "--no-management")
    known = rabbit.delayctl("apply", alone, "--yes")
    again = rabbit.delayctl("apply", alone, "--yes", "--no-management")
    topology.write("version: 1\ndelay: {levels: {1h: {shards: 2}}}\n")
    fewer = rabbit.delayctl("apply", alone, "--yes", "--no-management")
    topology.write("version: 1\ndelay: {levels: [1h]}\n")
    back = rabbit.delayctl("apply", alone, "--yes", "--no-management")

    codes = [ran.code for ran in (first, second, known, again, fewer, back)]
    assert codes == [0, 1, 0, 0, 1, 1], second.err + known.err + again.err + fewer.err + back.err
    assert "queue delay.1h.queue is on the broker" in second.err
    assert "exchange delay.1h.3.exchange is on the broker" in fewer.err
    assert "exchange delay.1h.spread.exchange is on the broker" in back.err
