"""Parked messages on a real broker: each goes back to where it belongs, once it has such a place, and none is lost."""

import json
import secrets
import signal
import subprocess
from typing import Any

import pika
import pytest
from delayctl.consumers.outcome import Park
from delayctl.consumers.pull import Pull
from delayctl.topology.access import access_from
from pika.adapters.blocking_connection import BlockingChannel

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import delayctl, delayctl_process
from tests.support.consuming import Seen, running
from tests.support.parked import park
from tests.support.rabbit import Rabbit

FILE = """version: 1
delay: {levels: [50ms, 1h]}
exchanges:
  orders.exchange: {}
queues:
  orders.queue: {arguments: {x-max-length: 100, x-overflow: reject-publish}}
routes:
  - {from: orders.exchange, key: "order.#", delay: 50ms, to: [orders.queue, audit.queue]}
  - {key: mail.sent, delay: 50ms, to: mails.queue}
retry:
  orders.queue: {levels: [50ms], max: 2, park: orders.dlq}
  mails.queue: {levels: [50ms], max: 2, park: shared.dlq}
  bills.queue: {levels: [50ms], max: 2, park: shared.dlq}
"""


@pytest.fixture
def file(rabbit: Rabbit, topology: TopologyFile) -> str:
    """The shop, applied."""
    path = topology.write(FILE)
    assert rabbit.delayctl("apply", path, "--yes").code == 0
    return path


@pytest.fixture
def parked(rabbit: Rabbit, topology: TopologyFile, file: str) -> str:
    """The file, with five orders that were given up for two reasons."""
    place = {"queue": "orders.queue", "parking": "orders.dlq"}
    park(rabbit, topology.path, ["a-1", "a-2", "a-3"], key="order.created", reason="the bank is away", **place)
    park(rabbit, topology.path, ["b-1", "b-2"], key="order.paid.late", reason="no luck", **place)
    rabbit.take("audit.queue")
    return file


def redriven(rabbit: Rabbit, file: str, *options: str, code: int = 0) -> dict[str, Any]:
    """What a redrive answers to programs."""
    ran = rabbit.delayctl("redrive", file, "--output", "json", *options)
    assert ran.code == code, ran.out + ran.err
    answer: dict[str, Any] = json.loads(ran.out)
    return answer


def bodies(rabbit: Rabbit, queue: str) -> list[str]:
    """What a queue holds; taken."""
    return [message.body for message in rabbit.take(queue)]


def looked_at(rabbit: Rabbit, queue: str) -> list[str]:
    """What a queue holds; left there."""
    ran = rabbit.delayctl("consume", queue, "--requeue", "--wait", "300ms", "--output", "json")
    assert ran.code == 0
    return [json.loads(line)["body"] for line in ran.out.splitlines()]


def got(channel: BlockingChannel, queue: str) -> int:
    """The number of the next message of a queue, once it is there."""
    method = until(lambda: channel.basic_get(queue)[0], 10, every=0.01)
    assert method is not None
    return int(method.delivery_tag or 0)


