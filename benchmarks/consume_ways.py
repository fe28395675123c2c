"""Ways to consume, handle (doing nothing) and acknowledge; each yields what is measured."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.message import Message
from delayctl.topology.parse import read_spec

from benchmarks.contest import Go, Way, child

QUEUE = "orders.queue"
TOPOLOGY = f"""\
version: 1
delay: {{levels: [1h]}}
routes:
  - {{key: order.created, delay: 1h, to: {QUEUE}}}
"""
PREFETCH = 200
BATCH = 100


@contextmanager
def pika_blocking(url: str, count: int) -> Iterator[Go]:
    """A bare consumer; one acknowledgement for 100 messages."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=PREFETCH)
    seen = 0

    def handle(channel: Any, method: Any, _: Any, __: bytes) -> None:
        nonlocal seen
        seen += 1
        if seen % BATCH == 0 or seen == count:
            channel.basic_ack(method.delivery_tag, multiple=True)
        if seen == count:
            channel.stop_consuming()

    def go() -> None:
        channel.basic_consume(QUEUE, handle)
        channel.start_consuming()

    yield go
    connection.close()


@contextmanager
def pika_select(url: str, count: int) -> Iterator[Go]:
    """The same with callbacks."""
    from pika.adapters.select_connection import SelectConnection  # noqa: PLC0415

    state = _Callbacks(count)
    connection: Any = SelectConnection(pika.URLParameters(url), on_open_callback=state.opened)
    connection.ioloop.start()  # Until the channel is there; `go` starts it again.

    def go() -> None:
        state.channel.basic_consume(QUEUE, state.on_message)
        connection.ioloop.start()

    yield go
    connection.close()
    connection.ioloop.start()


class _Callbacks:
    def __init__(self, count: int) -> None:
        self.count, self.seen = count, 0

    def opened(self, connection: Any) -> None:
        self.connection = connection
        connection.add_on_close_callback(lambda *_: connection.ioloop.stop())
        connection.channel(on_open_callback=self.on_channel)

    def on_channel(self, channel: Any) -> None:
        self.channel = channel
        channel.basic_qos(prefetch_count=PREFETCH, callback=lambda _: self.connection.ioloop.stop())

    def on_message(self, channel: Any, method: Any, _: Any, __: bytes) -> None:
        self.seen += 1
        if self.seen % BATCH == 0 or self.seen == self.count:
            channel.basic_ack(method.delivery_tag, multiple=True)
        if self.seen == self.count:
            self.connection.ioloop.stop()


@contextmanager
def delay_consumer(url: str, count: int) -> Iterator[Go]:
    """Ours, as it comes; connecting and stopping count, too."""
    consumer = DelayConsumer(url, topology=read_spec(TOPOLOGY, {}, file="bench"), prefetch=PREFETCH)
    done, lock, seen = threading.Event(), threading.Lock(), 0

    def handle(_: Message) -> None:
        nonlocal seen
        with lock:
            seen += 1
        if seen == count:
            done.set()

    def go() -> None:
        consumer.handle(QUEUE, handle)
        thread = threading.Thread(target=consumer.run)
        thread.start()
        assert done.wait(300), f"only {seen} came"
        consumer.stop()
        thread.join()

    yield go


@contextmanager
def aio_pika(url: str, count: int) -> Iterator[Go]:
    """An iterator; one acknowledgement for 100 messages."""
    import aio_pika as library  # noqa: PLC0415

    with asyncio.Runner() as runner:

        async def ready() -> tuple[Any, Any]:
            connection = await library.connect(url)
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=PREFETCH)
            return connection, await channel.get_queue(QUEUE, ensure=False)

        connection, queue = runner.run(ready())

        async def consume() -> None:
            seen = 0
            async with queue.iterator() as messages:
                async for message in messages:
                    seen += 1
                    if seen % BATCH == 0 or seen == count:
                        await message.ack(multiple=True)
                    if seen == count:
                        return

        yield lambda: runner.run(consume())
        runner.run(connection.close())


@contextmanager
def kombu(url: str, count: int) -> Iterator[Go]:
    """A consumer; one acknowledgement for 100 messages."""
    import kombu as library  # noqa: PLC0415

    seen = 0

    def handle(_: Any, message: Any) -> None:
        nonlocal seen
        seen += 1
        if seen % BATCH == 0 or seen == count:
            message.ack(multiple=True)

    with library.Connection(url) as connection:
        channel = connection.channel()
        consumer = library.Consumer(
            channel, library.Queue(QUEUE, no_declare=True), callbacks=[handle], prefetch_count=PREFETCH, accept=None
        )

        def go() -> None:
            with consumer:
                while seen < count:
                    connection.drain_events(timeout=30)

        yield go


WAYS: dict[str, Way] = {
    "pika SelectConnection": pika_select,
    "pika BlockingConnection": pika_blocking,
    "DelayConsumer": delay_consumer,
    "aio-pika": aio_pika,
    "kombu": kombu,
}

if __name__ == "__main__":
    child(WAYS)
