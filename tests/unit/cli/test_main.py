"""The one place that turns errors into text and a code."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from delayctl.cli.carry_out import confirm
from delayctl.cli.main import cli, main
from delayctl.topology.errors import DelayctlError, InvalidTopology, Location, Problem

import delayctl as package
from delayctl.__main__ import run as run_as_program
from tests.support.commands import Ran, delayctl

COMMANDS = sorted(cli.commands)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], Ran]:
    """Runs a command that raises."""

    def run(error: BaseException) -> Ran:
        def callback() -> None:
            raise error

        monkeypatch.setitem(cli.commands, "fail", click.Command("fail", callback=callback))
        return delayctl("fail")

    return run


class TestErrors:
    """Whatever happens, a user sees a sentence and a script sees a code."""

    def test_an_error_of_ours_is_shown_as_it_is(self, failing: Callable[[BaseException], Ran]) -> None:
        """On stderr, so that stdout stays the answer."""
        ran = failing(DelayctlError("it broke", where="here", fix="mend it"))

        assert ran == Ran(1, "", "Error: it broke\n  at here\n  fix: mend it\n")

    def test_every_problem_of_a_file_is_shown(self, failing: Callable[[BaseException], Ran]) -> None:
        """Not only the first."""
        problems = [Problem(name, Location("topology.yaml", line), "mend it") for line, name in enumerate("abc", 1)]

        assert failing(InvalidTopology(problems)).err.count("Error: ") == 3

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), EOFError(), click.Abort()], ids=repr)
    def test_a_stop_is_no_error(self, failing: Callable[[BaseException], Ran], error: BaseException) -> None:
        """Of what was done by then nothing is claimed: only the command knows."""
        ran = failing(error)

        assert (ran.code, ran.out) == (1, "")
        assert ran.err.strip() == "Stopped."

    def test_a_question_that_is_not_agreed_to(
        self, failing: Callable[[BaseException], Ran], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A command that asks has done nothing yet, and says so."""
        monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
        with pytest.raises(click.Abort) as stopped:
            confirm("Carry out these changes?")

        ran = failing(stopped.value)

        assert (ran.code, ran.err.strip()) == (1, "Stopped. Nothing was changed.")

    def test_what_nobody_foresaw_is_no_traceback(
        self, failing: Callable[[BaseException], Ran], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And its text stays out of sight, since nobody knows what it holds."""
        monkeypatch.delenv("DELAYCTL_TRACEBACK", raising=False)

        assert failing(ZeroDivisionError("s3cr3t")) == Ran(
            1,
            "",
            "Error: delayctl met something it did not foresee: ZeroDivisionError\n"
            "  fix: this is a bug, please report it; DELAYCTL_TRACEBACK=1 shows where it happened\n",
        )

    def test_a_file_that_fails_is_named(self, failing: Callable[[BaseException], Ran]) -> None:
        """It is not stdout that fails then."""
        assert failing(PermissionError(13, "Permission denied", "/lake/job.json")) == Ran(
            1,
            "",
            "Error: Permission denied\n  at /lake/job.json\n"
            "  fix: check that it is there, and your rights; DELAYCTL_TRACEBACK=1 shows where it happened\n",
        )

    def test_what_stdout_has_no_part_in_is_not_told_of_it(self, failing: Callable[[BaseException], Ran]) -> None:
        """A connection, say."""
        assert "something it did not foresee: ConnectionRefusedError" in failing(ConnectionRefusedError(111, "x")).err

    def test_a_full_disk_behind_stdout_is_told(self) -> None:
        """It is the answer that can't be written."""
        program = "from delayctl.cli.main import run; run(['schema'])"
        with open("/dev/full", "w") as full:
            ran = subprocess.run(
                [sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )

        assert ran.stderr == (
            "Error: the answer can't be written: No space left on device\n  fix: check where stdout leads\n"
        )

    def test_a_traceback_can_be_asked_for(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By whoever wants to report it."""

        def callback() -> None:
            raise ZeroDivisionError

        monkeypatch.setenv("DELAYCTL_TRACEBACK", "1")
        monkeypatch.setitem(cli.commands, "fail", click.Command("fail", callback=callback))

        assert main(["fail"]) == 1
        assert "Traceback" in capsys.readouterr().err

    def test_a_reader_that_has_gone_is_no_error(self) -> None:
        """`delayctl schema | head` ends without a word."""
        program = "import sys; from delayctl.cli.main import run; run(['schema'])"
        read, write = os.pipe()
        os.close(read)

        ran = subprocess.run([sys.executable, "-c", program], stdout=write, stderr=subprocess.PIPE, check=False)
        os.close(write)

        assert (ran.returncode, ran.stderr) == (1, b"")


class TestUsage:
    """A command line that can't be understood."""

    @pytest.mark.parametrize(
        "arguments",
        [("nope",), ("plan", "--nope"), ("plan", "--output", "xml"), ("plan", "a", "b"), ("apply", "--timeout", "x")],
        ids=" ".join,
    )
    def test_a_mistake_is_64(self, arguments: tuple[str, ...]) -> None:
        """Told on stderr, with the way to the help."""
        ran = delayctl(*arguments)

        assert (ran.code, ran.out) == (64, "")
        assert "Error: " in ran.err

    def test_a_duration_that_is_none_is_a_mistake(self) -> None:
        """It is said how one is written."""
        ran = delayctl("apply", "--lock-timeout", "soon")

        assert ran.code == 64
        assert "'soon' is not a duration" in ran.err

    def test_a_file_that_is_missing_is_no_mistake_of_usage(self, tmp_path: Path) -> None:
        """The command line was fine; it is told before any broker is asked."""
        file = tmp_path / "missing.yaml"

        ran = delayctl("apply", str(file))

        assert ran.code == 1
        assert "the file can't be read: No such file or directory" in ran.err


class TestHelp:
    """What can be done, and how."""

    def test_the_version_is_told(self) -> None:
        """The one of the package."""
        assert delayctl("--version") == Ran(0, f"delayctl, version {package.__version__}\n", "")

    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_shows_examples(self, command: str) -> None:
        """They are the last thing on the page, and begin with the command."""
        ran = delayctl(command, "--help")

        assert ran.code == 0
        examples = ran.out.partition("Examples:\n")[2].strip().splitlines()
        assert examples
        assert examples[0].strip().startswith(f"delayctl {command}")

    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_option_says_what_it_does(self, command: str) -> None:
        """None is left to be guessed."""
        options = [option for option in cli.commands[command].params if isinstance(option, click.Option)]

        assert [option.name for option in options if not option.help] == []

    def test_the_exit_codes_are_told(self) -> None:
        """At the end of the help."""
        assert "Exit codes: 0 done, 1 failed, 2 changes pending" in delayctl("--help").out

    def test_no_default_shows_a_password(self) -> None:
        """The help of no command does."""
        shown = "".join(delayctl(command, "--help").out for command in COMMANDS)

        assert "guest:guest" not in shown


class TestStart:
    """The ways to start it."""

    def test_it_runs_as_a_module(self) -> None:
        """`python -m delayctl` is `delayctl`."""
        ran = subprocess.run(
            [sys.executable, "-m", "delayctl", "--version"], capture_output=True, text=True, check=True
        )

        assert ran.stdout == f"delayctl, version {package.__version__}\n"

    def test_the_code_reaches_the_shell(self, tmp_path: Path) -> None:
        """As the exit code of the process."""
        ran = subprocess.run(
            [sys.executable, "-m", "delayctl", "validate", str(tmp_path / "missing.yaml")],
            capture_output=True,
            text=True,
            check=False,
        )

        assert ran.returncode == 1
        assert "Traceback" not in ran.stderr

    def test_answers_are_json_where_asked(self, tmp_path: Path) -> None:
        """A problem in the file is an answer too."""
        file = tmp_path / "topology.yaml"
        file.write_text("version: 2\n")

        ran = delayctl("validate", str(file), "--output", "json")

        assert ran.code == 1
        assert json.loads(ran.out)["valid"] is False


class TestLoading:
    """A run loads what it needs, and can be stopped before it is there."""

    def test_ctrl_c_while_it_loads_is_no_traceback(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It ends as it does later on, with the same code."""

        class Stopped:
            """Somebody presses Ctrl-C when the command line is looked for."""

            def find_spec(self, name: str, *_: object) -> None:
                """Nothing else is."""
                if name == "delayctl.cli.main":
                    raise KeyboardInterrupt

        monkeypatch.delitem(sys.modules, "delayctl.cli.main")
        monkeypatch.setattr(sys, "meta_path", [Stopped(), *sys.meta_path])

        with pytest.raises(SystemExit) as ended:
            run_as_program()

        assert ended.value.code == "\nStopped."  # Which Python prints on stderr, and ends with 1.

    def test_a_command_is_loaded_when_it_is_asked_for(self) -> None:
        """Clients, templates and servers take a second, which `validate` has no use for."""
        program = (
            "import sys, delayctl.cli.main; print({'pika', 'urllib3', 'jinja2', 'yaml', 'uvicorn'} & {*sys.modules})"
        )

        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

        assert ran.stdout == "set()\n"
