"""Retries that wait in their queue, on a broker that can do that; and one that can't."""

import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.message import Message
from delayctl.consumers.outcome import DONE, RETRY, Park, Retry
from delayctl.topology.errors import DelayctlError
from delayctl.topology.version import has_delayed_retry

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.consuming import Seen, raise_, running
from tests.support.rabbit import Rabbit
from tests.support.tcp_proxy import TcpProxy

TOPOLOGY = """
version: 1
delay: {levels: [200ms]}
exchanges: {orders: {}}
queues: {work: {type: quorum}}
routes:
  - {from: orders, key: order.*, to: [work, other]}
retry:
  work: {by: broker, step: STEP, longest: LONGEST, max: 3, park: work.dlq}
"""


def can_wait(rabbit: Rabbit) -> bool:
    """Say whether the broker knows how."""
    return has_delayed_retry(rabbit.api("GET", "overview")["rabbitmq_version"])


def text(step: str = "200ms", longest: str = "500ms") -> str:
    """The file with this step, and no wait longer than that."""
    return TOPOLOGY.replace("STEP", step).replace("LONGEST", longest)


@pytest.fixture
def capable(rabbit: Rabbit) -> Rabbit:
    """A virtual host on a broker that can do it."""
    if not can_wait(rabbit):
        pytest.skip("this broker's quorum queues do not make retries wait")
    return rabbit


@pytest.fixture
def applied(capable: Rabbit, topology: TopologyFile) -> Rabbit:
    """A virtual host with the topology."""
    apply(capable, topology, text())
    return capable


def apply(rabbit: Rabbit, topology: TopologyFile, content: str) -> None:
    """Apply a file with this content."""
    ran = rabbit.delayctl("apply", topology.write(content), "--yes")
    assert ran.code == 0, ran.err + ran.out


def test_an_older_broker_is_refused(rabbit: Rabbit, topology: TopologyFile) -> None:
    """It would take the arguments and let nothing wait: nothing of the file is made, with or without management."""
    if can_wait(rabbit):
        pytest.skip("this broker's quorum queues make retries wait")
    before, file = rabbit.definitions(), topology.write(text())

    planned = rabbit.delayctl("plan", file)
    applied = rabbit.delayctl("apply", file, "--yes")
    blind = rabbit.delayctl("apply", file, "--yes", "--no-management")
    looked = rabbit.delayctl("validate", file, "--live")

    version = rabbit.api("GET", "overview")["rabbitmq_version"]
    refused = (
        f"! queue work: its retries wait by broker, which RabbitMQ {version} does not do: what fails would come back at once\n"
        "        fix: upgrade to 4.3.1 or later, or let them wait in levels: remove by: broker\n"
    )
    assert refused in planned.out
    assert (applied.code, refused in applied.out + applied.err) == (1, True)
    assert (blind.code, refused in blind.out + blind.err) == (1, True)
    assert f"RabbitMQ {version} has a bug that touches work: its quorum queues do not make" in looked.out + looked.err
    assert rabbit.definitions() == before


def test_retries_wait_longer_each_time_and_end_in_the_parking_queue(capable: Rabbit, topology: TopologyFile) -> None:
    """One step, two, up to the longest; the handler sees where it came from; the other queue sees it once."""
    apply(capable, topology, text(step="500ms", longest="1s"))
    seen = Seen(raise_)
    with running(capable.url, topology.path, {"work": seen}):
        capable.publish("orders", "order.created", "hello")
        capable.await_ready("work.dlq", 1)

    assert [message.attempt for message in seen.messages] == [0, 1, 2, 3]
    assert {(m.exchange, m.key, m.text) for m in seen.messages} == {("orders", "order.created", "hello")}
    for wait, expected in zip(seen.waits_ms, (500, 1000, 1000), strict=True):
        assert expected <= wait < expected + 500
    (parked,) = capable.take("work.dlq")
    assert parked.headers["delay-parked"] == "gave up after 3 retries: RuntimeError: no luck"
    assert parked.headers["delay-origin"] == {"exchange": "orders", "key": "order.created"}
    assert parked.headers["delay-attempt"] == 3
    assert not [name for name in parked.headers if name.startswith("x-")]
    assert [message.body for message in capable.take("other")] == ["hello"]
    assert capable.ready("work") == 0


def test_others_overtake_what_waits(applied: Rabbit, topology: TopologyFile) -> None:
    """A message that waits holds up none behind it."""
    seen = Seen(lambda message: RETRY if message.text == "bad" and not message.attempt else DONE)
    with running(applied.url, topology.path, {"work": seen}, workers=1):
        applied.publish("orders", "order.created", "bad", "good", "better")
        seen.await_count(4)

    assert [(message.text, message.attempt) for message in seen.messages] == [
        ("bad", 0),
        ("good", 0),
        ("better", 0),
        ("bad", 1),
    ]


