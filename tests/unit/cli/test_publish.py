"""Lines to messages, and the account of a file: every line is counted once, and a bad one stops nobody."""

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from delayctl.cli import publish_lines as module
from delayctl.cli.message_lines import Outgoing, read_line
from delayctl.cli.progress import Progress, bar
from delayctl.cli.publish_lines import LinesResult, publish_lines, result_json, result_text
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import ConnectionLost, NotConfirmed, PublisherClosed, Unroutable
from delayctl.topology.errors import DelayctlError

from tests.support.commands import Ran, delayctl


def line(**fields: Any) -> bytes:
    """A line with these fields."""
    return json.dumps(fields).encode()


class TestLines:
    """What one line says."""

    def test_all_of_it(self) -> None:
        """Every field is taken as it is."""
        found = read_line(
            line(body="b", key="k", delay="15m", message_id="m", headers={"shop": "eu"}), {"headers": {"from": "cli"}}
        )

        assert found == Outgoing("k", b"b", "15m", message_id="m", headers={"from": "cli", "shop": "eu"})

    @pytest.mark.parametrize(
        ("body", "expected"),
        [("grüße", "grüße".encode()), ({"a": [1, None]}, b'{"a":[1,null]}'), (5, b"5"), (None, b"null"), ("", b"")],
    )
    def test_bodies(self, body: Any, expected: bytes) -> None:
        """A text is sent as it is, all else as JSON."""
        assert read_line(line(body=body, key="k"), {}).body == expected

    def test_a_way_replaces_the_options_way(self) -> None:
        """Whichever it is: a message has one."""
        found = read_line(line(body="", due=1_800_000_000_000), {"key": "k", "delay": "15m"})

        assert (found.delay, found.due) == (None, 1_800_000_000_000)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (b"x", "this is not JSON: Expecting value at column 1"),
            (b"[" * 100_000, "this is not JSON: "),
            (b'{"body": NaN, "key": "k"}', "this is not JSON: NaN is no JSON number"),
            (b'{"body": "\xff"}', "byte 0xff is not UTF-8"),
            (b"[1]", "a line must be an object, not a list"),
            (line(body="", key="k", dealy="1s"), "'dealy' is unknown (did you mean 'delay'?)"),
            (line(key="k"), "there is no body"),
            (line(body=""), "there is no key"),
            (line(body="", key=5), "the key can't be a number"),
            (line(body="", key="k" * 256), "is longer than 255 bytes"),
            (line(body="", key="k", delay="1s", due=1), "delay and due exclude each other"),
            (line(body="", key="k", due=[1]), "the due can't be a list"),
            (line(body="", key="k", due=True), "the due can't be true or false"),
            (line(body="", key="k", headers=[1]), "the headers can't be a list"),
            (line(body="", key="k", headers={"CC": "x"}), "the header CC can't be a text"),
            (line(body="", key="k", headers={"BCC": [1]}), "the header BCC can't be a list"),
            (b'{"body": "\\ud800", "key": "k"}', "half a character"),
        ],
        ids=lambda value: value[:30] if isinstance(value, str) else "",
    )
    def test_bad_lines(self, text: bytes, expected: str) -> None:
        """Each says what is wrong and how to mend it."""
        with pytest.raises(DelayctlError) as caught:
            read_line(text, {})

        assert expected in caught.value.what
        assert caught.value.fix


@pytest.mark.parametrize("more", [("hello",), ("--file", "lines.ndjson")], ids=["body", "file"])
@pytest.mark.parametrize(
    ("option", "value", "answer"),
    [
        ("--delay", "xx", "Error: --delay: 'xx' is not a duration\n  fix: write 500ms, 10s, 1m30s, 2h or 1d\n"),
        ("--delay", "-5m", "Error: --delay: '-5m' is not a duration\n  fix: write 500ms, 10s, 1m30s, 2h or 1d\n"),
        (
            "--due",
            "yesterday",
            "Error: --due: the due time 'yesterday' can't be understood\n  fix: write it as 2026-11-16T18:30:00Z\n",
        ),
        (
            "--due",
            "2030-01-01T00:00:00",
            "Error: --due: the due time has no time zone\n  fix: add Z for UTC, or an offset such as +02:00\n",
        ),
    ],
)
def test_a_time_that_is_none_is_a_mistake_of_usage(option: str, value: str, answer: str, more: tuple[str, ...]) -> None:
    """It is told before a broker or a file is asked for."""
    ran = delayctl("publish", "missing.yaml", "--key", "k", option, value, *more, "--url", "amqp://127.0.0.1:1/")

    assert ran == Ran(64, "", answer)


def test_a_body_in_the_place_of_the_file_is_explained() -> None:
    """Before it is looked for as a file."""
    ran = delayctl("publish", "--key", "a", "hello")

    assert ran == Ran(
        64,
        "",
        "Error: there is nothing to publish: 'hello' is taken for the topology file\n"
        "  fix: the first argument is the topology file; then give a BODY, --file FILE, or - for lines from stdin\n",
    )


def test_help_says_what_is_delivered_at_once() -> None:
    """And what the lines of a file are."""
    text = " ".join(delayctl("publish", "--help").out.split())

    assert "or with a --due that has passed, a message is delivered at once." in text
    assert "With --file, or - instead of BODY, one JSON object per line (see below)." in text


