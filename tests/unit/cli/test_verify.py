"""What canaries have proved, as text and JSON, compared whole; and the options that can't be used."""

from dataclasses import replace

import click
import pytest
from delayctl.cli.verify_bar import bar_text
from delayctl.cli.verify_views import Report, report_json, report_text
from delayctl.cli.views import to_json_text
from delayctl.topology.canary import Observed, Probe, Proof, Sighting, Trouble
from delayctl.topology.duration import Duration

from tests.support.commands import delayctl
from tests.support.golden import check_golden

CATCHER = "delay.verify.queue"


def probe(kind: str, name: str, wait: str, exchange: str = "") -> Probe:
    """A way."""
    exchange = exchange or f"delay.{name}.exchange"
    return Probe(kind, name, exchange, f"delay.verify.cafe.{name}", Duration.parse(wait))  # type: ignore[arg-type]


def seen(*late_ms: int, wait: str) -> Observed:
    """Canaries that came so late."""
    due = Duration.parse(wait).ms
    return Observed(len(late_ms), tuple(Sighting(0.0, due + late, "", {}) for late in late_ms))


PROVED = Report(
    "topology.yaml",
    "/",
    "4.3.6",
    "cafe",
    CATCHER,
    Duration(63_450),
    (
        Proof(probe("exit", "delay.exchange", "0s", "delay.exchange"), "canaries", observed=seen(1, 1, wait="0s")),
        Proof(probe("level", "1m", "1m"), "canaries", observed=seen(3, 12, wait="1m")),
        Proof(
            probe("level", "5m", "5m"),
            "hastened",
            observed=seen(0, 0, wait="5m"),
            note="longer than --up-to 1m: sent with an expiration of 500ms",
        ),
        Proof(
            probe("level", "15m", "15m"),
            "hastened",
            observed=seen(0, 0, wait="15m"),
            note="longer than --up-to 1m: sent with an expiration of 500ms",
        ),
        Proof(probe("route", "orders.exchange 'order.created' to orders.timeout.queue", "15m"), "structure"),
    ),
    stays_for=Duration.parse("1d"),
)
FAILED = replace(
    PROVED,
    took=Duration(4_240),
    proofs=(
        Proof(
            probe("exit", "delay.exchange", "0s", "delay.exchange"),
            "canaries",
            (Trouble("no-net", "the exit has no net", "delayctl apply topology.yaml"),),
            seen(1, wait="0s"),
        ),
        Proof(
            probe("level", "1m", "1m"),
            "canaries",
            (
                Trouble("early", "1 of 1 canary came early: after 30s instead of 1m", "correct the policy theirs"),
                Trouble("doubled", "1 of 1 canary came more than once", "look for a second way"),
            ),
            seen(-30_000, wait="1m"),
        ),
        Proof(
            probe("rung", "any.03", "8s", "delay.any.03.gate.exchange"),
            "canaries",
            (Trouble("missing", "2 of 2 canaries did not come in time", "stop the consumer"),),
            Observed(2),
        ),
        Proof(probe("level", "5m", "5m"), "structure", note="longer than --up-to 1m"),
        Proof(
            probe("route", "orders.exchange 'order.created' to a.queue.with.a.name.that.is.longer.than.that", "15m"),
            "structure",
            (Trouble("astray", "messages do not reach a.queue", "delayctl apply topology.yaml"),),
        ),
    ),
)


@pytest.mark.parametrize(("report", "name"), [(PROVED, "proved"), (FAILED, "failed")])
def test_a_report_as_people_read_it(report: Report, name: str) -> None:
    """A headline, a table, what its words mean, and what is wrong."""
    check_golden(f"verify_{name}.txt", click.unstyle(report_text(report)) + "\n")


def test_a_report_as_programs_read_it() -> None:
    """All of it."""
    check_golden("verify_failed.json", to_json_text(report_json(FAILED)) + "\n")


def test_waits_that_were_not_looked_at_are_named() -> None:
    """Also where there is nothing else to say."""
    report = replace(PROVED, unproved=("pol.queue (7s (policy p), then to due)",))
    note = (
        "Note: not proved is how long messages wait in queues that are no levels, and that they leave: "
        "pol.queue (7s (policy p), then to due)"
    )

    texts = [click.unstyle(report_text(each)).splitlines() for each in (report, replace(report, proofs=()))]

    assert [lines[-1] for lines in texts] == [note, note]
    assert report_json(report)["not_proved"] == ["pol.queue (7s (policy p), then to due)"]


def test_very_many_routes_are_one_row() -> None:
    """Those that are not as they should be are shown, each for itself."""
    sound = [Proof(probe("route", f"a b to c{n}", "15m"), "structure") for n in range(1_999)]
    report = replace(PROVED, proofs=(*sound, FAILED.proofs[-1]))

    rows = click.unstyle(report_text(report)).splitlines()[3:5]

    assert [row.split()[:3] for row in rows] == [["FAILED", "route", "orders.exchange"], ["ok", "1,999", "routes"]]


def test_names_move_no_cursor() -> None:
    """Queues that stand in the way may have any name."""
    note = "evil\x1b[2J\nproved would get the canaries too"
    trouble = Trouble("missing", "evil\x1b[2J\nhas a consumer", "stop evil\x1b[2J")
    proof = Proof(probe("level", "1m", "1m"), "structure", (trouble,), note=note)

    lines = click.unstyle(report_text(replace(PROVED, proofs=(proof,)))).splitlines()

    assert lines[-3:] == [
        "Failed: level 1m: evil\\x1b[2J\\nhas a consumer [missing]",
        "  fix: stop evil\\x1b[2J",
        "Note: level 1m: evil\\x1b[2J\\nproved would get the canaries too",
    ]


def test_is_it_proved() -> None:
    """One way that is not is enough."""
    assert (PROVED.is_proved, FAILED.is_proved) == (True, False)
    assert (FAILED.sent, FAILED.at_large) == (4, 2)


def test_the_bar() -> None:
    """How many have come, and how long it may take."""
    assert bar_text(5, 20, 59.6) == "[######------------------] 5 of 20 canaries answered, 1m left at most"


@pytest.mark.parametrize(
    "options", [("--count", "0"), ("--up-to", "soon"), ("--max-lateness", "-1s"), ("--output", "yaml")]
)
def test_options_that_can_not_be_used(options: tuple[str, ...]) -> None:
    """They are usage errors, before anything is read."""
    ran = delayctl("verify", "topology.yaml", *options)

    assert (ran.code, ran.out) == (64, "")
    assert options[0] in ran.err
