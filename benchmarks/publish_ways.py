"""Ways to publish confirmed, persistent messages of 200 bytes into a delay; each yields what is measured."""

import asyncio
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
from delayctl.publishers.connection import Connection
from delayctl.publishers.contract import ContentMaker
from delayctl.publishers.frames import ACK, BASIC, CHANNEL, publish_method
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.access import access_from

from benchmarks.contest import Go, Way, child
from benchmarks.vhost import understand

LEVEL = "1h"
TOPOLOGY = f"""\
version: 1
delay:
  levels: [{LEVEL}]
  queue: {{max_length: 10000000}}
routes:
  - {{key: order.created, delay: {LEVEL}, to: orders.queue}}
"""
LAZY_TOPOLOGY = TOPOLOGY.replace("queue: {", "queue: {lazy: true, ")
ENTRANCE, QUEUE, KEY = f"delay.{LEVEL}.exchange", f"delay.{LEVEL}.queue", "order.created"
BODY = b"x" * 200
WINDOW = 2_000
_HOUR_S = 3600
_ACK = struct.Struct(">7xHHQ?x")


@contextmanager
def bare_socket(url: str, count: int) -> Iterator[Go]:
    """The yardstick: the same bytes again and again, and nothing done with the answers but counting."""
    connection = Connection(access_from(url), name="bench", heartbeat_s=0)  # Nothing but confirmations comes in.
    connection.open_channel(confirms=True)
    content = ContentMaker(connection.frame_max).make(
        BODY, "f" * 32, due_ms=1_800_000_000_000, level=LEVEL, headers=None, properties=None
    )
    frames, channel = publish_method(CHANNEL, ENTRANCE, KEY) + content, connection.socket
    channel.settimeout(60)

    def go() -> None:
        answers, sent, rest = Answers(), 0, b""
        while answers.count < count:
            room = min(WINDOW - (sent - answers.count), count - sent)
            if room >= WINDOW // 4 or (room and sent + room == count):
                channel.sendall(frames * room)
                sent += room
            data = rest + channel.recv(1 << 18)
            whole = len(data) - len(data) % _ACK.size
            rest = data[whole:]
            for class_id, method, tag, multiple in _ACK.iter_unpack(data[:whole]):
                assert (class_id, method) == (BASIC, ACK), "the broker did not confirm"
                answers.add(tag, multiple=multiple)

    yield go
    connection.close()


class Answers:
    """Counts confirmations, of which some speak for all before them."""

    def __init__(self) -> None:
        self.count = self._all_up_to = 0
        self._beyond: set[int] = set()

    def add(self, tag: int, *, multiple: bool) -> None:
        """Take in one answer."""
        if not multiple:
            self._beyond.add(tag)
        else:
            self._beyond = {other for other in self._beyond if other > tag}
            self._all_up_to = max(self._all_up_to, tag)
        self.count = self._all_up_to + len(self._beyond)


@contextmanager
def delay_publisher(url: str, count: int) -> Iterator[Go]:
    """Ours; no future is kept, as in a service that publishes for as long as it runs."""
    publisher = DelayPublisher(url, topology=understand(TOPOLOGY))

    def go() -> None:
        for _ in range(count):
            publisher.publish(BODY, key=KEY, delay=LEVEL)
        publisher.flush()

    yield go
    publisher.close()


