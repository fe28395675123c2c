"""The command capacity without a broker: sums, files, and questions that can't be answered."""

import json
from typing import Any

import click
import pytest
from delayctl.cli.capacity_json import capacity_json
from delayctl.cli.capacity_views import Answer, capacity_text
from delayctl.topology.calibration import Calibration, Reading
from delayctl.topology.capacity import Available, Capacity, Need
from delayctl.topology.duration import Duration
from delayctl.topology.rate import Rate

from tests.conftest import TopologyFile
from tests.support.commands import Ran, delayctl
from tests.support.golden import check_golden

FILE = """
version: 1
delay:
  levels:
    1m: {expected_rate: 1000/s}
    15m: {expected_rate: 2000/s, max_length: 1000000}
    precious: {ttl: 5m, profile: safe, max_length: 100000, expected_rate: 500/s}
    1h: {max_length: unlimited}
lint: {memory: 4GiB}
"""
LADDER = "version: 1\ndelay: {levels: [1m], any: {unit: 1s, steps: 12}, queue: {max_length: 1000000}}\n"


@pytest.fixture
def file(topology: TopologyFile, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file, in a folder that it is named without."""
    topology.write(FILE)
    monkeypatch.chdir(topology.path.parent)
    return topology.path.name


def answer(ran: Ran) -> Any:
    """The JSON that a command printed."""
    assert ran.err == ""
    return json.loads(ran.out)


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("rate", "--rate 1000/s --delay 30m --size 400b", 0),
        ("length", "--max-length 5000000 --delay 30m --memory-per-message 1kB", 0),
        ("memory", "--memory 5GB --delay 30m --memory-per-message 1kB", 0),
        ("quorum", "--rate 1000/s --delay 30m --size 2kB --type quorum --rabbitmq 4.3 --memory 1GB", 1),
        ("short", "--rate 20/m --delay 1d --max-length 20000 --lazy", 1),
        ("file", "topology.yaml --rate 1h=10/s --size 1kB", 1),
    ],
)
def test_the_sum_can_be_followed(file: str, name: str, options: str, code: int) -> None:
    """Every figure stands beside what it comes from."""
    ran = delayctl("capacity", *options.split())

    assert (ran.code, ran.err) == (code, "")
    check_golden(f"capacity_{name}.txt", ran.out)


def test_the_founders_figures() -> None:
    """1,000/s for 30 minutes, 5,000,000 for 30 minutes, 5 GB at a kilobyte."""

    def ask(*options: str) -> Any:
        return answer(delayctl("capacity", "--delay", "30m", "--output", "json", *options))

    rate = ask("--rate", "1000/s")
    length = ask("--max-length", "5000000")
    memory = ask("--memory", "5GB", "--memory-per-message", "1kB")

    assert rate["waits"][0]["waiting"] == 1_800_000
    assert length["waits"][0]["carries_per_second"] == 2_777
    assert (memory["available"]["messages"], memory["waits"][0]["carries_per_second"]) == (5_000_000, 2_777)


def test_a_file_level_by_level(file: str) -> None:
    """A rate that is given comes before the file's own; the level that is short fails."""
    found = answer(delayctl("capacity", file, "--rate", "15m=1000/s", "--rate", "1h=1/s", "--output", "json"))

    waits = {
        wait["name"]: (wait["queue"], wait["waiting"], wait["max_length"], wait["fits"]) for wait in found["waits"]
    }
    assert waits == {
        "1m": ("classic", 60_000, 1_000_000, True),
        "15m": ("classic", 900_000, 1_000_000, True),
        "precious": ("quorum", 150_000, 100_000, False),
        "1h": ("classic", 3_600, None, True),
    }
    assert found["fits"] is False
    assert [trouble["fix"] for trouble in found["troubles"]] == ["set max_length: 170000"]
    assert found["available"]["source"] == "lint.memory of the file"


def test_a_ladder_is_reckoned_by_the_longest_delay(topology: TopologyFile) -> None:
    """However delays are spread over its steps, no more wait than come meanwhile."""
    file = topology.write(LADDER)
    known = answer(delayctl("capacity", file, "--rate", "any=1000/s", "--delay", "10m", "--output", "json"))
    unknown = answer(delayctl("capacity", file, "--rate", "any=1000/s", "--output", "json"))

    assert [(wait["name"], wait["waiting"]) for wait in known["waits"]] == [("1m", None), ("any", 600_000)]
    assert unknown["waits"][1]["waiting"] is None
    assert unknown["notes"] == ["the ladder is not reckoned with: give --delay, the longest delay that is in use"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "nothing says how many messages wait"),
        ("--delay 30m", "nothing says how many messages wait"),
        ("--rate 1000/s", "--rate needs --delay"),
        ("--rate 1000 --delay 30m", "'1000' is not a rate"),
        ("--rate 1/s --delay 0s", "--delay '0s' is no time at all"),
        ("--rate 1h=1/s --delay 30m", "names a level, and there is no file"),
        ("--max-length 10 --size 4q", "'4q' is not a size"),
        ("--max-length 10 --rabbitmq four", "'four' is no version"),
        ("--max-length 10 --lazy --type quorum", "--lazy is for classic queues"),
        ("--max-length 10 --calibrate --memory-per-message 5", "--calibrate measures"),
        ("--max-length 10 --calibrate-time 1h", "--calibrate-time is more than half an hour"),
        ("--max-length 10 --calibrate-messages 5", "--calibrate-messages is for --calibrate"),
        ("--max-length 10 --calibrate-time 1m", "--calibrate-time is for --calibrate"),
        ("topology.yaml --max-length 10", "are for a wait without a file"),
        ("topology.yaml --rate 2h=1/s", "there is no level '2h'"),
        ("topology.yaml --delay 10m", "--delay is for a file with a ladder (delay: any, or any: true beside levels)"),
    ],
)
def test_what_can_not_be_answered(file: str, options: str, said: str) -> None:
    """It is said what is wrong, with a fix."""
    ran = delayctl("capacity", *options.split())

    assert (ran.code, ran.out) == (64, "")
    assert said in ran.err
    assert "  fix: " in ran.err


