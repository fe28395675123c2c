"""What status says of a real broker: idle, at work, full, drifted, parked, stuck, and not there at all."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pika.exceptions
import pytest

from testbed.cluster import private_nodes
from testbed.needs import needed
from testbed.wait import until
from tests.conftest import TopologyFile, fresh_vhost
from tests.support.commands import delayctl
from tests.support.rabbit import Rabbit

# Figures are renewed every second here, by default every five, and what follows from them takes some renewals.
SOON = 60

FILE = """\
version: 1
delay:
  levels:
    1h: {}
    2h: {type: quorum}
routes:
  - {key: reminder, delay: 1h, to: reminders.queue}
"""


class Watched:
    """A file on a broker, asked again and again."""

    def __init__(self, rabbit: Rabbit, file: str) -> None:
        self.rabbit = rabbit
        self.file = file

    def answer(self) -> tuple[int, dict[str, Any]]:
        """The exit code and the answer as programs read it."""
        ran = self.rabbit.delayctl("status", self.file, "--output", "json")
        return ran.code, json.loads(ran.out)

    def until(self, condition: Callable[[dict[str, Any]], object], what: str) -> tuple[int, dict[str, Any]]:
        """Ask until the answer is as expected."""

        def found() -> tuple[int, dict[str, Any]] | None:
            answer = self.answer()
            return answer if condition(answer[1]) else None

        answer = until(found, SOON, what=what, every=0.5)
        assert answer is not None
        return answer

    def text(self) -> str:
        """The answer as people read it."""
        return self.rabbit.delayctl("status", self.file).out


@pytest.fixture
def applied(rabbit: Rabbit, topology: TopologyFile) -> Callable[[str], Watched]:
    """Applies a file, and watches it."""

    def apply(text: str) -> Watched:
        path = topology.write(text)
        assert rabbit.delayctl("apply", path, "--yes").code == 0
        return Watched(rabbit, path)

    return apply


@contextmanager
def published(rabbit: Rabbit, *entrances: str, count: int) -> Iterator[None]:
    """So many messages sent to each entrance by a publisher that stays.

    Brokers may forget what a channel published that is closed before they have counted.
    """
    with rabbit.channel() as channel:
        for entrance in entrances:
            for number in range(count):
                with suppress(pika.exceptions.NackError):
                    channel.basic_publish(entrance, "reminder", str(number).encode())
        yield


def levels(answer: dict[str, Any], field: str) -> list[Any]:
    """One figure of every level."""
    return [level[field] for level in answer["levels"]]


def said(answer: dict[str, Any], severity: str) -> list[str]:
    """The reasons of one kind."""
    return [reason["what"] for reason in answer["reasons"] if reason["severity"] == severity]


Applied = Callable[[str], Watched]


def test_idle(applied: Applied) -> None:
    """Nothing waits, nothing is wrong; a queue that the broker has not spoken of yet is not called empty."""
    watched = applied(FILE)

    at_once = watched.answer()
    code, answer = watched.until(
        lambda a: levels(a, "waiting") == [0, 0] and [target["consumers"] for target in a["targets"]] == [0],
        "figures of both levels and of the queue behind them",
    )

    assert at_once[0] == code == 0
    assert set(levels(at_once[1], "waiting")) <= {None, 0}
    assert (answer["healthy"], answer["drift"], said(answer, "unhealthy")) == (True, False, [])
    assert answer["rabbitmq_version"] == watched.rabbit.api("GET", "overview")["rabbitmq_version"]
    assert levels(answer, "oldest") == [None, None]
    assert said(answer, "note") == ["nobody consumes reminders.queue"]
    assert watched.text().startswith(f"healthy: {watched.file} → virtual host {watched.rabbit.vhost}, RabbitMQ ")


def test_messages_wait(applied: Applied) -> None:
    """Classic and quorum alike: how many, how fast they came, and how long the first has waited."""
    watched = applied(FILE)
    with published(watched.rabbit, "delay.1h.exchange", "delay.2h.exchange", count=24):
        _, answer = watched.until(
            lambda a: (
                levels(a, "waiting") == [24, 24]
                and levels(a, "rate_in") == [0.4, 0.4]
                and all(o["at_most_ms"] < 3_600_000 for o in levels(a, "oldest"))
            ),
            "both levels at 24, with rates and an age",
        )

    assert answer["healthy"]
    assert levels(answer, "rate_out") == [0.0, 0.0]
    assert all(age["source"] == "samples" and age["at_most_ms"] <= 75_000 for age in levels(answer, "oldest"))
    assert levels(answer, "fullness") == [0.0, 0.0]
    assert [early["at_least"] for early in levels(answer, "early")] == [0, 0]


def test_a_broker_with_settings_of_its_own(topology: TopologyFile) -> None:
    """Its figures come every five seconds, as they do by default, and tell the same in the end."""
    with (
        needed(private_nodes(1, settings=["collect_statistics_interval = 5000"])) as [node],
        fresh_vhost(node.broker) as rabbit,
    ):
        assert "5000" in node.rabbitmqctl("eval", "application:get_env(rabbit, collect_statistics_interval).")
        assert rabbit.delayctl("apply", topology.write(FILE), "--yes").code == 0
        watched = Watched(rabbit, str(topology.path))
        with published(rabbit, "delay.1h.exchange", "delay.2h.exchange", count=24):
            code, answer = watched.until(
                lambda a: levels(a, "waiting") == [24, 24] and levels(a, "rate_in") == [0.4, 0.4], "24 in each level"
            )

    assert (code, answer["healthy"]) == (0, True)
    assert levels(answer, "rate_out") == [0.0, 0.0]


def test_what_came_in_and_is_not_there_has_left(applied: Applied) -> None:
    """A level of a second gives what it takes; it is too short to tell whether anything left early."""
    watched = applied("version: 1\ndelay: {levels: [1s]}\nroutes:\n  - {key: reminder, delay: 1s, to: out.queue}\n")

    with published(watched.rabbit, "delay.1s.exchange", count=30):
        code, answer = watched.until(lambda a: levels(a, "rate_out") == [0.5], "30 in a minute")

    assert code == 0
    assert (levels(answer, "rate_in"), levels(answer, "waiting")) == ([0.5], [0])
    assert levels(answer, "early")[0]["count"] is levels(answer, "early")[0]["at_least"] is None


def test_a_full_level_delivers_early(applied: Applied) -> None:
    """Of 30 messages into ten places, 20 are out an hour early: said so, and counted, for either type of queue."""
    watched = applied(
        "version: 1\ndelay:\n  queue: {max_length: 10}\n  levels:\n    1h: {}\n    2h: {type: quorum}\n"
        "routes:\n  - {key: reminder, delay: 1h, to: out.queue}\n  - {key: reminder, delay: 2h, to: out.queue}\n"
    )
    with published(watched.rabbit, "delay.1h.exchange", "delay.2h.exchange", count=30):
        code, answer = watched.until(
            lambda a: levels(a, "waiting") == [10, 10] and all(e["at_least"] == 20 for e in levels(a, "early")),
            "20 early ones",
        )

    assert code == 1
    assert levels(answer, "fullness") == [1.0, 1.0]
    assert [(e["count"], e["at_least"]) for e in levels(answer, "early")] == [(None, 20), (None, 20)]
    assert watched.rabbit.ready("out.queue") == 40
    full = said(answer, "unhealthy")
    assert full[0].startswith("delay.1h.queue is full: what comes in pushes the oldest out early")
    assert full[1].startswith("delay.2h.queue is full: what comes in pushes the oldest out early")
    assert "\n1h          10  100%  " in watched.text()


def test_a_level_that_refuses_is_not_early(applied: Applied) -> None:
    """The broker counts what it refused as published; status does not mistake it for gone."""
    watched = applied("version: 1\ndelay: {levels: [1h], queue: {max_length: 10, overflow: reject-publish}}\n")
    with published(watched.rabbit, "delay.1h.exchange", count=30):
        code, answer = watched.until(
            lambda a: levels(a, "rate_in") == [0.5] and levels(a, "waiting") == [10], "a full level"
        )

    assert code == 1
    assert said(answer, "unhealthy") == ["delay.1h.queue is full: publishers are refused"]
    assert levels(answer, "early")[0]["count"] == 0


@pytest.mark.parametrize("operator", [False, True])
def test_a_foreign_policy_is_drift(applied: Applied, operator: bool) -> None:
    """The TTL in force is shown, with who made it so; the arguments of the queue look right all the while."""
    watched = applied(FILE)
    watched.rabbit.put_policy("shorter", "^delay\\.1h", operator=operator, message_ttl=1000)

    code, answer = watched.answer()

    assert (code, answer["drift"], answer["differences"]) == (1, True, 1)
    assert [level["ttl_ms"] for level in levels(answer, "effective")] == [1000, 7_200_000]
    assert [level["ttl_ms"] for level in levels(answer, "wanted")] == [3_600_000, 7_200_000]
    who = "operator policy shorter" if operator else "policy shorter"
    assert f"delay.1h.queue waits 1s instead of 1h ({who})" in said(answer, "unhealthy")


def test_a_level_that_somebody_deleted(applied: Applied) -> None:
    """The missing queue is named; the rest is shown as ever."""
    watched = applied(FILE)
    with watched.rabbit.channel() as channel:
        channel.queue_delete("delay.1h.queue")

    code, answer = watched.answer()

    assert code == 1
    assert levels(answer, "exists") == [False, True]
    assert levels(answer, "waiting")[0] is None
    assert any(what.startswith("delay.1h.queue is not there") for what in said(answer, "unhealthy"))


def test_parked_messages(applied: Applied) -> None:
    """What had no way out makes it unhealthy; what failed every retry is a warning."""
    watched = applied(
        "version: 1\ndelay: {levels: [1s]}\nqueues: {work.queue: {}}\n"
        "retry:\n  work.queue: {levels: [1s], max: 1, park: work.dlq}\n"
    )
    watched.rabbit.publish("delay.1s.exchange", "nobody.wants.this", "a", "b", "c")
    watched.rabbit.publish("", "work.dlq", "d")

    code, answer = watched.until(lambda a: [p["messages"] for p in a["parked"]] == [3, 1], "what is parked")

    assert code == 1
    assert said(answer, "unhealthy") == ["3 messages had no way out and are parked in delay.unrouted.queue"]
    assert said(answer, "warning") == ["1 message failed every retry and is parked in work.dlq"]
    assert watched.rabbit.ready("delay.unrouted.queue") == 3


def test_nothing_was_applied(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Said in one line, and nothing is made by asking."""
    ran = rabbit.delayctl("status", topology.write(FILE))

    assert ran.code == 1
    assert "Unhealthy: nothing of the topology is on the broker\n  fix: delayctl apply " in ran.out
    assert "1h     missing" in ran.out
    assert rabbit.definitions()["queues"] == []


