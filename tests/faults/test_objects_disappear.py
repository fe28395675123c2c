"""Queues and exchanges are deleted or full while services use them."""

import threading
import time
from collections.abc import Callable
from functools import partial

from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.message import Message
from delayctl.consumers.outcome import RETRY, Outcome, Park
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import Nacked, Unroutable
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.faults.account import Account
from tests.faults.traffic import await_arrival, await_confirmed, consuming, publishing
from tests.support.rabbit import Rabbit

TOPOLOGY = """
version: 1
delay:
  levels:
    200ms: {}
    300ms: {}
    2s: {max_length: 10, overflow: reject-publish}
routes:
  - {key: via.200ms, delay: 200ms, to: target}
  - {key: via.300ms, delay: 300ms, to: target}
  - {key: via.2s, delay: 2s, to: target}
retry:
  target: {levels: [2s], max: 2, park: target.dlq}
"""


def apply(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Declare all that is missing."""
    ran = rabbit.delayctl("apply", topology.write(TOPOLOGY), "--yes")
    assert ran.code == 0, ran.err


def test_queue_deleted_under_the_publisher(
    rabbit: Rabbit, topology: TopologyFile, account: Callable[[str], Account]
) -> None:
    """Messages to its level fail as unroutable until it is back; those to another level go on all the while.

    It is empty when it is deleted: what is inside, or on its way inside, goes with it, though it was confirmed.
    """
    apply(rabbit, topology)
    book = account(rabbit.broker.version)
    with (
        DelayPublisher(rabbit.url, topology=topology.path) as publisher,
        consuming(rabbit, topology.path, book),
    ):
        with publishing(publisher, book, "300ms"):
            for phase in ("before", "meanwhile", "after"):
                if phase == "meanwhile":
                    rabbit.api("DELETE", "queues/{vhost}/delay.200ms.queue")
                elif phase == "after":
                    apply(rabbit, topology)
                for number in range(50):
                    book.watch(f"{phase}-{number}", partial(_to_200ms, publisher))
                until(lambda: not [each for each in book.unanswered if not each.startswith("300ms")], 20)
                await_confirmed(book, 50)
                await_arrival(book, phase)
        await_arrival(book)

    book.check()
    assert book.failed_ids == {f"meanwhile-{number}" for number in range(50)}
    assert set(book.failed) == {Unroutable.__name__}
    assert book.duplicated == 0


def _to_200ms(publisher: DelayPublisher, message_id: str) -> Delivery:
    return publisher.publish(b"", key="via.200ms", level="200ms", message_id=message_id)


def test_entrance_deleted_under_the_publisher(
    rabbit: Rabbit, topology: TopologyFile, account: Callable[[str], Account]
) -> None:
    """The broker closes the channel over it; only messages to that level fail, the others are sent again."""
    apply(rabbit, topology)
    book = account(rabbit.broker.version)
    with (
        DelayPublisher(rabbit.url, topology=topology.path) as publisher,
        consuming(rabbit, topology.path, book),
    ):
        with publishing(publisher, book, "200ms", "300ms"):
            await_confirmed(book, 200)
            rabbit.api("DELETE", "exchanges/{vhost}/delay.200ms.exchange")
            until(lambda: book.failed[Unroutable.__name__] >= 50, 20)
            apply(rabbit, topology)
            await_confirmed(book, 200)
        await_arrival(book)

    book.check()
    assert {message_id.partition("-")[0] for message_id in book.failed_ids} == {"200ms"}
    assert set(book.failed) == {Unroutable.__name__}
    assert book.duplicated < 200, "only what was under way when it happened first is sent again"


def test_full_queue_that_rejects(rabbit: Rabbit, topology: TopologyFile, account: Callable[[str], Account]) -> None:
    """The publisher is told, message by message; what was taken arrives."""
    apply(rabbit, topology)
    book = account(rabbit.broker.version)
    with (
        DelayPublisher(rabbit.url, topology=topology.path) as publisher,
        consuming(rabbit, topology.path, book),
    ):
        with publishing(publisher, book, "2s"):
            until(lambda: book.failed[Nacked.__name__] >= 100, 20)
        await_arrival(book)

    book.check()
    assert set(book.failed) == {Nacked.__name__}
    assert len(book.confirmed) >= 10
    assert book.received.keys() == book.confirmed


def test_retry_is_refused(rabbit: Rabbit, topology: TopologyFile, account: Callable[[str], Account]) -> None:
    """While the level of the retries is full, messages stay in their queue; none is acknowledged, none is lost."""
    apply(rabbit, topology)
    book = account(rabbit.broker.version)
    started = time.monotonic()

    def patient(message: Message) -> Outcome:
        if time.monotonic() - started < 3:
            return RETRY  # Forty of these do not fit into a level of ten.
        book.delivered(str(message.message_id), message.headers.get("delay-due"))
        return None

    consumer = DelayConsumer(rabbit.url, topology=topology.path)
    consumer.handle("target", patient)
    thread = threading.Thread(target=consumer.run)
    thread.start()
    try:
        with DelayPublisher(rabbit.url, topology=topology.path) as publisher:
            for number in range(40):
                book.watch(f"m-{number}", partial(_to_200ms, publisher))
            publisher.flush(10)
        until(lambda: not book.lost, 30)
        until(lambda: rabbit.ready("delay.2s.queue") == rabbit.ready("target") == 0, 10)
    finally:
        consumer.stop()
        thread.join(30)

    assert rabbit.ready("target") == rabbit.ready("target.dlq") == 0
    book.check()
    assert book.duplicated == 0


def test_parking_queue_is_gone(rabbit: Rabbit, topology: TopologyFile, account: Callable[[str], Account]) -> None:
    """What can't be parked is caught by the net under the exit, with its reason."""
    apply(rabbit, topology)
    book = account(rabbit.broker.version)
    consumer = DelayConsumer(rabbit.url, topology=topology.path)
    consumer.handle("target", lambda _: Park("broken"))
    thread = threading.Thread(target=consumer.run)
    thread.start()
    try:
        until(lambda: rabbit.api("GET", "consumers/{vhost}"), 15)
        rabbit.api("DELETE", "queues/{vhost}/target.dlq")
        with DelayPublisher(rabbit.url, topology=topology.path) as publisher:
            book.watch("m-1", partial(_to_200ms, publisher))
        rabbit.await_ready("delay.unrouted.queue", 1)
    finally:
        consumer.stop()
        thread.join(30)

    (caught,) = rabbit.take("delay.unrouted.queue")
    assert (caught.key, caught.headers["delay-parked"]) == ("delay.park.target.dlq", "broken")
    book.delivered("m-1")
    assert rabbit.ready("target") == 0
    book.check()
