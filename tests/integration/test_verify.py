"""A sound topology is proved by canaries on a real broker, and nothing of it is left behind."""

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from subprocess import PIPE
from typing import Any

import pytest

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import delayctl, delayctl_process
from tests.support.consuming import Seen, running
from tests.support.rabbit import Rabbit

FILE = """\
version: 1
delay:
  levels: [100ms, 300ms, 1h]
  any: {unit: 50ms, steps: 3}
exchanges:
  orders.exchange: {type: topic}
  store.exchange: {type: headers}
routes:
  - {from: orders.exchange, key: "order.#", delay: 300ms, to: orders.queue}
  - {from: store.exchange, headers: {kind: store}, key: store.updated, delay: 100ms, to: {exchange: site.exchange}}
  - {key: bill.sent, delay: 1h, to: bills.queue}
  - {key: later, delay: any, to: later.queue}
retry:
  orders.queue: {levels: [100ms], max: 2, park: orders.parked}
"""
SAFE = """\
version: 1
delay: {levels: [200ms, 1h], queue: {profile: safe}}
routes: [{key: order.created, delay: 200ms, to: orders.queue}]
"""
BY_POLICY = """\
version: 1
delay: {levels: [200ms, 1h], settings: policy}
routes: [{key: order.created, delay: 200ms, to: orders.queue}]
"""
WAYS = {
    "exit delay.exchange": "canaries",
    "level 100ms": "canaries",
    "level 300ms": "canaries",
    "level 1h": "hastened",
    "rung any.00": "canaries",
    "rung any.01": "canaries",
    "rung any.02": "canaries",
    "ladder any.02 down to any.00": "canaries",
    "route orders.exchange 'order.any' (of order.#) to orders.queue": "objects",
    "route store.exchange 'store.updated' to site.exchange": "objects",
    "route delay.1h.exchange 'bill.sent' to bills.queue": "objects",
    "route delay.any.exchange 'later' to later.queue": "objects",
    "route retries of orders.queue": "objects",
    "route parking in orders.parked": "objects",
}


@dataclass(frozen=True)
class Answer:
    """What verify said."""

    code: int
    json: dict[str, Any]

    @property
    def by(self) -> dict[str, str]:
        """How each way was proved."""
        return {f"{way['kind']} {way['name']}": way["by"] for way in self.json["ways"]}

    @property
    def troubles(self) -> dict[str, list[str]]:
        """What speaks against each way that is not proved."""
        return {
            f"{way['kind']} {way['name']}": [trouble["name"] for trouble in way["troubles"]]
            for way in self.json["ways"]
            if not way["proved"]
        }


Verify = Callable[..., Answer]


@pytest.fixture
def verify(rabbit: Rabbit, topology: TopologyFile) -> Verify:
    """Runs the command on the file of the test."""

    def run(*options: str) -> Answer:
        # A busy machine is no trouble of the topology.
        ran = rabbit.delayctl("verify", str(topology.path), "--output", "json", "--max-lateness", "5s", *options)
        assert ran.err == ""
        return Answer(ran.code, json.loads(ran.out))

    return run


def apply(rabbit: Rabbit, topology: TopologyFile, text: str) -> None:
    """Bring the broker to a file."""
    ran = rabbit.delayctl("apply", topology.write(text), "--yes")
    assert ran.code == 0, ran.err


def messages(rabbit: Rabbit) -> int:
    """All messages of the virtual host, counted now."""
    return sum(rabbit.ready(queue["name"]) for queue in rabbit.api("GET", "queues/{vhost}"))


