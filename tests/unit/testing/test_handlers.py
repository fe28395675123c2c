"""Handlers under test: what they assert fails the test, and what they do wrong is said soon."""

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from delayctl.consumers import DelayConsumer, Message, Outcome
from delayctl.simulator.rabbitmq_events import Delivered, Published
from delayctl.testing import SimulatedBroker
from delayctl.testing.errors import NotAtRest
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError


def claim(message: Message) -> None:
    """Assert what is not so."""
    assert message.text == "another", "not this one"


def give_up(_: Message) -> Outcome:
    """Fail the way pytest does."""
    pytest.fail("not this one")


def fail(_: Message) -> Outcome:
    """Fail the way a service does."""
    raise RuntimeError("no luck")


class TestAssertions:
    """A handler of a test may assert."""

    @pytest.mark.parametrize(
        ("handler", "kind"), [(claim, AssertionError), (give_up, pytest.fail.Exception)], ids=["assert", "pytest.fail"]
    )
    def test_an_assertion_in_a_handler_is_raised_where_time_passes(
        self, broker: SimulatedBroker, handler: Callable[[Message], Outcome], kind: type[BaseException]
    ) -> None:
        """At the time of the delivery, and not as a retry."""
        broker.consumer({"timeouts": handler})
        broker.publish("order", key="order.created", exchange="orders")

        with pytest.raises(kind, match="not this one"):
            broker.advance("1d")

        assert broker.elapsed == Duration(900_000)

    def test_an_assertion_is_raised_at_once_where_there_is_no_retry(self, broker: SimulatedBroker) -> None:
        """Nobody waits for the message to come again."""
        broker.consumer({"plain": claim})
        broker.publish("order", key="plain", exchange="")

        with pytest.raises(AssertionError, match="not this one"):
            broker.settle()

        assert broker.log == [
            (0, Published(1, "", "plain", ("plain",))),
            (0, Delivered(1, "plain", "plain")),
        ]

    def test_an_assertion_is_raised_once(self, broker: SimulatedBroker) -> None:
        """The test may go on, and the message with it."""
        broker.consumer({"timeouts": lambda message: None if message.attempt else claim(message)})
        broker.publish("order", key="order.created", exchange="orders")
        with pytest.raises(AssertionError):
            broker.advance("15m")

        broker.advance("1d")

        assert broker.messages("timeouts.dlq") == []

    def test_an_assertion_that_nothing_waited_for_is_raised_at_the_end(self, topology_file: Path) -> None:
        """The last chance."""
        broker = SimulatedBroker(topology_file)
        have_claimed(broker)

        with pytest.raises(AssertionError, match="not this one"):
            broker.close()

    def test_what_went_wrong_in_the_test_itself_comes_first(self, topology_file: Path) -> None:
        """An assertion of a handler does not hide it."""

        def go_wrong() -> None:
            with SimulatedBroker(topology_file) as broker:
                have_claimed(broker)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            go_wrong()

    def test_a_service_s_own_consumer_is_watched_too(self, broker: SimulatedBroker, topology_file: Path) -> None:
        """Where the broker runs it."""
        consumer = DelayConsumer(broker.url, topology=topology_file, clock=broker.clock)
        consumer.handle("timeouts", claim)
        broker.run(consumer)
        broker.publish("order", key="order.created", exchange="orders")

        with pytest.raises(AssertionError, match="not this one"):
            broker.advance("15m")


def have_claimed(broker: SimulatedBroker) -> None:
    """Have a handler assert what is not so, while no time passes."""
    is_called = threading.Event()

    def call(message: Message) -> None:
        is_called.set()
        claim(message)

    broker.consumer({"plain": call})
    broker.publish("order", key="plain", exchange="")
    assert is_called.wait(10)


