"""DelayPublisher on a real broker: every way to publish, and every answer."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import trustme
from delayctl.publishers.choice import NoSuchDelay
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import (
    Nacked,
    NotConfirmed,
    NotPublished,
    PublisherClosed,
    TooLarge,
    Unroutable,
    WriteRefused,
)
from delayctl.publishers.frames import Properties
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.access import Tls, access_from
from delayctl.topology.errors import (
    AuthenticationFailed,
    BadOption,
    DelayctlError,
    InvalidTopology,
    Unreachable,
    VhostMissing,
)

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.rabbit import Message, Rabbit
from tests.support.tcp_proxy import TcpProxy
from tests.support.tls_proxy import TlsProxy

TOPOLOGY = """
version: 1
delay:
  levels: {200ms: {}, 1s: {}, 1h: {max_length: 5, overflow: reject-publish}}
exchanges: {orders: {}}
routes:
  - {from: orders, key: order.created, delay: 200ms, to: target}
  - {key: direct, delay: 200ms, to: target}
  - {key: direct, delay: 1s, to: target}
"""
NOBODY = "amqp://guest:guest@127.0.0.1:1/"


@pytest.fixture
def applied(rabbit: Rabbit, topology: TopologyFile) -> Rabbit:
    """A virtual host with the topology."""
    assert rabbit.delayctl("apply", topology.write(TOPOLOGY), "--yes").code == 0
    return rabbit


@contextmanager
def publisher_of(rabbit: Rabbit, topology: TopologyFile, **options: Any) -> Iterator[DelayPublisher]:
    """A publisher of the topology."""
    with DelayPublisher(rabbit.url, topology=topology.path, **options) as publisher:
        yield publisher


def arrived(rabbit: Rabbit, count: int = 1) -> list[Message]:
    """So many messages, as soon as they are there."""
    found: list[Message] = []

    def all_there() -> bool:
        found.extend(rabbit.take("target"))
        return len(found) >= count

    until(all_there, 15, what=f"the arrival of {count} messages", every=0.02)
    return found


def now_ms() -> int:
    """The time as messages carry it."""
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize(
    ("way", "wait_ms", "level"),
    [
        ({"delay": "200ms"}, 200, "200ms"),
        ({"level": "1s"}, 1000, "1s"),
        ({"delay": "0s"}, 0, None),
        ({}, 0, None),
    ],
)
def test_a_message_arrives_when_it_is_due(
    applied: Rabbit, topology: TopologyFile, way: dict[str, Any], wait_ms: int, level: str | None
) -> None:
    """With its key, its id, its headers and the stamps of the contract."""
    with publisher_of(applied, topology) as publisher:
        before = now_ms()
        message_id = publisher.publish("hello", key="direct", headers={"shop": "eu"}, **way).result(10)
        confirmed = now_ms()
        (message,) = arrived(applied)
        after = now_ms()

    due = message.headers["delay-due"]
    assert before + wait_ms <= due <= confirmed + wait_ms
    assert due <= after
    assert (message.body, message.key, message.exchange) == ("hello", "direct", "delay.exchange")
    assert (message.headers["shop"], message.headers.get("delay-level")) == ("eu", level)
    assert len(message_id) == 32


def test_a_business_exchange_is_published_to_as_ever(applied: Rabbit, topology: TopologyFile) -> None:
    """The topology delays it; the message carries nothing of ours but its id."""
    with publisher_of(applied, topology) as publisher:
        assert publisher.publish(b"1", key="order.created", exchange="orders", message_id="my-id").result(10) == "my-id"
        (message,) = arrived(applied)

    assert message.key == "order.created"
    assert not [name for name in message.headers if name.startswith("delay-")]


def test_a_due_time_is_rounded_as_chosen(applied: Rabbit, topology: TopologyFile) -> None:
    """The past comes out at once; the future at the level before it; the stamp says what was wanted."""
    with publisher_of(applied, topology, rounding="down") as publisher:
        past, soon = datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(milliseconds=900)
        publisher.publish("past", key="direct", due=past).result(10)
        publisher.publish("soon", key="direct", due=soon).result(10)
        messages = {message.body: message for message in arrived(applied, 2)}

    assert messages["past"].headers["delay-due"] == int(past.timestamp() * 1000)
    assert messages["soon"].headers["delay-due"] == int(soon.timestamp() * 1000)
    assert "delay-level" not in messages["past"].headers
    assert messages["soon"].headers["delay-level"] == "200ms"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"delay": "7s"}, NoSuchDelay),
        ({"delay": "soon"}, NoSuchDelay),
        ({"level": "2s"}, NoSuchDelay),
        ({"due": datetime(2030, 1, 1)}, DelayctlError),  # Without a time zone.
        ({"delay": "1s", "level": "1s"}, DelayctlError),
        ({"key": "k" * 256}, DelayctlError),
        ({"headers": {"h": object()}}, DelayctlError),
        ({"headers": {"h": "x" * 200_000}}, DelayctlError),
        ({"message_id": "i" * 256}, DelayctlError),
        ({"delay": "1s", "properties": Properties(expiration="5")}, DelayctlError),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(
    applied: Rabbit, topology: TopologyFile, arguments: dict[str, Any], error: type[DelayctlError]
) -> None:
    """In the caller's thread, with what to do; the publisher lives on."""
    with publisher_of(applied, topology) as publisher:
        with pytest.raises(error):
            publisher.publish(b"", **{"key": "direct", **arguments})
        publisher.publish(b"", key="direct").result(10)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"exchange": "gone"}, Unroutable),
        ({"exchange": "orders", "key": "nobody.listens"}, Unroutable),
        ({"properties": Properties(user_id="somebody-else")}, NotPublished),
    ],
)
def test_one_bad_message_fails_alone(
    applied: Rabbit, topology: TopologyFile, arguments: dict[str, Any], error: type[NotPublished]
) -> None:
    """The broker may close the channel over it: the others around it are confirmed."""
    with publisher_of(applied, topology) as publisher:
        before = [publisher.publish("good", key="direct", delay="200ms") for _ in range(50)]
        bad = publisher.publish("bad", **{"key": "direct", **arguments})
        after = [publisher.publish("good", key="direct", delay="200ms") for _ in range(50)]

        assert type(bad.exception(20)) is error
        assert [each.exception(20) for each in (*before, *after)] == [None] * 100
        bodies = {message.body for message in arrived(applied, 100)}
    assert bodies == {"good"}


