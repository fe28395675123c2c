"""The programs of a page, run one after the other as a reader would: in one session, on a broker in virtual time."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pika
import pytest
from delayctl.consumers import DONE, DelayConsumer
from delayctl.publishers import DelayPublisher
from delayctl.testing import SimulatedBroker
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.doc_blocks import ROOT, Block, blocks
from tests.support.doc_exceptions import reason_for

LOCAL = "amqp://guest:guest@127.0.0.1:5672/"
# Pages whose programs have tests of their own, since more is asked of them.
ELSEWHERE = {
    "docs/simulator.md": "tests/unit/cli/test_simulate_docs.py",
    "docs/spark.md": "tests/integration/test_spark_docs.py",
    "docs/testing.md": "tests/unit/testing/test_docs.py",
}
Names = dict[str, Any]


class Session:
    """What the programs of a page share: their names, and a broker with the page's file."""

    def __init__(self, broker: SimulatedBroker, patch: pytest.MonkeyPatch) -> None:
        self.broker = broker
        self.names: Names = {"__name__": "__main__"}
        self.started: list[DelayConsumer] = []
        self._channels: list[BlockingChannel] = []
        # A consumer would run for ever: it begins when the programs of the page are over, in a thread.
        self._patch = patch
        patch.setattr(DelayConsumer, "run", lambda consumer: self.started.extend([consumer]))

    def run(self, block: Block) -> None:
        """Run a program."""
        exec(compile(block.text.replace(LOCAL, self.broker.url), str(block), "exec"), self.names)

    def consume(self) -> None:
        """Let the consumers run that the programs have started."""
        self._patch.undo()
        for consumer in self.started:
            self.broker.run(consumer)

    def channel(self) -> BlockingChannel:
        """A channel of a client that is not ours."""
        channel = pika.BlockingConnection(pika.URLParameters(self.broker.url)).channel()
        self._channels.append(channel)
        return channel

    def arrive(self) -> None:
        """Wait until the broker has all that the programs have published so far."""
        for channel in self._channels:
            channel.basic_qos()  # Answered after what was published before.
        if isinstance(publisher := self.names.get("publisher"), DelayPublisher):
            publisher.flush(10)

    def close(self) -> None:
        """End what was opened for programs."""
        for channel in self._channels:
            channel.connection.close()
        if isinstance(publisher := self.names.get("publisher"), DelayPublisher):
            publisher.close()


def programs(page: str) -> list[Block]:
    """Those that are run: all that are not excepted."""
    found = [block for block in blocks() if block.page == ROOT / page and block.language == "python"]
    return [block for block in found if not reason_for(page, block.text)]


def pages() -> list[str]:
    """Those with programs that are run here."""
    found = {block.page.relative_to(ROOT).as_posix() for block in blocks() if block.language == "python"}
    return sorted(page for page in found - ELSEWHERE.keys() if programs(page))


def _any_delay(session: Session) -> Names:
    return {
        "publisher": DelayPublisher(session.broker.url, topology="topology.yaml"),
        "channel": session.channel(),
        "BasicProperties": pika.BasicProperties,
        "body": b"call the customer",
        "delay_ms": 36_500,
        "datetime": datetime,
        "UTC": UTC,
    }


class Bank:
    """Is open."""

    def is_open(self) -> bool:
        """Whatever the time."""
        return True


def _consuming(session: Session) -> Names:
    cancelled: list[object] = []
    return {"bank": Bank(), "cancel": cancelled.append, "cancelled": cancelled, "send": lambda _: DONE}


def _metrics(session: Session) -> Names:
    consumer = DelayConsumer(session.broker.url, topology="topology.yaml", clock=session.broker.clock)
    consumer.handle("orders.timeout.queue", lambda _: DONE)
    consumer.run()
    return {"consumer": consumer}


# What pages leave to the reader: names that their programs use and don't make.
GIVEN: dict[str, Callable[[Session], Names]] = {
    "docs/any-delay.md": _any_delay,
    "docs/consuming.md": _consuming,
    "docs/metrics.md": _metrics,
}


def _after_any_delay(session: Session) -> None:
    """The message of the other language comes out at its time, rounded up to a second."""
    session.broker.advance("36s")
    assert session.broker.messages("reminders.queue") == []
    session.broker.advance("1s")
    assert [message.text for message in session.broker.messages("reminders.queue")] == ["call the customer"]


def _after_consuming(session: Session) -> None:
    session.broker.publish('{"total": 5}', key="order.created", delay="15m")
    session.broker.publish('{"total": -5}', key="order.created", delay="15m")
    session.broker.advance("15m")
    assert session.names["cancelled"] == [{"total": 5}]
    (parked,) = session.broker.messages("orders.timeout.dlq")
    assert parked.headers["delay-parked"] == "a negative total"


def _after_metrics(session: Session) -> None:
    session.broker.publish("order 4711", key="order.created", delay="15m")
    session.broker.advance("15m")
    assert 'le="+Inf"} 1\n' in session.names["lateness"].exposition()


def _after_celery(session: Session) -> None:
    """What celery publishes reaches its own queue; a service without celery has taken its message."""
    session.names["remind"](_Task(session.channel()), "4711")
    session.broker.advance("15m")
    assert [message.text for message in session.broker.messages("celery")] == ["('4711',)"]


class _Task:
    """Publishes where a task of celery is told to."""

    def __init__(self, channel: BlockingChannel) -> None:
        self._channel = channel
        channel.confirm_delivery()

    def apply_async(self, arguments: tuple[str, ...], *, exchange: str, routing_key: str) -> None:
        """Send the arguments of a call."""
        self._channel.basic_publish(exchange, routing_key, repr(arguments).encode(), mandatory=True)


def comes_out(session: Session) -> None:
    """What was published is where consumers have taken it from."""
    session.broker.advance("15m")
    queues = [queue for consumer in session.started for queue in consumer.queues]
    assert [message for queue in queues for message in session.broker.messages(queue)] == []


# What has to be true when the programs of a page have run, where that is more than that consumers take what comes out.
AFTERWARDS: dict[str, Callable[[Session], None]] = {
    "docs/any-delay.md": _after_any_delay,
    "docs/consuming.md": _after_consuming,
    "docs/from-celery-dramatiq.md": _after_celery,
    "docs/metrics.md": _after_metrics,
}
