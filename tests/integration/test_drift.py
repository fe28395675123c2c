"""Changes made by hand: each is named by plan, repaired where nothing is lost, refused with the reason otherwise."""

import pytest

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.rabbit import Rabbit

FILE = """\
version: 1
delay:
  levels: [1m, 5m, 15m]
exchanges:
  orders.exchange: {type: topic}
routes:
  - {from: orders.exchange, key: order.created, delay: 15m, to: orders.timeout.queue}
"""


@pytest.fixture
def file(rabbit: Rabbit, topology: TopologyFile) -> str:
    """The file, applied."""
    path = topology.write(FILE)
    assert rabbit.delayctl("apply", path, "--yes").code == 0
    return path


def redeclare(rabbit: Rabbit, queue: str, **arguments: object) -> None:
    """Recreate a delay queue by hand with other arguments, and bind it again."""
    level = queue.split(".")[1]
    with rabbit.channel() as channel:
        channel.queue_delete(queue)
        spelled = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        channel.queue_declare(queue, durable=True, arguments=spelled)
        channel.queue_bind(queue, f"delay.{level}.exchange", "")


def test_everything_done_by_hand_is_named_and_what_is_safe_is_repaired(rabbit: Rabbit, file: str) -> None:
    """A lost binding and an empty queue are repaired; a foreign policy is not ours to remove."""
    before = rabbit.definitions()
    with rabbit.channel() as channel:
        channel.exchange_unbind("delay.15m.exchange", "orders.exchange", "order.created")
    redeclare(rabbit, "delay.1m.queue", message_ttl=60_000, max_length=10, dead_letter_exchange="delay.exchange")
    rabbit.put_policy("shorter", "^delay\\.5m", message_ttl=1000)

    planned = rabbit.delayctl("plan", file, "--detailed-exitcode")
    applied = rabbit.delayctl("apply", file, "--yes")

    assert planned.code == 2
    assert "+ binding orders.exchange → [order.created] delay.15m.exchange" in planned.out
    switched = "… level 1m: delay.1m.queue empties by itself (0 messages now, up to 1m), then it is declared anew"
    assert f"{switched}\n        x-max-length: 10 → 1000000" in planned.out
    assert (
        "! queue delay.5m.queue: policy shorter (priority 0) changes what it does\n        message-ttl: 1000 (1s) → 300000 (5m)"
        in planned.out
    )
    assert "fix: narrow the pattern of policy shorter, or remove it: rabbitmqctl clear_policy" in planned.out
    summary = "Plan: 5 to add, 0 to change, 0 to replace, 1 to delete. 1 refused. 1 queue to wait for, up to 2m."
    assert summary in planned.out
    assert applied.code == 3
    assert applied.out.endswith("Applied: 6 added, 0 changed, 1 replaced, 5 deleted, 1 refused.\n")
    after = rabbit.definitions()
    assert {kind: after[kind] for kind in ("exchanges", "queues", "bindings")} == {
        kind: before[kind] for kind in ("exchanges", "queues", "bindings")
    }


def test_a_queue_with_waiting_messages_is_not_replaced_before_they_have_left(rabbit: Rabbit, file: str) -> None:
    """The number of messages and how long it takes are told, and who can't wait may insist."""
    redeclare(rabbit, "delay.5m.queue", message_ttl=300_000, max_length=10, dead_letter_exchange="delay.exchange")
    rabbit.publish("delay.5m.exchange", "order.created", "a", "b", "c")

    begun = rabbit.delayctl("apply", file, "--yes")
    kept = rabbit.ready("delay.5m.queue")
    insisted = rabbit.delayctl("apply", file, "--yes", "--accept-loss", "delay.5m.queue")

    assert begun.code == 3
    waits = "  level 5m: delay.5m.queue empties by itself (3 messages now, up to 5m), then it is declared anew\n"
    assert (
        f"is done yet:\n{waits}Go on with the same command at any time; --wait does it all, up to 10m.\n" in begun.out
    )
    assert (kept, insisted.code) == (3, 0)
    assert rabbit.queue("delay.5m.queue")["arguments"]["x-max-length"] == 1_000_000