class Broker:
    """Answers as it is told to, at once or when it is closed."""

    def __init__(self, answer: Callable[[Outgoing], object]) -> None:
        self.answer = answer
        self.seen: list[Outgoing] = []
        self.open: list[Delivery] = []

    def send(self, message: Outgoing) -> Delivery:
        """Take a message."""
        delivery, answer = Delivery(), self.answer(message)
        self.seen.append(message)
        if isinstance(answer, Exception):
            delivery.set_exception(answer)
        elif answer:
            delivery.set_result(message.message_id or "")
        else:
            self.open.append(delivery)
        return delivery

    def close(self, _: float | None) -> None:
        """What is unanswered fails, as with the real one."""
        for delivery in self.open:
            delivery.set_exception(PublisherClosed("closed", fix="", message_id="m"))
        if self.open:
            raise NotConfirmed(["m"])


def published(text: bytes, answer: Callable[[Outgoing], object] = lambda _: True) -> tuple[LinesResult, Broker]:
    """Publish a file to such a broker."""
    broker = Broker(answer)
    return publish_lines(io.BytesIO(text), "lines", {"key": "k"}, broker.send, broker.close), broker


class TestAccount:
    """published = confirmed + refused + not confirmed, and every other line is a bad one."""

    def test_all_confirmed(self) -> None:
        """Blank lines and a byte order mark are nothing to speak of; every message has an id."""
        result, broker = published(b"\xef\xbb\xbf" + line(body="a") + b"\n\n  \n" + line(body="b"))

        assert (result.published, result.confirmed, result.is_complete, result.last_line) == (2, 2, True, 4)
        assert all(message.message_id for message in broker.seen)
        assert broker.seen[0].message_id != broker.seen[1].message_id

    def test_bad_and_refused_lines(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The rest is published; each is reported with its line."""
        refused = Unroutable("no queue", fix="apply", message_id="m")
        text = b"\n".join([line(body="a"), b"nonsense", line(body="no"), line(body="b")])

        result, _ = published(text, lambda message: refused if message.body == b"no" else True)

        assert (result.published, result.confirmed, result.refused, result.bad_lines) == (3, 2, 1, 1)
        assert not result.is_complete
        said = capsys.readouterr().err
        assert "at lines:2" in said
        assert "Error: no queue\n  at lines:3\n  fix: apply" in said
        assert result_json(result)["problems_left_out"] == 0
        assert [problem["line"] for problem in result_json(result)["problems"]] == [2, 3]

    def test_a_broker_that_is_gone_ends_it(self) -> None:
        """A million lines are not tried one after the other, for a minute each."""
        lost = ConnectionLost("the connection was not restored", fix="again", message_id="m")

        result, broker = published(b"\n".join([line(body="a", message_id="m")] * 100), lambda _: lost)

        assert len(broker.seen) == 1
        assert (result.refused, result.confirmed, result.unconfirmed) == (0, 0, {1: "m"})
        assert "Stopped after line 1: the connection was not restored." in result_text(result)

    def test_stopped_by_hand(self) -> None:
        """What was not confirmed is named by line and id."""

        def answer(message: Outgoing) -> bool:
            if message.body == b"stop":
                raise KeyboardInterrupt
            return message.body == b"safe"

        lines = [line(body="safe"), line(body="open", message_id="m-2"), line(body="stop"), line(body="never")]

        result, _ = published(b"\n".join(lines), answer)

        assert (result.published, result.confirmed, result.unconfirmed) == (2, 1, {2: "m-2"})
        assert "1 message not confirmed, arrived or not: line 2 (message m-2)." in result_text(result)
        assert "Stopped after line 3: Ctrl-C." in result_text(result)
        assert result_json(result)["not_confirmed"] == [{"line": 2, "message_id": "m-2"}]

    def test_a_line_without_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Is skipped without being held, and the next line has the right number."""
        monkeypatch.setattr(module, "_LONGEST_LINE", 100)

        result, _ = published(b"x" * 1000 + b"\n" + line(body="a"))

        assert (result.confirmed, result.bad_lines, result.last_line) == (1, 1, 2)
        assert result.problems[0].message == "the line is longer than 100 bytes"

    def test_half_a_character_in_a_key(self) -> None:
        """Whatever a value holds, only its own line suffers."""

        def answer(message: Outgoing) -> bool:
            return bool(message.key.encode())

        result, _ = published(b'{"body": "", "key": "\\ud800"}\n' + line(body="b"), answer)

        assert (result.confirmed, result.bad_lines) == (1, 1)

    def test_many_unconfirmed(self) -> None:
        """Text names some of them, JSON all."""
        result = LinesResult(published=30, unconfirmed=dict.fromkeys(range(30), "m"), seconds=1)

        assert "and 10 more (--output json names all)" in result_text(result)
        assert len(result_json(result)["not_confirmed"]) == 30


class TestProgress:
    """The bar."""

    @pytest.mark.parametrize(
        ("share", "expected"),
        [
            (0.5, "[###############---------------]  50%  1,000 confirmed, 500/s"),
            (1.0, f"[{'#' * 30}] 100%  1,000 confirmed, 500/s"),
            (None, "1,000 confirmed, 500/s"),
        ],
    )
    def test_bar(self, share: float | None, expected: str) -> None:
        """How far, how many, how fast."""
        assert bar(share, 1000, 2.0) == expected

    def test_nobody_but_a_terminal_sees_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A log file is not filled with bars."""
        with Progress(io.BytesIO(b"x")) as progress:
            progress.show(1)

        assert capsys.readouterr().err == ""

    def test_it_goes_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before anything else is said, and at the end."""
        terminal = io.StringIO()
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stderr", terminal)

        with Progress(io.BytesIO(b"x")) as progress:
            progress.show(1)

        assert terminal.getvalue().startswith("\r\x1b[K1 confirmed")
        assert terminal.getvalue().endswith("\r\x1b[K")
