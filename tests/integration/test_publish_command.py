"""publish and consume on a real broker: what went in comes out, every line is accounted for, and Ctrl-C loses nothing."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import pika
import pytest
import trustme

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import Ran, delayctl, delayctl_process
from tests.support.rabbit import Rabbit
from tests.support.tls_proxy import TlsProxy

QUEUE = "orders.queue"
FILE = """\
version: 1
delay:
  levels: [100ms, 1s, 1h]
exchanges: {orders.exchange: {}}
routes:
  - {from: orders.exchange, key: order.created, delay: 100ms, to: orders.queue}
"""
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def file(rabbit: Rabbit, topology: TopologyFile) -> str:
    """A file that is applied."""
    path = topology.write(FILE)
    assert rabbit.delayctl("apply", path, "--yes").code == 0
    return path


def ndjson(folder: Path, lines: list[str]) -> str:
    """A file of lines."""
    path = folder / "lines.ndjson"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def consumed(rabbit: Rabbit, *options: str) -> list[dict[str, Any]]:
    """What consume shows, as programs read it."""
    ran = rabbit.delayctl("consume", QUEUE, "--output", "json", *options)
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


class TestOneMessage:
    """From the command line to the queue."""

    def test_through_a_delay(self, rabbit: Rabbit, file: str) -> None:
        """It arrives with key, id and headers as given, after its delay and hardly later."""
        ran = rabbit.delayctl(
            "publish",
            file,
            "--key",
            "order.created",
            "--delay",
            "1s",
            "--message-id",
            "m-1",
            "--header",
            "shop=eu",
            "4711",
        )

        (message,) = consumed(rabbit, "--count", "1", "--wait", "20s")
        assert ran.code == 0
        assert "Message m-1 with key order.created waits 1s; confirmed after" in ran.out
        assert (message["message_id"], message["key"], message["body"]) == ("m-1", "order.created", "4711")
        assert message["headers"]["shop"] == "eu"
        assert message["headers"]["delay-level"] == "1s"
        assert 0 <= message["late_ms"] < 5000

    @pytest.mark.parametrize(
        "way", [("--level", "100ms"), ("--due", "2020-01-01T00:00:00Z"), ("--exchange", "orders.exchange")]
    )
    def test_other_ways(self, rabbit: Rabbit, file: str, way: tuple[str, str]) -> None:
        """By level, by due time (over already), and as the services publish."""
        ran = rabbit.delayctl("publish", file, "--key", "order.created", *way, "--output", "json", "4711")

        (message,) = consumed(rabbit, "--count", "1", "--wait", "20s")
        assert message["message_id"] == json.loads(ran.out)["message_id"]

    @pytest.mark.parametrize(
        ("arguments", "waits", "note"),
        [
            (
                ("--key", "order.created", "--exchange", "orders.exchange"),
                "waits 100ms by orders.exchange → delay.100ms.exchange;",
                "",
            ),
            (
                ("--key", "order.created"),
                "does not wait;",
                "Note: it does not wait, but the file's route for this key waits 100ms: "
                "--delay 100ms or --exchange orders.exchange.",
            ),
            (
                ("--key", "nobody.knows", "--level", "100ms"),
                "waits 100ms;",
                "Note: the file has no way out for this key: unless others bound one to delay.exchange, "
                "it is parked in delay.unrouted.queue.",
            ),
        ],
        ids=["exchange", "no delay", "no way out"],
    )
    def test_what_the_file_says_of_it(
        self, rabbit: Rabbit, file: str, arguments: tuple[str, ...], waits: str, note: str
    ) -> None:
        """The answer is true of the message, and what its publisher may not have meant is said beside it."""
        ran = rabbit.delayctl("publish", file, *arguments, "x")

        assert (ran.code, ran.err.strip()) == (0, note)
        assert f" {waits} " in ran.out

    def test_what_the_file_says_of_it_for_programs(self, rabbit: Rabbit, file: str) -> None:
        """The same facts as fields."""
        options = ("--key", "order.created", "--exchange", "orders.exchange", "--output", "json")
        told = json.loads(rabbit.delayctl("publish", file, *options, "x").out)

        end = {"fate": "delivered", "queue": QUEUE, "exchange": None, "after_ms": 100}
        assert (told["wait_ms"], told["ends"], told["notes"]) == (100, [end], [])

    @pytest.mark.parametrize(
        ("arguments", "code", "expected"),
        [
            (("--key", "k", "--delay", "3s", "x"), 1, "no level waits 3s"),
            (("--key", "k", "--delay", "soon", "x"), 64, "'soon' is not a duration"),
            (("--key", "k", "--level", "2h", "x"), 1, "there is no level '2h'"),
            (("--key", "k", "--due", "tomorrow", "x"), 64, "the due time 'tomorrow' can't be understood"),
            (("--key", "k", "--due", "2030-01-01T00:00:00", "x"), 64, "the due time has no time zone"),
            (("--key", "nobody.wants.it", "--exchange", "orders.exchange", "x"), 1, "no queue takes key"),
            (("--key", "k", "--exchange", "gone", "x"), 1, "there is no exchange 'gone'"),
            (("--delay", "1s", "x"), 64, "--key is missing"),
            (("--key", "k", "--delay", "1s"), 64, "there is nothing to publish"),
            (("--key", "k", "--delay", "1s", "--level", "1s", "x"), 64, "exclude each other"),
            (("--key", "k", "--header", "x", "x"), 64, "--header is not NAME=VALUE"),
            (("--key", "k", "--file", "none.ndjson"), 1, "the file can't be read: No such file"),
            (("--key", "k", "--file", "none.ndjson", "x"), 64, "--file goes with neither BODY"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
    )
    def test_what_can_be_wrong(
        self, rabbit: Rabbit, file: str, arguments: tuple[str, ...], code: int, expected: str
    ) -> None:
        """Each says what, and how to mend it."""
        ran = rabbit.delayctl("publish", file, *arguments)

        assert (ran.code, ran.out) == (code, "")
        assert expected in ran.err
        assert "fix: " in ran.err

    def test_before_apply(self, rabbit: Rabbit, topology: TopologyFile) -> None:
        """It declares nothing, and says what is missing."""
        ran = rabbit.delayctl("publish", topology.write(FILE), "--key", "k", "--delay", "1s", "x")

        assert ran.code == 1
        assert "is not on the broker" in ran.err
        assert "delayctl apply" in ran.err
        assert rabbit.definitions()["queues"] == []

    def test_without_delays(self, rabbit: Rabbit, topology: TopologyFile) -> None:
        """A file that was imported may have none: nothing would ever declare one, but its exchanges can be published to."""
        file = topology.write(
            "version: 1\ndelay: none\nexchanges: {orders.exchange: {}}\n"
            "routes: [{from: orders.exchange, key: order.created, to: orders.queue}]\n"
        )
        assert rabbit.delayctl("apply", file, "--yes").code == 0

        delayed = rabbit.delayctl("publish", file, "--key", "order.created", "--delay", "5s", "x")
        ran = rabbit.delayctl("publish", file, "--key", "order.created", "--exchange", "orders.exchange", "x")

        assert delayed.code == 1
        assert "the file has no delays of its own" in delayed.err
        assert "fix: name the exchange to publish to with --exchange: one of orders.exchange" in delayed.err
        assert (ran.code, " does not wait; confirmed" in ran.out) == (0, True)


class TestLines:
    """A file of messages."""

    def test_notes_are_told_once(self, rabbit: Rabbit, file: str, tmp_path: Path) -> None:
        """However many lines there are that the file has no way out for."""
        lines = [f'{{"body": "x", "key": "nobody.{number}", "level": "100ms"}}' for number in range(3)]

        ran = rabbit.delayctl("publish", file, "--file", ndjson(tmp_path, lines), "--output", "json")

        note = (
            "3 messages went where the file has no way out, such as for nobody.0: unless others bound one to "
            "delay.exchange, they are parked in delay.unrouted.queue"
        )
        assert (ran.code, ran.err.strip()) == (0, f"Note: {note}.")
        assert json.loads(ran.out)["notes"] == [note]

    def test_bad_lines_do_not_stop_the_rest(self, rabbit: Rabbit, file: str, tmp_path: Path) -> None:
        """Good ones arrive; the others are reported with line and fix, whether we or the broker refuse them."""
        lines = [
            '{"body": {"order": 1}, "delay": "100ms", "message_id": "m-1"}',
            "nonsense",
            "",
            '{"body": "nobody", "key": "nobody", "exchange": "orders.exchange"}',
            '{"body": "no exchange", "exchange": "gone"}',
            '{"body": "cc", "headers": {"CC": 5}}',
            '{"body": "wide", "headers": {"number": 36893488147419103232}}',
            '{"body": "half", "key": "\\ud800"}',
            '{"body": "level", "level": "7h"}',
            '{"body": "grüße", "level": "100ms", "message_id": "m-2"}',
        ]

        ran = rabbit.delayctl(
            "publish", file, "--key", "order.created", "--file", ndjson(tmp_path, lines), "--output", "json"
        )

        account = json.loads(ran.out)
        assert ran.code == 1
        assert (account["confirmed"], account["refused"], account["bad_lines"]) == (2, 2, 5)
        assert {problem["line"] for problem in account["problems"]} == {2, 4, 5, 6, 7, 8, 9}
        assert all(problem["fix"] for problem in account["problems"])
        assert "lines.ndjson:2" in ran.err
        # The missing exchange closes the channel, and what is unconfirmed then is sent again.
        rabbit.await_ready("delay.100ms.queue", 0)
        found = {message["message_id"]: message["body"] for message in consumed(rabbit, "--wait", "1s")}
        assert found == {"m-1": '{"order":1}', "m-2": "grüße"}

    def test_from_stdin(self, rabbit: Rabbit, file: str) -> None:
        """Through a pipe, with what all lines have in common as options."""
        process = delayctl_process(
            "publish", file, "--key", "order.created", "--level", "100ms", "-", *rabbit.options,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        out, err = process.communicate('{"body": 1}\n{"body": 2}\n', timeout=60)

        assert process.returncode == 0, err
        assert "2 messages confirmed" in out
        assert [message["body"] for message in consumed(rabbit, "--count", "2", "--wait", "20s")] == ["1", "2"]

    def test_many(self, rabbit: Rabbit, file: str, tmp_path: Path) -> None:
        """All arrive in a delay, and memory does not grow with the file."""
        few, many = (self._publish(rabbit, file, tmp_path, count) for count in (8_000, 40_000))

        assert rabbit.ready("delay.1h.queue") == 48_000
        assert many - few < 16_000, f"{few} KiB for 8,000 messages, {many} KiB for 40,000"

    def _publish(self, rabbit: Rabbit, file: str, folder: Path, count: int) -> int:
        """Publish so many, and say how much memory that took."""
        lines = ndjson(folder, [f'{{"body": "{"x" * 200}", "message_id": "m-{number}"}}' for number in range(count)])
        code = "import sys; from delayctl.cli.main import main; code = main(sys.argv[1:]); print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0]); sys.exit(code)"
        arguments = ("publish", file, "--key", "k", "--level", "1h", "--file", lines, *rabbit.options)
        ran = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=True
        )
        said, memory = ran.stdout.splitlines()
        assert said.startswith(f"{count:,} messages confirmed")
        return int(memory)

    def test_a_bar_on_a_terminal(self, rabbit: Rabbit, file: str, tmp_path: Path) -> None:
        """It shows how far it is, and is gone at the end, before anything else is said."""
        lines = ndjson(tmp_path, ['{"body": "x"}'] * 5_000)
        with terminal() as (stderr, read):
            process = delayctl_process(
                "publish", file, "--key", "k", "--level", "1h", "--file", lines, *rabbit.options,
                stdout=subprocess.PIPE, stderr=stderr,
            )  # fmt: skip
            out, _ = process.communicate(timeout=60)
            shown = read()

        assert "5,000 messages confirmed" in out
        assert "confirmed, " in shown
        assert "[" in shown
        _, _, rest = shown.rpartition("\r\x1b[K")
        assert "confirmed" not in rest
        assert "5,000 messages went where the file has no way out" in rest

    def test_ctrl_c(self, rabbit: Rabbit, file: str) -> None:
        """What was confirmed is on the broker, and the account says how many that are."""
        process = delayctl_process(
            "publish", file, "--key", "k", "--level", "1h", "--output", "json", "-", *rabbit.options,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin
        process.stdin.write('{"body": "x"}\n' * 100)
        process.stdin.flush()
        until(lambda: rabbit.ready("delay.1h.queue") == 100, 30)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)

        account = json.loads(out)
        assert process.returncode == 1
        assert "Traceback" not in err
        assert (account["confirmed"], account["not_confirmed"], account["stopped"]) == (100, [], "Ctrl-C")


@pytest.mark.usefixtures("file")
class TestConsume:
    """Watching a queue."""

    def test_a_delay_is_not_emptied_unawares(self, rabbit: Rabbit, file: str) -> None:
        """What waits is taken only by who says so; looking takes nothing."""
        rabbit.delayctl("publish", file, "--key", "order.created", "--level", "1h", "order 4711")

        refused = rabbit.delayctl("consume", "delay.1h.queue", "--count", "1", "--wait", "5s")
        looked = rabbit.delayctl("consume", "delay.1h.queue", "--requeue", "--count", "1", "--wait", "20s")
        rabbit.await_ready("delay.1h.queue", 1)
        taken = rabbit.delayctl("consume", "delay.1h.queue", "--yes", "--count", "1", "--wait", "20s")

        assert (refused.code, refused.out) == (64, "")
        assert "delay.1h.queue is a delay: what waits there goes on to delay.exchange after 1h" in refused.err
        assert "give --yes" in refused.err
        assert (looked.code, "order 4711" in looked.out, "is a delay" in looked.err) == (0, True, False)
        assert (taken.code, "order 4711" in taken.out) == (0, True)

    def test_text(self, rabbit: Rabbit, file: str) -> None:
        """A line with lateness per message, and a summary."""
        rabbit.delayctl(
            "publish", file, "--key", "order.created", "--level", "100ms", "--message-id", "m-1", "order 4711"
        )

        ran = rabbit.delayctl("consume", QUEUE, file, "--count", "1", "--wait", "20s")

        assert ran.code == 0
        assert "ms late  order.created  id m-1  order 4711" in ran.out
        assert "1 message. Lateness: p50 " in ran.err
        assert rabbit.ready(QUEUE) == 0

    def test_requeue(self, rabbit: Rabbit) -> None:
        """Looking leaves everything where it is, in order; taking takes no more than it shows."""
        rabbit.publish("", QUEUE, *"abcde")

        seen = consumed(rabbit, "--requeue", "--wait", "500ms")
        until(lambda: rabbit.ready(QUEUE) == 5, 10)
        taken = consumed(rabbit, "--count", "2", "--wait", "20s")

        assert [m["body"] for m in seen] == list("abcde")
        assert [m["body"] for m in taken] == ["a", "b"]
        assert all(m["redelivered"] for m in taken)
        until(lambda: rabbit.ready(QUEUE) == 3, 10)

    def test_hostile_messages(self, rabbit: Rabbit) -> None:
        """Whatever others put in there is shown as text, or not at all."""
        odd: list[dict[str, Any]] = [
            {"delay-due": 2**62},
            {"delay-due": "soon"},
            {"delay-due": True},
            {"delay-origin": 5},
            {"delay-attempt": -3},
        ]
        with rabbit.channel() as channel:
            for headers in odd:
                channel.basic_publish("", QUEUE, b"\x1b[2J\xff\r\n", pika.BasicProperties(headers=headers))
            channel.basic_publish("", QUEUE, b"x" * 1_000_000, pika.BasicProperties(message_id="\x1b[2J"))

        ran = rabbit.delayctl("consume", QUEUE, "--requeue", "--count", "6", "--wait", "20s")
        messages = consumed(rabbit, "--count", "6", "--wait", "20s")

        assert ran.code == 0, ran.err
        assert len(ran.out.splitlines()) == 6
        assert all(line.isprintable() for line in ran.out.splitlines())
        assert [m["late_ms"] for m in messages] == [None] * 6
        assert messages[-1]["body"] == "x" * 1_000_000

    def test_who_may_not_read(self, rabbit: Rabbit) -> None:
        """Is told which right is missing."""
        name = f"writer-{rabbit.vhost}"
        rabbit.api("PUT", f"users/{name}", {"password": "secret", "tags": ""})
        rabbit.api("PUT", f"permissions/{{vhost}}/{name}", {"configure": ".*", "write": ".*", "read": "^$"})
        try:
            url = rabbit.url.replace("guest:guest", f"{name}:secret")
            ran = delayctl("consume", QUEUE, "--url", url, "--wait", "1s")
        finally:
            rabbit.api("DELETE", f"users/{name}")

        assert ran.code == 1
        assert ran.err.startswith(f"Error: user '{name}' is not permitted: ACCESS_REFUSED")
        assert f"  fix: let an administrator grant read on {QUEUE} (delayctl permissions shows patterns)\n" in ran.err

    def test_somebody_has_it_alone(self, rabbit: Rabbit) -> None:
        """That has the same code, and another reason."""
        with rabbit.channel() as channel:
            channel.basic_consume(QUEUE, lambda *_: None, exclusive=True)
            ran = rabbit.delayctl("consume", QUEUE, "--wait", "1s")

        assert ran.code == 1
        assert "in exclusive use\n  fix: see what else consumes the queue\n" in ran.err

    def test_ctrl_c(self, rabbit: Rabbit) -> None:
        """A summary; what was shown is taken, but for the one whose line was just being written."""
        rabbit.publish("", QUEUE, *"abc")
        process = delayctl_process("consume", QUEUE, *rabbit.options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        shown = [self._line(process.stdout) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)

        assert process.returncode == 0
        assert [line[-1] for line in shown] == list("abc")
        assert "3 messages." in err or "2 messages." in err
        assert "Traceback" not in err
        assert [message.body for message in rabbit.take(QUEUE)] in ([], ["c"])

    def _line(self, stream: IO[str] | None) -> str:
        assert stream
        return stream.readline().rstrip("\n")

    def test_a_reader_that_goes(self, rabbit: Rabbit) -> None:
        """`consume | head` takes what could be shown, and leaves the rest in the queue."""
        rabbit.publish("", QUEUE, *map(str, range(50)))
        read, write = os.pipe()
        os.close(read)
        process = delayctl_process("consume", QUEUE, *rabbit.options, stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        _, err = process.communicate(timeout=30)

        assert process.returncode == 1
        assert "Traceback" not in err
        until(lambda: rabbit.ready(QUEUE) == 50, 10)

    def test_a_queue_that_goes(self, rabbit: Rabbit) -> None:
        """Is said at once, after the summary of what was seen."""
        process = delayctl_process("consume", QUEUE, *rabbit.options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stderr
        assert process.stderr.readline().startswith("Watching")
        rabbit.api("DELETE", f"queues/{{vhost}}/{QUEUE}")
        _, err = process.communicate(timeout=30)

        assert process.returncode == 1
        assert "0 messages.\nError: the queue 'orders.queue' was deleted" in err

    @pytest.mark.parametrize(
        ("arguments", "code", "expected"),
        [
            (("no.such.queue",), 1, "there is no queue 'no.such.queue'"),
            ((QUEUE, "--wait", "soon"), 64, "--wait: 'soon' is not a duration"),
            ((QUEUE, "--count", "0"), 64, "--count"),
        ],
    )
    def test_what_can_be_wrong(self, rabbit: Rabbit, arguments: tuple[str, ...], code: int, expected: str) -> None:
        """Each is said without a summary of nothing."""
        ran = rabbit.delayctl("consume", *arguments)

        assert ran.code == code
        assert expected in ran.err
        assert "messages." not in ran.err


class TestConnections:
    """The ways to the broker are those of every command."""

    def test_tls(self, rabbit: Rabbit, file: str, tmp_path: Path) -> None:
        """With an authority and a client certificate of one's own, in both directions."""
        authority = trustme.CA()
        client = authority.issue_cert("client@example.com")
        login, _, place = rabbit.broker.url.partition("//")[2].rstrip("/").partition("@")
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        client.private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
        with TlsProxy(authority, place) as proxy:
            options = (
                *("--url", f"amqps://{login}@localhost:{proxy.port}/", "--vhost", rabbit.vhost),
                *("--ca-file", str(tmp_path / "ca.pem"), "--cert-file", str(tmp_path / "client.pem")),
            )
            sent = delayctl("publish", file, "--key", "order.created", "--level", "100ms", "x" * 100_000, *options)
            seen = delayctl("consume", QUEUE, "--count", "1", "--wait", "20s", *options)

        assert (sent.code, seen.code) == (0, 0), (sent.err, seen.err)
        assert seen.out.endswith("xxx…\n")

    @pytest.mark.parametrize("command", ["publish", "consume"])
    def test_a_wrong_password(self, rabbit: Rabbit, file: str, command: str) -> None:
        """Is said, and not shown."""
        url = rabbit.broker.url.partition("//")[0] + "//guest:s3cret@" + rabbit.broker.url.rpartition("@")[2]
        arguments = (file, "--key", "k", "--level", "1s", "x") if command == "publish" else (QUEUE,)

        ran = delayctl(command, *arguments, "--url", url, "--vhost", rabbit.vhost)

        assert ran.code == 1
        assert "password" in ran.err
        assert "s3cret" not in ran.err

    @pytest.mark.usefixtures("file")
    def test_a_connection_that_is_closed_under_consume(self, rabbit: Rabbit) -> None:
        """What was seen is summed up, and why it ended is said."""
        process = delayctl_process("consume", QUEUE, *rabbit.options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        close_connections(rabbit, "delayctl consume")
        _, err = process.communicate(timeout=30)

        assert process.returncode == 1
        assert "0 messages.\nError: " in err
        assert "Traceback" not in err

    def test_a_connection_that_is_closed_under_publish(self, rabbit: Rabbit, file: str) -> None:
        """It is made anew, and the account is complete."""
        process = delayctl_process(
            "publish", file, "--key", "k", "--level", "1h", "--output", "json", "-", *rabbit.options,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin
        process.stdin.write('{"body": "before"}\n' * 100)
        process.stdin.flush()
        close_connections(rabbit, "delayctl publish")
        out, err = process.communicate('{"body": "after"}\n' * 100, timeout=60)

        assert process.returncode == 0, err
        assert json.loads(out)["confirmed"] == 200
        assert rabbit.ready("delay.1h.queue") >= 200


def close_connections(rabbit: Rabbit, name: str) -> None:
    """Close connections of this name as an administrator does; the management API hears of them late."""

    def found() -> list[str]:
        connections = rabbit.api("GET", "vhosts/{vhost}/connections")
        ours = (c for c in connections if c.get("client_properties", {}).get("connection_name") == name)
        return [quote(str(connection["name"]), safe="") for connection in ours]

    for connection in until(found, 30, what=f"a connection named {name}"):
        rabbit.api("DELETE", f"connections/{connection}")


class TestExamples:
    """The examples of the documentation do what they say."""

    @pytest.fixture
    def run(self, rabbit: Rabbit) -> Callable[..., Ran]:
        """Runs an example on a broker that is ready for it."""
        assert rabbit.delayctl("apply", str(EXAMPLES / "service.yaml"), "--yes").code == 0

        def run(name: str) -> Ran:
            command = [sys.executable, str(EXAMPLES / name)]
            environment = {**os.environ, "DELAYCTL_URL": rabbit.url}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
            return Ran(done.returncode, done.stdout, done.stderr)

        return run

    @pytest.mark.parametrize(
        ("name", "expected", "count"),
        [
            ("publish_service.py", "confirmed order-4711\nconfirmed order-4712\nconfirmed order-4713\n", 3),
            ("publish_asyncio.py", "confirmed 1,000 messages, the last is order-999\n", 1_000),
            ("publish_threads.py", "8 threads published 4,000 messages, 0 failed\n", 4_000),
        ],
    )
    def test_publishing(self, rabbit: Rabbit, run: Callable[..., Ran], name: str, expected: str, count: int) -> None:
        """All that is confirmed arrives."""
        assert run(name) == Ran(0, expected, "")
        rabbit.await_ready("orders.timeout.queue", count)

    @pytest.mark.usefixtures("run")
    def test_consuming(self, rabbit: Rabbit) -> None:
        """Done, retried, parked, seen before; SIGTERM stops it."""
        environment = {**os.environ, "DELAYCTL_URL": rabbit.url}
        command = [sys.executable, str(EXAMPLES / "consume_service.py")]
        with rabbit.channel() as channel:
            for id_, body in (("m-1", b"order 4711"), ("m-1", b"order 4711"), ("m-2", b""), ("m-3", b"bank is down")):
                properties = pika.BasicProperties(message_id=id_, delivery_mode=2)
                channel.basic_publish("orders.exchange", "order.created", body, properties, mandatory=True)
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout
        said = [process.stdout.readline() for _ in range(3)]
        process.terminate()
        rest, err = process.communicate(timeout=30)

        assert sorted(said) == sorted(
            [
                "handled 'order 4711' with key order.created, attempt 0\n",
                "seen before: m-1\n",
                "handled 'bank is down' with key order.created, attempt 2\n",
            ]
        )
        assert (process.returncode, rest) == (0, "stopped; all that was begun is finished\n")
        assert err.count("ConnectionError: the bank does not answer") == 2
        (parked,) = rabbit.take("orders.timeout.dlq")
        assert parked.headers["delay-parked"] == "the body is empty"
        assert rabbit.ready("orders.timeout.queue") == 0


@contextmanager
def terminal() -> Iterator[tuple[int, Callable[[], str]]]:
    """A terminal to write to, and what was written."""
    ours, theirs = pty.openpty()
    try:
        yield theirs, lambda: os.read(ours, 1 << 20).decode()
    finally:
        os.close(ours)
        os.close(theirs)