def test_a_topology_without_levels(applied: Applied) -> None:
    """A queue with a TTL and a way out is watched, be it described with `delay: none`."""
    watched = applied(
        "version: 1\ndelay: none\nexchanges: {out.exchange: {type: fanout}}\nqueues:\n  hand.made.queue:\n    arguments:"
        " {x-message-ttl: 3600000, x-dead-letter-exchange: out.exchange}\n  plain.queue: {}\n"
        "routes:\n  - {from: out.exchange, to: plain.queue}\n"
    )
    watched.rabbit.publish("", "hand.made.queue", "a")

    code, answer = watched.until(lambda a: levels(a, "waiting") == [1], "the one message")

    assert (code, levels(answer, "level")) == (0, ["hand.made.queue"])
    assert answer["parked"] == []


def test_expired_without_a_taker(applied: Applied) -> None:
    """At-least-once keeps what finds no route; it is counted as waiting, and warned of."""
    watched = applied(
        "version: 1\ndelay: none\nexchanges: {nowhere.exchange: {type: fanout}}\nqueues:\n  safe.queue:\n    type: quorum\n"
        "    arguments: {x-message-ttl: 100, x-dead-letter-exchange: nowhere.exchange,"
        " x-dead-letter-strategy: at-least-once, x-overflow: reject-publish}\n"
        "lint: {ignore: [{rule: D101, reason: what becomes of it is the point}]}\n"
    )
    watched.rabbit.publish("", "safe.queue", "a", "b", "c")

    code, answer = watched.until(
        lambda a: (levels(a, "waiting"), levels(a, "dead_lettering")) == ([3], [3]), "three without a taker"
    )

    assert code == 0
    assert said(answer, "warning") == ["3 messages of safe.queue expired and found no taker yet"]


