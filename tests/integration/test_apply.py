"""apply on a real broker: what the file says is what the management API shows."""

from tests.conftest import TopologyFile
from tests.support.rabbit import Rabbit

EXAMPLE = """\
version: 1
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
SECONDS = """\
version: 1
delay:
  levels: [300ms, 1h]
exchanges:
  orders.exchange: {type: topic}
routes:
  - {from: orders.exchange, key: order.*, delay: 300ms, to: orders.timeout.queue}
  - {from: orders.exchange, key: order.now, to: orders.now.queue}
  - {key: store.updated, delay: 300ms, to: [{exchange: site.exchange}, stores.queue]}
"""


def test_the_example_is_on_the_broker_as_it_is_written(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Exit, levels and safety nets have exactly the settings that the design promises."""
    ran = rabbit.delayctl("apply", topology.write(EXAMPLE), "--yes")

    assert (ran.code, ran.err) == (0, "")
    exit_exchange = rabbit.exchange("delay.exchange")
    assert {key: exit_exchange[key] for key in ("type", "durable", "internal", "arguments")} == {
        "type": "topic",
        "durable": True,
        "internal": False,
        "arguments": {"alternate-exchange": "delay.unrouted.exchange"},
    }
    for level, ttl in (("1m", 60_000), ("5m", 300_000), ("15m", 900_000)):
        queue = rabbit.queue(f"delay.{level}.queue")
        assert queue["durable"] is True
        assert queue["arguments"] == {
            "x-queue-type": "classic",
            "x-message-ttl": ttl,
            "x-max-length": 1_000_000,
            "x-overflow": "drop-head",
            "x-dead-letter-exchange": "delay.exchange",
        }
        assert rabbit.exchange(f"delay.{level}.exchange")["type"] == "fanout"