def test_what_a_handler_may_say(applied: Rabbit, topology: TopologyFile, caplog: pytest.LogCaptureFixture) -> None:
    """Parking is at once; a level of one's own choice is no place to wait, and that is said."""
    answers: dict[str, Any] = {"park": Park("broken"), "level": Retry(level="200ms"), "done": DONE, "nothing": None}
    seen = Seen(lambda message: answers[message.text] if not message.attempt else DONE)
    with running(applied.url, topology.path, {"work": seen}):
        applied.publish("orders", "order.created", *answers)
        seen.await_count(5)
        applied.await_ready("work.dlq", 1)

    assert [message.text for message in seen.messages if message.attempt] == ["level"]
    assert [(m.body, m.key, m.headers["delay-parked"]) for m in applied.take("work.dlq")] == [
        ("park", "delay.park.work.dlq", "broken")
    ]
    assert "retries of work wait by broker: they can't wait in level 200ms" in caplog.text


def test_a_connection_that_is_lost_counts_as_a_try(applied: Rabbit, topology: TopologyFile) -> None:
    """What was in the handler comes again after a step, to the connection that follows."""
    parts, release = urlsplit(applied.url), threading.Event()

    def answer(message: Message) -> None:
        if not message.attempt:
            assert release.wait(20)

    seen = Seen(answer)
    with TcpProxy(parts.netloc.rpartition("@")[2]) as proxy:
        url = parts._replace(netloc=f"guest:guest@127.0.0.1:{proxy.port}").geturl()
        with running(url, topology.path, {"work": seen}):
            applied.publish("orders", "order.created", "hello")
            seen.await_count(1)
            proxy.cut()
            seen.await_count(2)
            release.set()
            until(lambda: applied.queue("work").get("messages") == 0, 15)

    assert [message.attempt for message in seen.messages] == [0, 1]
    assert seen.waits_ms[0] >= 200


def test_what_was_not_begun_is_given_back_uncounted(applied: Rabbit, topology: TopologyFile) -> None:
    """A consumer that stops costs nobody a try."""
    release = threading.Event()

    def answer(_: Message) -> None:
        assert release.wait(20)

    seen = Seen(answer)
    with running(applied.url, topology.path, {"work": seen}, workers=1) as consumer:
        applied.publish("orders", "order.created", "begun", "fetched")
        seen.await_count(1)
        until(lambda: applied.ready("work") == 0, 15)
        until(lambda: applied.api("GET", "consumers/{vhost}"), 15, what="the consumer")
        consumer.stop()
        until(lambda: not applied.api("GET", "consumers/{vhost}"), 15, what="the end of the consumer")
        release.set()  # Only now: it begins with nothing new.
        applied.await_ready("work", 1)

    (message,) = applied.take("work")
    assert (message.body, "x-delivery-count" in message.headers) == ("fetched", False)


def test_the_broker_parks_what_kills_its_consumers(applied: Rabbit) -> None:
    """Nobody is left to say why; delayctl tells what the broker knows, and where the message came from."""
    applied.publish("orders", "order.created", "poison")
    for _ in range(4):
        take_and_die(applied)
    applied.await_ready("work.dlq", 1)

    shown = applied.delayctl("consume", "work.dlq", "--requeue", "--wait", "1s")
    found = json.loads(applied.delayctl("consume", "work.dlq", "--count", "1", "--output", "json").out.splitlines()[0])

    assert "parked: tried too often in work" in shown.out
    assert (found["body"], found["exchange"], found["key"]) == ("poison", "orders", "order.created")
    assert (found["parked"], found["headers"]["x-death"][0]["reason"]) == ("tried too often in work", "delivery_limit")


def test_looking_costs_no_try(applied: Rabbit) -> None:
    """However often somebody looks, the message is neither hidden nor counted."""
    applied.publish("orders", "order.created", "looked at")
    applied.await_ready("work", 1)

    looks = [applied.delayctl("consume", "work", "--requeue", "--count", "1", "--wait", "15s") for _ in range(5)]

    assert ["looked at" in look.out for look in looks] == [True] * 5
    applied.await_ready("work", 1)
    (message,) = applied.take("work")
    assert "x-delivery-count" not in message.headers


def take_and_die(rabbit: Rabbit) -> None:
    """Get the message of the queue, and close the channel without a word about it."""
    with rabbit.channel() as channel:
        until(lambda: channel.basic_get("work")[0] is not None, 15, every=0.02)


