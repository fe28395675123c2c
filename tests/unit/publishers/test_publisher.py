"""What a publisher makes of what it is given, on the simulated broker."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from delayctl.publishers import NoSuchDelay, Properties
from delayctl.testing import SimulatedBroker
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.parse import read_spec

TOPOLOGY = read_spec("version: 1\ndelay: {levels: [10s, 1m]}\nqueues: {work: {}}\n", {}, file="topology.yaml")


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
