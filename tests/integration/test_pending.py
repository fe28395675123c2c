"""What waits and what is parked, on a real broker: seen without being lost, reordered or hastened."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from delayctl.consumers.pull import Pull
from delayctl.publishers.choice import Ways
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.access import access_from

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import delayctl
from tests.support.parked import park
from tests.support.rabbit import Rabbit

FILE = """version: 1
delay:
  any: {unit: 1s, steps: 12}
  levels:
    400ms: {type: TYPE}
    2s: {type: TYPE}
    1h: {type: TYPE}
routes:
  - {key: "order.#", delay: any, to: orders.queue}
retry:
  orders.queue: {levels: [400ms], max: 2, park: orders.dlq}
"""
STUCK = """version: 1
delay:
  levels: {200ms: {profile: safe}}
queues:
  full.queue: {arguments: {x-max-length: 1, x-overflow: reject-publish}}
routes:
  - {key: a.key, delay: 200ms, to: full.queue}
"""


@pytest.fixture(params=["classic", "quorum"])
def file(rabbit: Rabbit, topology: TopologyFile, request: pytest.FixtureRequest) -> str:
    """A file with queues of either type, applied."""
    path = topology.write(FILE.replace("TYPE", request.param))
    assert rabbit.delayctl("apply", path, "--yes").code == 0
    return path


def publish(rabbit: Rabbit, file: str, level: str, names: Sequence[str], key: str = "order.created") -> None:
    """Messages whose body is their id, in this order."""
    with DelayPublisher(rabbit.url, topology=file) as publisher:
        for name in names:
            publisher.publish(name.encode(), key=key, level=level, message_id=name)


def answered(rabbit: Rabbit, *arguments: str, code: int = 0) -> dict[str, Any]:
    """What a command answers to programs."""
    ran = rabbit.delayctl(*arguments, "--output", "json")
    assert ran.code == code, ran.out + ran.err
    answer: dict[str, Any] = json.loads(ran.out)
    return answer


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("count", [100, 3_000])
def test_what_is_given_back_keeps_its_order(rabbit: Rabbit, kind: str, count: int) -> None:
    """However many are held: a quorum queue told of more than 32 at once would mix them up."""
    with rabbit.channel() as channel:
        channel.queue_declare("held.queue", durable=True, arguments={"x-queue-type": kind})
    names = [f"{number}" for number in range(count)]
    access = access_from(rabbit.url)
    with DelayPublisher(rabbit.url, topology=Ways("", ())) as publisher:
        for name in names:
            publisher.publish(name, key="held.queue", exchange="", message_id=name)

    looks = []
    for _ in range(3):
        with Pull(access, "held.queue", name="a test") as pull:
            looks.append([delivery.body.decode() for delivery in pull.take(count)])

    assert looks == [names] * 3


def keeps_places(rabbit: Rabbit, file: str) -> bool:
    """Whether what is looked at in the levels of this file is put back where it was."""
    return "type: classic" in Path(file).read_text() or not rabbit.broker.version.startswith("3.")


def test_what_nobody_takes_is_told(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Expired, and refused by a full target: it is still there, and nobody is given it."""
    file = topology.write(STUCK)
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    publish(rabbit, file, "200ms", ["one", "two", "three"], key="a.key")
    until(lambda: rabbit.queue("delay.200ms.queue").get("messages_dlx") == 2, 30)

    (found,) = answered(rabbit, "pending", file, "--level", "200ms")["queues"]
    told = rabbit.delayctl("pending", file, "--level", "200ms").out
    delivered = rabbit.delayctl("expedite", file, "--level", "200ms", "--all").out

    assert (found["messages"], found["dead_lettering"]) == (0, 2)
    assert "2  expired and found no taker yet" in told
    assert delivered == "Nothing is ready in delay.200ms.queue.\n"


