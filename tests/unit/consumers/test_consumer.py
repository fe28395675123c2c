"""A consumer on the simulated broker, where something is in its way."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
import pytest
from delayctl.consumers import DelayConsumer, Message
from delayctl.consumers.cancelled import Cancellation, encode
from delayctl.publishers.connection import ClosedByBroker, Connection
from delayctl.testing import SimulatedBroker
from delayctl.topology.errors import BrokerError, DelayctlError, NotPermitted, Refused
from delayctl.topology.parse import read_spec

from testbed.wait import until

PLAIN = read_spec("version: 1\nqueues: {work: {}}\n", {}, file="topology.yaml")
CANCELLING = read_spec(
    "version: 1\ndelay: {levels: [1s], cancel: true}\nqueues: {work: {}}\n", {}, file="topology.yaml"
)
# The simulated broker knows no streams: a queue will do.
WITH_A_QUEUE = read_spec(
    "version: 1\ndelay: {levels: [1s]}\nqueues: {work: {}, delay.cancelled.stream: {}}\n", {}, file="topology.yaml"
)


TWO = read_spec("version: 1\nqueues: {work: {}, other: {}}\n", {}, file="topology.yaml")


@contextmanager
def at_work(consumer: DelayConsumer) -> Iterator[None]:
    """A consumer in a thread of its own."""
    thread = threading.Thread(target=consumer.run)
    thread.start()
    try:
        yield
    finally:
        consumer.stop()
        thread.join(10)


def test_cancellations_are_read_though_the_first_connection_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried again and logged, as a later loss is."""
    failures = [ConnectionResetError("no luck")]

    class Once(Connection):
        def __init__(self, access: Any, *, name: str, **how: Any) -> None:
            if name.endswith("cancellations") and failures:
                raise failures.pop()
            super().__init__(access, name=name, **how)

    monkeypatch.setattr("delayctl.consumers.consumer.Connection", Once)
    with SimulatedBroker(WITH_A_QUEUE) as broker:
        consumer = DelayConsumer(broker.url, topology=CANCELLING, clock=broker.clock)
        consumer.handle("work", lambda _: None)
        word = encode(Cancellation("order-1", broker.clock() + 60_000))
        broker.publish(word, key="delay.cancelled.stream", exchange="")
        broker.publish("order", key="work", exchange="", message_id="order-1")
        with at_work(consumer):
            until(lambda: consumer.cancelled, 10, what="the cancellation", every=0.01)

    assert "no luck" in caplog.text


def test_a_slow_message_does_not_hold_up_the_others() -> None:
    """What is done behind it is acknowledged, and makes room for the next, though few are fetched ahead."""
    release, seen = threading.Event(), []

    def note(message: Message) -> None:
        seen.append(message.text)
        if message.text == "slow":
            release.wait(30)

    with SimulatedBroker(PLAIN, in_turn=False) as broker:
        consumer = DelayConsumer(broker.url, topology=PLAIN, clock=broker.clock, workers=2, prefetch=2)
        consumer.handle("work", note)
        for text in ("slow", "1", "2", "3", "4"):
            broker.publish(text, key="work", exchange="")
        with at_work(consumer):
            try:
                until(lambda: len(seen) == 5, 2, what="the others", every=0.01)
            finally:
                release.set()


