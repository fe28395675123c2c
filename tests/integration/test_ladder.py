"""The ladder on a real broker: any delay, each message with its own key, and none early."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pika
import pytest
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.duration import Duration
from delayctl.topology.ladder import headers_for, is_step_header

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.climbs import LADDER, Arrived, Climb, account, climbs, is_early, paced
from tests.support.clocks import ClockWatch
from tests.support.rabbit import Rabbit

TARGET = "target.queue"
TYPES = ("type: classic", "type: quorum", "profile: safe")
TOPOLOGY = """
version: 1
delay:
  levels: [10s]
  any: {ladder}
  queue: {{{wait}}}
queues:
  {target}: {{type: classic}}
routes:
  - {{key: "order.#", delay: any, to: {target}}}
lint: {{ignore: [{{rule: D206, reason: a test}}]}}
"""
Table = dict[str, Any]
Sent = dict[str, float]  # When each message was handed over, in milliseconds since 1970.


def text(wait: str = "type: classic", ladder: str = LADDER) -> str:
    """A file with a ladder."""
    return TOPOLOGY.format(wait=wait, ladder=ladder, target=TARGET)


def now_ms() -> float:
    """The time that only passes, more exactly than a message carries it."""
    return time.monotonic_ns() / 1e6


def as_clocks_had_it(arrived: Sequence[Arrived], sent: Sent, clock: ClockWatch) -> list[Arrived]:
    """When each message came, where it was handed over and where the machine's clock was set forward after that: nothing is early by it."""
    return [replace(each, at_ms=each.at_ms + clock.gained(sent[each.message_id], each.at_ms)) for each in arrived]


class Taker:
    """Takes what comes to a queue, in a thread of its own, and notes when it came."""

    def __init__(self, rabbit: Rabbit) -> None:
        self.arrived: list[Arrived] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(rabbit,))
        self._thread.start()

    def _run(self, rabbit: Rabbit) -> None:
        with rabbit.channel() as channel:
            for method, properties, _ in channel.consume(TARGET, auto_ack=True, inactivity_timeout=0.05):
                if method is not None and properties is not None:
                    self.arrived.append(Arrived(str(properties.message_id), str(method.routing_key), now_ms()))
                elif self._is_over.is_set():
                    return

    def stop(self) -> None:
        """Take what is there still."""
        self._is_over.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


@contextmanager
def taking(rabbit: Rabbit) -> Iterator[Taker]:
    """Somebody who takes what comes out."""
    taker = Taker(rabbit)
    try:
        yield taker
    finally:
        taker.stop()


@contextmanager
def publishing(rabbit: Rabbit) -> Iterator[DelayPublisher]:
    """A publisher that knows nothing but where the broker is."""
    with DelayPublisher(rabbit.url, management_url=rabbit.broker.management_url) as publisher:
        yield publisher


def all_arrived(
    rabbit: Rabbit,
    title: str,
    messages: Sequence[Climb],
    send: Callable[[], Sent],
    record: Callable[[str, object], None],
) -> None:
    """Let messages be sent, and hold what came against it: each once, with its own key, and none before its time."""
    with ClockWatch() as clock, taking(rabbit) as taker:
        sent = send()
        longest = max(each.wait_ms for each in messages) / 1000
        until(lambda: len(taker.arrived) >= len(messages), longest + 60)
    arrived = as_clocks_had_it(taker.arrived, sent, clock)
    due = {each.message_id: sent[each.message_id] + each.wait_ms for each in messages}
    record("account", account(title, sent, arrived, due))
    keys = {each.message_id: each.key for each in messages}
    assert sorted((each.message_id, each.key) for each in arrived) == sorted(keys.items())
    assert [each for each in arrived if is_early(each.at_ms - due[each.message_id])] == []
    assert rabbit.ready("delay.unrouted.queue") == 0


@pytest.mark.parametrize("wait", TYPES)
def test_every_message_waits_its_own_delay(
    rabbit: Rabbit, wait: str, record_property: Callable[[str, object], None]
) -> None:
    """Random delays from one unit up, through a publisher that has read the ladder from the broker's record."""
    assert rabbit.apply_text(text(wait)).code == 0
    messages = climbs()

    def send() -> Sent:
        sent = {}
        with publishing(rabbit) as publisher:
            for each in paced(messages):
                sent[each.message_id] = now_ms()
                delay = Duration(each.wait_ms)
                publisher.publish(b"x", key=each.key, delay=delay, message_id=each.message_id)
        return sent

    title = f"ladder, {wait.rsplit(maxsplit=1)[-1]}, RabbitMQ {rabbit.broker.version}"
    all_arrived(rabbit, title, messages, send, record_property)