def test_a_sound_topology_is_proved(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Every delay by canaries, in time; every route by its objects; and the broker is as it was before."""
    apply(rabbit, topology, FILE)
    before = rabbit.definitions()

    found = verify("--count", "3")

    assert (found.code, found.troubles) == (0, {})
    assert found.by == WAYS
    timed = [way for way in found.json["ways"] if way["by"] == "canaries"]
    assert all(way["arrived"] == way["sent"] == 3 for way in timed)
    assert all(-3 <= way["lateness_ms"]["least"] <= way["lateness_ms"]["most"] <= 5000 for way in timed)
    assert (found.json["sent"], found.json["at_large"]) == (24, 0)
    assert rabbit.definitions() == before
    assert messages(rabbit) == 0


@pytest.mark.parametrize("text", [SAFE, BY_POLICY], ids=["safe", "policy"])
def test_other_kinds_of_delays_are_proved(rabbit: Rabbit, topology: TopologyFile, verify: Verify, text: str) -> None:
    """Quorum queues that dead-letter at least once, and settings by policy."""
    apply(rabbit, topology, text)

    found = verify()

    assert (found.code, found.troubles) == (0, {})
    assert [way["by"] for way in found.json["ways"]] == ["canaries", "canaries", "hastened", "objects"]
    assert messages(rabbit) == 0


def test_the_answer_is_read_by_people(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A table and what it means; stderr is silent, so that cron is."""
    apply(rabbit, topology, SAFE)

    ran = rabbit.delayctl("verify", str(topology.path))

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"proved: {topology.path} → virtual host {rabbit.vhost}, RabbitMQ ")
    assert "ok  level 1h" in ran.out