@pytest.mark.parametrize("is_known", [True, False])
def test_what_waits_is_not_lost_with_a_change(applied: Rabbit, topology: TopologyFile, is_known: bool) -> None:
    """Another step is another queue; that has to wait for a message that waits, whether figures tell of it yet or not."""
    apply(applied, topology, text("10s", "20s"))
    applied.publish("orders", "order.created", "hello")
    with applied.channel() as channel:
        method, _, _ = channel.basic_get("work")
        assert method is not None
        assert method.delivery_tag is not None
        channel.basic_reject(method.delivery_tag, requeue=True)
    if is_known:
        until(lambda: applied.queue("work").get("messages_delayed") == 1, 20)

    refused = applied.delayctl("apply", topology.write(text("5s", "20s")), "--yes")

    assert refused.code != 0
    assert "1 message" in refused.out + refused.err
    applied.await_ready("work", 1)
    assert [message.body for message in applied.take("work")] == ["hello"]
    assert {binding["routing_key"] for binding in applied.api("GET", "queues/{vhost}/work/bindings")} == {
        "work",
        "order.*",
    }


def test_changes_are_made_and_then_there_are_none(applied: Rabbit, topology: TopologyFile) -> None:
    """An empty queue is replaced; the plan after it is empty."""
    apply(applied, topology, text("100ms"))

    planned = applied.delayctl("plan", str(topology.path), "--detailed-exitcode")

    assert (planned.code, applied.queue("work")["arguments"]["x-delayed-retry-min"]) == (0, 100)


@pytest.mark.parametrize(
    ("policy", "difference"),
    [
        ({"delayed_retry_min": 50}, "delayed-retry-min: 50 (50ms) → 200 (200ms)"),
        ({"delayed_retry_type": "disabled"}, "delayed-retry-type: disabled → failed"),
        ({"delivery_limit": 2}, "delivery-limit: 2 → 3"),
    ],
)
def test_a_policy_of_others_is_told(
    applied: Rabbit, topology: TopologyFile, policy: dict[str, Any], difference: str
) -> None:
    """It has a say in the waits: the smaller number counts, and the policy's type."""
    applied.put_policy("theirs", "^work$", **policy)

    planned = applied.delayctl("plan", str(topology.path))
    linted = applied.delayctl("validate", str(topology.path), "--live")

    assert f"policy theirs (priority 0) changes what it does\n        {difference}" in planned.out
    assert "overrules the file at work: " in linted.out + linted.err


def test_a_policy_with_larger_numbers_changes_nothing(applied: Rabbit, topology: TopologyFile) -> None:
    """As the broker sees it."""
    applied.put_policy("theirs", "^work$", delayed_retry_min=5_000, delayed_retry_max=9_000, delivery_limit=20)
    seen = Seen(raise_)

    planned = applied.delayctl("plan", str(topology.path), "--detailed-exitcode")
    applied.await_effective("work", {"delayed-retry-min": 5_000})
    with running(applied.url, topology.path, {"work": seen}):
        applied.publish("orders", "order.created", "hello")
        applied.await_ready("work.dlq", 1)

    assert planned.code == 0
    assert [message.attempt for message in seen.messages] == [0, 1, 2, 3]
    assert sum(seen.waits_ms) < 2_000


@pytest.mark.parametrize("is_record_lost", [False, True])
def test_a_lost_file_comes_back(applied: Rabbit, tmp_path: Path, is_record_lost: bool) -> None:
    """With its retries, which are all on the broker."""
    if is_record_lost:
        applied.api("DELETE", "global-parameters/delayctl%3A{vhost}%3A")
    file = tmp_path / "imported.yaml"

    ran = applied.delayctl("import", "--out", str(file))
    planned = applied.delayctl("plan", str(file), "--detailed-exitcode")

    assert ran.code == 0, ran.err
    assert planned.code == 0, planned.out
    assert "\nretry:\n  work: {by: broker, step: 200ms, longest: 500ms, max: 3, park: work.dlq}\n" in file.read_text()


def test_explain_tells_that_retries_wait(applied: Rabbit, topology: TopologyFile) -> None:
    """By the file and on the broker alike."""
    ask = ("explain", str(topology.path), "--exchange", "orders", "--key", "order.created")

    told = [applied.delayctl(*ask, *more) for more in ((), ("--live",))]

    for ran in told:
        assert "work: delivered; what fails waits there 200ms to 500ms and comes again, 3 times at most" in ran.out


def test_what_the_broker_does_is_not_for_a_consumer_to_choose(applied: Rabbit, topology: TopologyFile) -> None:
    """Refused at once, with what to do."""
    consumer = DelayConsumer(applied.url, topology=topology.path)

    for options in ({"policy": "fixed 200ms"}, {"park": "other"}):
        with pytest.raises(DelayctlError, match="wait by broker, which knows the topology's waits"):
            consumer.handle("work", Seen(), **options)
