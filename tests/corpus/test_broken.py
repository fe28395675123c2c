"""Every broken file is answered with what is wrong, where and how to fix it; never with a traceback, never slowly."""

import os
import time
from pathlib import Path

import pytest
from delayctl.cli.main import main

from tests.corpus.files import BROKEN, broken_names, options_for
from tests.corpus.generated import GENERATED

LONGEST_ANSWER_S = 1.0


@pytest.mark.parametrize("name", broken_names())
def test_broken_file_is_explained(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole answer of the command line is the expected one, within a second."""
    monkeypatch.chdir(BROKEN)

    check_answer(name, capsys)


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_odd_file_is_explained(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So is the answer to a file that is huge or not even text."""
    (tmp_path / f"{name}.yaml").write_bytes(GENERATED[name]())
    monkeypatch.chdir(tmp_path)

    check_answer(name, capsys)


def test_every_answer_has_its_file() -> None:
    """No expected answer is left behind when its file is renamed."""
    assert sorted(file.stem for file in BROKEN.glob("*.expected")) == sorted([*broken_names(), *GENERATED])


def check_answer(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Validate a file of the current folder and compare the answer."""
    arguments = ["validate", f"{name}.yaml", *options_for(BROKEN, name)]
    took, code = timed(arguments)
    out, err = capsys.readouterr()
    answer = BROKEN / f"{name}.expected"
    if os.environ.get("UPDATE_GOLDEN"):
        answer.write_text(err, encoding="utf-8")

    assert (code, out, err) == (1, "", answer.read_text(encoding="utf-8"))
    assert "Traceback" not in err
    assert "did not foresee" not in err
    # A crowded cache makes one run slow; a slow answer is slow every time.
    assert took < LONGEST_ANSWER_S or min(timed(arguments)[0] for _ in range(2)) < LONGEST_ANSWER_S


def timed(arguments: list[str]) -> tuple[float, int]:
    """Run the command line; the seconds of work it took, whatever else the machine does meanwhile, and its code."""
    started = time.process_time()
    code = main(arguments)
    return time.process_time() - started, code
