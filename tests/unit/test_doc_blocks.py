"""Every block of the documentation is held to what is true, and is run or among those that can't be."""

import configparser
from pathlib import Path

import click
import pytest
import yaml
from delayctl.topology.errors import InvalidTopology
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
    is_topology,
)
from tests.support.doc_exceptions import answered_by, reason_for
from tests.support.doc_lines import lines_of, way
from tests.support.doc_programs import ELSEWHERE, pages, programs

BLOCKS = blocks()
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


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_says_what_is_true(block: Block) -> None:
    """Files can be used, programs fit what they call, commands can be typed."""
    assert block.language in CHECKS, f"no check for {block.language}"
    CHECKS[block.language](block)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_is_run_or_says_why_not(block: Block) -> None:
    """Programs and commands by the tests that take them from the same functions, files by the check above."""
    page = block.page.relative_to(ROOT).as_posix()
    typed = [*lines_of(block)]
    is_run = {
        "text": "\n$ " not in f"\n{block.text}",  # Drawings and answers: there is nothing to run.
        "python": page in {*ELSEWHERE, *pages()} and (page in ELSEWHERE or block in programs(page)),
        "yaml": block.language == "yaml" and (bool(typed) or is_topology(block)),
    }.get(block.language, bool(typed) and all(way(line) or reason_for(page, line.text) for line in typed))

    assert is_run or answered_by(page, block.text) or reason_for(page, block.text)


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