def test_a_client_on_a_delay_queue(applied: Applied) -> None:
    """Whoever holds a message of a delay queue keeps it from expiring."""
    watched = applied(FILE)
    watched.rabbit.publish("delay.1h.exchange", "reminder", "a")
    with watched.rabbit.channel() as channel:
        until(lambda: channel.basic_get("delay.1h.queue", auto_ack=False)[0], 10)
        code, answer = watched.until(lambda a: said(a, "unhealthy"), "the message that is held")

    assert code == 1
    assert said(answer, "unhealthy") == ["1 message of delay.1h.queue is held by a client, and can't expire"]


def test_a_stuck_level(applied: Applied) -> None:
    """A TTL that was lowered leaves the old first message in the way of the new ones."""
    watched = applied(FILE)
    watched.rabbit.publish("delay.1h.exchange", "reminder", "old")
    until(lambda: watched.rabbit.queue("delay.1h.queue").get("messages") == 1, 15)
    watched.rabbit.put_policy("shorter", "^delay\\.1h", message_ttl=1000)

    code, answer = watched.until(lambda a: any("is stuck" in what for what in said(a, "unhealthy")), "a stuck level")

    assert code == 1
    stuck = "delay.1h.queue is stuck: nothing has left it for 31s, and its TTL is 1s"
    assert stuck in said(answer, "unhealthy")
    assert levels(answer, "oldest")[0]["at_least_ms"] == 31_000


