"""A file without delays of delayctl's own: a hand-made topology is planned, applied and destroyed like any other."""

import json
from typing import Any

import pika
import pytest

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.rabbit import Rabbit

HAND_MADE = """\
version: 1
delay: none
exchanges:
  audit.exchange: {type: headers}
  delay.exchange: {type: direct}
  events.exchange: {type: fanout, durable: false}
  orders.exchange: {type: topic, alternate: orders.unrouted.exchange}
  orders.unrouted.exchange: {type: fanout, internal: true}
  shared.exchange: {type: direct, auto_delete: true, arguments: {x-owner: shop}}
queues:
  delay.5m.queue:
    type: classic
    arguments: {x-message-ttl: 300, x-dead-letter-exchange: delay.exchange, x-max-length: 1000}
  events.queue: {durable: false, auto_delete: true}
  shared.queue: {auto_delete: true}
routes:
  - {from: orders.exchange, key: order.created, to: [delay.5m.queue, {exchange: audit.exchange}]}
  - {from: delay.exchange, key: order.created, to: orders.queue}
  - {from: orders.unrouted.exchange, to: orders.unrouted.queue}
  - {from: events.exchange, to: events.queue}
  - {from: shared.exchange, key: "", to: shared.queue}
  - {from: audit.exchange, headers: {kind: order, vip: true}, to: vip.queue}
  - {from: audit.exchange, headers: {x-match: any, kind: offer, weight: 5}, to: any.queue}
  - {from: audit.exchange, headers: {}, to: audit.queue}
"""


