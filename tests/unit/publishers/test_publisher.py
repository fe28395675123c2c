"""What a publisher makes of what it is given, on the simulated broker."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from delayctl.publishers import NoSuchDelay, NotSendable, Properties
from delayctl.testing import SimulatedBroker
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.parse import read_spec

from testbed.wait import until

FILE = "version: 1\ndelay: {levels: [10s, 1m]}\nqueues: {work: {}}\n"
TOPOLOGY = read_spec(FILE, {}, file="topology.yaml")

# Publishes so many messages by the exchange that is named, and ends.
PROGRAM = """
import sys
from delayctl.publishers import DelayPublisher

url, file, count, exchange = sys.argv[1:]
publisher = DelayPublisher(url, topology=file)
for _ in range(int(count)):
    publisher.publish(bytes(1000), key="order", exchange=exchange)
sys.exit(3)
"""


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    """A broker with two levels."""
    with SimulatedBroker(TOPOLOGY) as running:
        yield running


@pytest.mark.parametrize(
    ("message_id", "in_properties", "expected"),
    [(None, "order-1", "order-1"), ("order-2", "order-1", "order-2"), ("order-2", None, "order-2")],
)
def test_an_id_may_be_given_in_the_properties(
    broker: SimulatedBroker, message_id: str | None, in_properties: str | None, expected: str
) -> None:
    """By which a message that is sent twice is recognised; the one that stands apart comes first."""
    properties = Properties(message_id=in_properties)

    answer = broker.publish("order", key="work", exchange="", message_id=message_id, properties=properties)

    assert (answer, [each.message_id for each in broker.messages("work")]) == (expected, [expected])


@pytest.mark.parametrize("properties", [None, Properties(), Properties(message_id="")])
def test_without_an_id_there_is_a_new_one(broker: SimulatedBroker, properties: Properties | None) -> None:
    """Another for each message."""
    answers = [broker.publish("order", key="work", exchange="", properties=properties) for _ in range(2)]

    assert [len(answer) for answer in answers] == [32, 32]
    assert answers == [each.message_id for each in broker.messages("work")]
    assert len(set(answers)) == 2


@pytest.mark.parametrize("delay", ["40s", Duration(40_000)])
@pytest.mark.parametrize(("rounding", "level"), [("up", "1m"), ("nearest", "1m"), ("down", "10s")])
def test_a_rounded_delay_is_stamped_as_it_was_meant(
    broker: SimulatedBroker, delay: str | Duration, rounding: str, level: str
) -> None:
    """So a consumer can see how early or late it came; however often it is published."""
    publisher = broker.publisher(rounding=rounding)

    for _ in range(2):
        publisher.publish("order", key="work", delay=delay).result(10)

    assert [each.due for each in broker.waiting(level)] == [broker.now + timedelta(seconds=40)] * 2


@pytest.mark.parametrize(
    ("how", "place", "wait_ms"),
    [
        ({"delay": "10s"}, "10s", 10_000),
        ({"delay": Duration(60_000)}, "1m", 60_000),
        ({"level": "1m"}, "1m", 60_000),
        ({"delay": "2500ms"}, "any.01", 2_500),  # The last unit of the ladder counts whole.
    ],
)
def test_a_delay_is_stamped_with_when_it_is_over(how: dict[str, Any], place: str, wait_ms: int) -> None:
    """Where there is a level of just that length, that is when it comes."""
    file = "version: 1\ndelay: {levels: [10s, 1m], any: {unit: 1s, steps: 4}}\nqueues: {work: {}}\n"
    with SimulatedBroker(read_spec(file, {}, file="topology.yaml")) as broker:
        broker.publish("order", key="work", **how)

        assert [each.due for each in broker.waiting(place)] == [broker.now + timedelta(milliseconds=wait_ms)]


@pytest.mark.parametrize("rounding", ["down", "nearest", "up", "refuse"])
@pytest.mark.parametrize("delay", ["999999999999d", Duration(10**20)])
def test_a_delay_beyond_all_time_is_refused(broker: SimulatedBroker, rounding: str, delay: str | Duration) -> None:
    """However it is rounded: when it is due can't be written down."""
    publisher = broker.publisher(rounding=rounding)

    with pytest.raises(NoSuchDelay, match="no level waits"):
        publisher.publish("order", key="work", delay=delay)


def nested(depth: int) -> dict[str, Any]:
    """A header in a header, and so on."""
    headers: dict[str, Any] = {}
    for _ in range(depth):
        headers = {"a": headers}
    return headers


@pytest.mark.parametrize(
    ("body", "headers"), [("order", nested(5_000)), ("\ud800", None)], ids=["nested headers", "no text"]
)
def test_what_can_not_be_sent_is_told_so(broker: SimulatedBroker, body: str, headers: dict[str, Any] | None) -> None:
    """By an error of ours, and at once."""
    publisher = broker.publisher()

    with pytest.raises(DelayctlError, match="the message can't be sent: "):
        publisher.publish(body, key="work", headers=headers)


@pytest.mark.parametrize("delay", [timedelta(minutes=1), timedelta(seconds=59, microseconds=999_001)], ids=str)
def test_a_delay_may_be_a_timedelta(broker: SimulatedBroker, delay: timedelta) -> None:
    """A millisecond that has begun counts whole, so that nothing comes early."""
    broker.publisher().publish("order", key="work", delay=delay).result(10)

    assert [each.due for each in broker.waiting("1m")] == [broker.now + timedelta(minutes=1)]


