"""What redrive and expedite answer when something ends them: told whole, whatever has come between."""

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from delayctl.consumers import pull as module
from delayctl.consumers.pull import Pull
from delayctl.publishers.connection import Connection
from delayctl.testing.simulated import SimulatedBroker
from delayctl.topology.access import Access

from tests.support.commands import Ran, delayctl

FILE = """version: 1
delay: {levels: [15m, 1h]}
queues: {orders.queue: {}}
routes: [{key: order.created, delay: 15m, to: orders.queue}]
retry: {orders.queue: {levels: [15m], max: 2, park: orders.dlq}}
"""
Moment = Callable[[Pull], object]


class Shop:
    """The file on a simulated broker, and the commands."""

    def __init__(self, file: Path, broker: SimulatedBroker) -> None:
        self.file, self.broker = str(file), broker

    def publish(self, exchange: str, key: str, count: int) -> None:
        """So many messages, each with an id."""
        with self.broker.publisher() as publisher:
            for number in range(count):
                publisher.publish(f"{number}", exchange=exchange, key=key, message_id=f"{exchange}{key}-{number}")

    def run(self, *arguments: str) -> Ran:
        """A command; there is no management API."""
        where = ("--url", self.broker.url, "--management-url", "http://127.0.0.1:9")
        return delayctl(arguments[0], self.file, *arguments[1:], *where)

    def count(self, queue: str) -> int:
        """How many messages a queue holds."""
        return len(self.broker.messages(queue))

    def redrive(self, *options: str) -> Ran:
        """Move what is parked."""
        return self.run("redrive", "--queue", "orders.dlq", *options)

    def expedite(self, *options: str) -> Ran:
        """Deliver all of both levels."""
        return self.run("expedite", "--level", "15m", "--level", "1h", "--all", *options)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Five messages are parked, and five wait at each level."""
    file = tmp_path / "topology.yaml"
    file.write_text(FILE)
    with SimulatedBroker(file, in_turn=False) as broker:
        shop = Shop(file, broker)
        shop.publish("", "orders.dlq", 5)
        shop.publish("delay.15m.exchange", "order.created", 5)
        shop.publish("delay.1h.exchange", "order.created", 5)
        yield shop


@pytest.fixture
def at_answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have something happen when the broker's answers are waited for: the first block is of one message, the next of the rest."""
    waits, moments = [0], dict[int, Moment]()
    keep_alive = Pull.keep_alive

    def waiting(pull: Pull) -> None:
        waits[0] += 1
        moments.get(waits[0], keep_alive)(pull)

    def at(moment: Moment, *numbers: int) -> None:
        moments.update(dict.fromkeys(numbers, moment))

    monkeypatch.setattr(Pull, "keep_alive", waiting)
    return at


def ctrl_c(_: Pull) -> None:
    """Somebody has seen enough."""
    raise KeyboardInterrupt