def objects(rabbit: Rabbit) -> set[str]:
    """The names of all exchanges and queues, those of RabbitMQ itself left out."""
    exchanges = {exchange["name"] for exchange in rabbit.api("GET", "exchanges/{vhost}")}
    queues = {queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")}
    return {name for name in exchanges | queues if name and not name.startswith("amq.")}


def publish(rabbit: Rabbit, exchange: str, key: str, body: str, headers: dict[str, Any]) -> None:
    """Publish with headers; raises where it is returned."""
    with rabbit.channel() as channel:
        properties = pika.BasicProperties(headers=headers, delivery_mode=2)
        channel.basic_publish(exchange, key, body.encode(), properties, mandatory=True)


def bodies(rabbit: Rabbit, queue: str) -> list[str]:
    """What a queue holds now."""
    return [message.body for message in rabbit.take(queue)]


def test_nothing_is_added_to_what_the_file_lists(rabbit: Rabbit, topology: TopologyFile) -> None:
    """No exit, no entrance, no net; every object is as it was written, and a second apply has nothing to do."""
    file = topology.write(HAND_MADE)

    ran = rabbit.delayctl("apply", file, "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert objects(rabbit) == {
        *("audit.exchange", "delay.exchange", "events.exchange", "orders.exchange", "orders.unrouted.exchange"),
        *("shared.exchange", "delay.5m.queue", "events.queue", "shared.queue", "orders.queue"),
        *("orders.unrouted.queue", "vip.queue", "any.queue", "audit.queue"),
    }
    shared, unrouted = rabbit.exchange("shared.exchange"), rabbit.exchange("orders.unrouted.exchange")
    assert (shared["auto_delete"], shared["durable"], shared["arguments"]) == (True, True, {"x-owner": "shop"})
    assert (unrouted["internal"], rabbit.exchange("events.exchange")["durable"]) == (True, False)
    events = rabbit.queue("events.queue")
    assert (events["durable"], events["auto_delete"]) == (False, True)
    again = rabbit.delayctl("apply", file, "--yes")
    assert (again.code, again.out) == (0, f"No changes. The broker matches {file}.\n")
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0


def test_messages_go_where_the_routes_say(rabbit: Rabbit) -> None:
    """Through the hand-made delay, by headers, and into the alternate exchange."""
    assert rabbit.apply_text(HAND_MADE).code == 0

    publish(rabbit, "orders.exchange", "order.created", "vip", {"kind": "order", "vip": True})
    publish(rabbit, "orders.exchange", "order.created", "heavy", {"kind": "order", "weight": 5})
    publish(rabbit, "orders.exchange", "order.lost", "lost", {})

    rabbit.await_ready("orders.queue", 2)
    assert bodies(rabbit, "orders.queue") == ["vip", "heavy"]
    assert bodies(rabbit, "vip.queue") == ["vip"]
    assert bodies(rabbit, "any.queue") == ["heavy"]
    assert bodies(rabbit, "audit.queue") == ["vip", "heavy"]
    assert bodies(rabbit, "orders.unrouted.queue") == ["lost"]


def test_destroy_takes_all_of_it(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Also what newer brokers leave out of their definitions, and what goes by itself in between."""
    file = topology.write(HAND_MADE)
    rabbit.delayctl("apply", file, "--yes")

    ran = rabbit.delayctl("destroy", file, "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert objects(rabbit) == set()
    assert rabbit.delayctl("apply", file, "--yes").code == 0


def test_what_is_taken_out_of_the_file_goes(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Internal exchanges and headers routes too."""
    rabbit.delayctl("apply", topology.write(HAND_MADE), "--yes")
    without = HAND_MADE.replace("  orders.unrouted.exchange: {type: fanout, internal: true}\n", "")
    without = without.replace(", alternate: orders.unrouted.exchange", "")
    without = without.replace("  - {from: orders.unrouted.exchange, to: orders.unrouted.queue}\n", "")
    without = without.replace("{kind: order, vip: true}", "{kind: order, vip: false}")

    file = topology.write(without)
    ran = rabbit.delayctl("apply", file, "--yes", "--accept-loss", "orders.exchange")

    assert (ran.code, ran.err) == (0, "")
    assert not objects(rabbit) & {"orders.unrouted.exchange", "orders.unrouted.queue"}
    found = rabbit.api("GET", "bindings/{vhost}/e/audit.exchange/q/vip.queue")
    assert [binding["arguments"] for binding in found] == [{"kind": "order", "vip": False}]
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0


def test_another_lifetime_is_a_replacement(rabbit: Rabbit, topology: TopologyFile) -> None:
    """The broker can't change it in place; a queue that holds messages is not replaced."""
    file = topology.write(HAND_MADE)
    rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("events.exchange", "", "event")
    durable = topology.write(HAND_MADE.replace("{durable: false, auto_delete: true}", "{auto_delete: true}"))

    plan = rabbit.delayctl("plan", durable, "--output", "json")
    refused = json.loads(plan.out)["refusals"]
    rabbit.take("events.queue")  # The consumer of a basic.get does not count, so the queue stays.
    ran = rabbit.delayctl("apply", durable, "--yes")

    assert [(item["subject"], "would be lost" in item["reason"]) for item in refused] == [("queue events.queue", True)]
    assert (ran.code, rabbit.queue("events.queue")["durable"]) == (0, True)
    assert rabbit.delayctl("plan", durable, "--detailed-exitcode").code == 0


def test_what_went_by_itself_is_made_again(rabbit: Rabbit, topology: TopologyFile) -> None:
    """An auto-delete queue goes with its last consumer, an auto-delete exchange with its last binding."""
    file = topology.write(HAND_MADE)
    rabbit.delayctl("apply", file, "--yes")
    with rabbit.channel() as channel:
        channel.basic_cancel(channel.basic_consume("shared.queue", lambda *_: None))
    until(lambda: not objects(rabbit) & {"shared.queue", "shared.exchange"}, 15)

    ran = rabbit.delayctl("apply", file, "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert objects(rabbit) >= {"shared.queue", "shared.exchange"}
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0


def test_levels_can_be_given_up(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Going to `delay: none` removes the exit, the net and the levels; going back makes them again."""
    with_levels = "version: 1\ndelay: {levels: [1m]}\nqueues: {orders.queue: {}}\n"
    rabbit.delayctl("apply", topology.write(with_levels), "--yes")

    ran = rabbit.delayctl("apply", topology.write("version: 1\ndelay: none\nqueues: {orders.queue: {}}\n"), "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert objects(rabbit) == {"orders.queue"}
    assert rabbit.delayctl("apply", topology.write(with_levels), "--yes").code == 0


@pytest.mark.parametrize("options", [(), ("--accept-loss", "delay.1m.queue")])
def test_levels_with_messages_stay(rabbit: Rabbit, topology: TopologyFile, options: tuple[str, ...]) -> None:
    """As with any level that is taken out of a file, unless the loss is accepted."""
    rabbit.delayctl("apply", topology.write("version: 1\ndelay: {levels: [1m]}\n"), "--yes")
    rabbit.publish("delay.1m.exchange", "order.created", "waits")

    ran = rabbit.delayctl("apply", topology.write("version: 1\ndelay: none\n"), "--yes", *options)

    assert ("delay.1m.queue" in objects(rabbit)) is not bool(options)
    assert (ran.code == 0) is bool(options)


def test_a_hand_made_topology_is_taken_over_as_it_is(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Made by somebody else, described by the file: nothing is changed, and it is managed from now on."""
    with rabbit.channel() as channel:
        channel.exchange_declare("delay.exchange", "fanout", durable=True)
        channel.exchange_declare("audit.exchange", "headers", durable=True)
        arguments = {"x-message-ttl": 300_000, "x-dead-letter-exchange": "delay.exchange"}
        channel.queue_declare("delay.5m.queue", durable=True, arguments=arguments)
        channel.queue_declare("orders.queue", durable=True)
        channel.queue_bind("orders.queue", "delay.exchange", "")
        channel.queue_bind("delay.5m.queue", "audit.exchange", "", {"x-match": "any", "kind": "order"})
    before = rabbit.definitions()
    file = topology.write("""\
version: 1
delay: none
exchanges:
  delay.exchange: {type: fanout}
  audit.exchange: {type: headers}
queues:
  delay.5m.queue: {arguments: {x-message-ttl: 300000, x-dead-letter-exchange: delay.exchange}}
routes:
  - {from: delay.exchange, to: orders.queue}
  - {from: audit.exchange, headers: {x-match: any, kind: order}, to: delay.5m.queue}
""")

    ran = rabbit.delayctl("apply", file, "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert rabbit.definitions() == before
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0
    assert rabbit.delayctl("destroy", file, "--yes").code == 0
    assert objects(rabbit) == set()
