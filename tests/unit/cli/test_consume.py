"""What a message looks like to people and programs, and the figures of lateness."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pytest
from delayctl.cli.arrivals import Arrival, Lateness, arrival_json, arrival_text, summary_text
from delayctl.cli.consume import prefetch_for
from delayctl.cli.consume_guard import Delay, delay_of
from delayctl.testing.simulated import SimulatedBroker
from delayctl.topology.duration import Duration
from delayctl.topology.errors import ManagementUnavailable, Refused, VhostMissing
from delayctl.topology.management import Management

from tests.conftest import TopologyFile
from tests.support.commands import Ran, delayctl

FILE = """version: 1
delay:
  levels: {1m: {}, 5m: {shards: 2}}
  any: {unit: 1s, steps: 4}
queues: {orders.queue: {}, delay.orders.queue: {}}
routes:
  - {key: order.created, delay: 1m, to: orders.queue}
  - {key: order.paid, delay: 1m, to: delay.orders.queue}
"""
NOON = int(datetime(2026, 11, 16, 12, 30, 15, 7000, UTC).timestamp() * 1000)
ARRIVAL = Arrival(NOON + 12, NOON, "q", "x", "order.created", "m-1", 0, False, {}, b"order 4711")


class TestText:
    """One line per message."""

    def test_on_time(self) -> None:
        """When it came, when it was due, the difference, and what it is."""
        assert arrival_text(ARRIVAL) == ("12:30:15.019  due 12:30:15.007  12ms late  order.created  id m-1  order 4711")

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"due_ms": None}, "12:30:15.019  no due time  order.created"),
            ({"due_ms": NOON + 5012}, "due 12:30:20.019  5s early"),
            ({"parked": "gave up\x1b[31m"}, "parked: gave up\\x1b[31m  id m-1"),
            ({"due_ms": NOON + 12 - 3_600_000}, "due 11:30:15.019  1h late"),
            ({"due_ms": NOON + 12 - 42_225}, "42s225ms late"),
            ({"due_ms": NOON + 12 - 86_400_000}, "due 2026-11-15 12:30:15.019  1d late"),
            ({"due_ms": 2**53 - 1}, "due 9999-12-31 "),
            ({"attempt": 3}, "order.created  retry 3  id"),
            ({"redelivered": True}, "order.created  redelivered  id"),
            ({"key": "", "message_id": None, "body": b""}, "(no key)  no id  (empty)"),
        ],
    )
    def test_other_messages(self, changes: dict[str, Any], expected: str) -> None:
        """Early, far too late, a retry, without this or that."""
        assert expected in arrival_text(replace(ARRIVAL, **changes))

    @pytest.mark.parametrize(
        "body",
        [
            b"\x1b[2J\x1b]0;owned\x07",
            b"a\r\nb\x00",
            "\u202etxt.exe".encode(),
            b"\xff\xfe\x80",
            b"x" * 10_000_000,
            "🐇".encode() * 1000,
            b"\xc3" * 500,
        ],
        ids=["escape", "lines", "bidi", "bytes", "large", "rabbits", "halves"],
    )
    def test_hostile_content(self, body: bytes) -> None:
        """Nothing moves a cursor, breaks the line, or fills the screen; the same in a key and an id."""
        text = body.decode("utf-8", "surrogateescape")[:1000]

        shown = arrival_text(replace(ARRIVAL, body=body, key=text, message_id=text))

        assert shown.isprintable()
        assert len(shown) < 1200


class TestJson:
    """One line of JSON per message."""

    def test_all_of_it(self) -> None:
        """In the words of the message contract."""
        found = json.loads(arrival_json(ARRIVAL))

        assert found["due_ms"] == NOON
        assert found["late_ms"] == 12
        assert found["body"] == "order 4711"

    def test_what_json_does_not_know(self) -> None:
        """Bytes are given in base64; other values of headers as text."""
        headers = {
            "at": datetime(2026, 1, 1, tzinfo=UTC),
            "price": Decimal("1.5"),
            "raw": b"\xff",
            "odd\udc80": "\udc80",
        }
        text = arrival_json(replace(ARRIVAL, body=b"\xff\n", headers=headers))

        assert text.isascii()
        assert "\n" not in text
        assert json.loads(text)["body_base64"] == "/wo="
        assert json.loads(text)["headers"]["price"] == "1.5"


class TestLateness:
    """The summary."""

    def test_figures(self) -> None:
        """By nearest rank, early ones included."""
        lateness = Lateness()
        for late in (*range(1, 100), -5):
            lateness.add(late)

        assert lateness.figures() == {"p50_ms": 49, "p99_ms": 98, "max_ms": 99}
        assert summary_text(lateness, left_there=False) == ("100 messages. Lateness: p50 49ms, p99 98ms, max 99ms.")

    def test_nothing_came(self) -> None:
        """No figures are made up."""
        assert summary_text(Lateness(), left_there=True) == "0 messages, left in the queue."

    def test_some_without_due_time(self) -> None:
        """They are counted, and said not to be measured."""
        lateness = Lateness()
        lateness.add(None)
        lateness.add(7)

        assert "2 messages. Lateness of 1 with a due time: p50 7ms" in summary_text(lateness, left_there=False)


class TestDelays:
    """Queues that nobody should take messages from unawares."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {"x-message-ttl": 60_000, "x-dead-letter-exchange": "delay.exchange"}

    @pytest.mark.parametrize(
        "name",
        ["delay.1m.queue", "shop.delay.1m.queue", "delay.1m.2.queue", "delay.any.03.queue", "delay.1m.next.queue"],
    )
    def test_those_of_a_topology(self, name: str) -> None:
        """By name and arguments: levels, shards, steps, and what stands in for one."""
        assert delay_of({"name": name, "arguments": self.ARGUMENTS}) == Delay(
            name, Duration(60_000), "delay.exchange", is_ours=True
        )

    def test_by_policy(self) -> None:
        """Settings may come from either."""
        found = {
            "name": "delay.1m.queue",
            "arguments": {"x-dead-letter-exchange": "delay.exchange"},
            "effective_policy_definition": {"message-ttl": 60_000},
        }

        assert delay_of(found) == Delay("delay.1m.queue", Duration(60_000), "delay.exchange", is_ours=True)

    def test_those_of_others(self) -> None:
        """They wait by the look of it, unless somebody consumes there."""
        found = {"name": "wait.queue", "arguments": self.ARGUMENTS, "consumers": 0}

        assert delay_of(found) == Delay("wait.queue", Duration(60_000), "delay.exchange", is_ours=False)
        assert delay_of({**found, "consumers": 1}) is None

    @pytest.mark.parametrize(
        "arguments", [{}, {"x-message-ttl": 60_000}, {"x-dead-letter-exchange": "delay.exchange"}], ids=str
    )
    def test_others(self, arguments: dict[str, Any]) -> None:
        """What has no time to leave at, or no way to go on, is no delay."""
        assert delay_of({"name": "delay.unrouted.queue", "arguments": arguments}) is None


