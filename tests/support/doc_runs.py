"""Runs what pages say to type, and holds it to the exit code and the answer that they show."""

import re

from tests.support.commands import Ran, delayctl
from tests.support.doc_files import is_about
from tests.support.doc_lines import Line, lines

# Where a page tells of something else than success; by how the line and its answer begin.
_CODES = {
    ("README.md", "delayctl validate topology.yaml\nError: level '5x'"): 1,
    ("docs/explain.md", "delayctl explain topology.yaml --exchange orders.exchange --key order.viewed"): 1,  # Lost.
}


def expected_code(line: Line) -> int:
    """The code that a page shows, or has to mean."""
    if line.text.endswith("; echo $?"):
        return int(line.shown.splitlines()[-1])
    return next((code for key, code in _CODES.items() if is_about(key, line)), 0)


def codes_of_nothing() -> list[tuple[str, str]]:
    """Entries for lines that are not there."""
    return [key for key in _CODES if not any(is_about(key, line) for line in lines())]


def run_commands(line: Line, *added: str) -> Ran:
    """Run the commands of a line in this process, one after the other; the last one's answer."""
    ran = Ran(0, "", "")
    for words in line.commands:
        assert ran.code == 0, ran.err
        ran = delayctl(*words, *added)
    return ran


def is_shown(line: Line, ran: Ran) -> bool:
    """Whether the answer is the one on the page; … stands for whatever there is."""
    shown = line.shown.removesuffix(f"{expected_code(line)}\n") if "echo $?" in line.text else line.shown
    pattern = ".*".join(re.escape(part) for part in shown.strip("\n").split("…"))
    answers = (ran.out + ran.err, ran.err + ran.out)
    return not shown or any(re.fullmatch(pattern, answer.strip("\n"), re.DOTALL) for answer in answers)
