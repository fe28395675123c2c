"""explain --live tells what a real broker will do, drift and hands at work included."""

import json
from dataclasses import replace
from typing import Any

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.rabbit import Rabbit

FILE = """
version: 1
delay: {levels: [200ms]}
exchanges: {orders.exchange: {type: topic}}
queues: {orders.queue: {}}
routes: [{from: orders.exchange, key: order.created, delay: 200ms, to: orders.queue}]
"""
PUBLISH = ("--exchange", "orders.exchange", "--key", "order.created")


def ends(rabbit: Rabbit, file: str, *options: str) -> tuple[int, list[tuple[str, str | None, int]]]:
    """The exit code, and where explain --live sees the copies end."""
    ran = rabbit.delayctl("explain", file, "--live", "--output", "json", *options)
    answer: Any = json.loads(ran.out)
    assert answer["live"] is True
    return ran.code, [(end["fate"], end["queue"], end["after_ms"]) for end in answer["ends"]]


def test_live_agrees_with_the_file_and_with_the_broker(rabbit: Rabbit, topology: TopologyFile) -> None:
    """After an apply both tell the same way, and the message takes it."""
    file = topology.write(FILE)
    assert rabbit.delayctl("apply", file, "--yes").code == 0

    by_file = rabbit.delayctl("explain", file, *PUBLISH)
    live = rabbit.delayctl("explain", file, *PUBLISH, "--live")
    rabbit.publish("orders.exchange", "order.created", "one")
    rabbit.await_ready("orders.queue", 1)

    assert (by_file.code, live.code) == (0, 0)
    assert by_file.out.splitlines()[1:] == live.out.splitlines()[1:]
    assert live.out.startswith(f"virtual host {rabbit.vhost} on RabbitMQ ")
    assert "Delivered to orders.queue after 200ms." in live.out
    assert [message.key for message in rabbit.take("orders.queue")] == ["order.created"]