class TestEndless:
    """What never comes to rest."""

    def test_a_handler_that_fails_without_retries_is_named_soon(self, broker: SimulatedBroker) -> None:
        """Long before patience ends, with what to add to the file."""
        broker.consumer({"plain": fail})
        broker.publish("order", key="plain", exchange="")
        began = time.monotonic()

        with pytest.raises(NotAtRest) as caught:
            broker.advance("1m")

        assert time.monotonic() - began < 6
        assert str(caught.value) == (
            "Error: the handler of 'plain' keeps failing, and the queue has no retry: "
            "its message comes again at once, without end\n"
            "  fix: add it to the topology: retry: {plain: {levels: […], park: plain.dlq}}, or let the handler return"
        )

    def test_a_handler_that_fails_once_without_retries_may_go_on(self, broker: SimulatedBroker) -> None:
        """It gets its message again."""
        texts: list[str] = []

        def recover(message: Message) -> None:
            texts.append(message.text)
            if not message.redelivered:
                raise RuntimeError("no luck")

        broker.consumer({"plain": recover})
        broker.publish("order", key="plain", exchange="")

        broker.settle()

        assert texts == ["order", "order"]

    def test_a_handler_that_feeds_itself_is_stopped(self, topology_file: Path) -> None:
        """It has no end, and there is one to waiting for it."""
        with SimulatedBroker(topology_file, patience_s=0.5) as broker:
            publisher = broker.publisher()
            is_over = threading.Event()

            def again(message: Message) -> None:
                if not is_over.is_set():
                    publisher.publish(message.body, key="plain", exchange="")

            broker.consumer({"plain": again})
            broker.publish("order", key="plain", exchange="")

            with pytest.raises(NotAtRest, match=r"messages at one moment.*sends to its own queue, without a delay"):
                broker.advance("1m")

            assert broker.elapsed == Duration(0)
            is_over.set()
            broker.settle()

    @pytest.mark.parametrize("wait", [True, False])
    def test_a_handler_can_not_let_time_pass(self, broker: SimulatedBroker, wait: bool) -> None:
        """It would wait for itself."""
        errors: list[Exception] = []

        def advance(_: Message) -> None:
            try:
                broker.advance("1s", wait=wait)
            except DelayctlError as error:
                errors.append(error)

        broker.consumer({"plain": advance})
        broker.publish("order", key="plain", exchange="")
        broker.settle()

        assert [error.what for error in errors if isinstance(error, DelayctlError)] == [
            "a handler can't let time pass, or wait for clients to come to rest: it is one that they wait for"
        ]

    def test_a_handler_can_not_wait_for_rest(self, broker: SimulatedBroker) -> None:
        """For the same reason; this is no assertion, so that it is retried as ever."""
        broker.consumer({"timeouts": lambda _: broker.settle()})
        broker.publish("order", key="order.created", exchange="orders")

        broker.advance("1d")

        (parked,) = broker.messages("timeouts.dlq")
        assert "a handler can't let time pass" in parked.headers["delay-parked"]


class Async:
    """An object whose call is a coroutine."""

    async def __call__(self, message: Message) -> Outcome:
        """Handle a message."""


async def handle(message: Message) -> Outcome:
    """Handle a message."""


@pytest.mark.parametrize("handler", [handle, Async(), partial(handle)], ids=["function", "object", "partial"])
def test_an_async_handler_is_refused(broker: SimulatedBroker, handler: Callable[[Message], Outcome]) -> None:
    """Nobody would await it, and the message would be acknowledged."""
    with pytest.raises(BadOption, match="the handler of 'plain' is an async function") as caught:
        broker.consumer({"plain": handler})

    assert "asyncio.run(handler(message))" in (caught.value.fix or "")


def test_a_handler_that_can_not_be_called_is_refused(broker: SimulatedBroker) -> None:
    """Before the first message comes."""
    nothing: Callable[[Message], Outcome] = "handler"  # type: ignore[assignment]

    with pytest.raises(BadOption, match="the handler of 'plain' can't be called: it is of type str"):
        broker.consumer({"plain": nothing})


def test_who_watches_is_told_of_failures_and_changes_nothing(broker: SimulatedBroker, topology_file: Path) -> None:
    """Not even where it fails itself: the message is retried and parked as ever."""
    told: list[tuple[str, str]] = []

    def report(message: Message, error: BaseException) -> None:
        told.append((f"{message.text} {message.attempt}", repr(error)))
        raise OSError("nobody listens")

    consumer = DelayConsumer(broker.url, topology=topology_file, clock=broker.clock)
    consumer.handle("timeouts", fail)
    consumer.watch(report)
    broker.run(consumer)
    broker.publish("order", key="order.created", exchange="orders")

    broker.advance("1d")

    assert told == [(f"order {attempt}", "RuntimeError('no luck')") for attempt in range(3)]
    assert len(broker.messages("timeouts.dlq")) == 1