@pytest.mark.parametrize("more", ["", "--rate 1/s", "--max-length 10"])
def test_room_for_no_message_does_not_fit(more: str) -> None:
    """However much is to wait: it is said what one takes, and nobody is told to set a limit of 0."""
    options = ("--memory", "1b", "--delay", "1m", "--memory-per-message", "1kB", *more.split())
    ran = delayctl("capacity", *options)
    found = json.loads(delayctl("capacity", *options, "--output", "json").out)

    assert (ran.code, ran.out.splitlines()[0].partition(":")[0]) == (1, "does not fit")
    assert "max_length 0" not in ran.out
    assert "no more than 0" not in ran.out
    assert (found["fits"], found["notes"]) == (False, [])
    assert found["troubles"] == [
        {
            "what": "there is room for no message: one takes 1,000 B of memory, and there is 1 B (--memory)",
            "fix": "add memory",
        }
    ]


def test_a_broker_that_is_away_is_an_error() -> None:
    """And what to leave out is said."""
    ran = delayctl(
        "capacity",
        "--max-length",
        "10",
        "--live",
        "--url",
        "amqp://127.0.0.1:1",
        "--management-url",
        "http://127.0.0.1:1",
    )

    assert ran.code == 1
    assert "leave out --live and --calibrate" in ran.err


def test_what_was_measured_is_shown() -> None:
    """Step by step, with doubts."""
    readings = (Reading(0, 20_000, 9_000_000, 150_000_000), Reading(50_000, 46_020_000, 65_000_000, 240_000_000))
    seen = Calibration("classic", "3.10.8", "rabbit@a", 40, readings, filling_s=10, is_settled=False, is_whole=False)
    need = Need("messages", "classic", seen.footprint, Duration.parse("30m"), Rate.parse("1000/s"), body=40)
    shown = Answer(Capacity((need,), Available(10**10, 10**11, "rabbit@a")), calibrations=(seen,))

    check_golden("capacity_calibrated.txt", click.unstyle(capacity_text(shown)) + "\n")
    [measured] = capacity_json(shown)["calibrations"]
    assert (measured["queue_bytes_per_message"], measured["node_bytes_per_message"]) == (920, 1_120)
    assert measured["disk_bytes_per_message"] is None
    assert (measured["settled"], measured["complete"]) == (False, False)


def test_without_a_broker_the_way_without_it_is_named_last() -> None:
    """As one of several things to do."""
    ran = delayctl("capacity", "--rate", "1/s", "--delay", "1m", "--live", "--management-url", "http://127.0.0.1:1")

    assert ran.code == 1
    assert ran.err.endswith(", or correct --management-url, or leave out --live and --calibrate\n")
