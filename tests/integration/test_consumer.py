"""DelayConsumer on a real broker: handlers, retries that wait, and the end of patience."""

import threading
import time
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import pika
import pytest
from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.message import Message
from delayctl.consumers.outcome import DONE, RETRY, Park, Retry
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.errors import AuthenticationFailed, BadOption, DelayctlError, NotPermitted, Refused

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.consuming import Seen, raise_, running
from tests.support.rabbit import Rabbit
from tests.support.tcp_proxy import TcpProxy

LEVELS_MS = tuple(range(20, 380, 20))  # Eighteen, as RocketMQ has, each a second scaled down to a blink.
LEVELS = " ".join(f"{ms}ms" for ms in LEVELS_MS)
TOPOLOGY = f"""
version: 1
delay: {{levels: {LEVELS}}}
exchanges: {{orders: {{}}}}
routes:
  - {{from: orders, key: order.*, delay: 20ms, to: [target, other]}}
queues: {{plain: {{}}}}
retry:
  target: {{levels: {LEVELS}, max: 16, park: target.dlq}}
"""


@pytest.fixture
def applied(rabbit: Rabbit, topology: TopologyFile) -> Rabbit:
    """A virtual host with the topology."""
    assert rabbit.delayctl("apply", topology.write(TOPOLOGY), "--yes").code == 0
    return rabbit


def publish(rabbit: Rabbit, topology: TopologyFile, *bodies: str, **options: Any) -> None:
    """Publish as a service does, to the business exchange."""
    with DelayPublisher(rabbit.url, topology=topology.path) as publisher:
        for body in bodies:
            publisher.publish(body, key="order.created", exchange="orders", **options)


def test_all_sixteen_retries_and_the_parking(applied: Rabbit, topology: TopologyFile) -> None:
    """Retry n waits level 2 + n; the handler sees where it came from; the other queue of the key sees it once."""
    seen = Seen(raise_)
    with running(applied.url, topology.path, {"target": seen}):
        publish(applied, topology, "hello", message_id="m-1", headers={"shop": "eu"})
        applied.await_ready("target.dlq", 1)

    late = [wait - level for wait, level in zip(seen.waits_ms, LEVELS_MS[2:], strict=True)]
    assert min(late) >= 0
    assert median(late) <= 400  # A busy machine holds up one or the other, a wait that is too long all of them.
    assert [message.attempt for message in seen.messages] == list(range(17))
    assert {(m.exchange, m.key, m.message_id, m.text) for m in seen.messages} == {
        ("delay.exchange", "order.created", "m-1", "hello")
    }
    (parked,) = applied.take("target.dlq")
    assert (parked.exchange, parked.key) == ("delay.exchange", "delay.park.target.dlq")
    assert parked.headers["delay-origin"] == {"exchange": "delay.exchange", "key": "order.created"}
    assert parked.headers["delay-parked"] == "gave up after 16 retries: RuntimeError: no luck"
    assert [each["attempt"] for each in parked.headers["delay-history"]] == list(range(17))
    assert {each["reason"] for each in parked.headers["delay-history"]} == {"RuntimeError: no luck"}
    assert (parked.body, parked.headers["shop"]) == ("hello", "eu")
    assert not [name for name in parked.headers if name.startswith("x-")]
    assert [message.body for message in applied.take("other")] == ["hello"]
    assert applied.ready("target") == 0


def test_what_a_handler_may_say(applied: Rabbit, topology: TopologyFile) -> None:
    """Done, nothing, retry, retry at a level, park, and nonsense, each for a message of its own."""
    answers: dict[str, Any] = {
        "done": DONE,
        "nothing": None,
        "retry": RETRY,
        "at-level": Retry(level="200ms"),
        "park": Park("broken"),
        "nonsense": "yes",
    }
    seen = Seen(lambda message: answers[message.text] if not message.attempt else DONE)
    with running(applied.url, topology.path, {"target": seen}):
        publish(applied, topology, *answers)
        seen.await_count(9)
        applied.await_ready("target.dlq", 1)

    again = {message.text: message for message in seen.messages if message.attempt}
    assert sorted(again) == ["at-level", "nonsense", "retry"]
    assert {name: message.headers["delay-level"] for name, message in again.items()} == {
        "at-level": "200ms",
        "nonsense": "60ms",
        "retry": "60ms",
    }
    assert again["nonsense"].headers["delay-history"][0]["reason"] == "the handler answered with a str"
    assert [(m.body, m.headers["delay-parked"]) for m in applied.take("target.dlq")] == [("park", "broken")]
    assert applied.ready("target") == 0


