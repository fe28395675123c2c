"""What can't be meant is refused at once, with what to write instead."""

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from delayctl.publishers import DelayPublisher
from delayctl.testing import SimulatedBroker
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError

WITH_ONE = (
    'make it with one: SimulatedBroker("topology.yaml"); for delay_broker, name the file in the configuration of pytest: '
    "delay_topology = topology.yaml"
)


@pytest.mark.parametrize(
    ("span", "what"),
    [
        (1500.0, "the time to advance by is 1500.0 (float)"),
        (None, "the time to advance by is None (NoneType)"),
        (True, "the time to advance by is True (bool)"),
    ],
)
def test_a_span_of_another_type_is_refused(broker: SimulatedBroker, span: Any, what: str) -> None:
    """Before any time passes."""
    with pytest.raises(BadOption) as caught:
        broker.advance(span)

    assert str(caught.value) == (
        f"Error: {what}\n  fix: write it as 500ms, 10s, 1m30s, 2h or 1d, or give whole milliseconds as an int"
    )
    assert broker.elapsed == Duration(0)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"start": "yesterday"}, "start is a datetime with a time zone, not 'yesterday' (str)"),
        ({"start": datetime(2031, 5, 6)}, "start is a datetime with a time zone, not datetime.datetime(2031, 5"),
        ({"version": 4.3}, "version is a text, not 4.3 (float)"),
        ({"version": "new"}, "version is a text, not 'new' (str)"),
        ({"patience_s": -1}, "patience_s is a number of seconds above 0, not -1 (int)"),
        ({"patience_s": "1s"}, "patience_s is a number of seconds above 0, not '1s' (str)"),
        ({"topology": {}}, "a topology is the path of a file, a Spec or a Topology, not {} (dict)"),
    ],
)
def test_an_option_that_can_not_be_meant_is_refused(options: dict[str, Any], what: str) -> None:
    """Each by its name."""
    with pytest.raises(BadOption) as caught:
        SimulatedBroker(**options)

    assert caught.value.what.startswith(what)
    assert caught.value.fix


def test_a_negative_number_of_refusals_is_refused(broker: SimulatedBroker) -> None:
    """It would refuse for ever."""
    with pytest.raises(BadOption, match="the number of messages to refuse is a number of 0 or more, not -1"):
        broker.refuse_publishes(-1)


class TestClosed:
    """A broker that has ended."""

    @pytest.mark.parametrize(
        "use",
        [
            lambda broker: broker.advance("1s"),
            lambda broker: broker.advance("1s", wait=False),
            lambda broker: broker.settle(),
            lambda broker: broker.publish("x", key="reminder", delay="10s"),
            lambda broker: broker.publisher(),
            lambda broker: broker.consumer({"reminders": print}),
            lambda broker: broker.await_consumers("reminders"),
        ],
    )
    def test_it_says_at_once_that_it_is_closed(self, topology_file: Path, use: Any) -> None:
        """And does not wait for clients that are gone."""
        with SimulatedBroker(topology_file) as broker:
            broker.publish("x", key="reminder", delay="10s")
        began = time.monotonic()

        with pytest.raises(DelayctlError, match="the simulated broker is closed"):
            use(broker)

        assert time.monotonic() - began < 5

    def test_what_happened_can_still_be_read(self, topology_file: Path) -> None:
        """Messages and log stay."""
        with SimulatedBroker(topology_file) as broker:
            broker.publish("x", key="reminder", delay="10s")

        assert ([each.text for each in broker.waiting("10s")], len(broker.log)) == (["x"], 1)


class TestNames:
    """Queues and levels."""

    def test_nobody_waits_for_consumers_of_a_queue_that_is_not_there(self, broker: SimulatedBroker) -> None:
        """It is said at once."""
        with pytest.raises(BadOption, match="there is no queue 'nope'"):
            broker.await_consumers("nope", 1)

    @pytest.mark.parametrize("level", ["1s", "1000ms", Duration(1_000)])
    def test_a_level_is_named_or_told_by_its_length(self, broker: SimulatedBroker, level: str | Duration) -> None:
        """However it is written."""
        broker.publish("x", key="reminder", level="1s")

        assert [message.text for message in broker.waiting(level)] == ["x"]

    @pytest.mark.parametrize(
        ("use", "what"),
        [
            (lambda broker: broker.waiting("1m"), "has no levels at which anything waits"),
            (lambda broker: broker.publish("x", key="k"), "knows no delays to publish to"),
            (lambda broker: broker.consumer({"q": print}), "has no queues to consume"),
        ],
    )
    def test_a_broker_without_a_topology_says_how_to_give_it_one(self, use: Any, what: str) -> None:
        """Also for the fixture."""
        with SimulatedBroker() as broker, pytest.raises(BadOption) as caught:
            use(broker)

        assert (caught.value.what, caught.value.fix) == (
            f"the simulated broker was made without a topology: it {what}",
            WITH_ONE,
        )


class TestBodies:
    """What a publisher sends."""

    def test_a_body_of_another_type_is_refused(self, broker: SimulatedBroker) -> None:
        """With what to do."""
        body: Any = {"a": 1}

        with pytest.raises(DelayctlError) as caught:
            broker.publish(body, key="reminder", delay="10s")

        assert str(caught.value) == (
            "Error: the body of a message is bytes or str, not of type dict\n"
            "  fix: encode it, for example with json.dumps(…)"
        )

    @pytest.mark.parametrize("body", [b"x", "x", bytearray(b"x"), memoryview(b"x")])
    def test_bytes_of_every_kind_are_sent(
        self, broker: SimulatedBroker, topology_file: Path, body: bytes | bytearray | memoryview | str
    ) -> None:
        """And text."""
        with DelayPublisher(broker.url, topology=topology_file) as publisher:
            publisher.publish(body, key="reminder", delay="10s").result(5)

        assert [message.body for message in broker.waiting("10s")] == [b"x"]