class TestCtrlC:
    """Tells what was moved, at whatever moment it comes."""

    @pytest.mark.parametrize(("wait", "looked_at"), [(1, 5), (2, 5)], ids=["on the way", "at the end"])
    def test_what_is_on_its_way_arrives(
        self, shop: Shop, at_answer: Callable[..., None], wait: int, looked_at: int
    ) -> None:
        """All five were looked at, so all five are there, and said to be."""
        at_answer(ctrl_c, wait)

        ran = shop.redrive("--output", "json")

        answer = json.loads(ran.out)
        assert ran.code == 3
        assert (answer["looked_at"], answer["moved"], answer["on_the_way"]) == (looked_at, 5, 0)
        assert (answer["stopped"], shop.count("orders.queue"), shop.count("orders.dlq")) == (True, 5, 0)

    def test_once_more(self, shop: Shop, at_answer: Callable[..., None]) -> None:
        """What is on its way is left to itself, and said to be."""
        at_answer(ctrl_c, 2, 3)

        ran = shop.redrive()

        assert ran.code == 3
        assert ran.out.splitlines()[1:] == [
            "  1 to orders.queue",
            "Stopped: 0 messages not looked at.",
            "On their way when it ended: 4 messages. They are still in orders.dlq, too, and may arrive twice.",
        ]
        shop.broker.settle()
        assert shop.count("orders.dlq") == 4

    def test_no_further_queue_is_begun(self, shop: Shop, at_answer: Callable[..., None]) -> None:
        """Nor is it passed over in silence."""
        at_answer(ctrl_c, 1)

        ran = shop.expedite()

        assert ran.code == 3
        assert ran.out.splitlines()[-1] == "Not looked into: delay.1h.queue."
        assert shop.count("delay.1h.queue") == 5

    def test_before_the_next_queue(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        """What was done in the first is told."""
        opened = Connection.open_channel

        def open_channel(connection: Connection, **options: Any) -> None:
            if not shop.count("delay.15m.queue"):
                raise KeyboardInterrupt
            opened(connection, **options)

        monkeypatch.setattr(Connection, "open_channel", open_channel)
        ran = shop.expedite()

        assert ran.code == 3
        assert ran.out.startswith("Expedited: 5 of 5 messages of delay.15m.queue")
        assert ran.out.splitlines()[-1] == "Not looked into: delay.1h.queue."

    def test_before_anything_was_moved(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing was changed, and that is said."""
        monkeypatch.setattr(Pull, "take", lambda pull, _: ctrl_c(pull))

        ran = shop.redrive()

        assert (ran.code, ran.out.splitlines()[-1]) == (1, "Stopped: 5 messages not looked at. Run it again to go on.")


class TestBrokenOff:
    """The broker is lost on the way."""

    def lose(self, shop: Shop) -> Moment:
        """The moment when it is."""

        def lost(pull: Pull) -> None:
            shop.broker.drop_connections()
            pull.rest(60)

        return lost

    def test_some_were_moved(self, shop: Shop, at_answer: Callable[..., None]) -> None:
        """Those are told, apart from those that may have arrived; the code says that it was not nothing."""
        at_answer(self.lose(shop), 2)

        ran = shop.redrive("--output", "json")

        answer = json.loads(ran.out)
        assert ran.code == 3
        assert (answer["looked_at"], answer["moved"], answer["on_the_way"], answer["stopped"]) == (5, 1, 4, True)
        unchecked, error, *_ = ran.err.splitlines()
        assert unchecked == (
            "Warning: no management API listens at http://127.0.0.1:9/api; whether queues are still bound is not checked, and "
            "what finds none is parked in the queue of what has no route"
        )
        assert error.startswith("Error: the connection was lost")

    def test_none_was_moved(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        """All are where they were."""
        monkeypatch.setattr(Pull, "take", lambda pull, _: self.lose(shop)(pull))

        ran = shop.redrive()

        assert (ran.code, ran.out.splitlines()[-1]) == (1, "Stopped: 5 messages not looked at. Run it again to go on.")
        assert shop.count("orders.dlq") == 5

    def test_what_was_done_in_other_queues_is_told(self, shop: Shop, at_answer: Callable[..., None]) -> None:
        """The first of them is done."""
        at_answer(self.lose(shop), 3)

        ran = shop.expedite("--output", "json")

        answer = json.loads(ran.out)
        assert ran.code == 3
        assert [(each["queue"], each["moved"], each["on_the_way"]) for each in answer["queues"]] == [
            ("delay.15m.queue", 5, 0),
            ("delay.1h.queue", 0, 5),
        ]
        assert (answer["not_looked_into"], "the connection was lost" in ran.err) == ([], True)

    def test_so_it_is_when_the_next_queue_can_not_be_reached(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its name is told, and what came between."""
        begun = Pull.__init__

        def begin(pull: Pull, access: Access, queue: str, *, name: str) -> None:
            with shop.broker.away() if queue == "delay.1h.queue" else nullcontext():
                begun(pull, access, queue, name=name)

        monkeypatch.setattr(Pull, "__init__", begin)
        ran = shop.expedite()

        assert ran.code == 3
        assert ran.out.startswith("Expedited: 5 of 5 messages of delay.15m.queue")
        assert ran.out.splitlines()[-1] == "Not looked into: delay.1h.queue."
        assert ran.err.splitlines()[1].startswith("Error: ")

    def test_it_can_not_even_be_begun(self, shop: Shop) -> None:
        """The error is all that there is to say."""
        with shop.broker.away():
            ran = shop.expedite()

        assert (ran.code, ran.out) == (1, "")


class TestLimit:
    """No more than so many."""

    @pytest.mark.parametrize(
        ("limit", "moved", "not_looked_into"),
        [(3, [3], ["delay.1h.queue"]), (5, [5], ["delay.1h.queue"]), (7, [5, 2], []), (20, [5, 5], [])],
    )
    def test_of_all_queues_together(self, shop: Shop, limit: int, moved: list[int], not_looked_into: list[str]) -> None:
        """It is said which of them were not looked into."""
        ran = shop.expedite("--limit", str(limit), "--output", "json")

        answer = json.loads(ran.out)
        assert ran.code == 0
        assert [each["moved"] for each in answer["queues"]] == moved
        assert answer["not_looked_into"] == not_looked_into
        assert shop.count("orders.queue") == sum(moved)

    def test_it_is_named_as_it_was_given(self, shop: Shop) -> None:
        """Not as what is left of it for the last queue."""
        ran = shop.expedite("--limit", "7")

        assert ran.out.splitlines()[-1] == "Not looked at: 3, by the limit of 7."


def test_messages_that_are_given_to_others(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not gone, and it is no success that none was moved."""
    monkeypatch.setattr(module, "_SILENCES", 2)
    monkeypatch.setattr(Connection, "consume", lambda *_: None)  # As with a queue that another consumer has for itself.
    monkeypatch.setattr(Connection, "cancel", lambda *_: None)

    ran = shop.redrive()

    assert ran.code == 1
    assert ran.out.splitlines()[1:] == [
        "Not given to us: 5. They are in orders.dlq, which gives them to others, or holds them back.",
        "  fix: see who consumes from it (rabbitmqctl list_consumers), end that, and run it again",
    ]
