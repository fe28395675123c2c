"""Findings as the command line tells them: as text, as JSON and as SARIF."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Ran, delayctl

ROOT = Path(__file__).parents[3]
SCRATCH = """\
version: 1
queues:
  scratch.queue: {arguments: {x-message-ttl: 60000}}
"""
SILENCED = f"{SCRATCH}lint: {{ignore: [{{rule: D201, at: scratch.queue, reason: old figures}}]}}\n"
EXPIRING = """\
version: 1
delay: none
exchanges:
  due.exchange: {existing: true}
queues:
  a.wait:
    arguments: {x-message-ttl: 1000, x-expires: 60000, x-max-length: 1000000, x-dead-letter-exchange: due.exchange}
"""
NO_BROKER = ("--url", "amqp://127.0.0.1:1/", "--management-url", "http://127.0.0.1:1")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def validated(text: str, *options: str) -> Ran:
    """Validate a file with this text."""
    Path("topology.yaml").write_text(text, encoding="utf-8")
    return delayctl("validate", *options)


def sarif(text: str) -> Any:
    """The one run of a SARIF log."""
    log = json.loads(validated(text, "--output", "sarif").out)
    assert (log["version"], log["$schema"]) == ("2.1.0", "https://json.schemastore.org/sarif-2.1.0.json")
    [run] = log["runs"]
    return run


@pytest.mark.parametrize("levels", [(), ("--from-rocketmq", "1s 5s 10s 30s 1m 2m")])
def test_init_gives_nothing_to_complain_of(levels: tuple[str, ...]) -> None:
    """Not even an info."""
    delayctl("init", *levels)

    answer = json.loads(delayctl("validate", "--strict", "--output", "json").out)

    assert answer["findings"] == []


def test_the_example_has_neither_errors_nor_warnings() -> None:
    """What it leads to is bound by those who listen, which is worth an info."""
    ran = delayctl("validate", str(ROOT / "examples" / "topology.yaml"), "--strict", "--output", "json")

    assert ran.code == 0
    assert [finding["code"] for finding in json.loads(ran.out)["findings"]] == ["D109"]


def test_findings_stand_below_the_answer() -> None:
    """With the line, the object, the reason and the fix."""
    assert validated(SCRATCH) == Ran(
        0,
        "topology.yaml is valid: 3 levels, 5 exchanges, 5 queues, 4 bindings.\n"
        "\n"
        "Warning D201: what nobody takes from scratch.queue within 1m is deleted: it has a TTL and no dead-letter exchange\n"
        "  at topology.yaml:3 (scratch.queue)\n"
        "  why: What expires is dead-lettered where there is a dead-letter exchange, and deleted where there is none.\n"
        "  fix: add the argument x-dead-letter-exchange, or remove x-message-ttl\n"
        "\n"
        "Lint: 1 warning.\n",
        "",
    )


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [(SCRATCH, (), 0), (SCRATCH, ("--strict",), 1), (EXPIRING, (), 1), (SILENCED, ("--strict",), 0)],
)
def test_the_exit_code_says_whether_there_are_errors(text: str, options: tuple[str, ...], code: int) -> None:
    """With --strict, warnings count too; what is silenced never does."""
    assert validated(text, *options).code == code


def test_what_is_silenced_is_counted_and_can_be_listed() -> None:
    """Together with the reason that the file gives."""
    counted, listed = validated(SILENCED).out, validated(SILENCED, "--show-silenced").out

    assert counted.endswith(" bindings.\n\nLint: 1 silenced (--show-silenced lists them).\n")
    assert listed.endswith(
        "Silenced D201: what nobody takes from scratch.queue within 1m is deleted: it has a TTL and no dead-letter exchange\n"
        "  at topology.yaml:3 (scratch.queue)\n"
        "  for: old figures\n"
        "\n"
        "Lint: 1 silenced.\n"
    )


def test_findings_are_answered_to_programs() -> None:
    """Both kinds, each with all its parts."""
    found, silenced = (json.loads(validated(text, "--output", "json").out) for text in (SCRATCH, SILENCED))

    [finding] = found["findings"]
    assert finding == {
        "code": "D201",
        "severity": "warning",
        "at": "scratch.queue",
        "message": "what nobody takes from scratch.queue within 1m is deleted: it has a TTL and no dead-letter exchange",
        "reason": "What expires is dead-lettered where there is a dead-letter exchange, and deleted where there is none.",
        "fix": "add the argument x-dead-letter-exchange, or remove x-message-ttl",
        "line": 3,
    }
    assert silenced["findings"] == []
    assert silenced["silenced"] == [{**finding, "silenced_for": "old figures"}]


def test_sarif_has_a_result_at_its_line() -> None:
    """With its rule, a level that review tools know, and what stays the same when lines move."""
    run = sarif(EXPIRING)

    [result] = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (
        (result["ruleId"], result["level"]) == (rule["id"], rule["defaultConfiguration"]["level"]) == ("D203", "error")
    )
    assert result["message"]["text"].startswith("a.wait is deleted 1m after its last use")
    assert result["locations"] == [
        {
            "physicalLocation": {"artifactLocation": {"uri": "topology.yaml"}, "region": {"startLine": 6}},
            "logicalLocations": [{"fullyQualifiedName": "a.wait"}],
        }
    ]
    assert result["partialFingerprints"] == {"delayctl/v1": "D203:a.wait"}


def test_sarif_describes_every_rule() -> None:
    """In text and in Markdown, with a level of SARIF's own, and without a link."""
    rules = sarif(SCRATCH)["tool"]["driver"]["rules"]

    assert len({rule["id"] for rule in rules}) == len(rules) > 20
    assert {rule["defaultConfiguration"]["level"] for rule in rules} == {"error", "warning", "note"}
    assert all(rule["help"]["text"] and rule["id"] in rule["help"]["markdown"] for rule in rules)
    assert all(rule["shortDescription"]["text"] and "helpUri" not in rule for rule in rules)


