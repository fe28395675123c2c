"""A doctor's findings as text and JSON, compared whole; its page and its options."""

import json
import re
from dataclasses import replace
from pathlib import Path

import click
import pytest
from delayctl.cli.doctor_views import doctor_json, doctor_text
from delayctl.cli.views import to_json_text
from delayctl.topology.clients import Client, Clients
from delayctl.topology.diagnosis import Check, diagnose
from delayctl.topology.doctor import CHECKS
from delayctl.topology.examination import Examination, Look, Seen
from delayctl.topology.figures import Node

from tests.support.commands import delayctl
from tests.support.golden import check_golden
from tests.support.patients import IDLE, busy, examination, status

PAGE = (Path(__file__).parents[3] / "docs" / "doctor.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### (H\d{3}) (\S+) \((\w+)\)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
SECTIONS = {code: (name, severity, text) for code, name, severity, text in SECTION.findall(PAGE)}


def eventful() -> Examination:
    """A bit of everything."""
    earlier = status(figures={"delay.5m.queue": busy(1, 5)})
    figures = {
        "delay.1m.queue": replace(IDLE, ready=8, consumers=1),
        "delay.5m.queue": busy(10, 10),
        "delay.unrouted.queue": replace(IDLE, ready=3),
        "orders.dlq": replace(IDLE, ready=1),
        "orders.queue": IDLE,
    }
    clients = Clients(
        unconfirmed=(Client("10.0.0.2:40112 -> 10.0.0.9:5672", "shop"),),
        takers={"delay.1m.queue": (Client("10.0.0.1:40112 -> 10.0.0.9:5672", "shop", "mailer"),)},
    )
    looks = {
        "delay.unrouted.queue": Look((*[Seen("order.craeted", waited_in="delay.5m.queue")] * 2, Seen("mail"))),
        "orders.dlq": Look(obstacle="somebody consumes from it"),
    }
    node = Node("rabbit@a", memory_alarm=True, memory_used=2_100_000_000, memory_limit=2_000_000_000)
    return examination(
        figures=figures, nodes=(node,), parks=("orders.dlq",), earlier=earlier, clients=clients, looks=looks
    )


def shown(examined: Examination) -> str:
    """The answer as a pipe gets it: without colours."""
    return click.unstyle(doctor_text(examined, diagnose(CHECKS, examined), checks=len(CHECKS))) + "\n"


class TestText:
    """For people."""

    def test_names_move_no_cursor(self) -> None:
        """A parking queue may have any name; commands show it escaped, too."""
        evil = "evil\x1b[2J\nwell"
        figures = {evil: replace(IDLE, ready=1)}

        text = shown(examination(figures=figures, parks=(evil,)))

        assert "parked in evil\\x1b[2J\\nwell\n" in text
        assert [line for line in text.splitlines() if not line.isprintable()] == []

    def test_eventful(self) -> None:
        """The gravest first, each with what was seen, why, and what to run."""
        check_golden("doctor_eventful.txt", shown(eventful()))

    def test_nothing_is_wrong(self) -> None:
        """Two lines."""
        check_golden("doctor_well.txt", shown(examination()))

    def test_without_a_file(self) -> None:
        """It is said what the answer goes by; warnings alone leave it well."""
        text = shown(examination(file=None, figures={"delay.1m.queue": replace(IDLE, ready=8)}))

        assert text.startswith("well, with warnings: what was applied (the broker's own record) → virtual host /, ")

    def test_colour_is_for_terminals(self) -> None:
        """The views colour; click takes the colours away where nobody sees them."""
        assert click.style("not well", fg="red") in doctor_text(
            eventful(), diagnose(CHECKS, eventful()), checks=len(CHECKS)
        )


def test_json() -> None:
    """For programs: every finding with its commands."""
    found = diagnose(CHECKS, eventful())

    answer = to_json_text(doctor_json(eventful(), found, checks=len(CHECKS)))

    check_golden("doctor_eventful.json", answer + "\n")
    assert [finding["code"] for finding in json.loads(answer)["findings"]] == [each.code for each in found]


class TestOptions:
    """What can't be asked."""

    @pytest.mark.parametrize("value", ["soon", "0s", "2h", ""])
    def test_a_watch_that_makes_no_sense(self, value: str) -> None:
        """Before anything is read."""
        ran = delayctl("doctor", "topology.yaml", "--watch-for", value)

        assert (ran.code, ran.out) == (64, "")
        assert ran.err.startswith("Error: --watch-for ")

    def test_a_file_has_its_own_prefix(self) -> None:
        """Two would be one too many."""
        assert delayctl("doctor", "topology.yaml", "--prefix", "shop.").code == 64

    def test_help_has_examples(self) -> None:
        """Each of them can be run as it is."""
        assert "delayctl doctor topology.yaml --watch-for 30s" in delayctl("doctor", "--help").out


class TestPage:
    """docs/doctor.md and the checks say the same."""

    def test_every_check_has_its_section(self) -> None:
        """In the order of the codes, and no section is about a check that is gone."""
        assert list(SECTIONS) == [check.code for check in CHECKS]

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
    def test_a_section_says_what_the_check_says(self, check: Check) -> None:
        """Name, severity, what is wrong and why; and what to do about it."""
        name, severity, text = SECTIONS[check.code]

        assert (name, severity) == (check.name, check.severity.value)
        assert f"{check.summary} {check.reason}" in text
        assert "**Fix**: " in text
