"""The damage that lint foretells, on a real broker: each failing file is applied all the same, and messages are sent.

What needs a broker of its own is in tests/faults: memory that fills (D207, D208), a restart (D402), a node that is lost
(D210). Of the bugs that D403 tells of, those of 3.10.8 are shown here, and that they are gone from 4.3; others are of
releases that no test here runs on (before 3.10, 3.10.0 to 3.10.4, 3.13.0 to 3.13.2, 4.3.0), or take luck to be met: that
at-least-once dead-lettering stops for good was seen where a hundred of its processes died within a second.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest
from delayctl.topology.ladder import headers_for
from delayctl.topology.version import Version, parse_version

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import Ran
from tests.support.rabbit import Rabbit

FILES = Path(__file__).parents[1] / "lint" / "files"


def bring(rabbit: Rabbit, code: str, kind: str = "fail") -> Ran:
    """Apply the file of a rule, with the rule silenced."""
    text = (FILES / f"{code}.{kind}.yaml").read_text(encoding="utf-8")
    silence = f"\nlint: {{ignore: [{{rule: {code}, reason: to show the damage}}]}}\n"
    return rabbit.apply_text(text + silence)


def declare_exchange(rabbit: Rabbit, name: str) -> None:
    """An exchange that belongs to others."""
    rabbit.api("PUT", f"exchanges/{{vhost}}/{name}", {"type": "topic", "durable": True})


def publish(rabbit: Rabbit, exchange: str, key: str, body: str, **properties: Any) -> None:
    """Publish one message as it comes, routable or not."""
    with rabbit.channel() as channel:
        channel.basic_publish(exchange, key, body.encode(), pika.BasicProperties(**properties))


def publish_as(rabbit: Rabbit, user: str, exchange: str) -> None:
    """Publish one message as somebody else."""
    parameters = pika.URLParameters(rabbit.url)
    parameters.credentials = pika.PlainCredentials(user, "secret")
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish(exchange, "reminder", b"refused")


def bodies(rabbit: Rabbit, queue: str) -> list[str]:
    """What a queue holds now."""
    return [message.body for message in rabbit.take(queue)]


def test_an_error_is_not_applied(rabbit: Rabbit) -> None:
    """Unless the file says why it may be; the refusal tells how."""
    refused = rabbit.apply_text((FILES / "D101.fail.yaml").read_text(encoding="utf-8"))
    untouched = rabbit.definitions()
    applied = bring(rabbit, "D101")

    assert (refused.code, applied.code) == (1, 0)
    assert "Error D101: a message with key 'order.created' waits 300ms in orders.wait.queue" in refused.out
    assert "lint found 1 error in the file; nothing is applied" in refused.err
    assert "lint: {ignore: [{rule: D101, at: orders.wait.queue, reason: WHY}]}" in refused.err
    assert untouched["queues"] == []


def test_d101_no_way_out_loses_messages(rabbit: Rabbit) -> None:
    """It is confirmed, it expires, and nobody ever sees it again."""
    assert bring(rabbit, "D101").code == 0

    rabbit.publish("orders.exchange", "order.created", "lost")
    rabbit.await_ready("orders.wait.queue", 0)
    rabbit.publish("due.exchange", "order.paid", "control")
    rabbit.await_ready("orders.queue", 1)

    assert bodies(rabbit, "orders.queue") == ["control"]
    assert rabbit.ready("orders.wait.queue") == 0


def test_d102_an_exit_that_is_not_there_loses_messages(rabbit: Rabbit) -> None:
    """The broker takes the queue and the message, and drops it at the end of its wait."""
    assert bring(rabbit, "D102").code == 0

    rabbit.publish("", "orders.wait.queue", "lost")
    rabbit.await_ready("orders.wait.queue", 0)

    declare_exchange(rabbit, "due.exchange")
    assert bring(rabbit, "D102", "pass").code == 0
    assert bodies(rabbit, "orders.wait.queue") == []


def test_d103_a_cycle_is_dropped(rabbit: Rabbit) -> None:
    """The copy that should wait again is gone, while one that comes by the same way for the first time is not."""
    assert bring(rabbit, "D103").code == 0

    rabbit.publish("orders.exchange", "order.created", "circles")
    rabbit.await_ready("orders.queue", 1)
    rabbit.publish("shop.exchange", "order.paid", "control")
    rabbit.await_ready("orders.queue", 2)

    # The second round of the first message would have been over before the control came out.
    assert bodies(rabbit, "orders.queue") == ["circles", "control"]
    assert rabbit.ready("delay.300ms.queue") == 0
    assert rabbit.ready("delay.unrouted.queue") == 0


def test_d104_one_message_is_delivered_twice(rabbit: Rabbit) -> None:
    """Once after each of its waits."""
    assert bring(rabbit, "D104").code == 0

    rabbit.publish("orders.exchange", "order.created", "twice")
    rabbit.await_ready("orders.queue", 2)

    assert bodies(rabbit, "orders.queue") == ["twice", "twice"]


def test_d105_a_message_reaches_the_target_of_another_route(rabbit: Rabbit) -> None:
    """The exit looks at the key alone."""
    assert bring(rabbit, "D105").code == 0

    rabbit.publish("orders.exchange", "created", "an order")
    rabbit.await_ready("users.queue", 1)

    assert bodies(rabbit, "users.queue") == ["an order"]
    assert bodies(rabbit, "orders.queue") == ["an order"]


def test_d106_nothing_can_be_published_to_an_internal_exit(rabbit: Rabbit) -> None:
    """Dead-lettering gets through, a publisher does not, and newer brokers forget it in their definitions."""
    assert bring(rabbit, "D106").code == 0

    rabbit.publish("", "orders.wait.queue", "waits")
    rabbit.await_ready("orders.queue", 1)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        publish(rabbit, "due.exchange", "order.created", "refused")

    exported = {exchange["name"] for exchange in rabbit.api("GET", "definitions/{vhost}")["exchanges"]}
    is_old = (parse_version(rabbit.api("GET", "overview")["rabbitmq_version"]) or (0, 0, 0)) < (4, 0, 0)
    assert refused.value.reply_code == 403
    assert ("due.exchange" in exported) is is_old


def test_d107_a_header_with_x_matches_every_message(rabbit: Rabbit) -> None:
    """Also one that has no headers at all; with -with-x it is looked at."""
    assert bring(rabbit, "D107").code == 0

    publish(rabbit, "orders.exchange", "", "of nobody")
    rabbit.await_ready("eu.queue", 1)
    assert bodies(rabbit, "eu.queue") == ["of nobody"]

    assert bring(rabbit, "D107", "pass").code == 0
    publish(rabbit, "orders.exchange", "", "of nobody")
    publish(rabbit, "orders.exchange", "", "of us", headers={"x-tenant": "us"})
    rabbit.await_ready("us.queue", 1)
    assert bodies(rabbit, "us.queue") == ["of us"]
    assert bodies(rabbit, "eu.queue") == []


def test_d108_other_keys_are_parked(rabbit: Rabbit) -> None:
    """A fanout exchange lets them in, and the exit has no way for them."""
    assert bring(rabbit, "D108").code == 0

    rabbit.publish("events.exchange", "order.paid", "parked")
    rabbit.await_ready("delay.unrouted.queue", 1)

    assert bodies(rabbit, "orders.queue") == []


def test_d109_an_exchange_with_nothing_behind_it_swallows_messages(rabbit: Rabbit) -> None:
    """The exit has led them on, so they are not even parked."""
    assert bring(rabbit, "D109").code == 0

    rabbit.publish("delay.300ms.exchange", "store.updated", "lost")
    rabbit.await_ready("delay.300ms.queue", 0)
    rabbit.publish("delay.300ms.exchange", "store.unknown", "control")
    rabbit.await_ready("delay.unrouted.queue", 1)

    assert bodies(rabbit, "delay.unrouted.queue") == ["control"]


def test_d201_a_ttl_without_an_exit_deletes(rabbit: Rabbit) -> None:
    """What expires is gone."""
    assert bring(rabbit, "D201").code == 0

    rabbit.publish("", "orders.wait.queue", "lost")
    rabbit.await_ready("orders.wait.queue", 0)

    assert bodies(rabbit, "orders.wait.queue") == []


def test_d202_a_dead_letter_key_overwrites_keys(rabbit: Rabbit) -> None:
    """What comes out has lost the key that it came in with."""
    assert bring(rabbit, "D202").code == 0

    rabbit.publish("", "orders.wait.queue", "renamed")
    rabbit.await_ready("orders.queue", 1)

    assert [message.key for message in rabbit.take("orders.queue")] == ["due"]


def test_d203_a_queue_that_expires_takes_its_messages_along(rabbit: Rabbit) -> None:
    """Long before their TTL, and without dead-lettering them."""
    assert bring(rabbit, "D203").code == 0

    rabbit.publish("", "orders.wait.queue", "lost")
    until(lambda: "orders.wait.queue" not in {queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")}, 30)
    rabbit.publish("due.exchange", "control", "control")
    rabbit.await_ready("orders.queue", 1)

    assert bodies(rabbit, "orders.queue") == ["control"]


def test_d204_at_least_once_with_drop_head_is_at_most_once(rabbit: Rabbit) -> None:
    """What has no route is dropped; with reject-publish it is kept, as at-least-once says."""
    declare_exchange(rabbit, "due.exchange")
    assert bring(rabbit, "D204").code == 0
    rabbit.publish("", "orders.wait.queue", "dropped")
    rabbit.await_ready("orders.wait.queue", 0)
    dropped = rabbit.api("DELETE", "queues/{vhost}/orders.wait.queue")
    assert dropped is None

    assert bring(rabbit, "D204", "pass").code == 0
    rabbit.publish("", "orders.wait.queue", "kept")
    rabbit.await_ready("orders.wait.queue", 0)
    rabbit.api("PUT", "queues/{vhost}/rescued.queue", {"durable": True})
    rabbit.api("POST", "bindings/{vhost}/e/due.exchange/q/rescued.queue", {"routing_key": "#"})

    # The broker tries again every 180 seconds; that the message is still counted shows that it is kept.
    until(lambda: rabbit.queue("orders.wait.queue").get("messages_dlx") == 1, 30)


def test_d205_more_than_there_is_room_for_leaves_early(rabbit: Rabbit) -> None:
    """Of 110 messages into a level of one minute with room for 100, ten come out at once."""
    assert bring(rabbit, "D205").code == 0

    rabbit.publish("delay.1m.exchange", "reminder", *(f"m{number:03}" for number in range(110)))
    rabbit.await_ready("reminders.queue", 10)

    assert bodies(rabbit, "reminders.queue") == [f"m{number:03}" for number in range(10)]
    assert rabbit.ready("delay.1m.queue") == 100


def test_d209_a_ttl_above_ten_years_is_refused(rabbit: Rabbit) -> None:
    """By the broker, while one millisecond less is taken."""
    declare_exchange(rabbit, "due.exchange")

    refused = bring(rabbit, "D209")
    taken = bring(rabbit, "D209", "pass")

    assert refused.code != 0
    assert "failed queue orders.wait.queue" in refused.out
    assert taken.code == 0


def test_d211_an_auto_delete_queue_is_gone_when_messages_come(rabbit: Rabbit) -> None:
    """Its last consumer leaves while the message waits, and takes the queue along."""
    assert bring(rabbit, "D211").code == 0

    with rabbit.channel() as channel:
        channel.basic_consume("orders.queue", lambda *_: None)
    rabbit.publish("delay.300ms.exchange", "order.created", "parked")
    rabbit.await_ready("delay.unrouted.queue", 1)

    assert "orders.queue" not in {queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")}


def test_d212_a_full_target_loses_what_comes_out(rabbit: Rabbit) -> None:
    """Nobody is told: neither parked nor delivered."""
    assert bring(rabbit, "D212").code == 0

    rabbit.publish("delay.300ms.exchange", "order.created", "first")
    rabbit.await_ready("orders.queue", 1)
    rabbit.publish("delay.300ms.exchange", "order.created", "lost")
    rabbit.publish("delay.300ms.exchange", "order.unknown", "control")
    rabbit.await_ready("delay.unrouted.queue", 1)

    assert bodies(rabbit, "orders.queue") == ["first"]
    assert bodies(rabbit, "delay.unrouted.queue") == ["control"]
    assert rabbit.ready("delay.300ms.queue") == 0


def test_d214_a_full_step_loses_what_comes_from_a_longer_one(rabbit: Rabbit) -> None:
    """Its publisher was told that it is safe; one that publishes to the full step is told that it is not."""
    assert bring(rabbit, "D214").code == 0
    rabbit.put_policy("full", "^delay.any.00.queue$", max_length=0)
    rabbit.await_effective("delay.any.00.queue", {"max-length": 0})

    with rabbit.channel() as channel:
        climbs = [pika.BasicProperties(headers=dict(headers_for(units))) for units in (3, 1)]
        channel.basic_publish("delay.any.exchange", "order.created", b"lost", climbs[0])
        with pytest.raises(pika.exceptions.NackError):
            channel.basic_publish("delay.any.exchange", "order.created", b"refused", climbs[1])
    rabbit.publish("delay.exchange", "order.unknown", "control")
    rabbit.await_ready("delay.any.01.queue", 0)

    assert bodies(rabbit, "orders.queue") == []
    assert bodies(rabbit, "delay.unrouted.queue") == ["control"]


def test_d215_shards_keep_no_order_among_each_other(rabbit: Rabbit) -> None:
    """All arrive, those of each queue in their order; one queue beside another, another order."""
    assert bring(rabbit, "D215").code == 0
    sent = [f"{number:03}" for number in range(200)]

    with rabbit.channel() as channel:
        for name in sent:
            properties = pika.BasicProperties(message_id=str(uuid.uuid4()))
            channel.basic_publish("delay.300ms.exchange", "order.created", name.encode(), properties)
    rabbit.await_ready("orders.timeout.queue", len(sent))
    arrived = rabbit.take("orders.timeout.queue")

    by_queue: dict[str, list[str]] = {}
    for message in arrived:
        by_queue.setdefault(message.headers["x-death"][0]["queue"], []).append(message.body)
    assert sorted(by_queue) == ["delay.300ms.1.queue", "delay.300ms.2.queue", "delay.300ms.3.queue"]
    assert all(bodies == sorted(bodies) for bodies in by_queue.values())
    assert sorted(message.body for message in arrived) == sent
    assert [message.body for message in arrived] != sent


REFUSED = {
    "type: quorum, arguments: {x-max-priority: 5}",
    "arguments: {x-max-priority: 256}",
    "arguments: {x-dead-letter-routing-key: k}",
    "arguments: {x-overflow: drop}",
    "arguments: {x-expires: 0}",
    "arguments: {x-dead-letter-strategy: at-most-once}",
    "arguments: {x-delivery-limit: 3}",
    "arguments: {x-quorum-initial-group-size: 3}",
    "type: quorum, arguments: {x-queue-mode: lazy}",
    "type: quorum, arguments: {x-dead-letter-exchange: e, x-dead-letter-strategy: twice}",
}


@pytest.mark.parametrize("queue", sorted(REFUSED))
def test_d213_what_lint_says_is_refused_is_refused(rabbit: Rabbit, queue: str) -> None:
    """By this broker, whatever its version."""
    text = f"version: 1\ndelay: none\nexchanges: {{e: {{}}}}\nqueues: {{q: {{{queue}}}}}\n"

    stopped = rabbit.apply_text(text)
    tried = rabbit.apply_text(text + "lint: {ignore: [{rule: D213, reason: to show the damage}]}\n")

    assert stopped.code == 1
    assert "Error D213: the broker refuses to declare q" in stopped.out
    assert tried.code != 0
    assert "failed queue q" in tried.out


def test_a_retry_by_hand_works_and_is_applied(rabbit: Rabbit) -> None:
    """What a consumer rejects waits, and comes back to it with its key."""
    text = (
        "version: 1\ndelay: none\nexchanges: {in: {}, fail: {type: fanout}}\nqueues:\n"
        "  work: {arguments: {x-dead-letter-exchange: fail}}\n"
        "  w: {arguments: {x-message-ttl: 300, x-max-length: 1000000, x-dead-letter-exchange: in}}\n"
        'routes:\n  - {from: in, key: "order.#", to: work}\n  - {from: fail, to: w}\n'
    )
    assert rabbit.apply_text(text).code == 0

    rabbit.publish("in", "order.created", "again")
    rabbit.await_ready("work", 1)
    with rabbit.channel() as channel:
        got, _, _ = channel.basic_get("work")
        assert got is not None
        channel.basic_reject(got.delivery_tag or 0, requeue=False)
    rabbit.await_ready("work", 1)

    assert [(message.key, message.body) for message in rabbit.take("work")] == [("order.created", "again")]


def test_d105_overlapping_patterns_of_two_sources(rabbit: Rabbit) -> None:
    """The key that lint names goes to both."""
    text = (
        'version: 1\ndelay: {levels: [300ms, 5m]}\nroutes:\n  - {from: in, key: "order.*", delay: 300ms, to: o}\n'
        '  - {from: in2, key: "*.created", delay: 5m, to: p}\n'
    )
    applied = rabbit.apply_text(text)

    rabbit.publish("in", "order.created", "both")
    rabbit.await_ready("p", 1)

    assert "a message with key 'order.created' (of order.* and *.created) to in also reaches p" in applied.out
    assert bodies(rabbit, "o") == ["both"]


def test_d107_any_of_no_headers_takes_nothing(rabbit: Rabbit) -> None:
    """While a route without headers takes all."""
    text = (
        "version: 1\ndelay: none\nexchanges: {e: {type: headers}}\nroutes:\n"
        "  - {from: e, headers: {x-match: any}, to: none}\n  - {from: e, headers: {x-match: all}, to: every}\n"
        "lint: {ignore: [{rule: D107, reason: to show the damage}]}\n"
    )
    assert rabbit.apply_text(text).code == 0

    publish(rabbit, "e", "", "m", headers={"tenant": "eu"})
    rabbit.await_ready("every", 1)

    assert rabbit.ready("none") == 0


def test_live_lint_tells_of_an_exit_that_is_nowhere(rabbit: Rabbit, topology: TopologyFile) -> None:
    """As an error, until the exchange is there."""
    file = topology.write((FILES / "D102.fail.yaml").read_text(encoding="utf-8"))

    offline, lost = rabbit.delayctl("validate", file), rabbit.delayctl("validate", file, "--live")
    declare_exchange(rabbit, "due.exchange")
    rabbit.api("PUT", "queues/{vhost}/due.queue", {"durable": True})
    rabbit.api("POST", "bindings/{vhost}/e/due.exchange/q/due.queue", {"routing_key": "#"})
    fine = rabbit.delayctl("validate", file, "--live")

    assert (offline.code, lost.code, fine.code) == (0, 1, 0)
    assert "Error D102" in lost.out
    assert "which neither the file nor the broker has" in lost.out


def test_d401_a_policy_deletes_what_has_arrived(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A target with somebody else's TTL does not keep what nobody takes."""
    file = topology.write("version: 1\ndelay: {levels: [300ms]}\nroutes:\n  - {key: k, delay: 300ms, to: o}\n")
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    rabbit.put_policy("short", "^o$", message_ttl=0)
    rabbit.await_effective("o", {"message-ttl": 0})

    found = rabbit.delayctl("validate", file, "--live")
    rabbit.publish("delay.300ms.exchange", "k", "lost")
    rabbit.publish("delay.300ms.exchange", "other", "control")
    rabbit.await_ready("delay.unrouted.queue", 1)

    assert found.code == 1
    assert "overrules the file at o: what nobody takes within 0s is deleted" in found.out
    assert rabbit.ready("o") == 0


