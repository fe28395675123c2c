"""Every reason why a way is not proved, provoked on a real broker."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.integration.test_permissions import User, users
from tests.integration.test_verify import Verify, apply, messages, verify
from tests.support.hand_made import HandMade
from tests.support.rabbit import Rabbit

__all__ = ["users", "verify"]  # Fixtures that are written elsewhere.

FILE = """\
version: 1
delay:
  levels: [200ms, 400ms, 1h]
  any: {unit: 50ms, steps: 2}
exchanges:
  orders.exchange: {type: topic}
routes:
  - {from: orders.exchange, key: order.created, delay: 400ms, to: orders.queue}
"""
LEVEL = "level 200ms"
QUEUE = "delay.200ms.queue"
ROUTE = "route orders.exchange 'order.created' to orders.queue"


@dataclass(frozen=True)
class Site:
    """One level of a file, in the hands of somebody who should not have it."""

    rabbit: Rabbit
    channel: BlockingChannel
    name: str

    @property
    def entrance(self) -> str:
        """Where it is published to."""
        return f"delay.{self.name}.exchange"

    @property
    def queue(self) -> str:
        """Where messages wait."""
        return f"delay.{self.name}.queue"

    def made_anew(self, **settings: Any) -> None:
        """The queue as somebody else would make it."""
        self.channel.queue_delete(self.queue)
        HandMade(self.rabbit).queue(self.queue, **settings)
        HandMade(self.rabbit).bind(self.entrance, self.queue)

    def with_policy(self, **definition: Any) -> None:
        """A policy of others on the queue."""
        self.rabbit.put_policy(f"theirs-{self.name}", f"^delay[.]{self.name}[.]queue$", **definition)


def without_entrance(site: Site) -> None:
    """The entrance is gone."""
    site.channel.exchange_delete(site.entrance)


def without_binding(site: Site) -> None:
    """Nothing leads from the entrance into the queue."""
    site.channel.queue_unbind(site.queue, site.entrance, "")


def without_queue(site: Site) -> None:
    """The queue is gone, and its binding with it."""
    site.channel.queue_delete(site.queue)


def with_key(site: Site) -> None:
    """A policy of others gives another key to all that has waited."""
    site.with_policy(dead_letter_routing_key="other")


def with_lower_ttl(site: Site) -> None:
    """A policy of others shortens the wait."""
    site.with_policy(message_ttl=50)


def with_higher_ttl(site: Site) -> None:
    """Somebody has made the queue anew, with a longer wait."""
    site.made_anew(x_message_ttl=4_000, x_dead_letter_exchange="delay.exchange")


def with_endless_wait(site: Site) -> None:
    """Somebody has made the queue anew, with a wait that nobody waits for."""
    site.made_anew(x_message_ttl=86_400_000, x_dead_letter_exchange="delay.exchange")


def without_ttl(site: Site) -> None:
    """Somebody has made the queue anew, without any TTL."""
    site.made_anew(x_dead_letter_exchange="delay.exchange")


def without_dead_letters(site: Site) -> None:
    """Somebody has made the queue anew, and what expires there is gone."""
    site.made_anew(x_message_ttl=1_000)


def in_a_circle(site: Site) -> None:
    """What has waited comes to where it waits."""
    site.made_anew(x_message_ttl=1_000, x_dead_letter_exchange=site.entrance)


def to_elsewhere(site: Site) -> None:
    """What has waited comes to a queue of others."""
    site.made_anew(x_message_ttl=1_000, x_dead_letter_exchange="amq.fanout")
    HandMade(site.rabbit).queue("others.queue")
    HandMade(site.rabbit).bind("amq.fanout", "others.queue")


def bound_twice(site: Site) -> None:
    """The entrance also leads into the queue of another level."""
    HandMade(site.rabbit).bind(site.entrance, "delay.sound.queue")


def stuck(site: Site) -> None:
    """A queue that dead-letters at least once, to an exchange that is not there."""
    settings = {"x_queue_type": "quorum", "x_overflow": "reject-publish", "x_dead_letter_strategy": "at-least-once"}
    site.made_anew(x_message_ttl=1_000, x_dead_letter_exchange="nowhere.exchange", **settings)


# What is done to a level, what is said of it, and how many canaries are sent: none that would not be given back.
DAMAGES: tuple[tuple[Callable[[Site], None], str, int], ...] = (
    (without_entrance, "entrance-missing", 2),
    (without_binding, "unroutable", 2),
    (without_queue, "unroutable", 2),
    (with_key, "key-changed", 0),
    (with_lower_ttl, "early", 2),
    (with_higher_ttl, "late", 2),
    (with_endless_wait, "late", 0),
    (without_ttl, "never-leaves", 0),
    (without_dead_letters, "lost", 0),
    (in_a_circle, "dropped", 0),
    (to_elsewhere, "astray", 0),
    (bound_twice, "doubled", 0),
    (stuck, "stuck", 0),
)


def test_damage_to_levels(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Each is found, at its level and nowhere else, and no canary comes to anybody or stays anywhere."""
    levels = "".join(f"    {damage.__name__}: {{ttl: 1s}}\n" for damage, *_ in DAMAGES)
    apply(rabbit, topology, f"version: 1\ndelay:\n  levels:\n    sound: {{ttl: 1s500ms}}\n{levels}")
    with rabbit.channel() as channel:
        for damage, *_ in DAMAGES:
            damage(Site(rabbit, channel, damage.__name__))
    until(lambda: rabbit.queue("delay.with_lower_ttl.queue").get("policy") == "theirs-with_lower_ttl", 15)

    found = verify("--max-lateness", "2s")

    assert found.code == 1
    assert found.troubles == {f"level {damage.__name__}": [trouble] for damage, trouble, _ in DAMAGES}
    levels_found = {way["name"]: way for way in found.json["ways"]}
    assert {damage.__name__: sent for damage, _, sent in DAMAGES} == {
        damage.__name__: levels_found[damage.__name__]["sent"] for damage, *_ in DAMAGES
    }
    # What canaries met is told together with who is to blame.
    (early,) = levels_found["with_lower_ttl"]["troubles"]
    assert early["what"].startswith("2 of 2 canaries came early: after ")
    assert early["fix"] == "narrow or correct the policy theirs-with_lower_ttl"
    assert found.json["at_large"] == 0
    assert messages(rabbit) == 0
    assert "delay.verify.queue" not in str(rabbit.definitions())


