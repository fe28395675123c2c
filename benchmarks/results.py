"""RESULTS.md: one part per broker, one section per subject; a run renews what it measured and keeps the rest."""

import re
from collections.abc import Mapping

SUBJECTS = ("apply", "publish", "consume", "lateness", "perftest", "spark", "simulator", "backlog")
_BROKER = re.compile(r"^## (.+)$", re.MULTILINE)
_MARK = re.compile(r"^<!-- (\w+): (.*) -->$", re.MULTILINE)
Results = dict[str, dict[str, str]]  # Broker, subject, text.


def read_results(text: str) -> Results:
    """The sections of a file; what has no mark is of the time when there was nothing but apply."""
    _, *parts = _BROKER.split(text)
    return {broker: _sections(body) for broker, body in zip(parts[::2], parts[1::2], strict=True)}


def _sections(body: str) -> dict[str, str]:
    first, *rest = _MARK.split(body)
    found = {"apply": first.strip()} if first.strip() else {}
    for subject, when, section in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        found[subject] = f"<!-- {subject}: {when} -->\n\n{section.strip()}"
    return found


def with_section(results: Results, broker: str, subject: str, text: str, *, when: str) -> Results:
    """The results with one section renewed."""
    sections = {**results.get(broker, {}), subject: f"<!-- {subject}: {when} -->\n\n{text.strip()}"}
    return {**results, broker: sections}


def results_text(heading: str, results: Mapping[str, Mapping[str, str]]) -> str:
    """The file."""
    pieces = [heading.strip()]
    for broker, sections in results.items():
        pieces.append(f"## {broker}")
        pieces += [sections[subject] for subject in SUBJECTS if subject in sections]
    return "\n\n".join(pieces) + "\n"
