"""Capacity on a real broker: what is measured is sane, and nothing stays behind, not even after a kill."""

import json
import signal
import subprocess
from typing import Any

import pytest
from delayctl.topology.version import parse_version

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import delayctl, delayctl_process
from tests.support.rabbit import Rabbit

QUESTION = ("capacity", "--rate", "1000/s", "--delay", "30m", "--size", "400b", "--calibrate")
TOPOLOGY = """
version: 1
delay:
  levels: {1m: {expected_rate: 1000/s}, 15m: {type: quorum}}
"""


def queues(rabbit: Rabbit) -> list[dict[str, Any]]:
    """The queues of the virtual host."""
    return list(rabbit.api("GET", "queues/{vhost}"))


@pytest.mark.parametrize("shape", ["classic", "quorum"])
def test_a_calibration_measures_and_leaves_nothing_behind(rabbit: Rabbit, shape: str) -> None:
    """A message of 400 bytes takes what it can take, on this broker and in such a queue."""
    is_4 = (parse_version(rabbit.broker.version) or (0,)) >= (4, 0, 0)

    ran = rabbit.delayctl(*QUESTION, "--type", shape, "--calibrate-messages", "10000", "--output", "json")

    assert (ran.code, queues(rabbit)) == (0, [])
    answer = json.loads(ran.out)
    [measured], [wait] = answer["calibrations"], answer["waits"]
    assert (measured["messages"], measured["complete"]) == (10_000, True)
    assert [reading["messages"] for reading in measured["readings"]] == [0, 5_000, 10_000]
    assert measured["confirmed_per_second"] > 100
    if shape == "quorum":
        assert 20 < measured["queue_bytes_per_message"] < 1_000
        assert 400 < measured["node_bytes_per_message"] < 5_000
    elif is_4:
        assert measured["node_bytes_per_message"] < 500
    else:
        assert 700 < measured["node_bytes_per_message"] < 5_000
    assert wait["waiting"] == 1_800_000
    assert wait["memory_bytes"] == 2_000_000 * wait["memory_bytes_per_message"]
    assert answer["available"]["memory_bytes"] > 0


def test_a_killed_calibration_leaves_nothing_behind_for_long(rabbit: Rabbit) -> None:
    """The broker removes the queue by itself, with all that is in it."""
    started = [_filling(rabbit, "--type", shape, "--calibrate-time", "10s") for shape in ("classic", "quorum")]
    until(lambda: {queue["type"] for queue in queues(rabbit)} == {"classic", "quorum"}, 60, what="two queues")

    for process in started:
        process.kill()
        process.communicate(timeout=10)

    assert [process.returncode for process in started] == [-signal.SIGKILL] * 2
    until(lambda: not queues(rabbit), 45, what="the end of both queues")


def test_an_interrupted_calibration_leaves_nothing_behind(rabbit: Rabbit) -> None:
    """Ctrl-C removes the queue at once, and says that it was stopped."""
    process = _filling(rabbit)
    until(lambda: queues(rabbit), 60, what="the queue")

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)

    assert process.returncode == 1
    assert "Stopped." in err
    until(lambda: not queues(rabbit), 30, what="the end of the queue")


def _filling(rabbit: Rabbit, *options: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return delayctl_process(*QUESTION, *options, *rabbit.options, **pipes)


def test_a_calibration_keeps_away_from_policies(rabbit: Rabbit) -> None:
    """What a policy pushes out of the queue would come out among real messages."""
    rabbit.put_policy("all", ".*", max_length=10, dead_letter_exchange="amq.topic")

    ran = rabbit.delayctl(*QUESTION)

    assert ran.code == 1
    assert "would not be as it has to: by the policy all" in ran.err
    assert queues(rabbit) == []


def test_a_file_is_held_against_what_the_nodes_have(rabbit: Rabbit, topology: TopologyFile) -> None:
    """With its alarm as the limit, and figures for the broker's own version."""
    file = topology.write(TOPOLOGY)

    ran = rabbit.delayctl("capacity", file, "--live", "--output", "json")

    answer = json.loads(ran.out)
    assert "its alarm is at" in answer["available"]["source"]
    assert answer["fits"] is (answer["memory_bytes"] <= answer["available"]["memory_bytes"])
    line = rabbit.broker.version.split(".")[0]
    assert {wait["figures_from"].split()[-1].split(".")[0] for wait in answer["waits"]} == {line}


def test_a_user_who_may_not_look_is_told(rabbit: Rabbit) -> None:
    """What nodes have is for those who monitor."""
    user = f"plain-{rabbit.vhost}"
    rabbit.api("PUT", f"users/{user}", {"password": "secret", "tags": "management"})
    try:
        rabbit.api("PUT", f"permissions/{{vhost}}/{user}", {"configure": ".*", "write": ".*", "read": ".*"})
        place = rabbit.broker.url.partition("@")[2]
        ran = delayctl(
            "capacity", "--max-length", "10", "--live", "--url", f"amqp://{user}:secret@{place}",
            "--management-url", rabbit.broker.management_url, "--vhost", rabbit.vhost,
        )  # fmt: skip
    finally:
        rabbit.api("DELETE", f"users/{user}")

    assert ran.code == 1
    assert "what nodes have of memory and disk can't be read" in ran.err
    assert "add the tag monitoring" in ran.err