class TestPending:
    """Looking."""

    def test_keys_and_due_times(self, rabbit: Rabbit, file: str) -> None:
        """Of the first messages of a level, and how many there are in all."""
        publish(rabbit, file, "1h", [f"a-{n}" for n in range(30)])
        publish(rabbit, file, "1h", [f"b-{n}" for n in range(90)], key="order.paid")

        (found,) = answered(rabbit, "pending", file, "--level", "1h", "--disturb")["queues"]

        assert (found["queue"], found["kind"], found["messages"], found["looked_at"]) == (
            "delay.1h.queue",
            "waiting",
            120,
            100,
        )
        assert found["keys"] == {"order.paid": 70, "order.created": 30}
        assert found["due"] == {"within 1h": 100}
        assert [each["message_id"] for each in found["seen"][:3]] == ["a-0", "a-1", "a-2"]
        rabbit.await_ready("delay.1h.queue", 120)

    def test_nothing_changes_its_place_or_its_time(self, rabbit: Rabbit, file: str) -> None:
        """Looked at three times, all come out in their order, none early and none late."""
        names = [f"m-{n}" for n in range(50)]
        started = time.time_ns() // 1_000_000
        publish(rabbit, file, "2s", names)

        looks = [answered(rabbit, "pending", file, "--level", "2s", "--sample", "30")["queues"][0] for _ in range(3)]

        rabbit.await_ready("orders.queue", 50)
        came = time.time_ns() // 1_000_000
        assert [look["looked_at"] for look in looks] == [30 if keeps_places(rabbit, file) else 0] * 3
        assert [message.body for message in rabbit.take("orders.queue")] == names
        assert 2_000 <= came - started < 4_000

    def test_what_is_due_while_it_is_held_comes_later(self, rabbit: Rabbit, file: str) -> None:
        """The one behind it comes in time; what was held comes when it is put back, in its order. None is lost."""
        publish(rabbit, file, "400ms", ["first", "second", "third"])
        with Pull(access_from(rabbit.url), "delay.400ms.queue", name="a test") as pull:
            held = [delivery.body for delivery in pull.take(2)]
            rabbit.await_ready("orders.queue", 1)
        rabbit.await_ready("orders.queue", 3)

        assert held == [b"first", b"second"]
        assert [message.body for message in rabbit.take("orders.queue")] == ["third", "first", "second"]

    def test_counting_touches_nothing(self, rabbit: Rabbit, file: str) -> None:
        """With --sample 0 no message is marked as redelivered."""
        publish(rabbit, file, "1h", ["one"])

        ran = rabbit.delayctl("pending", file, "--level", "1h", "--sample", "0")

        assert (ran.code, ran.out) == (0, "level 1h: 1 message\nIn all: 1 message waiting, 0 parked.\n")
        with Pull(access_from(rabbit.url), "delay.1h.queue", name="a test") as pull:
            assert [delivery.redelivered for delivery in pull.take(1)] == [False]

    def test_what_is_parked(self, rabbit: Rabbit, topology: TopologyFile, file: str) -> None:
        """All of it, by key and reason; unrouted messages too."""
        place = {"key": "order.created", "queue": "orders.queue", "parking": "orders.dlq"}
        park(rabbit, topology.path, ["a", "b"], reason="the bank is away", **place)
        publish(rabbit, file, "400ms", ["lost"], key="nobody.cares")
        rabbit.await_ready("delay.unrouted.queue", 1)

        found = {each["queue"]: each for each in answered(rabbit, "pending", file)["queues"]}
        text = rabbit.delayctl("pending", file, "--queue", "orders.dlq", "--list").out

        parked, unrouted = found["orders.dlq"], found["delay.unrouted.queue"]
        assert [(each["message_id"], each["reason"]) for each in parked["seen"]] == [
            ("a", "the bank is away"),
            ("b", "the bank is away"),
        ]
        assert all(abs(each["parked_at"] - time.time() * 1000) < 60_000 for each in parked["seen"])
        assert [(each["key"], each["reason"]) for each in unrouted["seen"]] == [
            ("nobody.cares", "expired in delay.400ms.queue")
        ]
        assert "      2  order.created: the bank is away, the oldest " in text
        assert "    a  order.created  " in text