@contextmanager
def pika_blocking(url: str, count: int) -> Iterator[Go]:
    """The usual way with pika: every publish waits for its confirmation."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    properties = pika.BasicProperties(delivery_mode=2)

    def go() -> None:
        for _ in range(count):
            channel.basic_publish(ENTRANCE, KEY, BODY, properties, mandatory=True)

    yield go
    connection.close()


@contextmanager
def pika_select(url: str, count: int) -> Iterator[Go]:
    """Callbacks and a window, written for the occasion."""
    from pika.adapters.select_connection import SelectConnection  # noqa: PLC0415

    ready = _Windowed(count)
    connection: Any = SelectConnection(pika.URLParameters(url), on_open_callback=ready.opened)
    connection.ioloop.start()  # Until the channel confirms; `go` starts it again.

    def go() -> None:
        connection.ioloop.call_later(0, ready.pump)
        connection.ioloop.start()

    yield go


class _Windowed:
    def __init__(self, count: int) -> None:
        self.count, self.sent, self.answers = count, 0, Answers()
        self.properties = pika.BasicProperties(delivery_mode=2)

    def opened(self, connection: Any) -> None:
        self.connection = connection
        connection.channel(on_open_callback=self.on_channel)

    def on_channel(self, channel: Any) -> None:
        self.channel = channel
        channel.confirm_delivery(self.on_answer, callback=lambda _: self.connection.ioloop.stop())

    def on_answer(self, frame: Any) -> None:
        assert "Ack" in frame.method.NAME
        self.answers.add(frame.method.delivery_tag, multiple=frame.method.multiple)
        if self.answers.count >= self.count:
            self.connection.ioloop.stop()
        elif self.sent - self.answers.count <= WINDOW * 3 // 4:
            self.pump()

    def pump(self) -> None:
        while self.sent < self.count and self.sent - self.answers.count < WINDOW:
            self.sent += 1
            self.channel.basic_publish(ENTRANCE, KEY, BODY, self.properties, mandatory=True)


@contextmanager
def aio_pika(url: str, count: int) -> Iterator[Go]:
    """Confirmations awaited together, 500 at a time."""
    import aio_pika as library  # noqa: PLC0415

    with asyncio.Runner() as runner:

        async def ready() -> tuple[Any, Any]:
            connection = await library.connect(url)
            channel = await connection.channel(publisher_confirms=True)
            return connection, await channel.get_exchange(ENTRANCE, ensure=False)

        connection, exchange = runner.run(ready())

        async def publish() -> None:
            left = count
            while left:
                some = min(left, 500)
                left -= some
                await asyncio.gather(*(one() for _ in range(some)))

        async def one() -> None:
            message = library.Message(BODY, delivery_mode=library.DeliveryMode.PERSISTENT)
            await exchange.publish(message, KEY, mandatory=True)

        yield lambda: runner.run(publish())
        runner.run(connection.close())


@contextmanager
def kombu(url: str, count: int) -> Iterator[Go]:
    """With confirm_publish, or it would not know."""
    import kombu as library  # noqa: PLC0415

    with library.Connection(url, transport_options={"confirm_publish": True}) as connection:
        producer = library.Producer(connection.channel())

        def publish() -> None:
            producer.publish(
                BODY,
                exchange=ENTRANCE,
                routing_key=KEY,
                delivery_mode=2,
                mandatory=True,
                content_type="application/octet-stream",
                content_encoding="binary",
            )

        def go() -> None:
            for _ in range(count):
                publish()

        yield go


def _nothing(_: str) -> None:
    """A task."""


@contextmanager
def celery(url: str, count: int) -> Iterator[Go]:
    """A countdown: the message goes straight to the worker's queue, and waits in the worker."""
    import celery as library  # noqa: PLC0415

    app = library.Celery("bench", broker=url)
    app.conf.broker_transport_options = {"confirm_publish": True}
    app.conf.task_ignore_result = True
    task = app.task(_nothing, name="bench.task")
    text = BODY.decode()
    task.apply_async((text,), countdown=_HOUR_S)  # Connects and declares.

    def go() -> None:
        for _ in range(count):
            task.apply_async((text,), countdown=_HOUR_S)

    yield go


@contextmanager
def dramatiq(url: str, count: int) -> Iterator[Go]:
    """A delay: the message goes to a queue beside, and waits in the worker."""
    import dramatiq as library  # noqa: PLC0415
    from dramatiq.brokers.rabbitmq import RabbitmqBroker  # noqa: PLC0415

    broker = RabbitmqBroker(url=url, confirm_delivery=True, middleware=[])
    library.set_broker(broker)
    actor = library.actor(_nothing, actor_name="bench")
    text = BODY.decode()
    actor.send_with_options(args=(text,), delay=_HOUR_S * 1000)  # Connects and declares.

    def go() -> None:
        for _ in range(count):
            actor.send_with_options(args=(text,), delay=_HOUR_S * 1000)

    yield go
    broker.close()


WAYS: dict[str, Way] = {
    "bare socket": bare_socket,
    "DelayPublisher": delay_publisher,
    "pika SelectConnection": pika_select,
    "aio-pika": aio_pika,
    "kombu": kombu,
    "pika BlockingConnection": pika_blocking,
    "dramatiq": dramatiq,
    "celery": celery,
}

if __name__ == "__main__":
    child(WAYS)
