"""docs/lint.md and the rules say the same."""

import re
from pathlib import Path

import pytest
from delayctl.topology.findings import Rule
from delayctl.topology.lint import RULES
from delayctl.topology.version_bugs import BUGS

from tests.lint.test_rules import linted, linted_with_broker, of_rule

PAGE = (Path(__file__).parents[2] / "docs" / "lint.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### (D\d{3}) (\S+) \((\w+)\)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
SECTIONS = {code: (name, severity, text) for code, name, severity, text in SECTION.findall(PAGE)}


def test_every_rule_has_its_section() -> None:
    """In the order of the codes, and no section is about a rule that is gone."""
    assert list(SECTIONS) == [rule.code for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_section_says_what_the_rule_says(rule: Rule) -> None:
    """Name, severity, what happens and why; an example with what lint really answers; and the fix."""
    name, severity, text = SECTIONS[rule.code]
    message = of_rule(rule.code, linted(f"{rule.code}.fail.yaml"))[0].message

    assert (name, severity) == (rule.name, rule.severity.value)
    assert f"{rule.summary} {rule.reason}" in text
    assert message in text
    assert "```yaml\n" in text
    assert "**Fix**: " in text


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_an_example_can_be_pasted(rule: Rule, tmp_path: Path) -> None:
    """As a file of its own, it has the finding that the page shows."""
    text = SECTIONS[rule.code][2]
    file = tmp_path / f"{rule.code}.yaml"
    file.write_text(text.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")

    assert of_rule(rule.code, linted_with_broker(file))[0].message in text


def test_every_known_bug_is_listed_with_its_source() -> None:
    """Word for word."""
    assert all(f"| {bug.fixed_in} | {bug.effect} | <{bug.source}> |" in PAGE for bug in BUGS)