def test_too_large(applied: Rabbit, topology: TopologyFile) -> None:
    """A message beyond the broker's limit fails by name, and the next is taken."""
    with publisher_of(applied, topology) as publisher:
        large = publisher.publish(bytes(135 * 1024 * 1024), key="direct", delay="1s")
        small = publisher.publish(b"", key="direct", delay="1s")

        assert type(large.exception(60)) is TooLarge
        assert small.exception(20) is None


def test_a_full_level_refuses(applied: Rabbit, topology: TopologyFile) -> None:
    """And the one who looks at no future hears of it at the end."""
    publisher = DelayPublisher(applied.url, topology=topology.path)
    deliveries = [publisher.publish(b"", key="direct", level="1h") for _ in range(20)]

    with pytest.raises(NotConfirmed, match="the broker refused the message") as caught:
        publisher.close()

    refused = {d for d in deliveries if isinstance(d.exception(), Nacked)}
    assert {type(failure) for failure in caught.value.failures} == {Nacked}
    assert len(caught.value.message_ids) == len(refused) > 0
    publisher.close()  # A second time says nothing new.


def test_a_user_with_few_rights(applied: Rabbit, topology: TopologyFile) -> None:
    """May publish to what is granted, though it may not even look at the rest."""
    user = f"few-{applied.vhost}"
    applied.api("PUT", f"users/{user}", {"password": "secret", "tags": ""})
    try:
        rights = {"configure": "", "write": "^delay\\.200ms\\.exchange$", "read": ""}
        applied.api("PUT", f"permissions/{{vhost}}/{user}", rights)
        url = applied.url.replace("guest:guest@", f"{user}:secret@")
        with DelayPublisher(url, topology=topology.path) as publisher:
            refused = publisher.publish(b"", key="direct", delay="1s")
            allowed = publisher.publish(b"", key="direct", delay="200ms")

            assert allowed.exception(10) is None
            assert type(refused.exception(10)) is WriteRefused
    finally:
        applied.api("DELETE", f"users/{user}")