class TestBackToItsQueue:
    """What a service gave up."""

    def test_as_if_it_came_for_the_first_time(self, rabbit: Rabbit, topology: TopologyFile, parked: str) -> None:
        """Its handler sees id, key and headers of old, no attempt, and how it came to this; other queues see nothing."""
        answer = redriven(rabbit, parked, "--queue", "orders.dlq")

        seen = Seen()
        with running(rabbit.url, topology.path, {"orders.queue": seen}):
            seen.await_count(5)
        first = seen.messages[0]
        assert (answer["moved"], answer["to"]) == (5, [{"place": "orders.queue", "count": 5}])
        assert sorted(str(message.message_id) for message in seen.messages) == ["a-1", "a-2", "a-3", "b-1", "b-2"]
        assert all(message.text == message.message_id for message in seen.messages)
        assert (first.key, first.attempt, first.parked, first.headers["shop"]) == ("order.created", 0, None, "eu")
        reasons = [entry["reason"] for entry in first.headers["delay-history"]]
        assert reasons == ["the bank is away", "redriven from orders.dlq"]
        assert "delay-queue" not in first.headers
        assert rabbit.ready("orders.dlq") == rabbit.ready("audit.queue") == 0

    def test_in_the_order_in_which_they_were_parked(self, rabbit: Rabbit, parked: str) -> None:
        """Nobody overtakes."""
        before = looked_at(rabbit, "orders.dlq")

        redriven(rabbit, parked, "--queue", "orders.dlq")

        assert bodies(rabbit, "orders.queue") == before

    def test_attempts_may_be_kept(self, rabbit: Rabbit, file: str) -> None:
        """Then what fails once more is parked at once."""
        with rabbit.channel() as channel:
            properties = pika.BasicProperties(message_id="m", headers={"delay-attempt": 2, "delay-parked": "x"})
            channel.basic_publish("", "orders.dlq", b"m", properties)

        redriven(rabbit, file, "--queue", "orders.dlq", "--keep-attempts")

        assert [message.headers["delay-attempt"] for message in rabbit.take("orders.queue")] == [2]

    def test_shared_parking_queue(self, rabbit: Rabbit, topology: TopologyFile, file: str) -> None:
        """Each goes to the queue where it failed; one that nobody says anything of stays."""
        for name, key in (("mails", "mail.sent"), ("bills", "delay.retry.bills.queue")):
            park(rabbit, topology.path, [name], key=key, queue=f"{name}.queue", parking="shared.dlq")
        rabbit.publish("", "shared.dlq", "stranger")

        answer = redriven(rabbit, file, "--queue", "shared.dlq", code=3)

        assert (bodies(rabbit, "mails.queue"), bodies(rabbit, "bills.queue")) == (["mails"], ["bills"])
        assert [(left["why"], left["count"]) for left in answer["left"]] == [("nothing says where it belongs", 1)]
        assert bodies(rabbit, "shared.dlq") == ["stranger"]

    def test_the_only_parking_queue_need_not_be_named(self, rabbit: Rabbit, file: str) -> None:
        """Where there are more, it says so."""
        ran = rabbit.delayctl("redrive", file)

        assert ran.code == 64
        assert ran.err == (
            "Error: which queue is meant?\n"
            "  fix: name it with --queue: 'orders.dlq', 'shared.dlq', 'delay.unrouted.queue'\n"
        )

    def test_to_where_it_came_from(self, rabbit: Rabbit, parked: str) -> None:
        """--origin publishes it anew: whatever is bound there gets it."""
        rabbit.api("POST", "bindings/{vhost}/e/delay.exchange/q/mails.queue", {"routing_key": "order.created"})

        answer = redriven(rabbit, parked, "--queue", "orders.dlq", "--origin", "--where", "key=order.created")

        assert [place["place"] for place in answer["to"]] == ["delay.exchange with key order.created"]
        for queue in ("orders.queue", "audit.queue", "mails.queue"):
            assert bodies(rabbit, queue) == ["a-1", "a-2", "a-3"], queue

    def test_to_another_queue(self, rabbit: Rabbit, parked: str) -> None:
        """--to takes any queue; not the one they are in."""
        redriven(rabbit, parked, "--queue", "orders.dlq", "--to", "mails.queue", "--limit", "2")
        again = redriven(rabbit, parked, "--queue", "orders.dlq", "--to", "orders.dlq", code=1)

        assert len(bodies(rabbit, "mails.queue")) == 2
        assert (again["moved"], again["left"][0]["why"]) == (0, "it would go where it is")
        assert rabbit.ready("orders.dlq") == 3


