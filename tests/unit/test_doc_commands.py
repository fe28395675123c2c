"""What pages say to type and needs no broker is typed, and answers as they show."""

from pathlib import Path

import pytest

from tests.support.doc_files import edit, edits_of_nothing, lay_out
from tests.support.doc_lines import Line, Way, lines, unused, way
from tests.support.doc_runs import codes_of_nothing, expected_code, is_shown, run_commands

OFFLINE = [line for line in lines() if way(line) is Way.OFFLINE]


@pytest.mark.parametrize("line", OFFLINE, ids=str)
def test_a_command_without_a_broker_answers_as_shown(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder with the files of its page; whoever asks a broker finds none."""
    lay_out(line.page, tmp_path)
    edit(line, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELAYCTL_URL", "amqp://127.0.0.1:1/")

    ran = run_commands(line)

    assert ran.code == expected_code(line), ran.err
    assert is_shown(line, ran), ran.out + ran.err


def test_every_exception_is_one() -> None:
    """A table that speaks of what is gone hides what has come."""
    assert (unused(), edits_of_nothing(), codes_of_nothing()) == ([], [], [])
