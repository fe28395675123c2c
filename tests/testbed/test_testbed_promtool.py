"""What Prometheus itself says of rules, configuration, dashboard and exposition."""

import json
import subprocess
from pathlib import Path

import pytest

from testbed.broker import BrokerUnavailable
from testbed.needs import give_up
from testbed.promtool import find_promtool, keep_promtool
from tests.support.golden import FOLDER
from tests.support.observed import CONFIG, PLAYED, RULES, drawn, rules


@pytest.fixture(scope="module")
def promtool() -> Path:
    """The program, wherever it is to be had."""
    try:
        return find_promtool()
    except BrokerUnavailable as error:
        give_up(str(error))


def run(promtool: Path, *arguments: str, text: str = "") -> str:
    """Run it, and give what it says if it is content."""
    done = subprocess.run([promtool, *arguments], input=text, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_rules_and_configuration(promtool: Path) -> None:
    """They load, and none of the rules is there twice."""
    assert f"SUCCESS: {len(rules())} rules found" in run(
        promtool, "check", "rules", "--lint=all", "--lint-fatal", str(RULES)
    )
    assert "SUCCESS" in run(promtool, "check", "config", str(CONFIG))


def test_the_alerts_fire_when_they_should(promtool: Path) -> None:
    """Played on made-up series: quiet first, then not."""
    assert run(promtool, "test", "rules", *map(str, PLAYED)).count("SUCCESS") == len(PLAYED)


def test_the_expressions_of_the_dashboard(promtool: Path, tmp_path: Path) -> None:
    """Each is one that Prometheus can read."""
    wrapped = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(drawn())]
    file = tmp_path / "drawn.yml"
    file.write_text(json.dumps({"groups": [{"name": "drawn", "rules": wrapped}]}))

    assert f"SUCCESS: {len(wrapped)} rules found" in run(promtool, "check", "rules", str(file))


def test_the_exposition(promtool: Path) -> None:
    """Names, types and help keep to the conventions; promtool would complain, and says nothing."""
    text = (FOLDER / "metrics_eventful.txt").read_text(encoding="utf-8")

    assert run(promtool, "check", "metrics", text=text) == ""


def test_all_but_promtool_is_removed(tmp_path: Path) -> None:
    """The server is not kept in the cache."""
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/share/prometheus").mkdir(parents=True)
    for name in ("promtool", "prometheus"):
        (tmp_path / "usr/bin" / name).write_text(name)

    keep_promtool(tmp_path)

    assert [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()] == ["usr/bin/promtool"]