class TestChosen:
    """Some of them."""

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (("--where", "key=order.created"), ["a-1", "a-2", "a-3"]),
            (("--where", "key=order.*.*"), ["b-1", "b-2"]),
            (("--where", "reason=BANK", "--where", "id=a-2"), ["a-2"]),
            (("--where", "id=a-3", "--where", "id=b-2"), ["a-3", "b-2"]),
            (("--where", "header.shop=us"), []),
            (("--older-than", "1h"), []),
            (("--newer-than", "1h", "--limit", "1", "--where", "reason=no luck"), ["b-1"]),
        ],
    )
    def test_by_what_they_say_of_themselves(
        self, rabbit: Rabbit, parked: str, options: tuple[str, ...], expected: list[str]
    ) -> None:
        """The others stay, in their order."""
        before = looked_at(rabbit, "orders.dlq")

        answer = redriven(rabbit, parked, "--queue", "orders.dlq", *options)

        assert answer["moved"] == len(expected)
        assert sorted(bodies(rabbit, "orders.queue")) == expected
        assert bodies(rabbit, "orders.dlq") == [body for body in before if body not in expected]

    def test_dry_run(self, rabbit: Rabbit, parked: str) -> None:
        """Says it all and leaves everything in its place."""
        before = looked_at(rabbit, "orders.dlq")

        ran = rabbit.delayctl("redrive", parked, "--queue", "orders.dlq", "--dry-run", "--where", "key=order.created")

        assert ran.code == 0
        assert ran.out == (
            "Would redrive: 3 of 5 messages of orders.dlq. Nothing was moved.\n"
            "  3 to orders.queue\nLeft there: 2\n  2: not asked for\n"
        )
        assert rabbit.ready("orders.queue") == 0
        assert bodies(rabbit, "orders.dlq") == before

    def test_an_id_that_is_not_there(self, rabbit: Rabbit, parked: str) -> None:
        """It is named, and the exit code says so; what was found is moved."""
        options = ("--where", "id=a-1", "--where", "id=c-9")

        ran = rabbit.delayctl("redrive", parked, "--queue", "orders.dlq", *options)
        answer = redriven(rabbit, parked, "--queue", "orders.dlq", *options, code=1)

        assert ran.code == 1
        assert ran.out.splitlines()[-1].startswith("Not found: 'c-9'. It may be out already")
        assert (answer["moved"], answer["not_found"]) == (0, ["a-1", "c-9"])
        assert bodies(rabbit, "orders.queue") == ["a-1"]

    def test_at_a_pace(self, rabbit: Rabbit, parked: str) -> None:
        """Five at five a second take four fifths of a second, at least."""
        answer = redriven(rabbit, parked, "--queue", "orders.dlq", "--rate", "5/s")

        assert answer["moved"] == 5
        assert 0.8 <= answer["seconds"] < 5


class TestUnrouted:
    """What had no way out."""

    def test_until_there_is_a_route(self, rabbit: Rabbit, topology: TopologyFile, file: str) -> None:
        """It stays where it is, and goes out with its own key once something is bound."""
        rabbit.publish("delay.50ms.exchange", "lost.key", "one")
        rabbit.await_ready("delay.unrouted.queue", 1)

        before = redriven(rabbit, file, "--queue", "delay.unrouted.queue", code=1)
        assert rabbit.ready("delay.unrouted.queue") == 1
        routes = "  - {key: lost.key, delay: 50ms, to: found.queue}\nretry:"
        assert rabbit.delayctl("apply", topology.write(FILE.replace("retry:", routes)), "--yes").code == 0
        after = redriven(rabbit, file, "--queue", "delay.unrouted.queue")

        assert [left["why"] for left in before["left"]] == ["no route for key 'lost.key' at delay.exchange"]
        assert after["to"] == [{"place": "found.queue", "count": 1}]
        (message,) = rabbit.take("found.queue")
        assert (message.body, message.key, "x-death" in message.headers) == ("one", "lost.key", False)
        assert rabbit.ready("delay.unrouted.queue") == 0

    def test_what_the_ladder_had_no_step_for(self, rabbit: Rabbit, topology: TopologyFile) -> None:
        """It stays until there is one, and then waits as long as it shall, with its own key."""
        text = FILE.replace("delay: {", "delay: {any: {unit: 100ms, steps: STEPS}, ")
        file = topology.write(text.replace("STEPS", "3"))
        assert rabbit.delayctl("apply", file, "--yes").code == 0
        with rabbit.channel() as channel:
            headers: dict[str, Any] = {"delay-top": "3", "delay-3": True, "delay-0": True}
            channel.basic_publish("delay.any.exchange", "mail.sent", b"late", pika.BasicProperties(headers=headers))
        rabbit.await_ready("delay.unrouted.queue", 1)

        before = redriven(rabbit, file, "--queue", "delay.unrouted.queue", code=1)
        assert rabbit.delayctl("apply", topology.write(text.replace("STEPS", "5")), "--yes").code == 0
        after = redriven(rabbit, file, "--queue", "delay.unrouted.queue")

        assert [left["why"] for left in before["left"]] == ["delay.any.exchange has no step '3' for it"]
        assert after["to"] == [{"place": "delay.any.03.queue", "count": 1}]
        rabbit.await_ready("mails.queue", 1)
        assert [(message.body, message.key) for message in rabbit.take("mails.queue")] == [("late", "mail.sent")]
        assert rabbit.ready("delay.unrouted.queue") == 0