def test_a_timedelta_that_is_over_does_not_wait(broker: SimulatedBroker) -> None:
    """As a due time that is over."""
    broker.publisher().publish("order", key="work", delay=timedelta(seconds=-1)).result(10)

    [message] = broker.messages("delay.unrouted.queue")  # Which takes what comes out and has no route.
    assert message.due == broker.now - timedelta(seconds=1)


@pytest.mark.parametrize(
    ("given", "what", "fix"),
    [
        ({"delay": 900}, "the delay 900 has no unit", 'write delay="900s" or delay=timedelta(seconds=900)'),
        ({"delay": 1.5}, "the delay 1.5 has no unit", "delay=timedelta(seconds=1.5)"),
        ({"delay": ["1m"]}, "a delay can't be ['1m'] of type list", 'write delay="15m", or give a timedelta'),
        ({"due": date(2030, 1, 1)}, "a due time can't be datetime.date(2030, 1, 1) of type date", "datetime.combine("),
        ({"due": 1_893_456_000}, "a due time can't be 1893456000 of type int", "give a datetime with a time zone"),
        ({"level": 15}, "a level is named by a text, not by 15 of type int", 'write level="15m"'),
    ],
)
def test_a_wait_that_is_none_is_refused(broker: SimulatedBroker, given: dict[str, Any], what: str, fix: str) -> None:
    """With what it is, and what would do; nobody has to know which attribute was missing."""
    publisher = broker.publisher()

    with pytest.raises(BadOption) as caught:
        publisher.publish("order", key="work", **given)

    assert (caught.value.what, fix in (caught.value.fix or "")) == (what, True)


def properties(**given: Any) -> Properties:
    """What nobody has checked the types of."""
    return Properties(**given)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"headers": ["a"]}, "its headers are of type list, and no dict"),
        ({"properties": {"priority": 5}}, "its properties are of type dict, and not Properties(…)"),
        ({"properties": properties(headers=["a"])}, "its headers are of type list, and no dict"),
        ({"properties": properties(priority="5")}, "priority is '5', which is no number between 0 and 255"),
        (
            {"properties": properties(timestamp=1.5)},
            "1.5 is no moment: neither a datetime nor whole seconds since 1970",
        ),
        ({"key": ["order"]}, "its key is ['order'] of type list, and no text"),
        ({"exchange": 3}, "3 is no text"),
    ],
)
def test_a_part_of_the_wrong_type_is_named(broker: SimulatedBroker, given: dict[str, Any], what: str) -> None:
    """As all else that can't be sent; nothing was."""
    publisher = broker.publisher()

    with pytest.raises(NotSendable) as caught:
        publisher.publish("order", **{"key": "work", **given})

    assert (caught.value.what, publisher.unanswered) == (f"the message can't be sent: {what}", 0)


def test_a_callback_that_waits_for_another_message_is_told_so(broker: SimulatedBroker) -> None:
    """Nobody would be left to hear the broker's answer: the publisher would stand still, and all who wait with it."""
    publisher, elsewhere = broker.publisher(), broker.publisher()
    answers: list[str] = []

    def go_on(_: object) -> None:
        answers.append(elsewhere.publish("other", key="work", delay="10s").result(10))
        second = publisher.publish("second", key="work", delay="10s")
        with pytest.raises(TimeoutError):
            second.result(0)
        with pytest.raises(DelayctlError, match="can't wait for others") as error:
            second.result(10)
        answers.append(error.value.fix or "")

    with broker.silent():  # Of what is answered already a callback is called at once, by whoever adds it.
        publisher.publish("first", key="work", delay="10s").add_done_callback(go_on)
    until(lambda: len(answers) == 2, 15, what="the end of the callback")
    publisher.flush(10)

    assert answers[1:] == ["wait in another thread, or give that message a callback too"]
    assert sorted(each.text for each in broker.waiting("10s")) == ["first", "other", "second"]


def ended(broker: SimulatedBroker, folder: Path, *, count: int, exchange: str) -> tuple[int, str]:
    """What becomes of a program that publishes and ends without a close: its exit code, and what it says."""
    file = folder / "topology.yaml"
    file.write_text(FILE, encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, broker.url, str(file), str(count), exchange]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_program_that_ends_without_closing_loses_nothing(broker: SimulatedBroker, tmp_path: Path) -> None:
    """The thread that sends ends with the program; what it had not sent was lost without a word."""
    assert ended(broker, tmp_path, count=2_000, exchange="delay.10s.exchange") == (3, "")
    assert len(broker.waiting("10s")) == 2_000


def test_a_program_that_ends_without_closing_tells_what_was_not_confirmed(
    broker: SimulatedBroker, tmp_path: Path
) -> None:
    """In the log, since nobody is left to be told; its exit code stays what it was."""
    code, said = ended(broker, tmp_path, count=2, exchange="nowhere")

    assert code == 3
    assert said.startswith(
        "the program ended without closing its publisher: Error: 2 messages not confirmed, 2 failures; the first: "
        "there is no exchange 'nowhere'"
    )
