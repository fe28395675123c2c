"""`delayctl serve` as programs see it, on real brokers; what people see is looked at in a browser."""

import json
import re
import secrets
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pika
import pytest

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.away import away_at_will, go, return_
from tests.support.commands import delayctl
from tests.support.parked import park
from tests.support.rabbit import Rabbit
from tests.support.served import Served, serving

SOON_S = 60
MANY = 5_000
FILE = """version: 1
delay: {levels: [50ms, 1h], queue: {max_length: 1000}}
exchanges:
  orders.exchange: {}
queues:
  orders.queue: {}
routes:
  - {from: orders.exchange, key: order.created, delay: 50ms, to: orders.queue}
  - {from: orders.exchange, key: order.late, delay: 1h, to: orders.queue}
retry:
  orders.queue: {levels: [50ms], max: 2, park: orders.dlq}
"""


@pytest.fixture
def file(rabbit: Rabbit, topology: TopologyFile) -> str:
    """The shop, applied."""
    path = topology.write(FILE)
    assert rabbit.delayctl("apply", path, "--yes").code == 0
    return path


def counted(served: Served, queue: str) -> int | None:
    """How many messages a queue is said to have; None where that is not known yet."""
    found = served.state()
    counts: dict[str, int | None] = dict(zip(found["counted"], found["counts"], strict=True))
    return counts.get(queue)


@contextmanager
def user(rabbit: Rabbit, *, tags: str, read: str) -> Iterator[str]:
    """A login with a password that would be recognised anywhere."""
    password = secrets.token_hex(12)
    name = f"watcher-{password[:6]}"
    rabbit.api("PUT", f"users/{name}", {"password": password, "tags": tags})
    rabbit.api("PUT", f"permissions/{{vhost}}/{name}", {"configure": "^$", "write": "^$", "read": read})
    try:
        yield f"{name}:{password}"
    finally:
        rabbit.api("DELETE", f"users/{name}")


def options_of(rabbit: Rabbit, login: str) -> tuple[str, ...]:
    """How to reach the broker as this user."""
    place = urlsplit(rabbit.broker.url).netloc.rpartition("@")[2]
    url = urlsplit(rabbit.broker.url)._replace(netloc=f"{login}@{place}").geturl()
    return ("--url", url, "--management-url", rabbit.broker.management_url, "--vhost", rabbit.vhost)


def test_what_it_tells(rabbit: Rabbit, file: str) -> None:
    """Counts, levels, history and map, a change by hand, what if; changes nothing, tells no secret, and ends well."""
    with (
        user(rabbit, tags="administrator", read=".*") as watcher,
        serving(file, *options_of(rabbit, watcher)) as served,
    ):
        rabbit.publish("orders.exchange", "order.late", *"abc")
        until(lambda: counted(served, "delay.1h.queue") == 3, SOON_S)
        answers = {path: served.ask(path) for path in ("/", "/api/state", "/api/map", "/api/history", "/api/session")}
        stranger = served.ask("/api/parked", {"queue": "orders.queue"})
        asked = served.ask("/api/what-if", {"rates": "order.late=1/s", "length": "2h", "bursts": ""})
        refused = served.ask("/api/what-if", {"rates": "many"})
        acting = served.ask("/api/redrive", {"queue": "orders.dlq", "all": True})
        rabbit.api("DELETE", "bindings/{vhost}/e/delay.exchange/q/orders.queue/order.late")
        drift = until(lambda: served.state()["state"]["drift"], SOON_S)
        code = served.stop()
        assert served.process.stderr is not None
        said = served.process.stderr.read()

    state = answers["/api/state"][2]["state"]
    assert [level["level"] for level in state["levels"]] == ["50ms", "1h"]
    assert [parked["queue"] for parked in state["parked"]] == ["delay.unrouted.queue", "orders.dlq"]
    assert answers["/api/map"][1]["content-type"].startswith("image/svg+xml")
    assert "delay.1h.queue" in answers["/api/map"][2]
    assert answers["/api/history"][2]["delay.1h.queue"][-1][1] == 3
    assert (stranger[0], stranger[2]["fix"]) == (422, "choose one of: delay.unrouted.queue, orders.dlq")
    assert (asked[0], asked[2]["published"], asked[2]["fits"]) == (200, 7200, False)
    assert refused[0] == 422
    assert "Messages come at" in refused[2]["error"]
    assert "--" not in refused[2]["error"]
    assert acting[0] == 403
    assert [(item["symbol"], item["what"]) for item in drift] == [
        ("+", "binding delay.exchange → [order.late] orders.queue")
    ]
    assert (code, "Stopped." in said) == (0, True)
    told = [json.dumps(answer[2]) for answer in (*answers.values(), stranger, asked, refused, acting)]
    assert not [text for text in (*told, said) if watcher.partition(":")[2] in text]


