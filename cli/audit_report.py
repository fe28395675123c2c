"""The report of an audit: one HTML file that needs nothing else, or Markdown with the picture beside it."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delayctl.cli.audit_plot import audit_svg
from delayctl.cli.audit_views import (
    COUNTS,
    PERCENTILES,
    counts_rows,
    findings,
    lateness_rows,
    level_text,
    moment_text,
    verdict_words,
)
from delayctl.cli.output import write_file
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from jinja2 import Environment, StrictUndefined

import delayctl

if TYPE_CHECKING:  # Spark's room is entered only by the command that needs it.
    from delayctl.spark.audit import Audit

_TEMPLATES = {".html": "audit.html.j2", ".md": "audit.md.j2"}
_WITHOUT = "There is no picture: matplotlib is not installed (pip install 'delayctl[plot]')."


def check_report(file: str) -> None:
    """Make sure that the report has a format, before anything takes time."""
    if Path(file).suffix.lower() not in _TEMPLATES:
        raise BadOption(f"--report {file} ends neither in .html nor in .md", fix="name it audit.html, say")


def write_report(audit: "Audit", file: str, *, ledger: str) -> None:
    """Write the report, and for Markdown its picture beside it."""
    svg, ending = audit_svg(audit), Path(file).suffix.lower()
    picture = Path(file).with_suffix(".svg")
    if svg is not None and ending == ".md":
        write_file(str(picture), svg, what="the picture")
    text = report_text(audit, ending, ledger=ledger, svg=svg, picture=picture.name)
    write_file(file, text, what="the report")


def report_text(audit: "Audit", ending: str, *, ledger: str, svg: str | None, picture: str = "") -> str:
    """The report in the format of this ending."""
    template = files("delayctl.cli").joinpath(_TEMPLATES[ending]).read_text(encoding="utf-8")
    environment = Environment(
        autoescape=ending == ".html",  # noqa: S701 (Markdown is not HTML)
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"moment": moment_text, "level": level_text, "cell": _cell}
    return environment.from_string(template).render(_values(audit, ledger, svg, picture))


def _values(audit: "Audit", ledger: str, svg: str | None, picture: str) -> dict[str, Any]:
    rules = audit.rules
    return {
        "audit": audit,
        "ledger": ledger,
        "verdict": verdict_words(audit),
        "findings": findings(audit),
        "counts": COUNTS,
        "counts_rows": counts_rows(audit),
        "percentiles": tuple(PERCENTILES.values()),
        "after_expected": lateness_rows(audit, "after_expected"),
        "after_due": lateness_rows(audit, "after_due"),
        "grace": Duration(rules.grace),
        "late_after": Duration(rules.late_after),
        "tolerance": Duration(rules.tolerance),
        "svg": svg,
        "picture": picture,
        "no_picture": _WITHOUT if svg is None and audit.timeline.expected else "",
        "version": delayctl.__version__,
    }


def _cell(text: str) -> str:
    """A text that does not end a cell of a Markdown table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("`", "'").replace("\n", " ")
