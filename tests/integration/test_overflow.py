"""More messages than a level holds: early but not lost, or refused to the publisher's face."""

import pika
import pika.exceptions
import pytest

from tests.conftest import TopologyFile
from tests.support.rabbit import Rabbit

BODIES = [f"m{number:02}" for number in range(25)]


def overflowing(overflow: str, kind: str) -> str:
    """A level of one hour that holds ten messages."""
    return (
        f"version: 1\ndelay:\n  levels: [1h]\n  queue: {{type: {kind}, max_length: 10, overflow: {overflow}}}\n"
        "routes:\n  - {key: reminder, delay: 1h, to: reminders.queue}\n"
    )


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_drop_head_lets_the_oldest_out_early_and_loses_none(rabbit: Rabbit, topology: TopologyFile, kind: str) -> None:
    """Of 25 messages into a level of ten, the oldest 15 come out at once, in order, and ten still wait."""
    rabbit.delayctl("apply", topology.write(overflowing("drop-head", kind)), "--yes")

    rabbit.publish("delay.1h.exchange", "reminder", *BODIES)
    rabbit.await_ready("reminders.queue", 15)
    early = rabbit.take("reminders.queue")

    assert [message.body for message in early] == BODIES[:15]
    assert {message.key for message in early} == {"reminder"}
    assert {message.headers["x-death"][0]["reason"] for message in early} == {"maxlen"}
    assert [message.body for message in rabbit.take("delay.1h.queue")] == BODIES[15:]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_reject_publish_tells_the_publisher(rabbit: Rabbit, topology: TopologyFile, kind: str) -> None:
    """Every message is either confirmed and waiting, or nacked; none comes out early."""
    rabbit.delayctl("apply", topology.write(overflowing("reject-publish", kind)), "--yes")

    confirmed, nacked = [], []
    with rabbit.channel() as channel:
        for body in BODIES:
            try:
                channel.basic_publish("delay.1h.exchange", "reminder", body.encode(), mandatory=True)
                confirmed.append(body)
            except pika.exceptions.NackError:
                nacked.append(body)

    assert len(nacked) >= 10
    assert sorted(confirmed + nacked) == BODIES
    assert [message.body for message in rabbit.take("delay.1h.queue")] == confirmed
    assert rabbit.take("reminders.queue") == []


def test_the_safe_profile_dead_letters_at_least_once(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Profile safe is quorum, reject-publish and at-least-once, and delivers."""
    file = topology.write(
        "version: 1\ndelay: {levels: [300ms], queue: {profile: safe}}\n"
        "routes: [{key: reminder, delay: 300ms, to: reminders.queue}]\n"
    )
    rabbit.delayctl("apply", file, "--yes")

    rabbit.publish("delay.300ms.exchange", "reminder", "precious")
    rabbit.await_ready("reminders.queue", 1)

    assert rabbit.queue("delay.300ms.queue")["arguments"] == {
        "x-queue-type": "quorum",
        "x-message-ttl": 300,
        "x-max-length": 1_000_000,
        "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "delay.exchange",
        "x-dead-letter-strategy": "at-least-once",
    }
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0
