"""The network between a service and its broker is cut, or goes silent."""

import threading
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.message import Message
from delayctl.publishers.errors import ConnectionLost
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.faults.account import Account
from tests.faults.traffic import await_arrival, await_confirmed, consuming, publishing
from tests.support.rabbit import Rabbit
from tests.support.tcp_proxy import TcpProxy

TOPOLOGY = """
version: 1
delay: {levels: [300ms]}
routes:
  - {key: via.300ms, delay: 300ms, to: target}
retry:
  target: {levels: [300ms], max: 50, park: target.dlq}
"""


def through(proxy: TcpProxy, rabbit: Rabbit) -> str:
    """The URL of a virtual host behind a proxy."""
    parts = urlsplit(rabbit.url)
    return parts._replace(netloc=f"guest:guest@127.0.0.1:{proxy.port}").geturl()


def proxy_to(rabbit: Rabbit) -> TcpProxy:
    """A network of our own to a broker."""
    return TcpProxy(urlsplit(rabbit.url).netloc.rpartition("@")[2])


@pytest.fixture
def applied(rabbit: Rabbit, topology: TopologyFile) -> Rabbit:
    """A virtual host with the topology."""
    assert rabbit.delayctl("apply", topology.write(TOPOLOGY), "--yes").code == 0
    return rabbit


def test_cut_under_the_publisher(applied: Rabbit, topology: TopologyFile, account: Callable[[str], Account]) -> None:
    """Ten times; what was not confirmed is sent again with the same id."""
    book = account(applied.broker.version)
    with (
        proxy_to(applied) as proxy,
        DelayPublisher(through(proxy, applied), topology=topology.path) as publisher,
        consuming(applied, topology.path, book),
    ):
        with publishing(publisher, book, "300ms"):
            for _ in range(10):
                await_confirmed(book, 100)
                proxy.cut()
            await_confirmed(book, 100)
        await_arrival(book)
        assert proxy.accepted == 11

    book.check()
    assert book.confirmed == book.sent


def test_stalled_under_the_publisher(
    applied: Rabbit, topology: TopologyFile, account: Callable[[str], Account]
) -> None:
    """A connection that is open and silent is given up after two heartbeats."""
    book = account(applied.broker.version)
    with (
        proxy_to(applied) as proxy,
        DelayPublisher(through(proxy, applied), topology=topology.path, heartbeat_s=1) as publisher,
        consuming(applied, topology.path, book),
    ):
        with publishing(publisher, book, "300ms"):
            for _ in range(2):
                await_confirmed(book, 100)
                proxy.stall()
            await_confirmed(book, 100)
        await_arrival(book)

    book.check()
    assert book.confirmed == book.sent


def test_no_way_back_in_time(applied: Rabbit, topology: TopologyFile, account: Callable[[str], Account]) -> None:
    """What waits too long fails by name; when the network is back, so is the publisher."""
    book = account(applied.broker.version)
    with (
        proxy_to(applied) as proxy,
        DelayPublisher(through(proxy, applied), topology=topology.path, give_up_after_s=1) as publisher,
        consuming(applied, topology.path, book),
    ):
        proxy.is_down = True
        proxy.cut()
        for number in range(20):
            book.watch(
                f"too-late-{number}",
                lambda message_id: publisher.publish(b"", key="via.300ms", level="300ms", message_id=message_id),
            )
        until(lambda: not book.unanswered, 20, what="the end of patience")
        assert book.failed == {ConnectionLost.__name__: 20}

        proxy.is_down = False
        with publishing(publisher, book, "300ms"):
            await_confirmed(book, 20)
        await_arrival(book)

    book.check()


@pytest.mark.parametrize("trouble", ["cut", "stall"])
def test_under_the_consumer(
    applied: Rabbit, topology: TopologyFile, account: Callable[[str], Account], trouble: str
) -> None:
    """What was not acknowledged comes again; retries in the middle of it are not lost either."""
    book = account(applied.broker.version)
    tried: set[str] = set()

    def every_third_fails_at_first(message: Message) -> None:
        name = str(message.message_id)
        if int(name.rpartition("-")[2]) % 3 == 0 and name not in tried:
            tried.add(name)
            raise RuntimeError("not yet")
        book.delivered(name, message.headers.get("delay-due"))

    with proxy_to(applied) as proxy:
        consumer = DelayConsumer(through(proxy, applied), topology=topology.path, heartbeat_s=1, prefetch=20)
        consumer.handle("target", every_third_fails_at_first)
        thread = threading.Thread(target=consumer.run)
        thread.start()
        try:
            with DelayPublisher(applied.url, topology=topology.path) as publisher:
                with publishing(publisher, book, "300ms"):
                    for _ in range(3):
                        arrived = len(book.received)
                        until(lambda arrived=arrived: len(book.received) > arrived + 50, 30)  # type: ignore[misc]
                        proxy.cut() if trouble == "cut" else proxy.stall()
                until(lambda: not book.lost, 30, what="the arrival of everything")
            until(lambda: applied.ready("target") == 0, 10)
        finally:
            consumer.stop()
            thread.join(30)

    assert not thread.is_alive()
    assert applied.ready("target") == applied.ready("target.dlq") == 0
    book.check()