def test_a_due_time_is_kept_to_the_unit(rabbit: Rabbit, record_property: Callable[[str, object], None]) -> None:
    """Said when, not how long: the way is chosen when the message is sent."""
    assert rabbit.apply_text(text()).code == 0
    messages = climbs(50, seed=8)
    begin_ms, begin = now_ms() + 500, datetime.now(UTC) + timedelta(milliseconds=500)

    def send() -> Sent:
        with publishing(rabbit) as publisher:
            for each in messages:
                due = begin + timedelta(milliseconds=each.wait_ms)
                publisher.publish(b"x", key=each.key, due=due, message_id=each.message_id)
        return dict.fromkeys((each.message_id for each in messages), begin_ms)

    all_arrived(rabbit, f"due times, RabbitMQ {rabbit.broker.version}", messages, send, record_property)


def test_a_client_that_knows_the_headers_needs_nothing_else(
    rabbit: Rabbit, record_property: Callable[[str, object], None]
) -> None:
    """As docs/any-delay.md tells authors of other languages."""
    assert rabbit.apply_text(text("profile: safe")).code == 0
    messages = climbs(50, seed=9)

    def send() -> Sent:
        sent = {}
        with rabbit.channel() as channel:
            for each in messages:
                sent[each.message_id] = now_ms()
                steps = [step for step in range(each.units.bit_length()) if each.units >> step & 1]
                headers: Table = {"delay-top": str(max(steps)), **{f"delay-{step}": True for step in steps}}
                properties = pika.BasicProperties(message_id=each.message_id, delivery_mode=2, headers=headers)
                channel.basic_publish("delay.any.exchange", each.key, b"x", properties, mandatory=True)
        return sent

    all_arrived(rabbit, f"headers by hand, RabbitMQ {rabbit.broker.version}", messages, send, record_property)


def test_what_the_ladder_can_not_take_is_parked(rabbit: Rabbit) -> None:
    """Headers that lack the longest step, or name one that is not there: neither early nor lost."""
    assert rabbit.apply_text(text(ladder="{unit: 10ms, steps: 3}")).code == 0
    wrong: tuple[Table, ...] = ({}, {"delay-1": True}, {"delay-top": 1, "delay-1": True}, dict(headers_for(8)))

    with rabbit.channel() as channel:
        for headers in wrong:
            channel.basic_publish("delay.any.exchange", "order.1", b"x", pika.BasicProperties(headers=headers))

    rabbit.await_ready("delay.unrouted.queue", len(wrong))
    assert rabbit.ready(TARGET) == 0


def test_a_message_sent_on_waits_what_it_is_told_now(rabbit: Rabbit) -> None:
    """Headers of the first wait are no part of the second, whoever copies them."""
    assert rabbit.apply_text(text(ladder="{unit: 10ms, steps: 8}")).code == 0
    with publishing(rabbit) as publisher:
        publisher.publish(b"first", key="order.1", delay="2550ms").result(30)
        rabbit.await_ready(TARGET, 1)
        [first] = rabbit.take(TARGET)
        own = {name: value for name, value in first.headers.items() if not name.startswith("x-")}

        began = now_ms()
        publisher.publish(b"second", key=first.key, delay="20ms", headers=own).result(30)
        rabbit.await_ready(TARGET, 1)

    [second] = rabbit.take(TARGET)
    assert now_ms() - began < 2_000
    assert (second.key, second.body) == ("order.1", "second")
    assert {name for name in second.headers if is_step_header(name)} == {"delay-top", "delay-1"}


