"""What pages say to type, line by line with the answer that they show, and how each line is run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache

from tests.support.doc_blocks import ROOT, Block, blocks, commands_in
from tests.support.doc_exceptions import NOT_RUN, reason_for

_SCHEDULE = re.compile(r"^(?:[*/\d]+ +){5}")
_SETTING = re.compile(r"^[A-Z_]+=\S+$")
_OFFLINE = {
    *("init", "validate", "explain", "graph", "simulate", "capacity", "render", "schema", "export"),
    *("permissions", "completion", "spark-package"),
}
_ASKS_A_BROKER = {"--live", "--plan", "--apply", "--calibrate"}
_SPARK = {"backfill", "audit"}


class Way(Enum):
    """How a line is run."""

    OFFLINE = "in this process, with no broker to ask"
    LIVE = "in this process, on a broker"
    SHELL = "by a shell, on a broker"
    SPARK = "with Spark, on a broker"
    FILE = "its answer is the file that it names"


@dataclass(frozen=True)
class Line:
    """What is typed, without its prompt; and what is shown below it."""

    page: str
    number: int
    text: str
    shown: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.number} {self.text.splitlines()[0]}"

    @property
    def whole(self) -> str:
        """Tells it from others of the same words."""
        return f"{self.text}\n{self.shown}"

    @property
    def commands(self) -> list[list[str]]:
        """Those of ours."""
        return [*commands_in(self.text)]


@cache
def lines() -> tuple[Line, ...]:
    """All that can be typed, page by page."""
    return tuple(line for block in blocks() for line in lines_of(block))


def lines_of(block: Block) -> Iterator[Line]:
    """A script as one; else what stands behind prompts, or every line; and the steps of a workflow."""
    page = block.page.relative_to(ROOT).as_posix()
    if block.language == "sh":
        yield Line(page, block.line, block.text)
    elif block.language == "yaml":
        yield from (Line(page, block.line, step) for step in re.findall(r"- run: (delayctl .*)", block.text))
    elif not block.language:
        text = block.text.replace("\\\n", " ")
        is_prompted = re.search(r"^\$ ", text, re.MULTILINE)
        parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:] if is_prompted else text.splitlines()
        for part in parts:
            typed, _, shown = part.partition("\n")
            if typed and not _SETTING.match(typed):
                yield Line(page, block.line, _SCHEDULE.sub("", typed), shown)


def way(line: Line) -> Way | None:
    """How a line is run; None where it is not, for a reason in the table."""
    if reason_for(line.page, line.text):
        return None
    if line.text.startswith("cat "):
        return Way.FILE
    if "$(" in line.text or "| jq" in line.text or line.text.startswith("python3 -c"):
        return Way.SHELL
    if line.text.startswith("curl "):
        return Way.LIVE
    assert line.commands, f"neither run nor among those that need not be: {line}"
    if any(words[0] in _SPARK for words in line.commands):
        return Way.SPARK
    return Way.OFFLINE if all(map(_is_offline, line.commands)) else Way.LIVE


def _is_offline(words: list[str]) -> bool:
    asks = _ASKS_A_BROKER | ({"--check"} if words[0] == "permissions" else set())
    return words[0] in _OFFLINE and not asks & {*words} and not any(word.endswith(".plan") for word in words)


def pages_with(*ways: Way) -> list[str]:
    """Those with lines to be run so."""
    return sorted({line.page for line in lines() if way(line) in ways})


def unused() -> list[tuple[str, str]]:
    """Entries of the table that speak of nothing."""
    texts = [(line.page, line.text) for line in lines()]
    texts += [(block.page.relative_to(ROOT).as_posix(), block.text) for block in blocks()]
    entries = [(page, start) for page, starts in NOT_RUN.items() for start in starts]
    return [
        entry for entry in entries if not any(entry[0] == page and text.startswith(entry[1]) for page, text in texts)
    ]
