"""Exports on a live broker: what is imported is what the file says, so that a plan afterwards is quiet."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pika
import pytest
import yaml

from tests.conftest import TopologyFile
from tests.support.commands import delayctl
from tests.support.rabbit import Rabbit

DESIGN = """version: 1
delay:
  levels: [1m, 5m, 15m]
  queue: {type: classic, max_length: 1000000, overflow: drop-head}
exchanges:
  orders.exchange: {type: topic}
queues:
  orders.timeout.queue: {}
routes:
  - {from: orders.exchange, key: order.created, delay: 15m, to: orders.timeout.queue}
  - {key: store.updated, delay: 5m, to: {exchange: site.exchange}}
retry:
  orders.timeout.queue: {levels: rocketmq, max: 16, park: orders.timeout.dlq}
"""
HEADERS = """version: 1
delay: {levels: [1m]}
exchanges: {in.exchange: {type: headers}, all.exchange: {type: fanout, alternate: in.exchange}, deep.exchange: {internal: true}}
queues: {fast.queue: {arguments: {x-max-priority: 5}}}
routes:
  - {from: in.exchange, headers: {x-match: any, kind: a, urgent: true, size: 3}, key: k, delay: 1m, to: fast.queue}
  - {from: all.exchange, key: k2, delay: 1m, to: {exchange: deep.exchange}}
  - {from: deep.exchange, key: "#", to: 'q "é" ${x}'}
"""
FILES = {
    "design": DESIGN,
    "policy": DESIGN.replace("delay:\n", "delay:\n  settings: policy\n"),
    "headers": HEADERS,
    "prefix": DESIGN.replace("version: 1", "version: 1\nprefix: eu.orders-"),
    "safe": DESIGN.replace("type: classic, max_length: 1000000, overflow: drop-head", "profile: safe"),
}


@pytest.fixture(params=sorted(FILES))
def file(request: pytest.FixtureRequest, topology: TopologyFile) -> str:
    """One topology after the other."""
    return topology.write(FILES[request.param])


def definitions(rabbit: Rabbit, file: str) -> Any:
    """What is exported for this virtual host."""
    ran = delayctl("export", file, "--format", "definitions", "--vhost", rabbit.vhost)
    assert (ran.code, ran.err) == (0, "")
    return json.loads(ran.out)


def test_imported_into_a_virtual_host(rabbit: Rabbit, file: str) -> None:
    """Plan says no changes; what apply then writes is the record alone."""
    rabbit.api("POST", "definitions/{vhost}", definitions(rabbit, file))

    planned = rabbit.delayctl("plan", file, "--detailed-exitcode")
    imported = rabbit.definitions()
    applied = rabbit.delayctl("apply", file, "--yes")

    assert (planned.code, planned.err) == (0, "")
    assert planned.out.endswith(f"No changes. The broker matches {file}.\n")
    assert applied.code == 0
    assert rabbit.definitions() == imported
    assert rabbit.delayctl("destroy", file, "--yes").code == 0
    assert rabbit.definitions()["queues"] == []


def test_imported_into_a_whole_broker(rabbit: Rabbit, file: str) -> None:
    """The record comes along: plan has nothing to say at all, and destroy finds everything."""
    rabbit.api("POST", "definitions", definitions(rabbit, file))

    planned = rabbit.delayctl("plan", file, "--detailed-exitcode")

    assert (planned.code, planned.out) == (0, f"No changes. The broker matches {file}.\n")
    assert rabbit.delayctl("destroy", file, "--yes").code == 0
    assert rabbit.definitions() == {"exchanges": [], "queues": [], "bindings": [], "policies": []}


def test_apply_and_import_make_the_same(rabbit: Rabbit, file: str) -> None:
    """Object by object, as the broker shows them."""
    rabbit.api("POST", "definitions/{vhost}", definitions(rabbit, file))
    imported = rabbit.definitions()
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    assert rabbit.delayctl("destroy", file, "--yes").code == 0

    assert rabbit.delayctl("apply", file, "--yes").code == 0

    assert rabbit.definitions() == imported


@pytest.fixture
def compose_user(rabbit: Rabbit) -> Iterator[str]:
    """The user of the compose file by another name, since the broker is shared; removed at the end."""
    name = f"compose-{rabbit.vhost}"
    yield name
    rabbit.api("DELETE", f"users/{name}")


def test_the_definitions_inside_of_compose(rabbit: Rabbit, file: str, compose_user: str) -> None:
    """As compose fills them in: the user gets in, and plan is quiet."""
    ran = delayctl("export", file, "--format", "compose", "--vhost", rabbit.vhost)
    content = yaml.safe_load(ran.out)["configs"]["delayctl-definitions"]["content"]
    password = secrets.token_hex(12)
    filled_in = content.replace("${RABBITMQ_PASSWORD:?is not set}", password).replace("$$", "$")
    loaded = json.loads(filled_in.replace('"name": "delayctl"', f'"name": "{compose_user}"'))
    loaded["permissions"][0]["user"] = compose_user

    rabbit.api("POST", "definitions", loaded)

    assert rabbit.delayctl("plan", file, "--detailed-exitcode").out == f"No changes. The broker matches {file}.\n"
    address = rabbit.broker.url.rpartition("@")[2].rstrip("/")
    connection = pika.BlockingConnection(
        pika.URLParameters(f"amqp://{compose_user}:{password}@{address}/{rabbit.vhost}")
    )
    connection.close()
    assert rabbit.api("GET", f"users/{compose_user}")["tags"] in (["administrator"], "administrator")


def test_bindings_to_what_exists(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Existing objects are not in the definitions, their bindings are."""
    with rabbit.channel() as channel:
        channel.queue_declare("old.queue", durable=True, arguments={"x-max-length": 3})
        channel.exchange_declare("old.exchange", "direct", durable=True)
    file = topology.write(
        """version: 1
delay: {levels: [1m]}
exchanges: {old.exchange: {existing: true}, amq.topic: {existing: true}}
queues: {old.queue: {existing: true}}
routes:
  - {from: old.exchange, key: a, delay: 1m, to: old.queue}
  - {from: amq.topic, key: b, delay: 1m, to: old.queue}
"""
    )
    ran = delayctl("export", file, "--format", "definitions", "--vhost", rabbit.vhost)

    rabbit.api("POST", "definitions/{vhost}", json.loads(ran.out))

    assert ran.err == "Not exported, since the file marks them as existing: amq.topic, old.exchange, old.queue\n"
    assert rabbit.queue("old.queue")["arguments"]["x-max-length"] == 3
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0
