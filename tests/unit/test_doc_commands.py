"""What pages say to type and needs no broker is typed, and answers as they show."""

from pathlib import Path

import pytest

from tests.support.commands import Ran, delayctl
from tests.support.doc_blocks import ROOT, blocks
from tests.support.doc_exceptions import ANSWERS
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


@pytest.mark.parametrize(("place", "words"), ANSWERS.items(), ids=str)
def test_a_block_is_part_of_an_answer(
    place: tuple[str, str], words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Word for word."""
    page, start = place
    lay_out(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    (text,) = (block.text for block in blocks() if block.page == ROOT / page and block.text.startswith(start))

    assert text in delayctl(*words).out


class TestTheChecks:
    """A check that finds nothing would be worth nothing."""

    @pytest.mark.parametrize("text", ["kubectl get pods", "delayctl-next plan topology.yaml"])
    def test_a_line_that_nobody_runs(self, text: str) -> None:
        """And that is in no table."""
        with pytest.raises(AssertionError, match="neither run nor"):
            way(Line("README.md", 1, text))

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("delayctl validate topology.yaml", Way.OFFLINE),
            ("delayctl validate topology.yaml --live", Way.LIVE),
            ("delayctl graph today.plan -o today.svg", Way.LIVE),
            ("delayctl permissions topology.yaml --check", Way.LIVE),
            ("delayctl status topology.yaml | jq .", Way.SHELL),
            ("delayctl audit --ledger unpaid", Way.SPARK),
            ("make test", None),
        ],
    )
    def test_how_a_line_is_run(self, text: str, expected: Way | None) -> None:
        """By what it asks, and whom."""
        assert way(Line("README.md", 1, text)) is expected

    @pytest.mark.parametrize(
        ("shown", "expected"),
        [
            ("a\nb\nc 1 ms\n", True),
            ("a\n…\nc 7 ms\n", True),
            ("", True),
            ("a\nc 1 ms\n", False),
            ("…\nd\n", False),
            ("a\nb\nc 1 s\n", False),
        ],
    )
    def test_another_answer(self, shown: str, expected: bool) -> None:
        """Is told from the same one; times are not looked at, and … is anything."""
        assert is_shown(Line("README.md", 1, "delayctl", shown), Ran(0, "a\nb\nc 5 ms\n", "")) is expected


def test_every_exception_is_one() -> None:
    """A table that speaks of what is gone hides what has come."""
    assert (unused(), edits_of_nothing(), codes_of_nothing()) == ([], [], [])
