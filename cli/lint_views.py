"""Findings of lint as text, as JSON, and as SARIF for code review tools. Pure: nothing is read, nothing is printed."""

from collections.abc import Iterator, Sequence
from typing import Any

import click
from delayctl.topology.errors import Problem
from delayctl.topology.findings import Finding, Report, Rule, Severity
from delayctl.topology.spec import Silence
from delayctl.topology.wording import plural

import delayctl

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
INVALID = "D000"  # What the parser finds: no rule of lint, and nothing that could be silenced.
COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def report_text(report: Report, file: str, *, show_silenced: bool = False) -> str:
    """All findings as people read them, or nothing."""
    blocks = [_finding_text(finding, file) for finding in report.findings]
    if show_silenced:
        blocks += [_silenced_text(finding, silence, file) for finding, silence in report.silenced]
    return "\n\n".join([*blocks, *_summary(report, show_silenced)])


def _finding_text(finding: Finding, file: str) -> str:
    return f"{_headline(finding)}\n  at {file}:{finding.line} ({finding.at})\n  why: {finding.reason}\n  fix: {finding.fix}"


def _silenced_text(finding: Finding, silence: Silence, file: str) -> str:
    return f"Silenced {finding.code}: {finding.message}\n  at {file}:{finding.line} ({finding.at})\n  for: {silence.reason}"


def _headline(finding: Finding) -> str:
    word = click.style(finding.severity.value.capitalize(), fg=COLOURS[finding.severity])
    return f"{word} {finding.code}: {finding.message}"


def _summary(report: Report, show_silenced: bool) -> Iterator[str]:
    counts = [(severity, len(report.of(severity))) for severity in Severity]
    parts = [plural(count, severity.value) for severity, count in counts if count]
    if report.silenced:
        hint = "" if show_silenced else " (--show-silenced lists them)"
        parts.append(f"{len(report.silenced)} silenced{hint}")
    if parts:
        yield f"Lint: {', '.join(parts)}."


def compact_text(findings: Sequence[Finding], file: str) -> str:
    """A line for each finding, before a plan."""
    return "\n".join(f"{_headline(finding)} ({file}:{finding.line})" for finding in findings)


def silence_example(finding: Finding) -> str:
    """What to write into a file to have a finding set aside."""
    return f"lint: {{ignore: [{{rule: {finding.code}, at: {finding.at}, reason: WHY}}]}}"


def report_json(report: Report) -> dict[str, Any]:
    """All findings as programs read them."""
    return {
        "findings": [finding_json(finding) for finding in report.findings],
        "silenced": [{**finding_json(finding), "silenced_for": silence.reason} for finding, silence in report.silenced],
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding as programs read it."""
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "at": finding.at,
        "message": finding.message,
        "reason": finding.reason,
        "fix": finding.fix,
        "line": finding.line,
    }


def report_sarif(report: Report, rules: Sequence[Rule], uri: str) -> dict[str, Any]:
    """All findings as SARIF 2.1.0; what is silenced is there as suppressed, with the reason."""
    results = [_result(finding, uri) for finding in report.findings]
    results += [
        {**_result(finding, uri), "suppressions": [{"kind": "inSource", "justification": silence.reason}]}
        for finding, silence in report.silenced
    ]
    numbers = {rule.code: number for number, rule in enumerate(rules)}
    for result in results:
        result["ruleIndex"] = numbers[result["ruleId"]]
    return _sarif([_rule_json(rule) for rule in rules], results)


def problems_sarif(problems: Sequence[Problem], uri: str) -> dict[str, Any]:
    """What the parser found, as SARIF."""
    text = "The file can't be read as a topology."
    rule = {
        "id": INVALID,
        "name": "invalid-file",
        "shortDescription": {"text": text},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": "error"},
    }
    results = [
        {
            "ruleId": INVALID,
            "ruleIndex": 0,
            "level": "error",
            "message": {"text": f"{problem.message}. Fix: {problem.fix}."},
            "locations": [{"physicalLocation": _place(uri, problem.location.line or 1)}],
        }
        for problem in problems
    ]
    return _sarif([rule], results)


def _sarif(rules: list[dict[str, Any]], results: list[dict[str, Any]]) -> dict[str, Any]:
    driver = {"name": "delayctl", "version": delayctl.__version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule_json(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": f"{rule.summary} {rule.reason}"},
        "help": {
            "text": f"{rule.summary}\n\n{rule.reason}",
            "markdown": f"**{rule.summary}**\n\n{rule.reason}\n\nKnown and fine? "
            f"Silence it in the file: `lint: {{ignore: [{{rule: {rule.code}, at: NAME, reason: WHY}}]}}`",
        },
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, uri: str) -> dict[str, Any]:
    return {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}. Fix: {finding.fix}."},
        "locations": [
            {
                "physicalLocation": _place(uri, finding.line),
                "logicalLocations": [{"fullyQualifiedName": finding.at}],
            }
        ],
        # What stays the same when lines move.
        "partialFingerprints": {"delayctl/v1": f"{finding.code}:{finding.at}"},
    }


def _place(uri: str, line: int) -> dict[str, Any]:
    return {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}
