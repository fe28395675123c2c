"""Every block of the documentation is held to what is true, and programs on the way in are run."""

import configparser
from pathlib import Path

import click
import pytest
import yaml
from delayctl.cli.inputs import read_topology_file
from delayctl.consumers import DelayConsumer
from delayctl.testing import SimulatedBroker
from delayctl.topology.errors import InvalidTopology
from delayctl.topology.expand import expand
from lark.exceptions import UnexpectedInput

from tests.support.doc_blocks import (
    CHECKS,
    ROOT,
    Block,
    blocks,
    check_command,
    check_inline,
    commands_in,
    inline_commands,
)

BLOCKS = blocks()
LOCAL = "amqp://guest:guest@127.0.0.1:5672/"
TROUBLES = (
    AssertionError,
    AttributeError,
    InvalidTopology,
    SyntaxError,
    TypeError,
    UnexpectedInput,
    click.UsageError,
    configparser.Error,
    yaml.YAMLError,
)
# Pages whose programs do without anything but a broker, beside docs/testing.md and docs/simulator.md, which have tests of their own.
RUN = ("README.md", "docs/start.md", "docs/from-delay-plugin.md", "docs/from-celery-dramatiq.md")
PROGRAMS = [
    block
    for block in BLOCKS
    if block.language == "python" and block.page.relative_to(ROOT).as_posix() in RUN and LOCAL in block.text
]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_says_what_is_true(block: Block) -> None:
    """Files can be used, programs fit what they call, commands can be typed."""
    assert block.language in CHECKS, f"no check for {block.language}"
    CHECKS[block.language](block)


@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_a_program_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a broker with the file of the same page; a consumer would run for ever, and is only made."""
    topology = tmp_path / "topology.yaml"
    topology.write_text(next(b.text for b in BLOCKS if b.page == block.page and b.language == "yaml"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DelayConsumer, "run", lambda _: None)
    with SimulatedBroker("topology.yaml") as broker:
        exec(compile(block.text.replace(LOCAL, broker.url), str(block), "exec"), {"__name__": "__main__"})

        levels = [level.name for level in expand(read_topology_file("topology.yaml", {})).waits]
        assert "publish(" not in block.text or any(map(broker.waiting, levels)), "what was published waits"


def test_there_are_programs_to_run() -> None:
    """One on each page that is listed."""
    assert {block.page.relative_to(ROOT).as_posix() for block in PROGRAMS} == set(RUN)


@pytest.mark.parametrize(
    ("page", "code"), inline_commands(), ids=lambda each: each if isinstance(each, str) else each.name
)
def test_a_command_in_a_sentence_is_one(page: Path, code: str) -> None:
    """With the options that it is said to have."""
    check_inline(code)


class TestTheChecks:
    """A check that finds nothing would be worth nothing."""

    @pytest.mark.parametrize(
        ("language", "text"),
        [
            ("yaml", "version: 1\ndelay: {levels: [5x]}\n"),
            ("yaml", "routes:\n  - {kye: a, delay: 1m, to: q}\n"),
            ("yaml", "a: [1"),
            ("python", "from delayctl.publishers import DelayPublisher\nDelayPublisher(topologie='t')\n"),
            ("python", "from delayctl.publishers import Publisher\n"),
            ("python", "publisher.publish(b'', key='k', after='1m')\n"),
            ("python", "consumer.listen('q')\n"),
            ("python", "def f(:\n"),
            ("", "$ delayctl plan topology.yaml --detailed\n"),
            ("", "$ delayctl pln topology.yaml\n"),
            ("", "$ cat x | delayctl status t.yaml --output xml\n"),
            ("sh", "if true; then delayctl status\n"),
            ("hcl", "resource {"),
            ("ini", "nothing = here"),
            ("java", "void f() {"),
        ],
    )
    def test_what_is_wrong_is_found(self, language: str, text: str) -> None:
        """One block of each kind that must not pass."""
        with pytest.raises(TROUBLES):
            CHECKS[language](Block(ROOT / "README.md", 1, language, text))

    def test_commands_are_found_in_lines_of_shell(self) -> None:
        """Before and behind pipes, without what they write to."""
        line = "delayctl plan t.yaml --out p > log; echo; delayctl status 't 2.yaml' | jq ."

        assert [*commands_in(line)] == [["plan", "t.yaml", "--out", "p"], ["status", "t 2.yaml"]]

    def test_an_option_that_is_not_there(self) -> None:
        """In a sentence."""
        with pytest.raises(AssertionError, match="delayctl plan has no --never"):
            check_inline("delayctl plan --never")

    def test_an_incomplete_command(self) -> None:
        """Unless it says that something is left out."""
        check_command(["completion", "…"])
        with pytest.raises(AssertionError, match="incomplete"):
            check_command(["completion"])