def test_d301_a_level_waits_as_long_as_its_ttl_says(rabbit: Rabbit) -> None:
    """Its name promises five minutes, and the message is there at once."""
    assert bring(rabbit, "D301").code == 0

    rabbit.publish("delay.5m.exchange", "reminder", "early")
    rabbit.await_ready("reminders.queue", 1)

    assert bodies(rabbit, "reminders.queue") == ["early"]


@pytest.mark.parametrize("operator", [False, True])
def test_d401_a_foreign_policy_shortens_the_wait(rabbit: Rabbit, topology: TopologyFile, operator: bool) -> None:
    """Lint names it, and the message comes out after 300 ms instead of five minutes."""
    file = topology.write(
        "version: 1\ndelay: {levels: [5m]}\nroutes:\n  - {key: reminder, delay: 5m, to: reminders.queue}\n"
    )
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    before = rabbit.delayctl("validate", file, "--live")

    rabbit.put_policy("short", "^delay", operator=operator, message_ttl=300)
    rabbit.await_effective("delay.5m.queue", {"message-ttl": 300})
    found = rabbit.delayctl("validate", file, "--live")
    rabbit.publish("delay.5m.exchange", "reminder", "early")
    rabbit.await_ready("reminders.queue", 1)

    kind = "operator policy" if operator else "policy"
    assert (before.code, found.code) == (0, 1)
    assert f"{kind} 'short' (pattern '^delay', priority 0) overrules the file at delay.5m.queue" in found.out
    assert "messages leave after 300ms, not 5m" in found.out