def test_asyncio_waits_for_the_same_future(applied: Rabbit, topology: TopologyFile) -> None:
    """One by one and gathered, failures included."""

    async def publish(publisher: DelayPublisher) -> tuple[str, list[Any]]:
        one = await publisher.publish("0", key="direct", delay="200ms", message_id="first")
        many = [publisher.publish(str(number), key="direct", delay="200ms") for number in range(1, 50)]
        lost = publisher.publish("", key="direct", exchange="gone")
        return one, await asyncio.gather(*many, lost, return_exceptions=True)

    with publisher_of(applied, topology) as publisher:
        one, gathered = asyncio.run(publish(publisher))
        bodies = {message.body for message in arrived(applied, 50)}

    assert one == "first"
    assert isinstance(gathered.pop(), Unroutable)
    assert len(set(gathered)) == 49
    assert bodies == {str(number) for number in range(50)}


def test_many_threads_share_one_publisher(applied: Rabbit, topology: TopologyFile) -> None:
    """A window that is far too small makes them wait, and nothing else."""
    deliveries: list[Delivery] = []

    def publish(publisher: DelayPublisher, name: int) -> None:
        deliveries.extend(publisher.publish(f"{name}-{n}", key="direct", delay="200ms") for n in range(200))

    with publisher_of(applied, topology, window=10) as publisher:
        threads = [threading.Thread(target=publish, args=(publisher, name)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        publisher.flush(30)
        bodies = {message.body for message in arrived(applied, 1600)}

    assert len({delivery.result(0) for delivery in deliveries}) == 1600
    assert bodies == {f"{name}-{n}" for name in range(8) for n in range(200)}


def test_a_callback_may_publish(applied: Rabbit, topology: TopologyFile) -> None:
    """Even with a full window; but it can't wait for others."""
    follow_ups: list[Delivery] = []
    refusals: list[BaseException] = []

    def go_on(publisher: DelayPublisher) -> None:
        follow_ups.append(publisher.publish("next", key="direct", delay="200ms"))
        try:
            publisher.flush(5)
        except DelayctlError as error:
            refusals.append(error)

    with publisher_of(applied, topology, window=1) as publisher:
        publisher.publish("first", key="direct", delay="200ms").add_done_callback(lambda _: go_on(publisher))
        until(lambda: follow_ups and follow_ups[0].done(), 10)
        assert len(arrived(applied, 2)) == 2

    assert len(refusals) == 1


def silent(rabbit: Rabbit) -> tuple[TcpProxy, str]:
    """A network that can be stalled, and the URL through it."""
    parts = urlsplit(rabbit.url)
    proxy = TcpProxy(parts.netloc.rpartition("@")[2])
    return proxy, parts._replace(netloc=f"guest:guest@127.0.0.1:{proxy.port}").geturl()


def test_flush_and_close_say_what_is_not_confirmed(applied: Rabbit, topology: TopologyFile) -> None:
    """By id; closing makes it final. What is published afterwards is refused."""
    proxy, url = silent(applied)
    with proxy:
        publisher = DelayPublisher(url, topology=topology.path, window=3)
        publisher.publish(b"", key="direct", message_id="known").result(10)
        proxy.stall()
        waiting = [publisher.publish(b"", key="direct", message_id=f"unknown-{n}") for n in range(3)]
        with pytest.raises(NotConfirmed, match="3 messages") as flushed:
            publisher.flush(0.2)
        blocked = threading.Thread(target=_refused, args=(publisher,))
        blocked.start()
        with pytest.raises(NotConfirmed) as closed:
            publisher.close(0.2)
        blocked.join(10)

    assert not blocked.is_alive(), "a publisher that waits for room is woken by the end"
    assert set(flushed.value.message_ids) == {f"unknown-{n}" for n in range(3)} == set(closed.value.message_ids)
    assert {type(delivery.exception(0)) for delivery in waiting} == {PublisherClosed}
    _refused(publisher)


def _refused(publisher: DelayPublisher) -> None:
    with pytest.raises(PublisherClosed):
        publisher.publish(b"", key="direct", message_id="too-late")


def test_flush_does_not_wait_for_what_comes_later(applied: Rabbit, topology: TopologyFile) -> None:
    """While another thread publishes without end."""
    is_over = threading.Event()

    def without_end(publisher: DelayPublisher) -> None:
        while not is_over.is_set():
            publisher.publish(b"", key="direct", delay="1s")

    with publisher_of(applied, topology, window=200) as publisher:
        thread = threading.Thread(target=without_end, args=(publisher,))
        thread.start()
        try:
            publisher.flush(20)
        finally:
            is_over.set()
            thread.join(10)


def test_any_of_the_brokers_will_do(applied: Rabbit, topology: TopologyFile) -> None:
    """A dead one in the list is passed over, at the start and later, whatever the order."""
    proxy, url = silent(applied)
    with proxy, DelayPublisher([NOBODY, url, NOBODY], topology=topology.path) as publisher:
        publisher.publish(b"", key="direct").result(20)
        proxy.cut()
        publisher.publish(b"", key="direct").result(20)


def test_tls_with_a_certificate_of_our_own(applied: Rabbit, topology: TopologyFile, tmp_path: Path) -> None:
    """An Access carries the files; without them the connection is refused with the reason."""
    authority = trustme.CA()
    ours = authority.issue_cert("client@example.org")
    ours.private_key_and_cert_chain_pem.write_to_path(tmp_path / "us.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with TlsProxy(authority, urlsplit(applied.url).netloc.rpartition("@")[2]) as proxy:
        url = f"amqps://guest:guest@localhost:{proxy.port}/{quote(applied.vhost, safe='')}"
        access = access_from(url, tls=Tls(ca_file=str(tmp_path / "ca.pem"), cert_file=str(tmp_path / "us.pem")))
        with DelayPublisher(access, topology=topology.path) as publisher:
            deliveries = [publisher.publish(b"x" * 50_000, key="direct", delay="200ms") for _ in range(100)]
            publisher.flush(30)
            assert [delivery.exception(0) for delivery in deliveries] == [None] * 100
        with pytest.raises(Unreachable, match="certificate"):
            DelayPublisher(url, topology=topology.path)
    assert len(arrived(applied, 100)) == 100


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda url: url.replace("guest:guest@", "guest:wrong@"), AuthenticationFailed, "refuses user 'guest'"),
        (lambda url: url + "-not", VhostMissing, "no virtual host"),
        (lambda _: NOBODY, Unreachable, "nothing listens"),
        (lambda _: [], BadOption, "no broker"),
    ],
)
def test_trouble_at_the_start_is_told_at_the_start(
    applied: Rabbit, topology: TopologyFile, change: Callable[[str], Any], error: type[DelayctlError], text: str
) -> None:
    """By its name, with what to do."""
    with pytest.raises(error, match=text) as caught:
        DelayPublisher(change(applied.url), topology=topology.path)

    assert caught.value.fix
    assert "wrong" not in str(caught.value)


def test_a_missing_entrance_is_told_at_the_start(applied: Rabbit, topology: TopologyFile) -> None:
    """And how to declare it; a missing file as well."""
    applied.api("DELETE", "exchanges/{vhost}/delay.1s.exchange")

    with pytest.raises(DelayctlError, match=r"'delay\.1s\.exchange' is not on the broker"):
        DelayPublisher(applied.url, topology=topology.path)
    with pytest.raises(InvalidTopology, match="can't be read"):
        DelayPublisher(applied.url, topology=topology.path.with_name("none.yaml"))


def test_the_brokers_own_record_will_do(applied: Rabbit) -> None:
    """A service that has no file knows the levels all the same; without a record it is told."""
    management_url = applied.broker.management_url
    with DelayPublisher(applied.url, management_url=management_url) as publisher:
        publisher.publish("hello", key="direct", delay="200ms").result(10)
        assert [message.headers["delay-level"] for message in arrived(applied)] == ["200ms"]
        with pytest.raises(NoSuchDelay, match="200ms, 1s, 1h"):
            publisher.publish("hello", key="direct", delay="2s")

    with pytest.raises(DelayctlError, match="no record"):
        DelayPublisher(applied.url, management_url=management_url, prefix="other.")
