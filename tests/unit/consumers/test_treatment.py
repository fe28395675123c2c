"""What becomes of a message whose handler, policy or watcher does something odd: it goes on, and so does the consumer."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from delayctl.consumers import DelayConsumer, Message, Outcome, Park, Retry
from delayctl.consumers.finished import Finished
from delayctl.consumers.inbox import Delivery
from delayctl.consumers.workers import Ticket, Workers
from delayctl.testing import SimulatedBroker
from delayctl.topology.parse import read_spec

from testbed.wait import until

TOPOLOGY = read_spec(
    """
version: 1
delay: {levels: [1s, 10s]}
queues: {work: {}}
retry: {work: {levels: [1s], max: 1, park: work.dlq}}
""",
    {},
    file="topology.yaml",
)


class Wordless(Exception):
    """An error that fails when it is asked what it is."""

    def __str__(self) -> str:
        """Fail."""
        raise RuntimeError("no words")


class Endless:
    """A policy that does not know where it ends."""

    def level(self, retry: int) -> str | None:
        """The level of a retry."""
        return ["1s"][retry - 1]


def answering(answer: Any) -> Callable[[Message], Outcome]:
    """A handler that answers with this, or raises it."""

    def handle(_: Message) -> Outcome:
        if isinstance(answer, BaseException):
            raise answer
        outcome: Outcome = answer
        return outcome

    return handle


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    """A broker with a queue whose messages are tried twice."""
    with SimulatedBroker(TOPOLOGY) as running:
        yield running


def parked(broker: SimulatedBroker, handler: Callable[[Message], Outcome], **how: Any) -> list[tuple[str, Any, Any]]:
    """What is parked after a while, why, and what was noted each time: one worker deals with two messages."""
    consumer = DelayConsumer(broker.url, topology=TOPOLOGY, clock=broker.clock, workers=1)
    consumer.handle("work", handler, **how)
    broker.run(consumer)
    for body in ("first", "second"):
        broker.publish(body, key="work", exchange="")
    broker.advance("1m")
    return [
        (each.text, each.headers["delay-parked"], [entry["reason"] for entry in each.headers["delay-history"]])
        for each in broker.messages("work.dlq")
    ]


@pytest.mark.parametrize(
    ("answer", "reason", "tries"),
    [
        (Retry(reason=KeyError("shop")), "KeyError: 'shop'", 2),  # type: ignore[arg-type]
        (Retry(reason=None), "", 2),  # type: ignore[arg-type]
        (Retry(reason=7), "7", 2),  # type: ignore[arg-type]
        (Retry(level=["1s"]), "", 2),  # type: ignore[arg-type]
        (Park(None), "", 1),  # type: ignore[arg-type]
        (Park(Wordless()), "Wordless: a Wordless that can't say what it is", 1),  # type: ignore[arg-type]
        (Wordless(), "Wordless: a Wordless that can't say what it is", 2),
        (SystemExit(3), "SystemExit: 3", 2),
        (FileNotFoundError("\ud800.txt"), "FileNotFoundError: \\ud800.txt", 2),
    ],
)
def test_whatever_is_given_as_a_reason_is_a_text(broker: SimulatedBroker, answer: Any, reason: str, tries: int) -> None:
    """The message is tried again, or parked, as any other; and so is the next one."""
    found = parked(broker, answering(answer))

    why = ("gave up after 1 retries: " if tries > 1 else "") + (reason or "no reason given")
    assert found == [(body, why, [reason] * tries) for body in ("first", "second")]


def test_a_level_that_there_is_not_is_logged(broker: SimulatedBroker, caplog: pytest.LogCaptureFixture) -> None:
    """The message waits as the policy says; whoever chose the level does not learn it otherwise."""
    parked(broker, answering(Retry(level="15m")))

    told = [record.getMessage() for record in caplog.records if record.name == "delayctl.consumer"]
    assert told == ["there is no level 15m: a message of work waits in 1s"] * 2


def test_a_policy_that_fails_parks(broker: SimulatedBroker) -> None:
    """Rather than have the message tried for ever: it would fail every time."""
    found = parked(broker, answering(Retry(reason="no luck")), policy=Endless())

    why = "the retry policy failed with IndexError: list index out of range: no luck"
    assert found == [(body, why, ["no luck"] * 2) for body in ("first", "second")]


class Saying:
    """A policy that answers with anything, or raises it."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def level(self, _retry: int) -> Any:
        """Whatever it is."""
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (["1s"], "there is no level '['1s']'"),
        (3, "there is no level '3'"),
        (type("Odd", (), {"__str__": lambda _: 7})(), "there is no level 'a Odd that can't say what it is'"),
        (SystemExit(3), "the retry policy failed with SystemExit: 3"),
    ],
    ids=["a list", "a number", "no text", "the end"],
)
def test_whatever_a_policy_says_parks(broker: SimulatedBroker, answer: object, why: str) -> None:
    """Where it is no level of the topology."""
    found = parked(broker, answering(Retry(reason="no luck")), policy=Saying(answer))

    assert found == [(body, f"{why}: no luck", ["no luck"]) for body in ("first", "second")]


def test_whoever_looks_on_may_raise_anything(broker: SimulatedBroker) -> None:
    """It changes nothing."""
    consumer = DelayConsumer(broker.url, topology=TOPOLOGY, clock=broker.clock, workers=1)
    consumer.watch(end_the_thread)
    consumer.handle("work", answering(RuntimeError("no luck")))
    broker.run(consumer)
    broker.publish("order", key="work", exchange="")

    broker.advance("1m")

    assert [each.parked for each in broker.messages("work.dlq")] == ["gave up after 1 retries: RuntimeError: no luck"]


def end_the_thread(_: Message, __: BaseException) -> None:
    """End the thread, if it lets itself be ended."""
    raise SystemExit(3)


def test_nothing_ends_a_worker() -> None:
    """What can't be dealt with is given back, and the next is begun with."""
    finished = Finished()

    def treat(ticket: Ticket) -> None:
        if ticket.delivery.tag == 1:
            raise SystemExit(3)
        ticket.done()

    workers = Workers(1, treat, finished)
    workers.hand_out(0, [Delivery(tag, "work", "", "work", redelivered=False) for tag in (1, 2)])

    assert taken(finished, 2) == [(0, 1, "back"), (0, 2, "done")]
    workers.stop(0)
    finished.close()


def taken(finished: Finished, count: int) -> list[tuple[int, int, str]]:
    """What so many deliveries came to."""
    found: list[tuple[int, int, str]] = []

    def are_there() -> bool:
        found.extend(finished.take())
        return len(found) == count

    until(are_there, 10)
    return found


def test_what_has_no_room_for_its_history_goes_on_without(broker: SimulatedBroker) -> None:
    """Headers that nearly fill a frame: it is tried again and parked, as any other."""
    past = [{"attempt": 0, "at": 0, "reason": "r" * 100}] * 7
    consumer = DelayConsumer(broker.url, topology=TOPOLOGY, clock=broker.clock)
    consumer.handle("work", lambda message: Park("no luck") if message.attempt else Retry())
    broker.run(consumer)
    broker.publish("order", key="work", exchange="", headers={"big": "h" * 129_900, "delay-history": past})

    broker.advance("1m")

    (found,) = broker.messages("work.dlq")
    assert (found.parked, found.attempt) == ("no luck", 1)
    assert [entry["reason"] for entry in found.headers["delay-history"]] == ["no luck"]
