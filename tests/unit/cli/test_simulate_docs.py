"""What docs/simulator.md shows is what the command says."""

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import TopologyFile
from tests.support.commands import delayctl

TEXT = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [block for kind, block in BLOCKS if not kind and block.startswith("$ delayctl")]


@pytest.mark.parametrize("block", COMMANDS, ids=range(len(COMMANDS)))
def test_every_command_answers_as_shown(topology: TopologyFile, monkeypatch: pytest.MonkeyPatch, block: str) -> None:
    """With the file at the top of the page."""
    topology.write(next(block for kind, block in BLOCKS if kind == "yaml"))
    monkeypatch.chdir(topology.path.parent)
    command, _, expected = block.partition("\n")

    assert delayctl(*shlex.split(command)[2:]).out == expected


def test_there_are_commands_to_hold_it_to() -> None:
    """The page shows what fits and what does not."""
    assert len(COMMANDS) == 2


@pytest.mark.parametrize("number", [0, 1])
def test_every_program_prints_what_is_shown(
    topology: TopologyFile, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """The models of both brokers, as a reader would try them."""
    topology.write(next(block for kind, block in BLOCKS if kind == "yaml"))
    monkeypatch.chdir(topology.path.parent)
    places = [place for place, (kind, _) in enumerate(BLOCKS) if kind == "python"]

    exec(compile(BLOCKS[places[number]][1], "docs", "exec"), {})

    assert capsys.readouterr().out == BLOCKS[places[number] + 1][1]
