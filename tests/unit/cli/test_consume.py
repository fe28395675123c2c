"""What a message looks like to people and programs, and the figures of lateness."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from delayctl.cli.arrivals import Arrival, Lateness, arrival_json, arrival_text, summary_text
from delayctl.cli.consume_guard import Delay, delay_of
from delayctl.topology.duration import Duration

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