@pytest.mark.parametrize("tags", ["monitoring,policymaker", "policymaker"])
def test_what_a_user_needs(applied: Applied, tags: str) -> None:
    """The tags monitoring and policymaker are enough; without monitoring the alarms are not known, and that is said."""
    watched = applied(FILE)
    rabbit, name = watched.rabbit, f"watcher-{watched.rabbit.vhost}"
    rabbit.api("PUT", f"users/{name}", {"password": "secret", "tags": tags})
    rabbit.api("PUT", f"permissions/{{vhost}}/{name}", {"configure": "^$", "write": "^$", "read": "^$"})
    try:
        url = rabbit.broker.url.replace("guest:guest", f"{name}:secret")
        management = ("--management-url", rabbit.broker.management_url, "--vhost", rabbit.vhost)
        ran = delayctl("status", watched.file, "--output", "json", "--url", url, *management)
    finally:
        rabbit.api("DELETE", f"users/{name}")

    unknown = "alarms are not known: the user may not see the nodes" in said(json.loads(ran.out), "note")
    assert (ran.code, unknown) == (0, "monitoring" not in tags)


def test_no_management_api(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Without its figures there is no status: an error, not a verdict."""
    ran = delayctl("status", topology.write(FILE), "--url", rabbit.url, "--management-url", "http://127.0.0.1:9")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: ")


def test_a_wait_that_others_made_by_policy_is_healthy(rabbit: Rabbit, topology: TopologyFile) -> None:
    """As it is imported: plan has nothing to do, and status has nothing against it."""
    with rabbit.channel() as channel:
        channel.exchange_declare("out", "fanout", durable=True)
        channel.queue_declare("done", durable=True)
        channel.queue_bind("done", "out", "")
        channel.queue_declare("w1", durable=True)
    rabbit.put_policy("waits", "^w1$", message_ttl=7000, dead_letter_exchange="out")
    rabbit.await_effective("w1", {"message-ttl": 7000, "dead-letter-exchange": "out"})
    file = str(topology.path)
    assert rabbit.delayctl("import", "--out", file, "--force").code == 0
    watched = Watched(rabbit, file)

    code, found = watched.until(lambda answer: answer["levels"][0]["waiting"] == 0, "figures")

    assert (code, found["drift"]) == (0, False)
    assert [(level["queue"], level["effective"]["ttl_ms"]) for level in found["levels"]] == [("w1", 7000)]


def test_a_wait_that_loses_everything_is_not_healthy(applied: Callable[[str], Watched]) -> None:
    """Its dead-letter exchange is nowhere; an internal one, which newer brokers don't list, is somewhere."""
    watched = applied(
        """version: 1
delay: none
queues:
  w1: {arguments: {x-message-ttl: 1000, x-dead-letter-exchange: gone}}
  w2: {arguments: {x-message-ttl: 1000, x-dead-letter-exchange: hidden}}
routes: [{from: in, key: a, to: [w1, w2]}]
"""
    )
    with watched.rabbit.channel() as channel:
        channel.exchange_declare("hidden", "fanout", durable=True, internal=True)

    code, found = watched.answer()

    reasons = [reason for reason in found["reasons"] if reason["severity"] == "unhealthy"]
    assert (code, found["drift"]) == (1, False)
    assert [reason["what"] for reason in reasons] == [
        "w1 hands on to exchange gone, which is not on the broker: what has waited is lost"
    ]
    assert reasons[0]["fix"].startswith("create it: with gone under exchanges: in the file, delayctl apply ")