class TestExpedite:
    """Delivering now."""

    def test_a_whole_level(self, rabbit: Rabbit, file: str) -> None:
        """In order, with their own keys and due times; the level is empty."""
        names = [f"m-{n}" for n in range(700)]
        publish(rabbit, file, "1h", names)

        dry = answered(rabbit, "expedite", file, "--level", "1h", "--all", "--dry-run", "--disturb")
        assert rabbit.ready("delay.1h.queue") == 700
        answer = answered(rabbit, "expedite", file, "--level", "1h", "--all")

        messages = rabbit.take("orders.queue")
        assert dry["queues"][0]["moved"] == answer["queues"][0]["moved"] == 700
        assert [message.body for message in messages] == names
        assert {message.key for message in messages} == {"order.created"}
        assert all(message.headers["delay-due"] > time.time() * 1000 for message in messages)
        assert all(message.headers["delay-expedited"] <= time.time() * 1000 for message in messages)
        assert rabbit.ready("delay.1h.queue") == 0

    def test_one_behind_others(self, rabbit: Rabbit, file: str) -> None:
        """By its id; those before and behind it stay, in their order, and come out in time."""
        names = [f"m-{n}" for n in range(60)]
        publish(rabbit, file, "2s", names)

        wanted = ("expedite", file, "--level", "2s", "--id", "m-40")
        keeps = keeps_places(rabbit, file)
        refused = None if keeps else rabbit.delayctl(*wanted)
        answer = answered(rabbit, *wanted, *(() if keeps else ("--disturb",)))

        assert [message.body for message in rabbit.take("orders.queue")] == ["m-40"]
        assert answer["not_found"] == []
        rabbit.await_ready("orders.queue", 59)
        others = [message.body for message in rabbit.take("orders.queue")]
        assert others == [name for name in names if name != "m-40"] or not keeps
        assert sorted([*others, "m-40"]) == sorted(names)
        assert refused is None or (refused.code, "--disturb" in refused.err) == (1, True)

    def test_by_key(self, rabbit: Rabbit, file: str) -> None:
        """A pattern, among the first so many."""
        publish(rabbit, file, "1h", ["a", "b"])
        publish(rabbit, file, "1h", ["c", "d"], key="order.paid.late")

        ran = rabbit.delayctl("expedite", file, "--level", "1h", "--key", "order.*.*", "--scan", "3", "--disturb")

        assert ran.code == 0
        assert [message.body for message in rabbit.take("orders.queue")] == ["c"]
        assert (
            "Left there: 2\n  2: not asked for\nNot looked at: 1, behind the first 3; --scan looks further." in ran.out
        )

    def test_in_the_ladder(self, rabbit: Rabbit, file: str) -> None:
        """Whatever step it waits at, it comes out at once, and leaves the other steps out."""
        with DelayPublisher(rabbit.url, topology=file) as publisher:
            publisher.publish(b"long", key="order.created", delay="50m", message_id="long")

        answer = answered(rabbit, "expedite", file, "--level", "any", "--id", "long", "--disturb")

        (message,) = rabbit.take("orders.queue")
        assert (message.body, message.key, answer["not_found"]) == ("long", "order.created", [])
        assert not [name for name in message.headers if name.startswith("delay-") and name[-1].isdigit()]

    def test_not_there(self, rabbit: Rabbit, file: str) -> None:
        """Says so, with 1."""
        publish(rabbit, file, "1h", ["one"])

        ran = rabbit.delayctl("expedite", file, "--level", "1h", "--id", "other", "--disturb")

        assert ran.code == 1
        assert "Not found: 'other'." in ran.out
        rabbit.await_ready("delay.1h.queue", 1)

    def test_no_such_key(self, rabbit: Rabbit, file: str) -> None:
        """The same as for an id."""
        publish(rabbit, file, "1h", ["one"])

        ran = rabbit.delayctl("expedite", file, "--level", "1h", "--key", "other.#", "--disturb")

        assert ran.code == 1
        assert "Not found: key 'other.#'." in ran.out
        rabbit.await_ready("delay.1h.queue", 1)

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (("--all",), "which level is meant?"),
            (("--level", "1h"), "which messages are meant?"),
            (("--level", "1h", "--all", "--id", "x"), "--all excludes --id and --key"),
            (("--level", "2h", "--all"), "there is no level '2h'"),
        ],
    )
    def test_wrong_options(self, rabbit: Rabbit, file: str, arguments: tuple[str, ...], expected: str) -> None:
        """Said before anything is touched, with 64."""
        ran = rabbit.delayctl("expedite", file, *arguments)

        assert ran.code == 64
        assert expected in ran.err


SWITCHED = """version: 1
delay:
  levels:
    1h: {max_length: LENGTH}
    OTHER
routes:
  - {key: order.created, delay: 1h, to: orders.queue}
"""


def switched(length: int, other: str = "") -> str:
    """A file whose level has this max_length, and another level where one is named."""
    return SWITCHED.replace("LENGTH", str(length)).replace("OTHER", other)