def test_a_connection_that_breaks_at_once_is_not_made_without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses grow, as where there is none."""
    rests: list[float] = []

    def break_off(*_: object, **__: object) -> None:
        raise ConnectionResetError("no luck")

    monkeypatch.setattr("delayctl.consumers.link.Link.serve", break_off)
    monkeypatch.setattr("delayctl.consumers.finished.Finished.rest", lambda _, seconds: rests.append(seconds))
    monkeypatch.setattr("delayctl.consumers.consumer.random.uniform", lambda *_: 1)
    with SimulatedBroker(PLAIN) as broker:
        consumer = DelayConsumer(broker.url, topology=PLAIN, clock=broker.clock)
        consumer.handle("work", lambda _: None)
        with at_work(consumer):
            until(lambda: len(rests) > 6, 10, what="seven connections", every=0.01)

    assert rests[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]


@pytest.mark.parametrize(
    ("code", "expected", "fix"), [(403, NotPermitted, "delayctl permissions"), (540, Refused, "the broker's log")]
)
def test_who_may_not_consume_is_told_so(
    monkeypatch: pytest.MonkeyPatch, code: int, expected: type[BrokerError], fix: str
) -> None:
    """With what the broker says, and what to do."""

    def refuse(*_: object) -> None:
        raise ClosedByBroker(code, "not for you", is_channel=True)

    monkeypatch.setattr(Connection, "consume", refuse)
    with SimulatedBroker(PLAIN) as broker:
        consumer = DelayConsumer(broker.url, topology=PLAIN)
        consumer.handle("work", lambda _: None)

        with pytest.raises(expected, match=rf"not for you[^$]*{fix}") as caught:
            consumer.run()

    assert getattr(caught.value, "code", 403) == code


RETRIED_TWICE = read_spec(
    "version: 1\ndelay: {levels: [10s]}\nqueues: {last: {}}\nretry:\n"
    "  work: {levels: [10s], max: 2, park: later}\n  later: {levels: [10s], max: 3, park: last}\n",
    {},
    file="topology.yaml",
)


def test_a_parking_queue_has_all_of_its_own_retries() -> None:
    """What was tried before in another queue is no attempt of its own."""
    seen: list[tuple[str, int]] = []

    def fail(message: Message) -> None:
        seen.append((message.queue, message.attempt))
        raise ConnectionError("no luck")

    with SimulatedBroker(RETRIED_TWICE) as broker:
        broker.consumer({"work": fail, "later": fail})
        broker.publish("order", key="work", exchange="")
        broker.advance("2m")

    assert seen == [*(("work", attempt) for attempt in range(3)), *(("later", attempt) for attempt in range(4))]


def test_queues_that_park_in_a_circle_are_refused() -> None:
    """Where a program says so beside the file, before anything is consumed."""
    consumer = DelayConsumer("amqp://127.0.0.1:1", topology=RETRIED_TWICE)
    consumer.handle("later", print, park="work")

    with pytest.raises(DelayctlError) as raised:
        consumer.run()

    assert str(raised.value) == (
        "Error: queue 'later' parks in a circle: later → work → later\n"
        "  fix: park in a queue without a retry, in the file or in handle(park=…)"
    )


class Slow:
    """A handler that waits until it may go on, and keeps what it saw."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.begun: list[tuple[str, bool]] = []

    def __call__(self, message: Message) -> None:
        """Note it, and wait."""
        self.begun.append((message.text, message.redelivered))
        self.may_go_on.wait(30)


@pytest.fixture
def slow() -> Iterator[Slow]:
    """Lets go of everything in the end."""
    handler = Slow()
    yield handler
    handler.may_go_on.set()