def test_canaries_go_through_routes_when_they_may(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Where routes lead canaries arrive; a consumer of ours acknowledges them, and no handler sees them."""
    apply(rabbit, topology, FILE)
    seen = Seen()

    with running(rabbit.url, topology.path, {"orders.queue": seen}):
        found = verify("--through-routes")
        until(lambda: rabbit.ready("orders.queue") == 0, 20)
        rabbit.publish("orders.exchange", "order.created", "a real one")
        seen.await_count(1)

    assert (found.code, found.troubles) == (0, {})
    assert {name: by for name, by in found.by.items() if name.startswith("route") and by != "canaries"} == {
        "route delay.1h.exchange 'bill.sent' to bills.queue": "objects",
        "route parking in orders.parked": "objects",
    }
    assert [message.text for message in seen.messages] == ["a real one"]
    assert [message.headers["delay-canary"] for message in rabbit.take("later.queue")] == [found.json["run"]] * 2
    assert messages(rabbit) == 0


def test_what_is_bound_to_all_gets_no_canary(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Where somebody takes all that comes out, only objects are looked at; with the option canaries are sent."""
    apply(rabbit, topology, SAFE)
    with rabbit.channel() as channel:
        channel.queue_declare("audit.queue", durable=True)
        channel.queue_bind("audit.queue", "delay.exchange", "#")

    found = verify()

    assert (found.code, found.json["sent"], rabbit.ready("audit.queue")) == (0, 0, 0)
    assert set(found.by.values()) == {"objects"}
    assert "audit.queue would get the canaries too" in found.json["ways"][1]["note"]
    assert verify("--through-routes").json["sent"] == 8
    assert rabbit.ready("audit.queue") == 8


def test_long_levels(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Hastened where the queue is empty; never past a message that waits, and not where they shall not."""
    apply(rabbit, topology, SAFE)

    assert verify("--up-to", "100ms").by["level 200ms"] == "hastened"
    assert verify("--no-hasten").by["level 1h"] == "objects"
    rabbit.publish("delay.1h.exchange", "order.created", "a real one")
    until(lambda: rabbit.queue("delay.1h.queue").get("messages_ready") == 1, 30)
    found = verify()

    assert (found.code, found.by["level 1h"]) == (0, "objects")
    assert "can't pass 1 message" in found.json["ways"][2]["note"]
    assert [message.body for message in rabbit.take("delay.1h.queue")] == ["a real one"]


def test_one_at_a_time(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A second run says who is there, and takes nothing from the first."""
    apply(rabbit, topology, "version: 1\ndelay: {levels: [4s]}\n")
    first = delayctl_process("verify", str(topology.path), *rabbit.options, stdout=-1)
    until(lambda: rabbit.ready("delay.4s.queue") == 2, 20)

    second = rabbit.delayctl("verify", str(topology.path))

    assert second.code == 1
    assert "another delayctl verify is at work" in second.err
    out, _ = first.communicate(timeout=30)
    assert (first.returncode, out.partition(":")[0]) == (0, "proved")


def test_a_run_that_was_killed_leaves_no_message_among_others(
    rabbit: Rabbit, topology: TopologyFile, verify: Verify
) -> None:
    """What it sent is caught by a queue that removes itself; the next run leaves that there."""
    apply(rabbit, topology, "version: 1\ndelay: {levels: [2s]}\n")
    first = delayctl_process("verify", str(topology.path), *rabbit.options, stdout=-1)
    until(lambda: rabbit.ready("delay.2s.queue") == 2, 20)

    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=30)
    until(lambda: rabbit.ready("delay.verify.queue") == 2, 20)

    assert rabbit.queue("delay.verify.queue")["arguments"]["x-expires"] == 86_400_000
    assert rabbit.ready("delay.unrouted.queue") == 0
    assert verify().code == 0
    assert rabbit.queue("delay.verify.queue")["arguments"]["x-expires"] == 86_400_000


def test_ctrl_c_says_what_stays(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Canaries are on their way, and what catches them is still there."""
    apply(rabbit, topology, "version: 1\ndelay: {levels: [20s]}\n")
    running = delayctl_process("verify", str(topology.path), *rabbit.options, stdout=PIPE, stderr=PIPE)
    until(lambda: rabbit.ready("delay.20s.queue") == 2, 20)

    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)

    assert (running.returncode, out) == (1, "")
    assert err.strip().splitlines() == [
        "Error: stopped: canaries may still come out, and delay.verify.queue stays to catch them",
        "  fix: leave it there: it removes itself when unused for 1d",
    ]
    assert rabbit.queue("delay.verify.queue")["arguments"]["x-expires"] == 86_400_000


def test_canaries_of_an_earlier_run_are_caught_after_a_later_one(
    rabbit: Rabbit, topology: TopologyFile, verify: Verify
) -> None:
    """Whatever became of those of the later one, and of the levels meanwhile."""
    apply(rabbit, topology, "version: 1\ndelay: {levels: [6s]}\n")
    first = delayctl_process("verify", str(topology.path), *rabbit.options, stdout=-1)
    until(lambda: rabbit.ready("delay.6s.queue") == 2, 20)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=30)
    apply(rabbit, topology, "version: 1\ndelay: {levels: [6s, 2d]}\n")

    later = verify("--level", "2d")

    assert (later.code, later.json["at_large"]) == (0, 0)
    until(lambda: rabbit.ready("delay.6s.queue") == 0, 20)
    assert rabbit.ready("delay.unrouted.queue") == 0


def test_it_keeps_to_the_prefix(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Two topologies on one virtual host have nothing to do with each other."""
    apply(rabbit, topology, "version: 1\nprefix: eu-\ndelay: {levels: [100ms]}\n")

    found = verify()

    assert (found.code, list(found.by)) == (0, ["exit eu-delay.exchange", "level 100ms"])
    assert found.json["ways"][1]["key"].startswith("eu-delay.verify.")


def test_nothing_to_prove(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A file without delays and routes is said to be one."""
    ran = rabbit.delayctl("verify", topology.write("version: 1\ndelay: none\nqueues: {a.queue: {}}\n"))

    assert (ran.code, ran.out) == (0, f"Nothing to prove: {topology.path} has neither delays nor routes.\n")


def test_a_broker_that_is_not_there(topology: TopologyFile) -> None:
    """Not proved, with the reason and without a table."""
    ran = delayctl("verify", topology.write(SAFE), "--url", "amqp://127.0.0.1:1/")

    assert (ran.code, ran.out) == (1, "")
    assert "fix:" in ran.err
