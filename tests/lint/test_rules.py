"""Every rule has a failing and a passing file, and says of each what it should."""

import re
from pathlib import Path

import pytest
from delayctl.cli.inputs import read_topology_file
from delayctl.topology.expand import expand
from delayctl.topology.findings import Finding, Report
from delayctl.topology.lint import RULES, lint

from tests.lint.brokers import BROKERS

FILES = Path(__file__).parent / "files"
CODES = [rule.code for rule in RULES]
HAVE_SILENCES = ("D302", "D303")


def linted(name: str) -> Report:
    """Lint one of the files, with the broker of its rule."""
    return linted_with_broker(FILES / name)


def linted_with_broker(file: Path) -> Report:
    """Lint a file that is named after a rule, with the broker of that rule."""
    spec = read_topology_file(str(file), {})
    looked = BROKERS.get(file.name[:4])
    if looked is None:
        return lint(spec, expand(spec))
    return lint(spec, expand(spec), live=looked.live, facts=looked.facts)


def of_rule(code: str, report: Report) -> list[Finding]:
    """The findings of one rule."""
    return [finding for finding in report.findings if finding.code == code]


def test_every_rule_has_both_files() -> None:
    """And every file its rule."""
    expected = {f"{code}.{kind}.yaml" for code in CODES for kind in ("fail", "pass")}

    assert {file.name for file in FILES.glob("*.yaml")} == expected


def test_codes_and_names_are_used_once() -> None:
    """So that a silence and a page speak of one thing."""
    assert len(set(CODES)) == len({rule.name for rule in RULES}) == len(RULES)
    assert sorted(CODES) == CODES


@pytest.mark.parametrize("code", CODES)
def test_the_failing_file_fails_at_its_line(code: str) -> None:
    """The first finding of the rule is where the file says, and is complete."""
    lines = (FILES / f"{code}.fail.yaml").read_text(encoding="utf-8").splitlines()
    marked = [number for number, line in enumerate(lines, 1) if re.search(rf"# {code}\b", line)]

    first = of_rule(code, linted(f"{code}.fail.yaml"))[0]

    rule = next(rule for rule in RULES if rule.code == code)
    assert [first.line] == marked
    assert (first.severity, first.reason) == (rule.severity, rule.reason)
    assert first.at
    assert first.message
    assert first.fix


@pytest.mark.parametrize("code", CODES)
def test_the_passing_file_passes(code: str) -> None:
    """The rule says nothing about it, and no other rule finds an error in it."""
    report = linted(f"{code}.pass.yaml")

    assert of_rule(code, report) == []
    assert not report.has_errors


@pytest.mark.parametrize("code", [code for code in CODES if code not in HAVE_SILENCES])
def test_a_finding_can_be_silenced_by_rule_and_object(code: str, tmp_path: Path) -> None:
    """It is kept with the reason, and the silence counts as used."""
    text = (FILES / f"{code}.fail.yaml").read_text(encoding="utf-8")
    first = of_rule(code, linted(f"{code}.fail.yaml"))[0]
    memory = "".join(re.findall(r"^  memory: .*\n", text, re.MULTILINE))
    silence = f"\nlint:\n{memory}  ignore:\n    - {{rule: {code}, at: {first.at}, reason: known}}\n"
    file = tmp_path / f"{code}.fail.yaml"
    file.write_text(text.split("lint:")[0] + silence, encoding="utf-8")

    report = linted_with_broker(file)

    assert first.at not in {finding.at for finding in of_rule(code, report)}
    assert {(finding.code, finding.at, silence.reason) for finding, silence in report.silenced} == {
        (code, first.at, "known")
    }
    assert of_rule("D303", report) == []