class Shop:
    """The file on a simulated broker, which has no management API."""

    def __init__(self, file: str, broker: SimulatedBroker) -> None:
        self.file, self.broker = file, broker

    def consume(self, *arguments: str) -> Ran:
        """Watch a queue for a moment."""
        where = ("--url", self.broker.url, "--management-url", "http://127.0.0.1:9")
        return delayctl("consume", *arguments, "--wait", "200ms", *where)


@pytest.fixture
def shop(topology: TopologyFile) -> Iterator[Shop]:
    """One message waits at the level of a minute."""
    file = topology.write(FILE)
    with SimulatedBroker(file) as broker:
        broker.publish("order 4711", key="order.created", delay="1m")
        yield Shop(file, broker)


class TestWithoutManagement:
    """Where the broker can't be asked what a queue is, the file says so, and else its name."""

    def test_a_level_of_the_file(self, shop: Shop) -> None:
        """Nothing is taken without a yes, and it is said what would never arrive."""
        refused = shop.consume("delay.1m.queue", shop.file)
        left = len(shop.broker.waiting("1m"))
        taken = shop.consume("delay.1m.queue", shop.file, "--yes")

        assert (refused.code, refused.out, left) == (64, "", 1)
        assert "delay.1m.queue is a delay: what waits there goes on to delay.exchange after 1m" in refused.err
        assert "give --yes" in refused.err
        assert (taken.code, len(shop.broker.waiting("1m"))) == (0, 0)
        assert "Warning" not in taken.err

    @pytest.mark.parametrize(
        ("queue", "wait"),
        [
            ("delay.5m.2.queue", "delay.exchange after 5m"),
            ("delay.any.03.queue", "delay.any.02.gate.exchange after 8s"),
            ("delay.1m.next.queue", "delay.exchange after 1m"),
            ("delay.5m.1.next.queue", "delay.exchange after 5m"),
            ("delay.any.00.next.queue", "delay.exchange after 1s"),
        ],
    )
    def test_all_that_waits_by_the_file(self, shop: Shop, queue: str, wait: str) -> None:
        """Shards, steps, and what leads round a queue while it is changed."""
        ran = shop.consume(queue, shop.file)

        assert ran.code == 64
        assert f"{queue} is a delay: what waits there goes on to {wait}" in ran.err

    def test_by_policy(self, shop: Shop, tmp_path: Path) -> None:
        """The time comes from the file, wherever the broker has it from."""
        file = tmp_path / "policy.yaml"
        file.write_text("version: 1\ndelay: {levels: [1m], settings: policy}\n", encoding="utf-8")

        ran = shop.consume("delay.1m.queue", str(file))

        assert (ran.code, len(shop.broker.waiting("1m"))) == (64, 1)
        assert "goes on to delay.exchange after 1m" in ran.err

    def test_by_name_alone(self, shop: Shop) -> None:
        """Without a file, what is called like a delay is taken for one."""
        ran = shop.consume("delay.1m.queue")

        assert (ran.code, len(shop.broker.waiting("1m"))) == (64, 1)
        assert "delay.1m.queue looks like a delay, and the management API can't be asked" in ran.err

    def test_a_level_that_the_file_has_no_more(self, shop: Shop, tmp_path: Path) -> None:
        """What was left behind by another version of the file goes by its name, too."""
        file = tmp_path / "later.yaml"
        file.write_text("version: 1\ndelay: {levels: [1h]}\n", encoding="utf-8")

        assert shop.consume("delay.1m.queue", str(file)).code == 64

    @pytest.mark.parametrize("queue", ["orders.queue", "delay.unrouted.queue"])
    def test_other_queues(self, shop: Shop, queue: str) -> None:
        """Work and what is parked may be taken, with a file or without."""
        assert [shop.consume(queue, *file).code for file in ((), (shop.file,))] == [0, 0]

    def test_work_that_is_called_like_a_delay(self, shop: Shop) -> None:
        """The file knows better than the name."""
        assert shop.consume("delay.orders.queue", shop.file).code == 0

    def test_a_look_takes_nothing(self, shop: Shop) -> None:
        """Who leaves messages there is not asked."""
        ran = shop.consume("delay.1m.queue", shop.file, "--requeue", "--count", "1")

        assert (ran.code, len(shop.broker.waiting("1m"))) == (0, 1)

    @pytest.mark.parametrize(
        "error", [Refused("the API answered 404", code=404), VhostMissing("there is none")], ids=str
    )
    def test_what_is_not_there(self, shop: Shop, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        """The broker has told: nobody is asked, and consuming says what is missing."""
        monkeypatch.setattr(Management, "get", raising(error))

        ran = shop.consume("delay.9m.queue")

        assert ran.code == 1
        assert "delay.9m.queue" in ran.err
        assert "Warning" not in ran.err

    @pytest.mark.parametrize(
        "error",
        [Refused("the API answered 503", code=503), ManagementUnavailable("it does not answer in time", fix="")],
        ids=str,
    )
    def test_what_could_not_be_seen(self, shop: Shop, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        """A broker that does not tell has not said that it is no delay."""
        monkeypatch.setattr(Management, "get", raising(error))

        assert shop.consume("delay.1m.queue", shop.file).code == 64


def raising(error: Exception) -> Any:
    """A function that can't."""

    def fail(*_: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("count", "requeue", "expected"),
    [
        (None, False, 200),
        (5, False, 5),
        (66_000, False, 200),
        (None, True, 0),
        (5, True, 5),
        (65_535, True, 65_535),
        (65_536, True, 0),
        (66_000, True, 0),
    ],
)
def test_all_that_is_left_there_is_held_until_the_end(count: int | None, requeue: bool, expected: int) -> None:
    """A prefetch has no more than sixteen bits: beyond that as many are held as come."""
    assert prefetch_for(count, requeue=requeue) == expected