def test_a_long_level_that_is_too_short(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """How long hastened canaries would have waited is told by what is in force."""
    apply(rabbit, topology, FILE)
    rabbit.put_policy("theirs", "^delay[.]1h[.]queue$", message_ttl=60_000)

    found = verify("--level", "1h")

    assert (found.by["level 1h"], found.troubles) == ("hastened", {"level 1h": ["early"]})
    assert "messages wait 1m instead of 1h" in found.json["ways"][1]["troubles"][0]["what"]


def test_no_net(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """The exit is not proved, although canaries come out of it."""
    apply(rabbit, topology, FILE)
    with rabbit.channel() as channel:
        channel.exchange_delete("delay.unrouted.exchange")

    found = verify("--level", "200ms")

    assert (found.code, found.troubles) == (1, {"exit delay.exchange": ["no-net"]})
    assert found.json["ways"][0]["arrived"] == 2


def test_no_exit(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Nothing is sent, and every delay and delayed route is lost."""
    apply(rabbit, topology, FILE)
    with rabbit.channel() as channel:
        channel.exchange_delete("delay.exchange")

    found = verify()

    assert (found.code, found.json["sent"]) == (1, 0)
    assert found.troubles == {
        "exit delay.exchange": ["exit-missing"],
        **{name: ["lost"] for name in found.by if name not in ("exit delay.exchange", ROUTE)},
        ROUTE: ["astray"],
    }


def test_a_gap_in_the_ladder(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Whatever would have waited there, and what would have come by, is not proved."""
    apply(rabbit, topology, FILE)
    with rabbit.channel() as channel:
        channel.exchange_unbind(
            "delay.any.00.exchange", "delay.any.00.gate.exchange", "", {"delay-0": True, "x-match": "all"}
        )
        channel.exchange_delete("delay.any.01.gate.exchange")

    found = verify()

    assert found.troubles == {
        "rung any.00": ["not-expired", "early"],
        "rung any.01": ["entrance-missing"],
        "ladder any.01 down to any.00": ["not-expired", "early"],
    }


def test_damage_to_routes(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Each is found by the objects, also where canaries would be sent; and none is."""
    names = ("way-in", "way-out", "target", "past", "source")
    routes = "".join(f"  - {{from: {name}.exchange, key: {name}, delay: 200ms, to: {name}.queue}}\n" for name in names)
    apply(rabbit, topology, f"version: 1\ndelay: {{levels: [200ms]}}\nroutes:\n{routes}")
    with rabbit.channel() as channel:
        for name in ("way-in", "past"):
            channel.exchange_unbind("delay.200ms.exchange", f"{name}.exchange", name)
        HandMade(rabbit).bind("past.exchange", "past.queue", "past")
        channel.queue_unbind("way-out.queue", "delay.exchange", "way-out")
        channel.queue_delete("target.queue")
        channel.exchange_delete("source.exchange")

    found = verify("--through-routes")

    expected = {"way-in": "astray", "way-out": "astray", "target": "astray", "past": "early", "source": "astray"}
    assert found.code == 1
    assert found.troubles == {
        f"route {name}.exchange '{name}' to {name}.queue": [trouble] for name, trouble in expected.items()
    }
    assert found.json["sent"] == 4
    assert messages(rabbit) == 0


def test_behind_an_older_message(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Only the head of a queue expires: what came before the TTL was lowered is in the way, and may be for too long.

    What comes out after it was given up is caught all the same, and parked with nobody.
    """
    text = "version: 1\ndelay: {levels: {late: {ttl: LATE}, missing: {ttl: MISSING}}, settings: policy}\n"
    apply(rabbit, topology, text.replace("LATE", "3s").replace("MISSING", "9s"))
    for level in ("late", "missing"):
        rabbit.publish(f"delay.{level}.exchange", "a.key", "an older one")
        rabbit.put_policy(f"delay.{level}.policy", f"^delay[.]{level}[.]queue$", priority=10, message_ttl=300)
    topology.write(text.replace("LATE", "300ms").replace("MISSING", "300ms"))

    found = verify("--timeout", "4", "--max-lateness", "500ms")

    assert (found.code, found.troubles) == (1, {"level late": ["late"], "level missing": ["missing"]})
    assert "still in delay.missing.queue" in found.json["ways"][2]["troubles"][0]["what"]
    assert found.json["at_large"] == 2
    rabbit.await_ready("delay.verify.queue", 2)
    assert [message.body for message in rabbit.take("delay.unrouted.queue")] == ["an older one"] * 2


def test_a_full_queue_that_lets_others_go(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Nothing is sent: a canary would push the oldest message out early."""
    apply(rabbit, topology, "version: 1\ndelay: {levels: {1h: {max_length: 5}, 200ms: {}}}\n")
    rabbit.publish("delay.1h.exchange", "a.key", *"12345")
    until(lambda: rabbit.queue("delay.1h.queue").get("messages_ready") == 5, 30)

    found = verify("--up-to", "2h", "--level", "1h")

    assert (found.code, found.troubles) == (1, {"level 1h": ["full"]})
    assert found.json["ways"][1]["sent"] == 0
    assert rabbit.ready("delay.1h.queue") == 5


def test_a_full_queue_that_refuses(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """The broker says no to the canaries, as it does to all."""
    apply(rabbit, topology, "version: 1\ndelay: {levels: {2s: {max_length: 5, overflow: reject-publish}}}\n")
    rabbit.publish("delay.2s.exchange", "a.key", *"12345")

    found = verify()

    assert (found.code, found.troubles) == (1, {"level 2s": ["refused"]})
    assert "a queue is full or can't keep it" in found.json["ways"][1]["troubles"][0]["what"]


def test_a_full_queue_that_refuses_and_is_long(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """No canary is sent behind what waits there; it is not proved all the same, since all that comes is refused."""
    apply(rabbit, topology, "version: 1\ndelay: {levels: {1h: {max_length: 5, overflow: reject-publish}}}\n")
    rabbit.publish("delay.1h.exchange", "a.key", *"12345")
    until(lambda: rabbit.queue("delay.1h.queue").get("messages_ready") == 5, 30)

    found = verify("--up-to", "1s")

    assert (found.code, found.troubles) == (1, {"level 1h": ["refused"]})
    said = "delay.1h.queue is full (5 messages of 5): what is published to it is refused"
    assert found.json["ways"][1]["troubles"][0]["what"] == said
    assert (found.json["ways"][1]["sent"], rabbit.ready("delay.1h.queue")) == (0, 5)


def test_a_queue_that_hands_nothing_on(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Blocked by what a full target refuses: no canary is sent behind that, and it is not proved all the same."""
    target = "queues: {full.queue: {arguments: {x-max-length: 1, x-overflow: reject-publish}}}\n"
    routes = "routes: [{key: a.key, delay: 2s, to: full.queue}]\n"
    apply(rabbit, topology, f"version: 1\ndelay: {{levels: {{2s: {{profile: safe}}}}}}\n{target}{routes}")
    rabbit.publish("delay.2s.exchange", "a.key", *(f"{number}" for number in range(40)))
    told = {"messages_dlx": 39, "messages_ready": 0}
    until(lambda: told.items() <= rabbit.queue("delay.2s.queue").items(), 30)

    found = verify("--up-to", "1s")

    assert (found.code, found.troubles) == (1, {"level 2s": ["stuck"]})
    said = "delay.2s.queue is blocked: 39 messages expired and found no taker"
    assert found.json["ways"][1]["troubles"][0]["what"] == said


def test_pushed_out(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """A rush behind the canaries makes them leave before their time."""
    apply(rabbit, topology, "version: 1\ndelay: {levels: {3s: {max_length: 10}}}\n")

    def rush() -> None:
        rabbit.await_ready("delay.3s.queue", 2)
        rabbit.publish("delay.3s.exchange", "a.key", *"0123456789")

    with beside(rush):
        found = verify()

    assert (found.code, found.troubles) == (1, {"level 3s": ["pushed-out", "early"]})


@contextmanager
def beside(work: Callable[[], None]) -> Iterator[None]:
    """Something that goes on at the same time, and is waited for."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join(30)


Then = Callable[[BlockingChannel, str, pika.BasicProperties], None]


def kept(_: BlockingChannel, __: str, ___: pika.BasicProperties) -> None:
    """Does nothing with what it took."""


def sent_on(channel: BlockingChannel, key: str, properties: pika.BasicProperties) -> None:
    """Sends on what it took, at once."""
    channel.basic_publish("delay.exchange", key, b"", properties)


def sent_on_twice(channel: BlockingChannel, key: str, properties: pika.BasicProperties) -> None:
    """Sends on what it took, and again."""
    sent_on(channel, key, properties)
    sent_on(channel, key, properties)


def sent_on_by_another_key(channel: BlockingChannel, key: str, properties: pika.BasicProperties) -> None:
    """Sends on what it took, by a key of its own."""
    sent_on(channel, f"{key}.other", properties)


def sent_on_without_headers(channel: BlockingChannel, key: str, properties: pika.BasicProperties) -> None:
    """Sends on what it took, and forgets what was in the headers."""
    sent_on(channel, key, pika.BasicProperties(message_id=properties.message_id))


THIEVES: tuple[tuple[Then, list[str]], ...] = (
    (kept, ["missing"]),
    (sent_on, ["not-expired", "early"]),
    (sent_on_twice, ["not-expired", "early", "doubled"]),
    (sent_on_by_another_key, ["key-changed", "not-expired", "early"]),
    (sent_on_without_headers, ["headers-changed", "not-expired", "early"]),
)


@contextmanager
def thieves(rabbit: Rabbit) -> Iterator[None]:
    """Somebody who consumes from delay queues, and does something with what was to wait there."""
    over = threading.Event()

    def steal() -> None:
        with rabbit.channel() as channel:
            for then, _ in THIEVES:
                take = partial(_taken, then)
                channel.basic_consume(f"delay.{then.__name__}.queue", take, auto_ack=True)
            while not over.is_set():
                channel.connection.process_data_events(0.02)

    with beside(steal):
        queue = f"delay.{THIEVES[-1][0].__name__}.queue"
        until(lambda: rabbit.queue(queue).get("consumers") == 1, 30)
        yield
        over.set()


def _taken(then: Then, channel: BlockingChannel, method: Any, properties: pika.BasicProperties, _: bytes) -> None:
    then(channel, str(method.routing_key), properties)


def test_consumers_of_delay_queues(rabbit: Rabbit, topology: TopologyFile, verify: Verify) -> None:
    """Canaries are missing, or have not waited; and what else was done to them is seen."""
    levels = "".join(f"    {then.__name__}: {{ttl: 2s}}\n" for then, _ in THIEVES)
    apply(rabbit, topology, f"version: 1\ndelay:\n  levels:\n{levels}")

    with thieves(rabbit):
        found = verify("--timeout", "1", "--max-lateness", "1s")

    assert found.code == 1
    assert found.troubles == {f"level {then.__name__}": troubles for then, troubles in THIEVES}
    (missing,) = found.json["ways"][1]["troubles"]
    assert "delay.kept.queue has 1 consumer, and nobody may consume from a delay queue" in missing["what"]


VERIFIER = FILE + "permissions: {VERIFIER: verifier}\n"


def granted(rabbit: Rabbit, user: User, **changed: str) -> None:
    """Give a user the printed rights, or others in the place of some."""
    configure, read = "^delay[.]verify[.]queue$", "^delay[.](exchange|verify[.]queue)$"
    write = "^delay[.](exchange|verify[.]queue|(200ms|400ms|1h|any)[.]exchange|any[.]0[01][.]gate[.]exchange)$"
    rights = {"configure": configure, "write": write, "read": read, **changed}
    rabbit.api("PUT", f"permissions/{{vhost}}/{user.name}", rights)


def test_the_printed_rights_are_enough(rabbit: Rabbit, topology: TopologyFile, users: Callable[..., User]) -> None:
    """A user with the role and the tag of a verifier, and no others, proves all there is; be it by canaries' keys alone."""
    user = users("verifier", "management")
    apply(rabbit, topology, VERIFIER.replace("VERIFIER", user.name))
    assert rabbit.delayctl("permissions", str(topology.path), "--apply", "--yes").code == 0
    keys = r"^delay\.verify\."
    topics = {"exchange": "delay.exchange", "write": keys, "read": keys}
    rabbit.api("PUT", f"topic-permissions/{{vhost}}/{user.name}", topics)

    ran = user.delayctl("verify", str(topology.path))

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("proved: ")
    assert user.is_refused("queue_purge", "orders.queue")
    assert user.is_refused("basic_publish", "orders.exchange", "order.created", b"")
    assert user.is_refused("basic_publish", "delay.exchange", "order.created", b"")


def test_policies_are_seen_by_who_may_not_read_them(
    rabbit: Rabbit, topology: TopologyFile, users: Callable[..., User]
) -> None:
    """What is in force is told of each queue, also to a user with the tag management alone."""
    user = users("verifier", "management")
    apply(rabbit, topology, FILE)
    granted(rabbit, user)
    rabbit.put_policy("theirs", "^delay[.]1h[.]queue$", message_ttl=60_000)
    rabbit.await_effective("delay.1h.queue", {"message-ttl": 60_000})

    ran = user.delayctl("verify", str(topology.path), "--level", "1h")

    assert ran.code == 1
    assert "messages wait 1m instead of 1h (policy theirs) [early]" in ran.out


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"configure": "^$"}, "may not catch canaries"),
        ({"read": "^$"}, "may not catch canaries"),
    ],
)
def test_who_may_not_catch(
    rabbit: Rabbit, topology: TopologyFile, users: Callable[..., User], changed: dict[str, str], expected: str
) -> None:
    """Nothing is sent, and it is said which rights are needed."""
    user = users("verifier", "management")
    apply(rabbit, topology, FILE)
    granted(rabbit, user, **changed)

    ran = user.delayctl("verify", str(topology.path))

    assert (ran.code, ran.out) == (1, "")
    assert expected in ran.err
    assert "--role verifier" in ran.err
    assert messages(rabbit) == 0


def test_who_may_not_publish(rabbit: Rabbit, topology: TopologyFile, users: Callable[..., User]) -> None:
    """What the user may not write to is refused; the rest is proved all the same."""
    user = users("verifier", "management")
    apply(rabbit, topology, FILE)
    granted(rabbit, user, write="^delay[.](exchange|verify[.]queue|400ms[.]exchange)$")

    ran = user.delayctl("verify", str(topology.path), "--level", "200ms", "--level", "400ms")

    assert ran.code == 1
    assert "Failed: level 200ms: the broker did not take 2 of 2 canaries: not permitted" in ran.out
    assert "ok      level 400ms" in ran.out
    assert "Failed: level 400ms" not in ran.out


SECOND_WAYS = (
    (("orders.exchange", "orders.queue", "order.*"), "0s and 400ms"),
    (("orders.exchange", "delay.1h.queue", "order.#"), "400ms and 1h"),
    (("delay.400ms.exchange", "orders.queue", ""), "0s and 400ms"),
)


@pytest.mark.parametrize(("binding", "times"), SECOND_WAYS)
def test_a_second_way_to_the_target_of_a_route(
    rabbit: Rabbit, topology: TopologyFile, verify: Verify, binding: tuple[str, str, str], times: str
) -> None:
    """Messages of the route would come twice, and the binding that lets them is named."""
    apply(rabbit, topology, FILE)
    HandMade(rabbit).bind(*binding)

    found = verify("--up-to", "0s")

    (trouble,) = next(way for way in found.json["ways"] if way["kind"] == "route")["troubles"]
    assert (found.code, found.troubles[ROUTE]) == (1, ["doubled"])
    assert trouble["what"].startswith(f"messages come to orders.queue 2 times, after {times}: the file knows nothing")
    assert f"{binding[0]} →" in trouble["what"]
