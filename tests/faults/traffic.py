"""Messages under way while things break: a publisher that never rests, and queues read to the last message."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.message import Message
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.known import Urls
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.faults.account import Account
from tests.support.rabbit import Rabbit

_PACE_S = 0.0005  # Between messages: a service, not a benchmark.


@contextmanager
def publishing(publisher: DelayPublisher, account: Account, *levels: str, pace_s: float = _PACE_S) -> Iterator[None]:
    """Publish to the levels in turn, in a thread of its own, until the block ends; then wait for every answer.

    The level `now` is none: the message comes out at once.
    """
    is_over = threading.Event()

    def publish() -> None:
        for number, level in zip(itertools.count(), itertools.cycle(levels), strict=False):
            if is_over.wait(pace_s):
                return
            account.watch(f"{level}-{number}", partial(_send, publisher, level))

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(120)  # Before the flush: it reports a failure that nobody watches yet, as one just sent may be.
    assert not thread.is_alive()
    publisher.flush(120)


def _send(publisher: DelayPublisher, level: str, message_id: str) -> Delivery:
    waits_in = None if level == "now" else level
    return publisher.publish(b"x" * 200, key=f"via.{level}", level=waits_in, message_id=message_id)


def await_confirmed(account: Account, more: int) -> None:
    """Wait until the broker has confirmed so many more."""
    wanted = len(account.confirmed) + more
    until(lambda: len(account.confirmed) >= wanted, 60, what=f"the confirmation of {more} more messages")


def await_answered(account: Account, more: int) -> None:
    """Wait until the broker has confirmed or refused so many more."""
    wanted = len(account.confirmed) + len(account.failed_ids) + more
    until(
        lambda: len(account.confirmed) + len(account.failed_ids) >= wanted, 60, what=f"the answers to {more} messages"
    )


@contextmanager
def consuming(
    rabbit: Rabbit, topology: Path, account: Account, queue: str = "target", *, urls: Urls | None = None
) -> Iterator[None]:
    """Note all that arrives, through whatever happens, until the block ends; `urls` are the nodes of a cluster."""
    consumer = DelayConsumer(urls or rabbit.url, topology=topology, heartbeat_s=2)

    def arrived(message: Message) -> None:
        account.delivered(str(message.message_id), message.headers.get("delay-due"))

    consumer.handle(queue, arrived)
    thread = threading.Thread(target=consumer.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        consumer.stop()
        thread.join(30)
        assert not thread.is_alive()


def await_arrival(account: Account, level: str = "") -> None:
    """Wait until all that was confirmed, or that part of it, has arrived."""
    wanted = {message_id for message_id in account.confirmed if message_id.startswith(level)}
    until(lambda: account.has(wanted), 30, what="the arrival of all that was confirmed")


def drain(rabbit: Rabbit, account: Account, queue: str) -> None:
    """Take all that a queue holds, as a look at what is still waiting."""
    with rabbit.channel() as channel:
        for method, properties, _ in channel.consume(queue, auto_ack=False, inactivity_timeout=1):
            if method is None or properties is None:
                return
            account.delivered(str(properties.message_id))
            channel.basic_ack(int(method.delivery_tag or 0))