def test_a_quorum_queue_with_messages_is_not_replaced(rabbit: Rabbit, file: str) -> None:
    """Quorum queues know no if-empty; they are guarded all the same."""
    arguments = {"queue_type": "quorum", "message_ttl": 300_000, "dead_letter_exchange": "delay.exchange"}
    redeclare(rabbit, "delay.5m.queue", **arguments)
    rabbit.publish("delay.5m.exchange", "order.created", "a")

    begun = rabbit.delayctl("apply", file, "--yes")
    with rabbit.channel() as channel:
        channel.queue_purge("delay.5m.queue")
    repaired = None
    for _ in range(20):  # The figures of quorum queues are some seconds old.
        repaired = rabbit.delayctl("apply", file, "--yes")
        if repaired.code == 0:
            break

    assert begun.code == 3
    assert "delay.5m.queue empties by itself (1 message now, up to 5m)" in begun.out
    assert repaired is not None
    assert repaired.code == 0
    assert rabbit.queue("delay.5m.queue")["type"] == "classic"


def test_bindings_of_others_survive_a_replacement(rabbit: Rabbit, file: str) -> None:
    """A binding that somebody else made to a replaced queue is put back."""
    redeclare(rabbit, "delay.1m.queue", message_ttl=60_000, dead_letter_exchange="delay.exchange")
    with rabbit.channel() as channel:
        channel.exchange_declare("theirs", "headers", durable=True)
        channel.queue_bind("delay.1m.queue", "theirs", "", {"x-match": "all", "kind": "invoice"})

    ran = rabbit.delayctl("apply", file, "--yes")

    assert ran.code == 0
    assert any('"theirs"' in binding and "invoice" in binding for binding in rabbit.definitions()["bindings"])


def test_an_operator_policy_is_seen(rabbit: Rabbit, file: str) -> None:
    """An operator's limit that undercuts the file is named with its own fix."""
    rabbit.put_policy("cap", "^delay", operator=True, max_length=500)

    planned = rabbit.delayctl("plan", file, "--detailed-exitcode")

    assert planned.code == 2
    assert planned.out.count("operator policy cap changes what it does\n        max-length: 500 → 1000000") == 3
    assert "rabbitmqctl clear_operator_policy" in planned.out


def test_a_policy_that_does_not_touch_the_delays_is_no_drift(rabbit: Rabbit, file: str) -> None:
    """Policies of business queues, and limits above ours, are none of our business."""
    rabbit.put_policy("theirs", "^orders", max_length=7)
    rabbit.put_policy("generous", "^delay\\.[0-9]", max_length=9_000_000)

    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0


def test_a_stranger_behind_an_entrance_is_warned_of(rabbit: Rabbit, file: str) -> None:
    """Whatever else is bound to an entrance gets messages undelayed; plan says so and leaves it."""
    with rabbit.channel() as channel:
        channel.queue_bind("orders.timeout.queue", "delay.5m.exchange", "any")

    planned = rabbit.delayctl("plan", file, "--detailed-exitcode")

    assert planned.code == 0
    assert "Warning: binding delay.5m.exchange → [any] orders.timeout.queue is not delayctl's" in planned.out


def test_what_left_the_file_is_removed(rabbit: Rabbit, file: str, topology: TopologyFile) -> None:
    """A level and a route that are no longer in the file go, and nothing else does."""
    with rabbit.channel() as channel:
        channel.queue_declare("somebody.elses.queue", durable=True)
    smaller = topology.write("version: 1\ndelay: {levels: [1m]}\n")

    ran = rabbit.delayctl("apply", smaller, "--yes")

    assert ran.code == 0
    names = sorted(queue["name"] for queue in rabbit.api("GET", "queues/{vhost}"))
    assert names == ["delay.1m.queue", "delay.unrouted.queue", "somebody.elses.queue"]