class TestBoundNoMore:
    """The exit takes what has no way there and parks it elsewhere, so that this is looked at before."""

    @pytest.mark.parametrize("options", [(), ("--to", "orders.queue")], ids=["by itself", "--to"])
    def test_the_binding_is_gone(self, rabbit: Rabbit, parked: str, options: tuple[str, ...]) -> None:
        """All stays as it is, and goes once it was applied again."""
        key = "delay.retry.orders.queue"
        rabbit.api("DELETE", f"bindings/{{vhost}}/e/delay.exchange/q/orders.queue/{key}")

        bound_no_more = redriven(rabbit, parked, "--queue", "orders.dlq", *options, code=1)
        there = looked_at(rabbit, "orders.dlq")
        assert rabbit.delayctl("apply", parked, "--yes").code == 0
        again = redriven(rabbit, parked, "--queue", "orders.dlq", *options)

        why = f"orders.queue is not bound to delay.exchange by the key {key}"
        assert [(left["why"], left["count"]) for left in bound_no_more["left"]] == [(why, 5)]
        assert (len(there), again["moved"], rabbit.ready("delay.unrouted.queue")) == (5, 5, 0)

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ((), "orders.queue is not there"),
            (("--origin", "--where", "key=order.created"), "no route for key 'order.created' at delay.exchange"),
        ],
        ids=["by itself", "--origin"],
    )
    def test_the_queue_is_gone(self, rabbit: Rabbit, parked: str, options: tuple[str, ...], why: str) -> None:
        """With all that was bound to it."""
        rabbit.api("DELETE", "queues/{vhost}/orders.queue")
        rabbit.api("DELETE", "queues/{vhost}/audit.queue")

        answer = redriven(rabbit, parked, "--queue", "orders.dlq", *options, code=1)

        assert (answer["moved"], why in {left["why"] for left in answer["left"]}) == (0, True)
        assert (rabbit.ready("orders.dlq"), rabbit.ready("delay.unrouted.queue")) == (5, 0)

    @pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=["moved", "dry run"])
    def test_a_target_that_is_not_there(self, rabbit: Rabbit, parked: str, options: tuple[str, ...]) -> None:
        """A slip in its name, or a queue of others that is gone: a dry run says the same."""
        answer = redriven(rabbit, parked, "--queue", "orders.dlq", "--to", "mail.queue", *options, code=1)

        why = "there is no queue 'mail.queue' (did you mean 'mails.queue'?)"
        assert (answer["moved"], answer["failed"]) == (0, [])
        assert [(left["why"], left["count"]) for left in answer["left"]] == [(why, 5)]
        assert rabbit.ready("orders.dlq") == 5