def delete(broker: SimulatedBroker, queue: str) -> None:
    """Take a queue away."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    connection.channel().queue_delete(queue)
    connection.close()


class TestAQueueThatGoes:
    """One of several queues of a consumer is deleted while it works."""

    def test_what_is_in_hand_of_the_others_is_finished(self, slow: Slow, caplog: pytest.LogCaptureFixture) -> None:
        """It is acknowledged on the same connection, and does not come again; then the consumer goes on."""
        with SimulatedBroker(TWO, in_turn=False) as broker:
            consumer = DelayConsumer(broker.url, topology=TWO, clock=broker.clock, workers=2)
            consumer.handle("work", slow)
            consumer.handle("other", lambda _: None)
            for text in "abc":
                broker.publish(text, key="work", exchange="")
            with at_work(consumer):
                until(lambda: len(slow.begun) == 2, 10, what="two messages", every=0.01)
                delete(broker, "other")
                until(lambda: "'other' is gone" in caplog.text, 10, what="the word of it", every=0.01)
                slow.may_go_on.set()
                until(lambda: len(slow.begun) == 3, 10, what="the third", every=0.01)
                broker.publish("d", key="work", exchange="")
                until(lambda: len(slow.begun) == 4, 10, what="one more", every=0.01)

            assert sorted(slow.begun) == [("a", False), ("b", False), ("c", False), ("d", False)]
            assert broker.messages("work") == []

    def test_what_is_not_begun_of_its_own_is_left(self, slow: Slow, caplog: pytest.LogCaptureFixture) -> None:
        """Nobody waits for it: it is gone with the queue, or comes again from where the queue is now."""
        seen: list[str] = []
        with SimulatedBroker(TWO, in_turn=False) as broker:
            consumer = DelayConsumer(broker.url, topology=TWO, clock=broker.clock, workers=1)
            consumer.handle("work", slow)
            consumer.handle("other", lambda message: seen.append(message.text))
            broker.publish("a", key="work", exchange="")
            with at_work(consumer):
                until(lambda: slow.begun, 10, what="the first message", every=0.01)
                broker.publish("b", key="other", exchange="")
                until(lambda: not broker.messages("other"), 10, what="the second", every=0.01)
                delete(broker, "other")
                until(lambda: "'other' is gone" in caplog.text, 10, what="the word of it", every=0.01)
                slow.may_go_on.set()
                until(lambda: not broker.messages("work"), 10, what="the end of the first", every=0.01)

        assert (slow.begun, seen) == ([("a", False)], [])

    def test_it_is_not_waited_for_without_end(self, slow: Slow, caplog: pytest.LogCaptureFixture) -> None:
        """What is not finished in the time that a stop has comes again by the next connection."""
        with SimulatedBroker(TWO, in_turn=False) as broker:
            consumer = DelayConsumer(broker.url, topology=TWO, clock=broker.clock, stop_within_s=0.2)
            consumer.handle("work", slow)
            consumer.handle("other", lambda _: None)
            broker.publish("a", key="work", exchange="")
            with at_work(consumer):
                until(lambda: slow.begun, 10, what="the message", every=0.01)
                delete(broker, "other")
                until(lambda: len(slow.begun) == 2, 10, what="the same again", every=0.01)
                slow.may_go_on.set()

        assert slow.begun == [("a", False), ("a", True)]
        assert "1 message in hand not finished within 0.2 s after a queue was gone" in caplog.text


def test_a_stop_that_takes_too_long_is_no_lost_connection(slow: Slow, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged for what it is, with what becomes of the rest."""
    with SimulatedBroker(PLAIN, in_turn=False) as broker:
        consumer = DelayConsumer(broker.url, topology=PLAIN, clock=broker.clock, stop_within_s=0.2)
        consumer.handle("work", slow)
        broker.publish("a", key="work", exchange="")
        with at_work(consumer):
            until(lambda: slow.begun, 10, what="the message", every=0.01)

    assert caplog.messages == [
        "1 message in hand not finished within 0.2 s after the stop (stop_within_s): "
        "not acknowledged, so that the broker gives them again"
    ]


def test_a_run_after_a_stop_consumes_nothing_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """A thread may be stopped before it has come to run; whoever means to begin again is told how."""
    consumer = DelayConsumer("amqp://127.0.0.1:9", topology=PLAIN)
    consumer.handle("work", lambda _: None)
    consumer.stop()

    consumer.run()

    assert caplog.messages == [
        "nothing is consumed, since stop() was called: make another DelayConsumer to consume again"
    ]


def test_a_handler_that_comes_too_late_is_refused() -> None:
    """Its queue would not be consumed, and nobody would say so."""
    with SimulatedBroker(TWO) as broker:
        consumer = DelayConsumer(broker.url, topology=TWO)
        consumer.handle("work", lambda _: None)
        with at_work(consumer):
            assert consumer.connected.wait(10)
            with pytest.raises(DelayctlError, match="'other' gets its handler too late"):
                consumer.handle("other", lambda _: None)

    assert consumer.queues == ("work",)


def test_a_second_handler_of_a_queue_is_refused() -> None:
    """It took the place of the first, whose work was never done and acknowledged all the same."""
    consumer, seen = DelayConsumer(topology=TWO), list[Message]()
    consumer.handle("work", seen.append)
    consumer.handle("work", seen.append)  # The same once more, as with another policy, takes nothing away.

    with pytest.raises(DelayctlError, match="'work' has a handler already"):
        consumer.handle("work", lambda _: None)