def test_a_second_apply_has_nothing_to_do(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Applying again changes nothing and says so."""
    file = topology.write(EXAMPLE)
    rabbit.delayctl("apply", file, "--yes")
    before = rabbit.definitions()

    ran = rabbit.delayctl("apply", file, "--yes")

    assert (ran.code, ran.out) == (0, f"No changes. The broker matches {file}.\n")
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0
    assert rabbit.definitions() == before


def test_a_message_comes_out_after_its_delay_with_its_own_key(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Through a business exchange, a message waits and reaches the normal queue with the key it was published with."""
    rabbit.delayctl("apply", topology.write(SECONDS), "--yes")

    rabbit.publish("orders.exchange", "order.created", "order 1")
    rabbit.await_ready("orders.timeout.queue", 1)
    (message,) = rabbit.take("orders.timeout.queue")

    assert (message.body, message.key, message.exchange) == ("order 1", "order.created", "delay.exchange")
    assert message.headers["x-death"][0]["reason"] == "expired"


def test_a_message_published_straight_to_the_entrance_reaches_queue_and_exchange(
    rabbit: Rabbit, topology: TopologyFile
) -> None:
    """A route without a source is entered at the level; its way out may lead to an exchange."""
    rabbit.delayctl("apply", topology.write(SECONDS), "--yes")
    with rabbit.channel() as channel:
        channel.queue_declare("site.queue", durable=True)
        channel.queue_bind("site.queue", "site.exchange", "store.#")

    rabbit.publish("delay.300ms.exchange", "store.updated", "store 7")
    rabbit.await_ready("site.queue", 1)
    rabbit.await_ready("stores.queue", 1)

    assert [message.key for message in rabbit.take("site.queue")] == ["store.updated"]


def test_a_route_without_delay_is_not_delayed(rabbit: Rabbit, topology: TopologyFile) -> None:
    """The undelayed flow goes straight from the exchange to the queue."""
    rabbit.delayctl("apply", topology.write(SECONDS), "--yes")

    rabbit.publish("orders.exchange", "order.now", "now")

    assert [message.exchange for message in rabbit.take("orders.now.queue")] == ["orders.exchange"]


def test_a_key_with_no_way_out_is_parked(rabbit: Rabbit, topology: TopologyFile) -> None:
    """An expired message without a route ends in delay.unrouted.queue, its key intact."""
    rabbit.delayctl("apply", topology.write(SECONDS), "--yes")

    rabbit.publish("delay.300ms.exchange", "nobody.wants.this", "lost otherwise")
    rabbit.await_ready("delay.unrouted.queue", 1)

    assert [message.key for message in rabbit.take("delay.unrouted.queue")] == ["nobody.wants.this"]


def test_settings_as_policy_reach_the_queue(rabbit: Rabbit, topology: TopologyFile) -> None:
    """With settings: policy the queue has no tunable arguments, and the delay works all the same."""
    file = topology.write(SECONDS.replace("  levels:", "  settings: policy\n  levels:"))
    ran = rabbit.delayctl("apply", file, "--yes")

    assert ran.code == 0
    assert rabbit.queue("delay.300ms.queue")["arguments"] == {
        "x-queue-type": "classic",
        "x-dead-letter-exchange": "delay.exchange",
    }
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0
    rabbit.publish("orders.exchange", "order.created", "by policy")
    rabbit.await_ready("orders.timeout.queue", 1)


def test_a_policy_setting_is_changed_in_place(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A changed max_length is an update of the policy, not a replacement of the queue."""
    text = SECONDS.replace("  levels:", "  settings: policy\n  levels:")
    rabbit.delayctl("apply", topology.write(text), "--yes")
    longer = topology.write(text.replace("delay:\n", "delay:\n  queue: {max_length: 2000000}\n", 1))

    planned = rabbit.delayctl("plan", longer)
    ran = rabbit.delayctl("apply", longer, "--yes")

    assert "Plan: 0 to add, 2 to change, 0 to replace, 0 to delete." in planned.out
    assert "max-length: 1000000 → 2000000" in planned.out
    assert ran.code == 0
    rabbit.await_effective("delay.1h.queue", {"max-length": 2_000_000})


def test_two_topologies_share_a_virtual_host(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A prefix keeps names and records apart: destroying one leaves the other whole."""
    plain = topology.write(EXAMPLE)
    rabbit.delayctl("apply", plain, "--yes")
    before = rabbit.definitions()
    other = topology.path.with_name("shop.yaml")
    other.write_text(
        "version: 1\nprefix: shop.\ndelay: {levels: [1m]}\nroutes: [{key: a, delay: 1m, to: shop.queue}]\n"
    )

    assert rabbit.delayctl("apply", str(other), "--yes").code == 0
    assert rabbit.queue("shop.delay.1m.queue")["arguments"]["x-dead-letter-exchange"] == "shop.delay.exchange"
    assert rabbit.delayctl("plan", plain, "--detailed-exitcode").code == 0
    assert rabbit.delayctl("destroy", str(other), "--yes").code == 0

    assert rabbit.definitions() == before


def test_a_saved_plan_is_applied_later(rabbit: Rabbit, topology: TopologyFile) -> None:
    """What was saved is what is done."""
    file, saved = topology.write(EXAMPLE), str(topology.path.with_suffix(".plan"))
    rabbit.delayctl("plan", file, "--out", saved)

    ran = rabbit.delayctl("apply", "--plan", saved, "--yes")

    assert ran.code == 0
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0


def test_a_stale_plan_is_refused(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A plan made before somebody changed the broker is not applied."""
    file, saved = topology.write(EXAMPLE), str(topology.path.with_suffix(".plan"))
    rabbit.delayctl("plan", file, "--out", saved)
    with rabbit.channel() as channel:
        channel.queue_declare("delay.1m.queue", durable=True)
    before = rabbit.definitions()

    ran = rabbit.delayctl("apply", "--plan", saved, "--yes")

    assert ran.code == 1
    assert "the broker has changed since the plan was made" in ran.err
    assert rabbit.definitions() == before


def test_existing_objects_are_checked_and_left_alone(rabbit: Rabbit, topology: TopologyFile) -> None:
    """An existing exchange must be there; it is bound to, and survives destroy."""
    file = topology.write(
        "version: 1\ndelay: {levels: [1m]}\nexchanges: {legacy: {existing: true, type: direct}}\n"
        "routes: [{from: legacy, key: a, delay: 1m, to: a.queue}]\n"
    )

    missing = rabbit.delayctl("apply", file, "--yes")
    nothing = rabbit.definitions()
    with rabbit.channel() as channel:
        channel.exchange_declare("legacy", "direct", durable=True)
    applied = rabbit.delayctl("apply", file, "--yes")
    destroyed = rabbit.delayctl("destroy", file, "--yes")

    assert missing.code == 1
    assert "exchange legacy: is marked existing and is not on the broker" in missing.out
    assert nothing == {"exchanges": [], "queues": [], "bindings": [], "policies": []}
    assert (applied.code, destroyed.code) == (0, 0)
    assert rabbit.exchange("legacy")["type"] == "direct"


def test_an_exchange_of_rabbitmqs_own_can_be_the_source(rabbit: Rabbit, topology: TopologyFile) -> None:
    """amq.topic is there without being in any definitions."""
    file = topology.write(
        "version: 1\ndelay: {levels: [300ms]}\nexchanges: {amq.topic: {existing: true, type: topic}}\n"
        "routes: [{from: amq.topic, key: order.*, delay: 300ms, to: orders.queue}]\n"
    )

    ran = rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("amq.topic", "order.created", "through a predefined exchange")
    rabbit.await_ready("orders.queue", 1)

    assert ran.code == 0
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0


def test_a_saved_plan_is_stale_once_messages_came(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A queue that was empty when its replacement was planned must still be."""
    rabbit.delayctl("apply", topology.write("version: 1\ndelay: {levels: [1h], queue: {max_length: 5}}\n"), "--yes")
    saved = str(topology.path.with_suffix(".plan"))
    at_once = ("--accept-loss", "delay.1h.queue")  # Otherwise it is switched, and nothing depends on its being empty.
    rabbit.delayctl("plan", topology.write("version: 1\ndelay: {levels: [1h]}\n"), "--out", saved, *at_once)
    rabbit.publish("delay.1h.exchange", "a", "came meanwhile")

    ran = rabbit.delayctl("apply", "--plan", saved, "--yes")

    assert ran.code == 1
    assert "1 message came into delay.1h.queue since the plan was made" in ran.err
    assert rabbit.ready("delay.1h.queue") == 1


def test_an_exchange_with_bindings_to_exclusive_queues_is_not_replaced(rabbit: Rabbit, topology: TopologyFile) -> None:
    """They are in no definitions, and only their owner could make them again; by name it goes ahead."""
    file = topology.write(EXAMPLE)
    rabbit.delayctl("apply", file, "--yes")
    with rabbit.channel() as channel:
        channel.exchange_delete("delay.unrouted.exchange")
        channel.exchange_declare("delay.unrouted.exchange", "topic", durable=True)
        mine = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(mine, "delay.unrouted.exchange", "#")
        refused = rabbit.delayctl("apply", file, "--yes")
        insisted = rabbit.delayctl("apply", file, "--yes", "--accept-loss", "delay.unrouted.exchange")

    assert refused.code == 3
    assert "! exchange delay.unrouted.exchange: 1 binding to exclusive queues would be lost" in refused.out
    assert insisted.code == 0
    assert rabbit.exchange("delay.unrouted.exchange")["type"] == "fanout"