def test_d402_transient_messages_are_counted(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Lint sees them on the broker once its figures are fresh; persistent ones are none."""
    file = topology.write("version: 1\ndelay: {levels: [5m]}\n")
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    rabbit.publish("delay.5m.exchange", "reminder", "persistent")
    publish(rabbit, "delay.5m.exchange", "reminder", "transient", delivery_mode=1)

    until(lambda: "D402" in rabbit.delayctl("validate", file, "--live").out, 30, every=1)

    answer = rabbit.delayctl("validate", file, "--live").out
    assert "1 of 2 messages waiting in delay.5m.queue are transient: a restart of the broker loses them" in answer


def has_bug(rabbit: Rabbit, *, mended: Version) -> bool:
    """Whether this broker is older than the release that mends a bug."""
    version = parse_version(rabbit.api("GET", "overview")["rabbitmq_version"])
    assert version is not None
    return version < mended


def test_d403_bugs_of_this_release_are_told(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A quorum level that overflows is touched by one before 4.2.1, and by none after 4.3.3."""
    file = topology.write("version: 1\ndelay: {levels: [5m], queue: {type: quorum}}\n")

    found = rabbit.delayctl("validate", file, "--live")

    assert ("D403" in found.out) is has_bug(rabbit, mended=(4, 2, 1))
    assert found.code == 0


def test_d403_what_overflows_together_leaves_backwards(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Before 4.2.1, where a quorum queue has to let several go at once."""
    file = topology.write(
        "version: 1\ndelay: {levels: [1h], queue: {type: quorum, max_length: 10}}\n"
        "routes:\n  - {key: reminder, delay: 1h, to: reminders.queue}\n"
    )
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    found = rabbit.delayctl("validate", file, "--live")
    sent = [f"m{number}" for number in range(10)]
    rabbit.publish("delay.1h.exchange", "reminder", *sent)

    rabbit.put_policy("shorter", "^delay\\.1h", max_length=2)
    rabbit.await_ready("reminders.queue", 8)

    is_backwards = has_bug(rabbit, mended=(4, 2, 1))
    assert bodies(rabbit, "reminders.queue") == (sent[7::-1] if is_backwards else sent[:8])
    assert ("lets them out in the wrong order" in found.out) is is_backwards


def test_d403_at_least_once_back_to_the_same_queue_blocks_it(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Before 3.11.20 and 3.12.2: 32 rejected messages come back, and then no more of them leave."""
    file = topology.write(
        "version: 1\ndelay: none\nexchanges: {again: {type: fanout}}\nqueues:\n  log: {}\n  wait:\n    type: quorum\n"
        "    arguments: {x-message-ttl: 3600000, x-max-length: 1000000, x-overflow: reject-publish,\n"
        "      x-dead-letter-exchange: again, x-dead-letter-strategy: at-least-once}\n"
        "routes:\n  - {from: again, to: wait}\n  - {from: again, to: log}\n"
        "lint: {ignore: [{rule: D103, reason: what is rejected comes back on purpose}]}\n"
    )
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    found = rabbit.delayctl("validate", file, "--live")
    rabbit.publish("", "wait", *(str(number) for number in range(40)))

    with rabbit.channel() as channel:
        for _ in range(40):
            got, _, _ = channel.basic_get("wait")
            assert got is not None
            channel.basic_reject(got.delivery_tag or 0, requeue=False)
    is_blocked = has_bug(rabbit, mended=(3, 12, 2))
    rabbit.await_ready("log", 32 if is_blocked else 40)
    until(lambda: rabbit.queue("wait").get("messages_dlx") == (40 if is_blocked else 0), 30)

    assert rabbit.ready("log") == (32 if is_blocked else 40)
    assert ("and never done with, which blocks the queue" in found.out) is is_blocked


@pytest.fixture
def stranger(rabbit: Rabbit) -> Iterator[str]:
    """A user without any rights."""
    name = f"stranger-{uuid.uuid4().hex[:8]}"
    rabbit.api("PUT", f"users/{name}", {"password": "secret", "tags": ""})
    yield name
    rabbit.api("DELETE", f"users/{name}")


def test_d404_a_user_without_rights_can_not_publish(rabbit: Rabbit, topology: TopologyFile, stranger: str) -> None:
    """Lint says so before the broker does."""
    file = topology.write(f"version: 1\ndelay: {{levels: [5m]}}\npermissions:\n  {stranger}: publisher\n")
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    nothing = {"configure": "", "write": "^orders", "read": ""}
    rabbit.api("PUT", f"permissions/{{vhost}}/{stranger}", nothing)

    found = rabbit.delayctl("validate", file, "--live")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        publish_as(rabbit, stranger, "delay.5m.exchange")

    rabbit.api("PUT", f"permissions/{{vhost}}/{stranger}", nothing | {"write": "^delay\\.(5m\\.)?exchange$"})
    granted = rabbit.delayctl("validate", file, "--live")
    assert refused.value.reply_code == 403
    assert f"user {stranger} can't write delay.5m.exchange and 1 more, as a publisher has to" in found.out
    assert (found.code, granted.code) == (1, 0)


def test_d407_what_waits_is_kept_in_memory(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Before 3.12, unless the level is lazy; later nothing is said, as it is on disk in any case."""
    file = topology.write("version: 1\ndelay: {levels: {1h: {}, 2h: {lazy: true}}}\n")
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    for level in ("1h", "2h"):
        rabbit.publish(f"delay.{level}.exchange", "reminder", *map(str, range(10)))

    found = rabbit.delayctl("validate", file, "--live").out

    is_old = has_bug(rabbit, mended=(3, 12, 0))
    assert ("keeps what waits in delay.1h.queue in memory" in found) is is_old
    assert "delay.2h.queue" not in found
    if is_old:
        until(lambda: rabbit.queue("delay.1h.queue").get("messages_ram") == 10, 30, what="the queue's statistics")
        until(lambda: rabbit.queue("delay.2h.queue").get("messages") == 10, 30, what="the lazy queue's statistics")
        assert rabbit.queue("delay.2h.queue")["messages_ram"] == 0


def test_live_lint_follows_ways_that_only_the_broker_knows(rabbit: Rabbit, topology: TopologyFile) -> None:
    """An exchange of others that takes the key is fine; one that does not is an error."""
    declare_exchange(rabbit, "site.exchange")
    rabbit.api("PUT", "queues/{vhost}/site.queue", {"durable": True})
    rabbit.api("POST", "bindings/{vhost}/e/site.exchange/q/site.queue", {"routing_key": "store.#"})
    text = (
        "version: 1\ndelay: {{levels: [5m]}}\nexchanges: {{site.exchange: {{existing: true}}}}\n"
        "routes:\n  - {{key: {key}, delay: 5m, to: {{exchange: site.exchange}}}}\n"
    )

    fine = rabbit.delayctl("validate", topology.write(text.format(key="store.updated")), "--live")
    lost = rabbit.delayctl("validate", topology.write(text.format(key="shop.updated")), "--live")

    assert (fine.code, lost.code) == (0, 1)
    assert "Error D101: a message with key 'shop.updated' waits 5m in delay.5m.queue" in lost.out


def test_live_lint_does_without_what_a_user_may_not_see(rabbit: Rabbit, topology: TopologyFile, tmp_path: Path) -> None:
    """Nodes and permissions are for monitors and administrators; the rest is looked at all the same."""
    user = f"looker-{uuid.uuid4().hex[:8]}"
    rabbit.api("PUT", f"users/{user}", {"password": "secret", "tags": "policymaker"})
    rabbit.api("PUT", f"permissions/{{vhost}}/{user}", {"configure": "", "write": "", "read": ".*"})
    (tmp_path / "looker.yaml").write_text(f"username: {user}\npassword: secret\n", encoding="utf-8")
    rabbit.put_policy("short", "^delay", message_ttl=300)
    file = topology.write("version: 1\ndelay: {levels: [5m]}\npermissions:\n  nobody: publisher\n")

    found = rabbit.delayctl("validate", file, "--live", "--credentials-file", str(tmp_path / "looker.yaml"))

    rabbit.api("DELETE", f"users/{user}")
    assert (found.code, found.err) == (1, "")
    assert "D401" in found.out
    assert "D404" not in found.out