@pytest.mark.parametrize(
    ("policy", "levels"),
    [
        ("fixed 40ms", ["40ms"] * 3),
        ("list 80ms 20ms 60ms", ["80ms", "20ms", "60ms"]),
        ("exponential 30ms", ["40ms", "60ms", "120ms"]),
        ("rocketmq", ["60ms", "80ms", "100ms"]),
    ],
)
def test_policies_by_name(applied: Rabbit, topology: TopologyFile, policy: str, levels: list[str]) -> None:
    """They replace what the file says."""
    seen = Seen(lambda message: RETRY if message.attempt < 3 else DONE)
    with running(applied.url, topology.path, {"target": (seen, {"policy": policy})}):
        publish(applied, topology, "hello")
        seen.await_count(4)

    assert [message.headers["delay-level"] for message in seen.messages[1:]] == levels


def test_a_retry_keeps_to_itself(applied: Rabbit, topology: TopologyFile) -> None:
    """Copies, an expiration and a user id of the author neither lead it astray nor end its wait."""
    seen = Seen(lambda message: RETRY if not message.attempt else DONE)
    with running(applied.url, topology.path, {"target": (seen, {"policy": "fixed 200ms"})}):
        with applied.channel() as channel:
            channel.basic_publish(
                "orders",
                "order.created",
                b"hello",
                pika.BasicProperties(
                    expiration="60000", user_id="guest", content_type="text/plain", headers={"CC": ["order.copied"]}
                ),
            )
        seen.await_count(2)

    first, again = seen.messages
    assert first.headers["CC"] == ["order.copied"]
    assert again.headers["delay-origin"] == {
        "exchange": "delay.exchange",
        "key": "order.created",
        "cc": ["order.copied"],
    }
    assert (again.properties.content_type, again.properties.delivery_mode) == ("text/plain", 2)
    assert seen.times[1] - seen.times[0] >= 0.2
    assert len(applied.take("other")) == 1