def test_the_commands_know_the_ladder(rabbit: Rabbit, topology: TopologyFile) -> None:
    """publish, status, plan, explain and import, and what is beyond the ladder."""
    file = topology.write(text(ladder="{unit: 10ms, steps: 6}"))
    assert rabbit.delayctl("apply", file, "--yes").code == 0

    published = rabbit.delayctl("publish", file, "--key", "order.1", "--delay", "370ms", "--output", "json", "x")
    beyond = rabbit.delayctl("publish", file, "--key", "order.1", "--delay", "640ms", "x")
    explained = rabbit.delayctl("explain", file, "--live", "--delay", "365ms", "--key", "order.1", "--output", "json")
    rabbit.await_ready(TARGET, 1)
    rabbit.take(TARGET)

    place = json.loads(published.out)
    assert (place["exchange"], place["level"], place["wait_ms"]) == ("delay.any.exchange", "any", 370)
    assert beyond.code == 1
    assert "640ms is beyond the ladder, which ends at 630ms" in beyond.err
    assert "fix: write steps: 7 in delay.any and apply it, or choose a shorter delay" in beyond.err
    told = json.loads(explained.out)
    assert (told["total_ms"], [end["queue"] for end in told["ends"]]) == (370, [TARGET])
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0
    until(lambda: "any: 6 steps of the ladder, with nothing in it" in rabbit.delayctl("status", file).out, 30)
    imported = rabbit.delayctl("import")
    assert "any: {unit: 10ms, steps: 6}" in imported.out
    assert rabbit.plan_text(imported.out, "--detailed-exitcode").code == 0


def test_a_ladder_grows_and_shrinks_under_load(rabbit: Rabbit, record_property: Callable[[str, object], None]) -> None:
    """Nothing is lost, doubled or early; a step that messages may still need stays until they have left."""
    short, long = (text(ladder=f"{{unit: 10ms, steps: {steps}}}") for steps in (4, 11))
    assert rabbit.apply_text(short).code == 0
    sent: Sent = {}
    due: Sent = {}
    with ClockWatch() as clock, taking(rabbit) as taker, publishing(rabbit) as publisher:

        def send(count: int, longest: int) -> None:
            for number in range(count):
                message_id, units = f"m{len(sent)}", 1 + number * 7 % longest
                sent[message_id] = now_ms()
                due[message_id] = sent[message_id] + units * 10
                publisher.publish(b"x", key=f"order.{message_id}", delay=Duration(units * 10), message_id=message_id)

        load = threading.Thread(target=send, args=(1_000, 15))
        load.start()
        grown = rabbit.apply_text(long)
        load.join(60)
        with publishing(rabbit) as later:
            sent["long"] = now_ms()
            later.publish(b"x", key="order.long", delay="15s", message_id="long").result(30)
            due["long"] = sent["long"] + 15_000
        waiting = rabbit.apply_text(short)
        until(lambda: len(taker.arrived) == len(sent), 60)
        shrunk = rabbit.apply_text(short)
        send(50, 15)
        until(lambda: len(taker.arrived) == len(sent), 60)

    arrived = as_clocks_had_it(taker.arrived, sent, clock)
    record_property("account", account(f"growing and shrinking, RabbitMQ {rabbit.broker.version}", sent, arrived, due))
    assert (grown.code, shrunk.code) == (0, 0), (grown.err, shrunk.err)
    assert waiting.code == 3
    assert "empties by itself (1 message now" in waiting.out
    assert {each.message_id for each in arrived} == sent.keys()
    assert len(arrived) == len(sent)
    assert [each for each in arrived if is_early(each.at_ms - due[each.message_id])] == []
    assert "delay.any.04.queue" not in {queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")}


def test_wait_goes_on_until_the_ladder_is_shorter(rabbit: Rabbit, topology: TopologyFile) -> None:
    """What waits at steps that go arrives in its time; what would have to wait there is refused meanwhile."""
    long, short = (text(ladder=f"{{unit: 1s, steps: {steps}}}") for steps in (4, 2))
    assert rabbit.apply_text(long).code == 0
    file = topology.write(long)
    with publishing(rabbit) as publisher:
        for number in range(20):
            publisher.publish(b"x", key=f"order.{number}", delay="14s")
    door_is_closed = rabbit.apply_text(short)
    late = rabbit.delayctl("publish", file, "--key", "order.late", "--delay", "14s", "x")
    fits = rabbit.delayctl("publish", file, "--key", "order.fits", "--delay", "1s", "x")

    waited = rabbit.apply_text(short, "--wait")

    assert (door_is_closed.code, waited.code) == (3, 0), waited.out + waited.err
    assert (late.code, late.out, fits.code) == (1, "", 0)
    assert "14s is beyond the ladder, which ends at 3s" in late.err
    assert "the ladder on the broker takes delays up to 3s now, that of the file is longer" in late.err
    rabbit.await_ready(TARGET, 21)
    assert "delay.any.02.queue" not in {queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")}
    assert rabbit.ready("delay.unrouted.queue") == 0
