"""What canaries have found, as Prometheus reads it, from run to run."""

from dataclasses import replace
from pathlib import Path

import pytest
from delayctl.cli.verify_metrics import Tally, added_up, tallies_in, verify_exposition
from delayctl.topology.canary import Observed, Proof
from delayctl.topology.errors import DelayctlError

from tests.support.commands import delayctl
from tests.support.exposed import Exposed
from tests.unit.cli.test_verify import FAILED, PROVED, probe, seen

NAMES = {"topology": "topology.yaml", "vhost": "/"}
KNOWN = frozenset((proof.probe.kind, proof.probe.name) for proof in (*PROVED.proofs, *FAILED.proofs))
MINUTE = {"kind": "level", "way": "1m"}


def after(*reports: object, text: str | None = None) -> str:
    """The file after these runs, one a second."""
    for second, report in enumerate(reports, start=1):
        before = {} if text is None else tallies_in(text, file="v.prom")
        tallies = added_up(before, report, at_ms=second * 1000, known=KNOWN)  # type: ignore[arg-type]
        text = verify_exposition(tallies, **NAMES)
    assert text is not None
    return text


def test_one_run() -> None:
    """Of hastened canaries and of objects that were looked at no lateness is known."""
    found = Exposed(after(PROVED))

    assert found.one("delayctl_verify_lateness_seconds_count", **MINUTE) == 2
    assert found.one("delayctl_verify_lateness_seconds_sum", **MINUTE) == 0.015
    assert found.one("delayctl_verify_lateness_seconds_bucket", le="0.005", **MINUTE) == 1
    assert found.one("delayctl_verify_lateness_seconds_bucket", le="0.025", **MINUTE) == 2
    assert found.all("delayctl_verify_lateness_seconds_count", way="5m") == []
    assert found.one("delayctl_verify_canaries_sent_total", kind="level", way="5m") == 2
    assert found.all("delayctl_verify_canaries_sent_total", kind="route") == []
    assert set(found.all("delayctl_verify_proved")) == {1}
    assert set(found.all("delayctl_verify_timestamp_seconds")) == {1}


def test_runs_add_up() -> None:
    """A counter that began anew with every run would tell nothing; whether a way is proved is said by the last one."""
    found = Exposed(after(PROVED, PROVED, FAILED))

    assert found.one("delayctl_verify_canaries_sent_total", **MINUTE) == 5
    assert found.one("delayctl_verify_lateness_seconds_count", **MINUTE) == 5
    # What came half a minute early was late by nothing.
    assert found.one("delayctl_verify_lateness_seconds_sum", **MINUTE) == 0.03
    assert found.one("delayctl_verify_proved", **MINUTE) == 0
    assert found.one("delayctl_verify_canaries_arrived_total", kind="rung", way="any.03") == 0
    assert found.one("delayctl_verify_timestamp_seconds", **MINUTE) == 3


def test_a_way_that_was_not_tried_keeps_its_figures() -> None:
    """With --level the others are left alone, and their time says how old that is."""
    exit_only = replace(PROVED, proofs=PROVED.proofs[:1])

    found = Exposed(after(PROVED, exit_only))

    assert found.one("delayctl_verify_canaries_sent_total", **MINUTE) == 2
    assert found.one("delayctl_verify_timestamp_seconds", **MINUTE) == 1
    assert found.one("delayctl_verify_timestamp_seconds", kind="exit") == 2


def test_a_way_that_the_file_has_no_more_is_forgotten() -> None:
    """Else its last word would stand for ever."""
    before = tallies_in(after(PROVED), file="v.prom")

    tallies = added_up(before, replace(PROVED, proofs=PROVED.proofs[:1]), at_ms=1, known=frozenset())

    assert list(tallies) == [("exit", "delay.exchange")]


def test_ways_of_the_same_name_are_proved_together() -> None:
    """One that fails speaks for all of them, and their canaries are added up."""
    twins = (Proof(probe("route", "a", "1m"), "canaries", FAILED.proofs[1].troubles, seen(1, wait="1m")),)
    report = replace(PROVED, proofs=(*twins, Proof(probe("route", "a", "1m"), "canaries", (), seen(2, wait="1m"))))

    tallies = added_up({}, report, at_ms=1, known=KNOWN)

    assert (tallies["route", "a"].sent, tallies["route", "a"].is_proved) == (2, False)


def test_what_was_written_is_read_again() -> None:
    """Whatever a way is called."""
    hostile = 'a "b" \\ {c}\n# delayctl verify 1 {}\u2028'
    report = replace(PROVED, proofs=(Proof(probe("route", hostile, "1m"), "canaries", (), seen(7, wait="1m")),))
    tallies = added_up({}, report, at_ms=1, known=KNOWN)

    text = verify_exposition(tallies, **NAMES)

    assert tallies_in(text, file="v.prom") == tallies
    assert Exposed(text).one("delayctl_verify_proved", way=hostile) == 1


def test_other_bounds_begin_anew() -> None:
    """Counts within bounds that nobody uses any more can't be added to."""
    text = '# delayctl verify 1 {"bounds": [1], "ways": [["level", "1m", 4, 3, true, 9, [1, 2], 5.0]]}\n'

    [tally] = tallies_in(text, file="v.prom").values()

    assert (tally.sent, tally.arrived, tally.late.counts[-1], tally.late.total) == (4, 3, 0, 0)


@pytest.mark.parametrize(
    "text", ["", "hello\n", "# delayctl verify 1 {\n", "# delayctl verify 1 {}\n", "# delayctl verify 1 []\n",
             '# delayctl verify 1 {"bounds": [], "ways": [["level"]]}\n']
)  # fmt: skip
def test_a_file_of_somebody_else(text: str) -> None:
    """It is neither read nor written over."""
    with pytest.raises(DelayctlError, match="not by verify --metrics-file"):
        tallies_in(text, file="v.prom")


def test_a_wrong_file_is_found_before_anything_is_sent(tmp_path: Path) -> None:
    """No broker is needed to say so."""
    topology, file = tmp_path / "topology.yaml", tmp_path / "v.prom"
    topology.write_text("version: 1\ndelay: {levels: [1s]}\n")
    file.write_text("somebody's\n")

    ran = delayctl("verify", str(topology), "--metrics-file", str(file), "--url", "amqp://127.0.0.1:9")
    folder = delayctl("verify", str(topology), "--metrics-file", str(tmp_path), "--url", "amqp://127.0.0.1:9")

    assert (ran.code, ran.out, file.read_text()) == (1, "", "somebody's\n")
    assert ran.err.startswith(f"Error: the file is there already, and not by verify --metrics-file\n  at {file}\n")
    assert folder.err.startswith("Error: the metrics can't be read: Is a directory\n")


def test_nothing_was_sent() -> None:
    """A tally of a way whose canaries the broker refused has no lateness."""
    report = replace(PROVED, proofs=(Proof(probe("level", "1m", "1m"), "canaries", (), Observed(2)),))

    [tally] = added_up({}, report, at_ms=5, known=KNOWN).values()

    assert tally == Tally(2, 0, True, 5, tally.late)
    assert tally.late.counts[-1] == 0
