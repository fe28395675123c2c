"""Answers that are written to files: never over what they are made from."""

import os
from pathlib import Path

import pytest

from tests.support.commands import Ran, delayctl

FILE = "version: 1\ndelay: {levels: [{{ level }}]}\n"
VALUES = "level: 1m\n"
NOWHERE = ("--url", "amqp://127.0.0.1:9", "--management-url", "http://127.0.0.1:9")
WRITERS = {
    "export": ("--format", "terraform", "--out"),
    "graph": ("--format", "svg", "-o"),
    "plan": (*NOWHERE, "--out"),
    "metrics": (*NOWHERE, "--textfile"),
    "verify": (*NOWHERE, "--metrics-file"),
    "simulate": ("--plot",),
}
NAMES = {"graph": "--out"}  # What an option is called in full, where it is given as a letter.


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.svg").write_text(FILE, encoding="utf-8")  # Pictures are known by their ending, files by what is in them.
    Path("v.svg").write_text(VALUES, encoding="utf-8")


def written(command: str, out: str) -> Ran:
    """Run a command that writes its answer there; nothing listens where it would look for a broker."""
    return delayctl(command, "t.svg", "--values", "v.svg", *WRITERS[command], out)


def untouched() -> bool:
    """Say whether both files are as they were, and alone."""
    texts = [Path(file).read_text(encoding="utf-8") for file in ("t.svg", "v.svg")]
    return texts == [FILE, VALUES] and not [file for file in os.listdir() if file.startswith(".")]


@pytest.mark.parametrize("command", WRITERS)
def test_never_over_the_topology_file(command: str) -> None:
    """It is refused before a broker is read, and nothing is written."""
    ran = written(command, "t.svg")

    option = NAMES.get(command, WRITERS[command][-1])
    said = f"Error: {option} is the topology file itself\n  at t.svg\n  fix: name another file\n"
    assert (ran, untouched()) == (Ran(64, "", said), True)


@pytest.mark.parametrize("command", WRITERS)
def test_never_over_a_file_of_values(command: str) -> None:
    """They are somebody's work as well."""
    ran = written(command, "v.svg")

    option = NAMES.get(command, WRITERS[command][-1])
    said = f"Error: {option} is the file given with --values itself\n  at v.svg\n  fix: name another file\n"
    assert (ran, untouched()) == (Ran(64, "", said), True)


@pytest.mark.parametrize("way", ["link", "hard.svg", "../{folder}/t.svg"])
def test_whatever_it_is_called(tmp_path: Path, way: str) -> None:
    """A file has many names."""
    os.symlink("t.svg", "link")
    os.link("t.svg", "hard.svg")

    ran = written("export", way.format(folder=tmp_path.name))

    assert (ran.code, untouched()) == (64, True)


def test_over_another_file() -> None:
    """What was exported before is written anew."""
    Path("old.tf").write_text("old", encoding="utf-8")

    ran = written("export", "old.tf")

    assert (ran.code, untouched()) == (0, True)
    assert Path("old.tf").read_text(encoding="utf-8") != "old"
