"""The broker is killed, or has no memory left, while services publish to it."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pika
import pika.exceptions
import pytest
from delayctl.consumers.outcome import DONE, RETRY
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.version import has_delayed_retry

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.faults.account import Account
from tests.faults.killable import Killable
from tests.faults.traffic import await_arrival, await_confirmed, consuming, drain, publishing
from tests.support.commands import delayctl_process
from tests.support.consuming import Seen, running
from tests.support.rabbit import Rabbit

KILLS = int(os.environ.get("DELAYCTL_FAULTS_KILLS", "3"))
# One level that holds everything until the end, and one whose messages come out in the middle of it all. The second
# sees no kill: a queue that dead-letters at most once may lose what it moves at that moment, and one that does so at
# least once was seen to keep it for minutes after a kill.
TOPOLOGY = """
version: 1
delay:
  levels:
    1h: {}
    2s: {}
routes:
  - {key: via.now, delay: 1h, to: target}
  - {key: via.1h, delay: 1h, to: target}
  - {key: via.2s, delay: 2s, to: target}
"""


def test_kill_and_restart_while_publishing(
    killable: Killable, mortal: Rabbit, topology: TopologyFile, account: Callable[[str], Account]
) -> None:
    """Whatever was confirmed is there afterwards, and what was not was sent again."""
    assert mortal.delayctl("apply", topology.write(TOPOLOGY), "--yes").code == 0
    book = account(killable.broker.version)
    with (
        DelayPublisher(mortal.url, topology=topology.path, give_up_after_s=300, heartbeat_s=5) as publisher,
        consuming(mortal, topology.path, book),
    ):
        with publishing(publisher, book, "1h", "now"):
            for _ in range(KILLS):
                await_confirmed(book, 400)
                killable.kill()
                killable.start()
            await_confirmed(book, 400)

        await_arrival(book, "now")
    drain(mortal, book, "delay.1h.queue")

    book.check()
    assert book.confirmed == book.sent


def test_transient_messages_do_not_outlive_a_restart(
    killable: Killable, mortal: Rabbit, topology: TopologyFile
) -> None:
    """What lint foretells with D402: of what waits, a restart leaves the persistent messages alone."""
    file = topology.write(TOPOLOGY)
    assert mortal.delayctl("apply", file, "--yes").code == 0
    with mortal.channel() as channel:
        for mode in (1, 2, 1, 2, 1):
            properties = pika.BasicProperties(delivery_mode=mode)
            channel.basic_publish("delay.1h.exchange", "via.1h", str(mode).encode(), properties, mandatory=True)
    until(lambda: "D402" in mortal.delayctl("validate", file, "--live").out, 30, every=1)

    killable.kill()
    killable.start()

    assert [message.body for message in mortal.take("delay.1h.queue")] == ["2", "2"]


def test_memory_alarm(
    killable: Killable, mortal: Rabbit, topology: TopologyFile, account: Callable[[str], Account]
) -> None:
    """A blocked publisher waits without losing its connection, and goes on by itself."""
    assert mortal.delayctl("apply", topology.write(TOPOLOGY), "--yes").code == 0
    book = account(killable.broker.version)
    with (
        DelayPublisher(mortal.url, topology=topology.path, heartbeat_s=1, window=2000) as publisher,
        consuming(mortal, topology.path, book),
    ):
        with publishing(publisher, book, "1h", "2s"):
            await_confirmed(book, 200)
            killable.rabbitmqctl("set_vm_memory_high_watermark", "0.0000001")
            try:
                until(lambda: publisher.is_blocked, 30, what="the broker's word that it is blocked")
                connections = {each["name"] for each in _connections(mortal)}
                confirmed, end = len(book.confirmed), time.monotonic() + 4
                until(lambda: time.monotonic() > end, 10)  # Four heartbeats: a silent connection would be given up.
                assert publisher.is_blocked
                assert len(book.confirmed) <= confirmed + 2000
                assert {each["name"] for each in _connections(mortal)} == connections
            finally:
                killable.rabbitmqctl("set_vm_memory_high_watermark", "0.6")
            await_confirmed(book, 400)
            until(lambda: not publisher.is_blocked, 10, what="the broker's word that it takes messages again")

        await_arrival(book, "2s")
    drain(mortal, book, "delay.1h.queue")

    book.check()
    assert (book.confirmed, book.duplicated) == (book.sent, 0)


@pytest.mark.parametrize(("rule", "length"), [("D207", "unlimited"), ("D208", "1000000")])
def test_waits_fill_the_memory(
    killable: Killable, mortal: Rabbit, topology: TopologyFile, rule: str, length: str
) -> None:
    """What lint foretells: what waits sets off the alarm, and a publisher who has nothing to do with it stops, too.

    The bodies are large to be quick about it: until its log is full a quorum queue has them in memory.
    """
    file = topology.write(f"version: 1\ndelay: {{levels: [1h], queue: {{type: quorum, max_length: {length}}}}}\n")
    assert mortal.delayctl("apply", file, "--yes").code == 0
    room = (
        int(until(lambda: _node(mortal).get("mem_used", 0), 30, what="the node's memory in the statistics"))
        + 60_000_000
    )
    killable.rabbitmqctl("set_vm_memory_high_watermark", "absolute", str(room))
    try:
        until(lambda: _node(mortal).get("mem_limit") == room, 30, what="the new limit in the statistics")
        foretold = mortal.delayctl("validate", file, "--live").out
        with ThreadPoolExecutor() as pool:
            filling = pool.submit(_taken, mortal, "delay.1h.exchange", size=100_000, offered=10_000, patience=2)
            beside = pool.submit(_taken, mortal, "amq.topic", size=10, offered=100_000, patience=1)
        mortal.api("DELETE", "queues/{vhost}/delay.1h.queue")
    finally:
        killable.rabbitmqctl("set_vm_memory_high_watermark", "0.6")

    assert f"Warning {rule}: delay.1h.queue " in foretold
    assert 0 < filling.result() < 10_000
    assert 0 < beside.result() < 100_000


def _taken(rabbit: Rabbit, exchange: str, *, size: int, offered: int, patience: int) -> int:
    """How many messages the broker takes, one after the other, until it takes none for so many seconds."""
    parameters = pika.URLParameters(rabbit.url)
    parameters.blocked_connection_timeout = patience
    channel = pika.BlockingConnection(parameters).channel()
    channel.confirm_delivery()
    for number in range(offered):
        try:
            channel.basic_publish(exchange, "k", b"x" * size)
        except pika.exceptions.ConnectionBlockedTimeout:
            return number
    channel.connection.close()
    return offered


def _node(rabbit: Rabbit) -> dict[str, Any]:
    [node] = rabbit.api("GET", "nodes")
    return dict(node)


def _connections(rabbit: Rabbit) -> list[dict[str, object]]:
    found = until(lambda: rabbit.api("GET", "vhosts/{vhost}/connections"), 15, what="the connection in the statistics")
    return [each for each in found if "delayctl" in str(each.get("client_properties", {}).get("connection_name"))]


def test_what_waits_in_its_queue_outlives_a_kill(killable: Killable, mortal: Rabbit, topology: TopologyFile) -> None:
    """Retries by broker: the count is kept, and the wait goes on while the broker is away."""
    if not has_delayed_retry(killable.broker.version):
        pytest.skip("this broker's quorum queues do not make retries wait")
    content = "version: 1\nqueues: {work: {type: quorum}}\nretry: {work: {by: broker, step: 8s, park: work.dlq}}\n"
    assert mortal.delayctl("apply", topology.write(content), "--yes").code == 0
    bodies = [f"m-{number:02}" for number in range(20)]
    seen = Seen(lambda message: DONE if message.attempt else RETRY)

    with running(mortal.url, topology.path, {"work": seen}):
        mortal.publish("", "work", *bodies)
        until(lambda: mortal.queue("work").get("messages_delayed") == 20, 15)
        killable.kill()
        killable.start()
        seen.await_count(40, 60)

    assert sorted((message.attempt, message.text) for message in seen.messages) == [
        (attempt, body) for attempt in (0, 1) for body in bodies
    ]
    assert mortal.ready("work.dlq") == 0


def _not_proved(mortal: Rabbit, file: str) -> dict[str, list[str]]:
    """What verify has against the levels, after waiting for two seconds."""
    # In a process of its own: what a library logs, pytest would keep from stderr.
    arguments = ("verify", file, "--timeout", "2", "--output", "json", *mortal.options)
    process = delayctl_process(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "")
    ways = json.loads(out)["ways"]
    return {way["name"]: [trouble["name"] for trouble in way["troubles"]] for way in ways if not way["proved"]}


def test_verify_during_a_memory_alarm(killable: Killable, mortal: Rabbit, topology: TopologyFile) -> None:
    """It says that the broker takes nothing; and what it takes later is caught all the same, and parked with nobody."""
    file = topology.write("version: 1\ndelay: {levels: [200ms, 1h]}\n")
    assert mortal.delayctl("apply", file, "--yes").code == 0
    killable.rabbitmqctl("set_vm_memory_high_watermark", "0.0000001")
    try:
        until(lambda: any(node.get("mem_alarm") for node in mortal.api("GET", "nodes")), 30)
        found = _not_proved(mortal, file)
    finally:
        killable.rabbitmqctl("set_vm_memory_high_watermark", "0.6")

    assert found == {name: ["blocked"] for name in ("delay.exchange", "200ms", "1h")}
    until(lambda: mortal.delayctl("verify", file, "--timeout", "2").code == 0, 30)
    assert mortal.ready("delay.unrouted.queue") == 0


def test_verify_of_a_queue_that_does_not_answer(killable: Killable, mortal: Rabbit, topology: TopologyFile) -> None:
    """It says which level is not confirmed, and proves the others."""
    file = topology.write("version: 1\ndelay: {levels: [200ms, 300ms]}\n")
    assert mortal.delayctl("apply", file, "--yes").code == 0
    name = f'rabbit_misc:r(<<"{mortal.vhost}">>, queue, <<"delay.200ms.queue">>)'
    process = f"{{ok, Q}} = rabbit_amqqueue:lookup({name}), sys:VERB(amqqueue:get_pid(Q))."
    killable.rabbitmqctl("eval", process.replace("VERB", "suspend"))
    try:
        found = _not_proved(mortal, file)
    finally:
        killable.rabbitmqctl("eval", process.replace("VERB", "resume"))

    assert found == {"200ms": ["unconfirmed"]}
    mortal.await_ready("delay.verify.queue", 2)
    assert mortal.ready("delay.unrouted.queue") == 0