def test_two_retries_of_one_key_do_not_meet(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A second group bound to the same key handles the message once, while the first tries again and again."""
    text = TOPOLOGY + "  other: {levels: [20ms], max: 3, park: other.dlq}\n"
    assert rabbit.delayctl("apply", topology.write(text), "--yes").code == 0
    failing, content = Seen(lambda message: RETRY if message.attempt < 4 else DONE), Seen()
    with running(rabbit.url, topology.path, {"target": failing, "other": content}):
        publish(rabbit, topology, "hello")
        failing.await_count(5)

    assert [message.attempt for message in failing.messages] == [0, 1, 2, 3, 4]
    assert [message.attempt for message in content.messages] == [0]


def test_a_parking_queue_of_ones_own_choice(applied: Rabbit, topology: TopologyFile) -> None:
    """One that the topology does not park in is reached by its name."""
    seen = Seen(lambda _: Park("broken"))
    with running(applied.url, topology.path, {"target": (seen, {"park": "plain"})}):
        publish(applied, topology, "hello")
        applied.await_ready("plain", 1)

    (parked,) = applied.take("plain")
    assert (parked.exchange, parked.key, parked.headers["delay-parked"]) == ("", "plain", "broken")


def test_a_queue_without_retries_gives_back(applied: Rabbit, topology: TopologyFile) -> None:
    """The broker keeps the message, and offers it again a little later."""
    seen = Seen(lambda message: RETRY if not message.redelivered else DONE)
    with running(applied.url, topology.path, {"plain": seen}):
        applied.publish("", "plain", "hello")
        seen.await_count(2)

    assert [message.redelivered for message in seen.messages] == [False, True]
    assert seen.times[1] - seen.times[0] >= 0.9
    assert applied.ready("plain") == 0


def test_workers_work_side_by_side(applied: Rabbit, topology: TopologyFile) -> None:
    """A slow message holds up neither the others nor their acknowledgements."""
    release = threading.Event()

    def work(message: Message) -> None:
        if message.text == "slow":
            assert release.wait(20)

    seen = Seen(work)
    with running(applied.url, topology.path, {"target": seen}, workers=2, prefetch=10):
        publish(applied, topology, "slow", *(str(number) for number in range(300)))
        seen.await_count(301)
        until(lambda: applied.queue("target").get("messages_unacknowledged") == 1, 15)
        release.set()

    assert applied.ready("target") == 0


def test_a_handler_that_hangs_does_not_hold_up_the_end(applied: Rabbit, topology: TopologyFile) -> None:
    """It is left behind after a while; its message was not acknowledged, and comes again."""
    release = threading.Event()

    def hang(_: Message) -> None:
        release.wait(30)

    seen = Seen(hang)
    with running(applied.url, topology.path, {"target": seen}, workers=1, stop_within_s=0.5) as consumer:
        publish(applied, topology, "one", "two")
        seen.await_count(1)
        started = time.monotonic()
        consumer.stop()
        applied.await_ready("target", 2)

    release.set()
    assert time.monotonic() - started < 10


def test_a_queue_that_disappears_and_comes_back(
    applied: Rabbit, topology: TopologyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other queues are served on; when it is back, so is its consumer."""
    monkeypatch.setattr("delayctl.consumers.consumer._LOOK_AGAIN_AFTER_S", 0.5)
    plain, target = Seen(), Seen()
    with running(applied.url, topology.path, {"plain": plain, "target": target}):
        applied.publish("", "plain", "before")
        plain.await_count(1)
        applied.api("DELETE", "queues/{vhost}/target")
        applied.publish("", "plain", "meanwhile")
        plain.await_count(2)
        assert applied.delayctl("apply", str(topology.path), "--yes").code == 0
        applied.publish("", "target", "after")
        target.await_count(1)

    assert [message.text for message in (*plain.messages, *target.messages)] == ["before", "meanwhile", "after"]


def test_what_is_in_hand_is_finished_when_another_queue_goes(
    rabbit: Rabbit, topology: TopologyFile, caplog: pytest.LogCaptureFixture
) -> None:
    """Each message is handled once and acknowledged, also behind tags of the queue that is gone; then it goes on."""
    assert rabbit.delayctl("apply", topology.write("version: 1\nqueues: {one: {}, two: {}}\n"), "--yes").code == 0
    release = threading.Event()

    def work(_: Message) -> None:
        release.wait(30)

    one, two = Seen(work), Seen(work)
    rabbit.publish("", "two", "gone 1", "gone 2", "gone 3")
    with running(rabbit.url, topology.path, {"one": one, "two": two}, workers=3):
        two.await_count(3)
        rabbit.publish("", "one", *"abcdef")
        rabbit.publish("", "two", "gone 4")
        until(lambda: rabbit.queue("one").get("messages_unacknowledged") == 6, 15)
        rabbit.api("DELETE", "queues/{vhost}/two")
        until(lambda: "the queue 'two' is gone" in caplog.text, 15)
        release.set()
        one.await_count(6)
        until(lambda: "not on the broker" in caplog.text, 15, what="the next connection")
        rabbit.publish("", "one", "g")
        one.await_count(7)

    assert sorted((m.text, m.redelivered) for m in one.messages) == [(text, False) for text in "abcdefg"]
    assert sorted(m.text for m in two.messages) == ["gone 1", "gone 2", "gone 3"]
    assert rabbit.ready("one") == 0
    assert "connection was lost" not in caplog.text


def test_reconnects_to_any_of_the_brokers(applied: Rabbit, topology: TopologyFile) -> None:
    """A cut connection is opened again, a dead broker in the list passed over."""
    parts = urlsplit(applied.url)
    seen = Seen()
    with TcpProxy(parts.netloc.rpartition("@")[2]) as proxy:
        url: Any = [
            "amqp://guest:guest@127.0.0.1:1/",
            parts._replace(netloc=f"guest:guest@127.0.0.1:{proxy.port}").geturl(),
        ]
        with running(url, topology.path, {"plain": seen}):
            applied.publish("", "plain", "one")
            seen.await_count(1)
            proxy.cut()
            applied.publish("", "plain", "two")
            seen.await_count(2)


@pytest.mark.parametrize(
    ("queue", "password", "error"), [("gone", "guest", Refused), ("plain", "wrong", AuthenticationFailed)]
)
def test_trouble_at_the_start_is_raised(
    applied: Rabbit, topology: TopologyFile, queue: str, password: str, error: type[DelayctlError]
) -> None:
    """From run, with what to do."""
    url = applied.url.replace("guest:guest@", f"guest:{password}@")
    consumer = DelayConsumer(url, topology=topology.path)
    consumer.handle(queue, Seen())

    with pytest.raises(error, match=r"'gone' is not on the broker|refuses user 'guest'"):
        consumer.run()


def test_a_user_that_may_not_read_is_told_so(applied: Rabbit, topology: TopologyFile) -> None:
    """With what an administrator has to do."""
    user = f"few-{applied.vhost}"
    applied.api("PUT", f"users/{user}", {"password": "secret", "tags": ""})
    try:
        applied.api("PUT", f"permissions/{{vhost}}/{user}", {"configure": "", "write": ".*", "read": "^nothing$"})
        consumer = DelayConsumer(applied.url.replace("guest:guest@", f"{user}:secret@"), topology=topology.path)
        consumer.handle("plain", Seen())

        with pytest.raises(NotPermitted, match="delayctl permissions"):
            consumer.run()
    finally:
        applied.api("DELETE", f"users/{user}")


def test_what_makes_no_sense_is_refused_at_once(applied: Rabbit, topology: TopologyFile) -> None:
    """Before anything is connected."""
    consumer = DelayConsumer(applied.url, topology=topology.path)

    with pytest.raises(DelayctlError, match="no handler"):
        consumer.run()
    with pytest.raises(DelayctlError, match="no retry in the topology"):
        consumer.handle("plain", Seen(), policy="rocketmq")
    with pytest.raises(BadOption, match="names no level"):
        consumer.handle("target", Seen(), policy="fixed 7h")
    with pytest.raises(BadOption, match="prefetch"):
        DelayConsumer(applied.url, topology=topology.path, prefetch=0)