def test_whoever_may_only_watch(rabbit: Rabbit, file: str) -> None:
    """The tags are enough: what may not be counted is told as the management API has it."""
    with (
        user(rabbit, tags="monitoring,policymaker", read="^$") as onlooker,
        serving(file, *options_of(rabbit, onlooker)) as served,
    ):
        until(lambda: counted(served, "delay.1h.queue") == 0, SOON_S)
        rabbit.publish("orders.exchange", "order.late", *"abc")
        until(lambda: counted(served, "delay.1h.queue") == 3, SOON_S)
        found = served.state()

    assert found["away"] is None
    assert [level["level"] for level in found["state"]["levels"]] == ["50ms", "1h"]


def test_parked_messages_go_home(rabbit: Rabbit, topology: TopologyFile, file: str, tmp_path: Path) -> None:
    """By id, by kind, and all; only with the token, which is read from a file."""
    place = {"queue": "orders.queue", "parking": "orders.dlq"}
    park(rabbit, topology.path, ["a-1", "a-2", "a-3"], key="order.created", reason="the bank is away", **place)
    park(rabbit, topology.path, ["b-1", "b-2"], key="order.created", reason="no luck", **place)
    token = secrets.token_urlsafe(24)
    (tmp_path / "token").write_text(f"{token}\n")

    with serving(file, "--allow-redrive", "--token-file", str(tmp_path / "token"), *rabbit.options) as served:
        key = {"authorization": f"Bearer {token}"}
        stranger = served.ask("/api/redrive", {"queue": "orders.dlq", "all": True})[0]
        seen = served.ask("/api/parked", {"queue": "orders.dlq"}, **key)[2]
        one = served.ask("/api/redrive", {"queue": "orders.dlq", "ids": ["a-2"]}, **key)[2]
        kind = {"key": "order.created", "reason": "no luck"}
        some = served.ask("/api/redrive", {"queue": "orders.dlq", "kind": kind}, **key)[2]
        first = [message.body for message in rabbit.take("orders.queue")]
        rest = served.ask("/api/redrive", {"queue": "orders.dlq", "all": True}, **key)[2]

    assert (stranger, token in served.address) == (401, False)
    assert [(each["reason"], each["count"]) for each in seen["kinds"]] == [("the bank is away", 3), ("no luck", 2)]
    assert [message["body"] for message in seen["messages"]] == ["a-1", "a-2", "a-3", "b-1", "b-2"]
    assert [answer["moved"] for answer in (one, some, rest)] == [1, 2, 2]
    assert first == ["a-2", "b-1", "b-2"]
    assert [message.body for message in rabbit.take("orders.queue")] == ["a-1", "a-3"]


def test_a_broker_that_goes_and_comes_back(rabbit: Rabbit, file: str) -> None:
    """It is said, what was seen stays, and it goes on by itself."""
    with away_at_will(rabbit) as (options, network), serving(file, *options) as served:
        until(lambda: counted(served, "delay.1h.queue") == 0, SOON_S)
        go(network)
        gone = until(lambda: found if (found := served.state())["away"] else {}, SOON_S)
        rabbit.publish("orders.exchange", "order.late", *"ab")
        return_(network)
        until(lambda: not served.state()["away"] and counted(served, "delay.1h.queue") == 2, SOON_S)

    assert gone["away"]["since"] <= gone["at"]
    assert gone["state"]["levels"][1]["queue"] == "delay.1h.queue"


def test_a_redrive_that_breaks_off(rabbit: Rabbit, file: str) -> None:
    """It is said what came over it, and how many were moved before."""
    properties = pika.BasicProperties(headers={"delay-queue": "orders.queue"}, delivery_mode=2)
    with rabbit.channel() as channel:
        for _ in range(MANY):
            channel.basic_publish("", "orders.dlq", b"x", properties)
    rabbit.await_ready("orders.dlq", MANY)
    with (
        away_at_will(rabbit) as (options, network),
        serving(file, "--allow-redrive", *options) as served,
        ThreadPoolExecutor() as pool,
    ):
        asked = pool.submit(served.ask, "/api/redrive", {"queue": "orders.dlq", "all": True})
        until(lambda: rabbit.ready("orders.queue"), SOON_S)
        go(network)
        code, _, said = asked.result(SOON_S)

    assert code == 422
    assert re.search(rf"; before that: Redriven: [\d,]+ of {MANY:,} messages of orders\.dlq, in ", said["error"])
    assert "not looked at. Run it again to go on." in said["error"]


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """It is said which, and how to choose another; no broker is asked for that."""
    (tmp_path / "topology.yaml").write_text("version: 1\ndelay: {levels: [1m]}\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        ran = delayctl("serve", str(tmp_path / "topology.yaml"), "--port", str(port))

    assert ran.code == 1
    assert ran.err == (
        f"Error: port {port} of 127.0.0.1 can't be had: Address already in use\n"
        "  fix: choose another one with --port; --port 0 takes any that is free\n"
    )