class TestWhileItChanges:
    """A level whose queue is changed has two of them, and one that goes is still there."""

    def begun(self, rabbit: Rabbit, topology: TopologyFile) -> str:
        """A switch that has begun: two messages wait in the old queue, four in the next."""
        file = topology.write(switched(100))
        assert rabbit.delayctl("apply", file, "--yes").code == 0
        publish(rabbit, file, "1h", ["a", "b"])
        topology.write(switched(200))
        assert rabbit.delayctl("apply", file, "--yes").code == 3
        publish(rabbit, file, "1h", ["c", "d", "e", "f"])
        rabbit.await_ready("delay.1h.next.queue", 4)
        return file

    def test_pending_counts_both_queues(self, rabbit: Rabbit, topology: TopologyFile) -> None:
        """With and without the level being named."""
        file = self.begun(rabbit, topology)

        ran = rabbit.delayctl("pending", file, "--sample", "0")
        named = answered(rabbit, "pending", file, "--level", "1h", "--sample", "0")

        assert ran.out == (
            "level 1h: 2 messages\nlevel 1h.next: 4 messages\nparked in delay.unrouted.queue: nothing\n"
            "In all: 6 messages waiting, 0 parked.\n"
        )
        assert {each["queue"]: each["messages"] for each in named["queues"]} == {
            "delay.1h.queue": 2,
            "delay.1h.next.queue": 4,
        }

    def test_expedite_takes_from_both(self, rabbit: Rabbit, topology: TopologyFile) -> None:
        """One by its id, then all."""
        file = self.begun(rabbit, topology)

        one = answered(rabbit, "expedite", file, "--level", "1h", "--id", "e")
        first = [message.body for message in rabbit.take("orders.queue")]
        rest = answered(rabbit, "expedite", file, "--level", "1h", "--all")

        assert (one["not_found"], first) == ([], ["e"])
        assert sum(each["moved"] for each in rest["queues"]) == 5
        assert [message.body for message in rabbit.take("orders.queue")] == ["a", "b", "c", "d", "f"]

    def test_a_level_that_goes(self, rabbit: Rabbit, topology: TopologyFile) -> None:
        """The file does not know it any more, and messages wait there all the same."""
        file = topology.write(switched(100, "2h: {}"))
        assert rabbit.delayctl("apply", file, "--yes").code == 0
        publish(rabbit, file, "2h", ["a", "b", "c"])
        topology.write(switched(100))
        assert rabbit.delayctl("apply", file, "--yes").code == 3

        before = answered(rabbit, "pending", file, "--level", "2h")["queues"]
        moved = answered(rabbit, "expedite", file, "--level", "2h", "--all")["queues"]

        assert [(each["queue"], each["messages"], each["ttl_ms"]) for each in before] == [
            ("delay.2h.queue", 3, 7_200_000)
        ]
        assert [each["moved"] for each in moved] == [3]

    def test_a_wait_made_by_hand(self, rabbit: Rabbit, topology: TopologyFile) -> None:
        """As status shows it: a queue with a TTL and a way out, in a file without levels."""
        waits = "{x-message-ttl: 3600000, x-dead-letter-exchange: done}"
        file = topology.write(
            f"version: 1\ndelay: none\nexchanges: {{o: {{}}, done: {{}}}}\nqueues: {{wait.1h: {{arguments: {waits}}}}}\n"
            "routes: [{from: o, key: k, to: wait.1h}, {from: done, key: k, to: done.queue}]\n"
        )
        assert rabbit.delayctl("apply", file, "--yes").code == 0
        rabbit.publish("o", "k", "one")

        ran = rabbit.delayctl("pending", file, "--sample", "0")

        assert ran.out == "level wait.1h: 1 message\nIn all: 1 message waiting, 0 parked.\n"

    def test_without_the_management_api_it_says_what_is_not_seen(self, rabbit: Rabbit, topology: TopologyFile) -> None:
        """The levels of the file are counted all the same."""
        file = self.begun(rabbit, topology)

        ran = delayctl("pending", file, "--sample", "0", "--url", rabbit.url, "--management-url", "http://127.0.0.1:9")

        assert (ran.code, ran.out.splitlines()[0]) == (0, "level 1h: 2 messages")
        assert "levels that are being changed, or go, are not looked into" in ran.err