class TestOthersQueues:
    """What the broker parked, in queues that no file knows."""

    @pytest.mark.parametrize("kind", ["classic", "quorum"])
    def test_rejected_messages_go_back_to_where_they_were_rejected(self, rabbit: Rabbit, file: str, kind: str) -> None:
        """As their x-death says; a handler still sees the first key."""
        with rabbit.channel() as channel:
            dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "foreign.dlq", "x-queue-type": kind}
            channel.queue_declare("foreign.queue", durable=True, arguments=dead)
            channel.queue_declare("foreign.dlq", durable=True, arguments={"x-queue-type": kind})
            channel.queue_bind("foreign.queue", "orders.exchange", "invoice.sent")
        rabbit.publish("orders.exchange", "invoice.sent", *(f"{number}" for number in range(30)))
        with rabbit.channel() as channel:
            for _ in range(30):
                channel.basic_reject(got(channel, "foreign.queue"), requeue=False)
        rabbit.await_ready("foreign.dlq", 30)

        answer = redriven(rabbit, file, "--queue", "foreign.dlq")

        found = rabbit.take("foreign.queue")
        assert answer["moved"] == 30
        assert answer["without_message_id"] == 30
        assert [message.body for message in found] == [f"{number}" for number in range(30)]
        assert found[0].headers["delay-origin"] == {"exchange": "orders.exchange", "key": "invoice.sent"}
        assert "x-death" not in found[0].headers

    @pytest.mark.parametrize("kind", ["classic", "quorum"])
    def test_large_messages_behind_small_ones(self, rabbit: Rabbit, file: str, kind: str) -> None:
        """No more are held than fit; all arrive once, in their order where a classic queue puts back in place what does not fit."""
        with rabbit.channel() as channel:
            channel.queue_declare("large.dlq", durable=True, arguments={"x-queue-type": kind})
            names = [f"{number}" for number in range(60)]
            for name in names:
                body = name.encode() + b"x" * (0 if int(name) < 30 else 1 << 20)
                channel.basic_publish("", "large.dlq", body, pika.BasicProperties(message_id=name))
        rabbit.await_ready("large.dlq", 60)

        looked = rabbit.delayctl("pending", file, "--queue", "large.dlq", "--output", "json")
        answer = redriven(rabbit, file, "--queue", "large.dlq", "--to", "mails.queue")

        found = [message.body.rstrip("x") for message in rabbit.take("mails.queue")]
        assert [queue["looked_at"] for queue in json.loads(looked.out)["queues"]] == [60]
        assert (answer["moved"], rabbit.ready("large.dlq")) == (60, 0)
        assert sorted(found, key=int) == names
        assert found == names or kind == "quorum"


