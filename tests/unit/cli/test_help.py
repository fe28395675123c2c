"""The first page that anybody sees, and what shells complete."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from delayctl.cli.groups import COMMANDS, THEMES
from delayctl.cli.main import cli

from tests.support.commands import delayctl

BASH = """
eval "$(delayctl completion bash)"
complete -p delayctl > /dev/null
COMP_WORDS=(delayctl sta); COMP_CWORD=1; _delayctl_completion delayctl
COMP_WORDS=(delayctl plan --det); COMP_CWORD=2; _delayctl_completion delayctl
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def help_lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The help as a terminal of 80 columns shows it."""
    monkeypatch.setenv("COLUMNS", "80")
    return delayctl("--help").out.splitlines()


def test_it_fits_into_80_columns(help_lines: list[str]) -> None:
    """A command is a line."""
    commands = [line.split()[0] for line in help_lines if line.startswith("  ") and line.split()[0] in cli.commands]

    assert max(map(len, help_lines)) <= 80
    assert sorted(commands) == sorted(cli.commands)


def test_commands_stand_under_what_they_are_for(help_lines: list[str]) -> None:
    """In the order of the work, not of the alphabet."""
    themes = [line.removesuffix(":") for line in help_lines if line.endswith(":") and not line.startswith(" ")]

    assert themes == ["Options", *THEMES]
    assert help_lines.index("Bring a broker there:") + 1 == next(
        number for number, line in enumerate(help_lines) if line.startswith("  plan ")
    )


def test_no_text_is_cut(help_lines: list[str]) -> None:
    """Short helps are short enough."""
    assert [line for line in help_lines if line.endswith("...") and not line.startswith("Usage")] == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_is_listed_with_the_first_sentence_of_its_help(name: str) -> None:
    """It is written twice, so that the list need not load all commands."""
    assert COMMANDS[name].text == cli.commands[name].get_short_help_str(1_000)


def test_listing_loads_no_command() -> None:
    """The first page, and a press of the tab key, come at once."""
    asked = "import sys; from delayctl.cli.main import main; main(['--help']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True)

    loaded = set(ran.stdout.splitlines()[-1].split())
    assert loaded.isdisjoint(f"delayctl.cli.{listed.place.partition(':')[0]}" for listed in COMMANDS.values())


def test_a_real_bash_completes() -> None:
    """A command and an option; each takes a start of delayctl, as it does at a prompt."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "--norc", "-c", BASH],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )

    assert (ran.stdout.split(), ran.stderr) == (["status", "--detailed-exitcode"], "")


@pytest.mark.parametrize(
    ("words", "begun", "offered"),
    [
        ([], "sta", ["status"]),
        (["status", "--output"], "", ["text", "json"]),
        (["completion"], "", ["bash", "zsh", "fish"]),
        (["watch", "t.yaml"], "--ver", ["--verify-every", "--verify-up-to"]),
    ],
)
def test_what_is_offered(words: list[str], begun: str, offered: list[str]) -> None:
    """Commands, options, and the values of options, in every shell alike."""
    shell = BashComplete(cli, {}, "delayctl", "_DELAYCTL_COMPLETE")

    assert [item.value for item in shell.get_completions(words, begun)] == offered


@pytest.mark.parametrize(("shell", "begins"), [("zsh", "#compdef delayctl"), ("fish", "function _delayctl_completion")])
def test_other_shells_have_scripts_too(shell: str, begins: str) -> None:
    """Which need not be installed here."""
    ran = delayctl("completion", shell)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(begins)


def test_a_shell_that_is_not_known() -> None:
    """Is a slip of usage."""
    assert delayctl("completion", "tcsh").code == 64