def test_live_sees_what_the_file_does_not(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A policy that shortens the wait, a queue bound by hand, and a way out that is gone."""
    file = topology.write(FILE)
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    rabbit.put_policy("theirs", "^delay.200ms", message_ttl=100)
    with rabbit.channel() as channel:
        channel.queue_declare("hand.made", durable=True)
        channel.queue_bind("hand.made", "orders.exchange", "order.#")
        channel.queue_unbind("orders.queue", "delay.exchange", "order.created")

    code, found = ends(rabbit, file, *PUBLISH)
    rabbit.publish("orders.exchange", "order.created", "one")
    rabbit.await_ready("delay.unrouted.queue", 1)

    assert (code, found) == (0, [("delivered", "hand.made", 0), ("parked", "delay.unrouted.queue", 100)])
    assert rabbit.ready("hand.made") == 1


def test_an_alternate_by_policy_is_seen_and_the_argument_wins(rabbit: Rabbit, topology: TopologyFile) -> None:
    """On exchanges of one's own and on those that every broker has."""
    file = topology.write(FILE)
    with rabbit.channel() as channel:
        for name in ("net", "own.net"):
            channel.exchange_declare(name, "fanout", durable=True)
            channel.queue_declare(f"{name}.queue", durable=True)
            channel.queue_bind(f"{name}.queue", name)
        channel.exchange_declare("plain", "topic", durable=True)
        channel.exchange_declare("careful", "topic", durable=True, arguments={"alternate-exchange": "own.net"})
    policy = {"pattern": ".*", "apply-to": "exchanges", "definition": {"alternate-exchange": "net"}}
    rabbit.api("PUT", "policies/{vhost}/nets", policy)

    found = [ends(rabbit, file, "--exchange", name, "--key", "k") for name in ("plain", "careful", "amq.topic")]
    for name in ("plain", "careful", "amq.topic"):
        rabbit.publish(name, "k", name)
    taken = [[message.body for message in rabbit.take(queue)] for queue in ("net.queue", "own.net.queue")]

    assert found == [
        (0, [("delivered", "net.queue", 0)]),
        (0, [("delivered", "own.net.queue", 0)]),
        (0, [("delivered", "net.queue", 0)]),
    ]
    assert taken == [["plain", "amq.topic"], ["careful"]]


def test_internal_exchanges_on_the_way_are_seen(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Newer brokers leave them out of what they list; publishing to one is refused."""
    file = topology.write(FILE)
    with rabbit.channel() as channel:
        channel.exchange_declare("outside", "fanout", durable=True)
        channel.exchange_declare("inside", "topic", durable=True, internal=True)
        channel.queue_declare("end", durable=True)
        channel.exchange_bind("inside", "outside")
        channel.queue_bind("end", "inside", "a.#")

    through = ends(rabbit, file, "--exchange", "outside", "--key", "a.b")
    into = ends(rabbit, file, "--exchange", "inside", "--key", "a.b")

    assert through == (0, [("delivered", "end", 0)])
    assert into == (1, [("refused", None, 0)])


def test_exclusive_queues_and_headers_without_value_are_seen(rabbit: Rabbit, topology: TopologyFile) -> None:
    """The management API lists neither as it is."""
    file = topology.write(FILE)
    with rabbit.channel() as channel:
        channel.exchange_declare("h", "headers", durable=True)
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "h", arguments={"kind": None})

        assert ends(rabbit, file, "--exchange", "h", "--header", "kind=store") == (0, [("delivered", queue, 0)])
        assert ends(rabbit, file, "--exchange", "h")[0] == 1


def test_what_is_stuck_is_kept(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Dead-lettered at least once: no route, no exchange and nothing but a circle all keep the message where it is."""
    file = topology.write(FILE)
    safe = {"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
    exits = {"no.route": "amq.topic", "no.exchange": "gone", "circle": ""}
    with rabbit.channel() as channel:
        for name, exit in exits.items():
            arguments = {**safe, "x-message-ttl": 20, "x-dead-letter-exchange": exit}
            channel.queue_declare(name, durable=True, arguments=arguments)

    found = [ends(rabbit, file, "--exchange", "", "--key", name) for name in exits]
    for name in exits:
        rabbit.publish("", name, "one")

    assert found == [(1, [("stuck", name, 20)]) for name in exits]
    until(lambda: all(rabbit.queue(name).get("messages_dlx") == 1 for name in exits), 30)


def test_an_exchange_that_is_not_on_the_broker(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Before the apply there is nothing to explain, and that is said."""
    ran = rabbit.delayctl("explain", topology.write(FILE), *PUBLISH, "--live")

    assert (ran.code, ran.out) == (1, "")
    assert "Error: there is no exchange 'orders.exchange'" in ran.err
    assert "fix: apply the file first, or leave out --live" in ran.err


def test_what_is_handed_over_by_the_file_is_seen_on_the_broker(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Lost where nobody is behind the exchange, delivered as soon as somebody is."""
    file = topology.write(
        "version: 1\ndelay: {levels: [1s]}\nroutes: [{key: store.updated, delay: 1s, to: {exchange: site.exchange}}]\n"
    )
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    publish = ("--level", "1s", "--key", "store.updated")

    by_file, nobody = rabbit.delayctl("explain", file, *publish), ends(rabbit, file, *publish)
    with rabbit.channel() as channel:
        channel.queue_declare("site", durable=True)
        channel.queue_bind("site", "site.exchange", "#")
    somebody = ends(rabbit, file, *publish)

    assert (by_file.code, "Handed over to exchange site.exchange after 1s" in by_file.out) == (0, True)
    assert nobody == (1, [("lost", "delay.1s.queue", 1000)])
    assert somebody == (0, [("delivered", "site", 1000)])


def test_a_virtual_host_that_is_not_there(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Said as by all other commands."""
    ran = replace(rabbit, vhost="no-such-vhost").delayctl("explain", topology.write(FILE), *PUBLISH, "--live")

    assert (ran.code, ran.out) == (1, "")
    assert "there is no virtual host 'no-such-vhost'" in ran.err
    assert "fix: create it" in ran.err