class TestTrouble:
    """What goes wrong is said, and loses nothing."""

    def test_the_target_is_full(self, rabbit: Rabbit, file: str) -> None:
        """What it took is gone from the parking queue, the rest is still there."""
        with rabbit.channel() as channel:
            for number in range(300):
                channel.basic_publish("", "orders.dlq", b"x", pika.BasicProperties(message_id=f"{number}"))

        answer = redriven(rabbit, file, "--queue", "orders.dlq", code=3)

        there = rabbit.ready("orders.queue")
        assert 100 <= there == answer["moved"] < 300
        assert rabbit.ready("orders.dlq") == 300 - there
        assert "a queue is full" in answer["failed"][0]["why"]

    def test_what_is_parked_again_meanwhile_waits_for_the_next_run(
        self, rabbit: Rabbit, topology: TopologyFile, parked: str
    ) -> None:
        """It ends after as many as there were, however fast they come back."""
        seen = Seen(lambda _: Park("again"))
        with running(rabbit.url, topology.path, {"orders.queue": seen}):
            answer = redriven(rabbit, parked, "--queue", "orders.dlq")
            seen.await_count(5)
            rabbit.await_ready("orders.dlq", 5)

        assert (answer["moved"], answer["looked_at"]) == (5, 5)

    def test_a_queue_that_is_not_there(self, rabbit: Rabbit, file: str) -> None:
        """One line, and how to go on."""
        ran = rabbit.delayctl("redrive", file, "--queue", "nowhere.dlq")

        assert ran.code == 1
        assert ran.err.startswith("Error: there is no queue 'nowhere.dlq'\n  fix: check the name")

    def test_a_queue_that_another_consumer_has_for_itself(self, rabbit: Rabbit, file: str) -> None:
        """What it keeps from us is not gone, and none of it was moved."""
        alone = {"x-single-active-consumer": True}
        with rabbit.channel() as channel:
            channel.queue_declare("taken.dlq", durable=True, arguments=alone)
            channel.basic_qos(prefetch_count=1)
            channel.basic_consume("taken.dlq", lambda *_: None)
            rabbit.publish("", "taken.dlq", "one", "two", "three")
            rabbit.await_ready("taken.dlq", 2)

            answer = redriven(rabbit, file, "--queue", "taken.dlq", "--to", "mails.queue", code=1)

        assert (answer["messages"], answer["looked_at"], answer["not_given"]) == (2, 0, 2)

    def test_nothing_is_parked(self, rabbit: Rabbit, file: str) -> None:
        """That is fine, and said."""
        ran = rabbit.delayctl("redrive", file, "--queue", "orders.dlq")

        assert (ran.code, ran.out) == (0, "Nothing is ready in orders.dlq.\n")

    def test_interrupted(self, rabbit: Rabbit, parked: str) -> None:
        """Ctrl-C ends it with an answer; what was moved is moved, the rest is there."""
        arguments = ("redrive", parked, "--queue", "orders.dlq", "--rate", "1/s", *rabbit.options)
        with delayctl_process(*arguments, stdout=subprocess.PIPE) as process:
            until(lambda: rabbit.ready("orders.queue") > 0, 20)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=20)

        moved = rabbit.ready("orders.queue")
        assert process.returncode == 3
        assert f"Redriven: {moved} of 5 messages of orders.dlq" in out
        assert "Run it again to go on." in out
        rabbit.await_ready("orders.dlq", 5 - moved)

    def test_looking_does_not_wear_a_message_out(self, rabbit: Rabbit, file: str) -> None:
        """A quorum queue that gives up what was given back six times is not looked at a fourth time where that counts."""
        with rabbit.channel() as channel:
            channel.queue_declare("worn.dlq", durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 6})
        rabbit.publish("", "worn.dlq", "one", "two")

        codes = [
            rabbit.delayctl("redrive", file, "--queue", "worn.dlq", "--to", "mails.queue", "--dry-run").code
            for _ in range(5)
        ]

        counts_returns = rabbit.broker.version.startswith("3.")
        assert codes == ([0, 0, 0, 3, 3] if counts_returns else [0] * 5)
        assert rabbit.ready("worn.dlq") == 2
        assert redriven(rabbit, file, "--queue", "worn.dlq", "--to", "mails.queue")["moved"] == 2

    def test_looking_where_there_is_no_limit(self, rabbit: Rabbit, file: str) -> None:
        """Where no limit was set, as before RabbitMQ 4.0, one may look as often as one likes."""
        with rabbit.channel() as channel:
            channel.queue_declare("lasting.dlq", durable=True, arguments={"x-queue-type": "quorum"})
        rabbit.publish("", "lasting.dlq", "one", "two")
        for _ in range(12):
            with Pull(access_from(rabbit.url), "lasting.dlq", name="a test") as pull:
                pull.take(2)

        ran = rabbit.delayctl("redrive", file, "--queue", "lasting.dlq", "--to", "mails.queue", "--dry-run")

        assert (ran.code, rabbit.ready("lasting.dlq")) == (0, 2)


class TestRights:
    """Least privilege."""

    def test_read_there_and_write_on_the_exit_will_do(self, rabbit: Rabbit, parked: str) -> None:
        """With less, it says which right is missing, and everything stays."""
        name, password = f"redriver-{rabbit.vhost}", secrets.token_hex(8)
        rabbit.api("PUT", f"users/{name}", {"password": password, "tags": ""})
        url = f"amqp://{name}:{password}@{rabbit.broker.url.rpartition('@')[2]}"
        where = ("--url", url, "--management-url", rabbit.broker.management_url, "--vhost", rabbit.vhost)

        def as_user(write: str, read: str) -> Any:
            rights = {"configure": "^$", "write": write, "read": read}
            rabbit.api("PUT", f"permissions/{{vhost}}/{name}", rights)
            return delayctl("redrive", parked, "--queue", "orders.dlq", *where)

        try:
            blind = as_user("^delay\\.exchange$", "^$")
            mute = as_user("^$", "^orders\\.dlq$")
            left = until(lambda: rabbit.ready("orders.dlq") == 5, 10)
            enough = as_user("^delay\\.exchange$", "^orders\\.dlq$")
        finally:
            rabbit.api("DELETE", f"users/{name}")

        assert (blind.code, mute.code, enough.code) == (1, 1, 0), (blind, mute, enough)
        assert "not permitted" in blind.err
        assert "orders.dlq" in blind.err
        assert "delay.exchange" in mute.out + mute.err
        assert left
        assert "may not use the management API; whether queues are still bound is not checked" in enough.err
        assert rabbit.ready("orders.queue") == 5
