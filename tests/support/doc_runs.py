"""Runs what pages say to type, and holds it to the exit code and the answer that they show."""

import re
from collections.abc import Callable

from tests.support.commands import Ran, delayctl
from tests.support.doc_files import is_about
from tests.support.doc_lines import Line, lines

# Where a page tells of something else than success; by how the line and its answer begin.
_CODES = {
    ("README.md", "delayctl validate topology.yaml\nError: level '5x'"): 1,
    ("docs/explain.md", "delayctl explain topology.yaml --exchange orders.exchange --key order.viewed"): 1,  # Lost.
    ("README.md", "delayctl plan topology.yaml --detailed-exitcode"): 2,
    ("docs/doctor.md", "delayctl doctor topology.yaml --watch-for"): 1,
    ("docs/explain.md", "delayctl explain topology.yaml --exchange orders.exchange --key order.created --live"): 1,
    ("docs/inserting.md", "delayctl apply without.yaml"): 3,
    ("docs/permissions.md", "delayctl permissions topology.yaml --check"): 1,
    ("docs/publishing.md", "delayctl publish service.yaml --key order.created --delay 4s"): 1,
    ("docs/publishing.md", "delayctl publish service.yaml --key order.created --file"): 1,
    ("docs/status.md", "delayctl status topology.yaml\nnot healthy"): 1,
    ("docs/status.md", 'out=$(delayctl status /etc/delayctl/topology.yaml 2>&1) || { echo "CRITICAL'): 2,
    ("docs/verify.md", "delayctl verify topology.yaml --up-to 10s --timeout 3"): 1,
    ("docs/verify.md", "#!/bin/sh"): 2,
}
# What differs from run to run and from broker to broker.
_VARYING = (
    (r"virtual host [^\s,]+", "virtual host V"),
    (r"-p \S+", "-p V"),
    (r"RabbitMQ \d+\.\d+\.\d+", "RabbitMQ N"),
    (r"\b[0-9a-f]{32}\b", "ID"),
    (r"\d\d:\d\d:\d\d\.\d{3}", "TIME"),
    (r"\d+ ms|\d+\.\d s \(\d+/s\)|due in \d+s", "SOON"),
)


def expected_code(line: Line) -> int:
    """The code that a page shows, or has to mean."""
    if line.text.endswith("; echo $?"):
        return int(line.shown.splitlines()[-1])
    return next((code for key, code in _CODES.items() if is_about(key, line)), 0)


def codes_of_nothing() -> list[tuple[str, str]]:
    """Entries for lines that are not there."""
    return [key for key in _CODES if not any(is_about(key, line) for line in lines())]


def run_commands(line: Line, run: Callable[..., Ran] = delayctl) -> Ran:
    """Run the commands of a line, one after the other as long as all goes well; the last one's answer."""
    ran = Ran(0, "", "")
    for words in line.commands:
        assert ran.code == 0, ran.err
        ran = run(*words)
    return ran


def is_shown(line: Line, ran: Ran) -> bool:
    """Whether the answer is the one on the page; … stands for whatever there is."""
    shown = line.shown.removesuffix(f"{expected_code(line)}\n") if "echo $?" in line.text else line.shown
    shown, out, err = map(_steady, (shown, ran.out, ran.err))
    if "…" not in shown:  # A terminal shows both streams as they come.
        return not shown or sorted(shown.split("\n")) == sorted(f"{out}\n{err}".strip("\n").split("\n"))
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return any(re.fullmatch(pattern, answer, re.DOTALL) for answer in (f"{out}\n{err}", f"{err}\n{out}", out, err))


def _steady(text: str) -> str:
    """A text without what differs from run to run and from broker to broker."""
    for pattern, instead in _VARYING:
        text = re.sub(pattern, instead, text)
    return text.strip("\n")
