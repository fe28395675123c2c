"""docs/spark.md and the code name the same things."""

import re
from pathlib import Path

import pytest
from delayctl.cli.main import cli
from delayctl.spark.columns import OURS
from delayctl.spark.options import read_options
from delayctl.topology.errors import BadOption

from tests.conftest import TopologyFile

PAGE = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
# What spark-submit takes.
OTHERS = {"--py-files", "--deploy-mode", "--num-executors", "--executor-cores", "--files"}
COMMANDS = ("backfill", "audit", "consume", "spark-package")


def first_cells(heading: str) -> list[str]:
    """The names in the first column of the table below a heading."""
    section = PAGE.partition(f"### {heading}\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def test_the_columns_are_those_that_the_sink_knows() -> None:
    """All of them, and no other."""
    assert sorted(first_cells("Columns")) == sorted(OURS)


def test_the_options_are_those_that_the_sink_takes() -> None:
    """All of them, and no other."""
    with pytest.raises(BadOption) as refused:
        read_options({"no_such_option": ""})

    known = (refused.value.fix or "").removeprefix("the options are: ").split(", ")
    assert sorted(first_cells("Options")) == sorted(known)


def test_defaults_are_as_told(topology: TopologyFile) -> None:
    """Those that stand in the table."""
    options = read_options({"topology": str(topology.write("version: 1\ndelay: {levels: [1s]}\n"))})

    for name in ("window", "full_wait", "rounding"):
        assert re.search(rf"^\| `{name}` \| `?{getattr(options, name)}`? \|", PAGE, re.MULTILINE), name


def test_every_option_of_a_command_is_one() -> None:
    """What the page tells people to type."""
    known = {option for name in COMMANDS for each in cli.commands[name].params for option in each.opts}

    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", PAGE)) - known - OTHERS == set()
