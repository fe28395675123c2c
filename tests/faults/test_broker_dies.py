"""The broker is killed, or has no memory left, while services publish to it."""

import os
import time
from collections.abc import Callable

import pika
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.faults.account import Account
from tests.faults.killable import Killable
from tests.faults.traffic import await_arrival, await_confirmed, consuming, drain, publishing
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


def _connections(rabbit: Rabbit) -> list[dict[str, object]]:
    found = until(lambda: rabbit.api("GET", "vhosts/{vhost}/connections"), 15, what="the connection in the statistics")
    return [each for each in found if "delayctl" in str(each.get("client_properties", {}).get("connection_name"))]