def test_a_level_that_still_holds_messages_stays_until_it_is_empty(
    rabbit: Rabbit, file: str, topology: TopologyFile
) -> None:
    """Its entrance goes, so it drains; the queue and the way out stay, and the next apply removes them."""
    rabbit.publish("orders.exchange", "order.created", "waiting")
    smaller = topology.write("version: 1\ndelay: {levels: [1m]}\n")

    first = rabbit.delayctl("apply", smaller, "--yes")
    kept = rabbit.ready("delay.15m.queue")
    with rabbit.channel() as channel:
        channel.queue_purge("delay.15m.queue")
    second = rabbit.delayctl("apply", smaller, "--yes")
    for _ in range(20):  # The management API's figures are some seconds old.
        if second.code == 0:
            break
        second = rabbit.delayctl("apply", smaller, "--yes")

    assert (first.code, kept) == (3, 1)
    assert "… delay.15m.queue empties by itself (1 message now, up to 15m), then it is removed" in first.out
    assert "- queue orders.timeout.queue  later" in first.out
    assert second.code == 0
    assert "delay.15m.queue" not in [queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")]


def test_destroy_removes_all_and_only_what_was_applied(rabbit: Rabbit, file: str) -> None:
    """After destroy the virtual host is as empty as before, and so is the record."""
    ran = rabbit.delayctl("destroy", file, "--yes")

    assert ran.code == 0
    assert rabbit.definitions() == {"exchanges": [], "queues": [], "bindings": [], "policies": []}
    assert f"delayctl:{rabbit.vhost}:" not in [item["name"] for item in rabbit.api("GET", "global-parameters")]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_destroy_keeps_queues_with_messages_unless_named(rabbit: Rabbit, topology: TopologyFile, kind: str) -> None:
    """What waits is not destroyed with the topology; by name it is."""
    file = topology.write(f"version: 1\ndelay: {{levels: [1h], queue: {{type: {kind}}}}}\n")
    rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("delay.1h.exchange", "a", "waiting")

    kept = rabbit.delayctl("destroy", file, "--yes")
    waiting = rabbit.ready("delay.1h.queue")
    gone = rabbit.delayctl("destroy", file, "--yes", "--accept-loss", "delay.1h.queue")

    assert (kept.code, waiting) == (3, 1)
    assert gone.code == 0
    assert rabbit.definitions()["queues"] == []


def test_a_business_queue_that_others_made_differently_is_left_alone(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A conflict with what exists is shown as a difference, even when the queue is empty."""
    with rabbit.channel() as channel:
        channel.queue_declare("orders.timeout.queue", durable=True, arguments={"x-max-length": 5})

    ran = rabbit.delayctl("apply", topology.write(FILE), "--yes")
    again = rabbit.delayctl("apply", topology.write(FILE), "--yes")

    assert (ran.code, again.code) == (3, 1)
    assert "! queue orders.timeout.queue: exists with other settings, and delayctl did not make it" in ran.out
    assert "x-max-length: 5 → not set" in ran.out
    assert rabbit.queue("orders.timeout.queue")["arguments"]["x-max-length"] == 5


def test_a_fanout_binding_under_another_key_is_as_good(rabbit: Rabbit, file: str) -> None:
    """Clients that fill in a key by themselves when they bind to an entrance have not made a difference."""
    with rabbit.channel() as channel:
        channel.queue_unbind("delay.1m.queue", "delay.1m.exchange", "")
        channel.queue_bind("delay.1m.queue", "delay.1m.exchange", "delay.1m.queue")

    assert rabbit.delayctl("plan", file, "--detailed-exitcode").out == f"No changes. The broker matches {file}.\n"


def test_an_exit_that_became_internal_is_replaced(rabbit: Rabbit, file: str) -> None:
    """An internal exit can't be published to; nothing waits, so it is declared anew with all its bindings."""
    before = rabbit.definitions()
    with rabbit.channel() as channel:
        channel.exchange_delete("delay.exchange")
        arguments = {"alternate-exchange": "delay.unrouted.exchange"}
        channel.exchange_declare("delay.exchange", "topic", durable=True, internal=True, arguments=arguments)

    planned = rabbit.delayctl("plan", file)
    ran = rabbit.delayctl("apply", file, "--yes")

    assert "-/+ exchange delay.exchange\n        internal: true → false" in planned.out
    assert ran.code == 0
    assert rabbit.definitions() == before


def test_a_message_that_somebody_holds_without_acking_keeps_its_queue(rabbit: Rabbit, file: str) -> None:
    """Neither ready nor with a consumer: only the broker's figures know of it."""
    rabbit.publish("delay.5m.exchange", "order.created", "taken")
    until(lambda: rabbit.queue("delay.5m.queue").get("messages") == 1, 15)
    with rabbit.channel() as channel:
        channel.basic_get("delay.5m.queue", auto_ack=False)
        ran = rabbit.delayctl("destroy", file, "--yes")

    assert ran.code == 3
    assert "… delay.5m.queue empties by itself (1 message now, up to 5m), then it is removed" in ran.out
    rabbit.await_ready("delay.5m.queue", 1)


def test_an_exchange_with_bindings_to_exclusive_queues_goes_only_by_name(rabbit: Rabbit, file: str) -> None:
    """Destroy refuses it with the reason, and can be told."""
    with rabbit.channel() as channel:
        mine = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(mine, "orders.exchange", "#")
        kept = rabbit.delayctl("destroy", file, "--yes")
        gone = rabbit.delayctl("destroy", file, "--yes", "--accept-loss", "orders.exchange")

    assert kept.code == 3
    assert "! exchange orders.exchange: 1 binding of others would go with it" in kept.out
    assert gone.code == 0