def test_sarif_tells_what_is_suppressed() -> None:
    """With the reason of the file."""
    [result] = sarif(SILENCED)["results"]

    assert result["suppressions"] == [{"kind": "inSource", "justification": "old figures"}]


def test_a_broken_file_is_sarif_too() -> None:
    """So that a review shows what the parser has to say."""
    run = sarif("version: 1\nqueeus: {}\n")

    [result] = run["results"]
    assert (result["ruleId"], result["level"]) == ("D000", "error")
    assert result["message"]["text"].startswith("the file has no key 'queeus' (did you mean 'queues'?)")
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 2}


def test_a_path_is_written_as_a_uri() -> None:
    """Spaces and umlauts are encoded."""
    Path("für alle.yaml").write_text(SCRATCH, encoding="utf-8")

    log = json.loads(delayctl("validate", "für alle.yaml", "--output", "sarif").out)

    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "f%C3%BCr%20alle.yaml"


def test_without_live_no_broker_is_asked() -> None:
    """Where it would be makes no difference, not even when it can't be read."""
    assert validated(SCRATCH, "--url", "nonsense").code == 0
    assert validated(SCRATCH, "--live", *NO_BROKER).err.startswith("Error: no management API listens at")


@pytest.mark.parametrize("output", ["text", "json"])
def test_apply_refuses_errors_before_it_looks_at_a_broker(output: str) -> None:
    """It says what was found, and how to go ahead all the same."""
    Path("topology.yaml").write_text(EXPIRING, encoding="utf-8")

    ran = delayctl("apply", "--yes", "--output", output, *NO_BROKER)

    told = ran.out if output == "text" else ran.err
    finding = (
        "Error D203: a.wait is deleted 1m after its last use, together with all that waits in it (topology.yaml:6)\n"
    )
    assert ran.code == 1
    assert told.startswith(finding)
    assert ran.err.endswith(
        "Error: lint found 1 error in the file; nothing is applied\n"
        "  at topology.yaml:6\n"
        "  fix: mend it (delayctl validate topology.yaml says how), or if it is known and fine write"
        " lint: {ignore: [{rule: D203, at: a.wait, reason: WHY}]}\n"
    )


def test_apply_goes_past_what_is_silenced() -> None:
    """As far as the broker, which is not there."""
    silence = "lint: {ignore: [{rule: D203, at: a.wait, reason: a test}]}\n"
    Path("topology.yaml").write_text(EXPIRING + silence, encoding="utf-8")

    ran = delayctl("apply", "--yes", *NO_BROKER)

    assert "lint found" not in ran.err
    assert ran.code == 1
