"""A topology that comes from stdin, and one that is not named at all."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import Ran, delayctl, delayctl_process

FILE = "version: 1\ndelay: {levels: [1m]}\n"
NOWHERE = ("--url", "amqp://127.0.0.1:9", "--management-url", "http://127.0.0.1:9")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """What commands read from stdin; it holds a topology."""
    content = io.BytesIO(FILE.encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    return content


@pytest.mark.usefixtures("stdin")
class TestReading:
    """`-` is stdin, whichever command reads a topology."""

    def test_it_is_read_and_named(self) -> None:
        """People see where it came from."""
        assert delayctl("validate", "-") == Ran(
            0, "<stdin> is valid: 1 level, 3 exchanges, 2 queues, 2 bindings.\n", ""
        )

    @pytest.mark.parametrize(
        "command",
        [
            ("render", "-"),
            ("explain", "-", "--level", "1m", "--key", "a"),
            ("export", "-", "--format", "definitions"),
            ("graph", "-", "--format", "mermaid"),
            ("permissions", "-"),
            ("capacity", "-", "--rate", "1/s"),
            ("simulate", "-", "--level", "1m", "--rate", "1/s", "--for", "1m"),
        ],
        ids=lambda command: command[0],
    )
    def test_by_every_command_without_a_broker(self, command: tuple[str, ...]) -> None:
        """The answer is that of a file, and what it says to type next is typed as this was."""
        ran = delayctl(*command)
        Path("<stdin>").write_text(FILE, encoding="utf-8")
        by_file = delayctl(command[0], "./<stdin>", *command[2:])

        assert (ran.code, ran.err) == (0, "")
        assert ran.out == by_file.out.replace("'./<stdin>'", "-").replace("./<stdin>", "<stdin>")

    @pytest.mark.parametrize(
        "command",
        [
            *(("status", "-"), ("plan", "-"), ("apply", "-", "--yes"), ("destroy", "-", "--yes"), ("pending", "-")),
            *(("doctor", "-"), ("consume", "orders.queue", "-"), ("publish", "-", "--key", "a", "--level", "1m", "hi")),
        ],
        ids=lambda command: command[0],
    )
    def test_by_commands_that_need_a_broker(self, stdin: io.BytesIO, command: tuple[str, ...]) -> None:
        """They come as far as to the broker, which is away."""
        ran = delayctl(*command, *NOWHERE)

        assert (ran.code, stdin.tell()) == (1, len(FILE))
        assert "can't be read" not in ran.err

    def test_a_file_of_that_name(self) -> None:
        """It is still there, by its path."""
        Path("-").write_text(FILE, encoding="utf-8")

        assert delayctl("validate", "./-").out.startswith("./- is valid")


class TestTrouble:
    """What is wrong with it is told as with a file."""

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (b"version: 1\ndelay: {levels: [soon]}\n", "  at <stdin>:2\n"),
            (b"version: {{ missing }}\n", "  at <stdin>:1\n"),
            (b"version: 1\n# \xff\n", "Error: byte 0xff is not UTF-8\n  at <stdin>:2\n"),
            (b"#" * 5_000_000, "  at <stdin>\n"),
        ],
        ids=["value", "template", "bytes", "large"],
    )
    def test_where_it_is(self, monkeypatch: pytest.MonkeyPatch, text: bytes, said: str) -> None:
        """Line by line."""
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

        ran = delayctl("validate", "-")

        assert ran.code == 1
        assert said in ran.err

    def test_for_programs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """They find the same name."""
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"version: 7\n")))

        [problem, *_] = json.loads(delayctl("validate", "-", "--output", "json").out)["problems"]

        assert (problem["file"], problem["line"]) == ("<stdin>", 1)

    def test_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """There need not be a stdin at all."""
        monkeypatch.setattr(sys, "stdin", None)

        ran = delayctl("validate", "-")

        assert ran == Ran(
            1, "", "Error: the file can't be read: Bad file descriptor\n  at <stdin>\n  fix: name a readable file\n"
        )

    @pytest.mark.parametrize("command", ["validate", "plan", "apply", "doctor", "capacity", "cancel", "serve"])
    def test_an_empty_name(self, command: str) -> None:
        """A variable that is not set names no file."""
        ran = delayctl(command, "", *(["id"] if command == "cancel" else []))

        fix = "name the topology file, such as topology.yaml, or - for stdin"
        assert ran == Ran(64, "", f"Error: no file is named\n  fix: {fix}\n")


@pytest.mark.usefixtures("stdin")
class TestConflicts:
    """Stdin is read once."""

    @pytest.mark.parametrize(
        "command",
        [
            ("publish", "-", "--key", "a", "-"),
            ("publish", "-", "--key", "a", "--file", "-"),
            ("simulate", "-", "--arrivals", "-"),
        ],
        ids=["body", "file", "arrivals"],
    )
    def test_with_what_is_read_there_too(self, stdin: io.BytesIO, command: tuple[str, ...]) -> None:
        """One of them has to come from a file, and nothing is read before that is said."""
        ran = delayctl(*command)

        assert (ran.code, ran.out, stdin.tell()) == (64, "", 0)
        assert "stdin can't be the topology and" in ran.err
        assert "  fix: name a file for one of them\n" in ran.err

    @pytest.mark.parametrize(
        "command",
        [
            ("apply", "-"),
            ("destroy", "-"),
            ("permissions", "-", "--apply"),
            ("backfill", "--topology", "-", "--source", "csv:orders.csv", "--key", "id", "--due-column", "pay_by"),
        ],
        ids=lambda command: command[0],
    )
    def test_with_an_answer(self, stdin: io.BytesIO, command: tuple[str, ...]) -> None:
        """Who is asked has nowhere to say yes, whatever the broker is like."""
        ran = delayctl(*command, *NOWHERE)

        said = "Error: this asks before it changes anything, and stdin is the topology\n"
        assert (ran, stdin.tell()) == (Ran(64, "", f"{said}  fix: give --yes, or name a file\n"), 0)

    def test_with_an_answer_that_is_seldom_needed(self) -> None:
        """Consuming asks for delays alone."""
        ran = delayctl("consume", "delay.1m.queue", "-", *NOWHERE)

        assert ran.code == 64
        assert "give --yes" in ran.err

    def test_with_keys(self, stdin: io.BytesIO) -> None:
        """Watching takes them from there, and reads its file again when it changes."""
        ran = delayctl("watch", "-", *NOWHERE)

        assert (ran.code, stdin.tell()) == (64, 0)
        assert "  fix: name a file\n" in ran.err


class TestWriting:
    """What is written from it, or to stdout."""

    def test_init_prints(self) -> None:
        """Only the file, so that it can be sent on."""
        printed = delayctl("init", "-")
        delayctl("init", "topology.yaml")

        assert printed == Ran(0, Path("topology.yaml").read_text(encoding="utf-8"), "")
        assert not Path("-").exists()

    def test_init_without_a_name(self) -> None:
        """Nor is a file without a name written."""
        assert delayctl("init", "").err.startswith("Error: no file is named\n")

    def test_never_over_what_is_read(self) -> None:
        """Also where the shell has opened it."""
        Path("t.yaml").write_text(FILE, encoding="utf-8")
        with Path("t.yaml").open("rb") as file:
            command = ("export", "-", "--format", "terraform", "--out", "t.yaml")
            process = delayctl_process(*command, stdin=file, stderr=subprocess.PIPE)
            _, said = process.communicate(timeout=60)

        assert (process.returncode, Path("t.yaml").read_text(encoding="utf-8")) == (64, FILE)
        assert "--out is the topology file itself" in said
