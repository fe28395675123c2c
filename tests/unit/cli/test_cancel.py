"""What cancel refuses before it writes anything, and how long it has a cancellation remembered."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from delayctl.cli.cancel import _longest_ms
from delayctl.consumers.cancelled import decode
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.publisher import DelayPublisher
from delayctl.testing import SimulatedBroker
from delayctl.topology.duration import Duration
from delayctl.topology.parse import read_spec

from tests.support.commands import delayctl

FILE = "version: 1\ndelay: {levels: [1m], cancel: true}\n"


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        ("0s", "--for 0s is no time at all"),
        ("99999999d", "--for 99999999d is longer than anything can wait"),
        ("soon", "--for: 'soon' is not a duration"),
    ],
)
def test_how_long_it_is_remembered(tmp_path: Path, duration: str, expected: str) -> None:
    """More than nothing, and no longer than a message can wait."""
    file = tmp_path / "topology.yaml"
    file.write_text(FILE)

    ran = delayctl("cancel", str(file), "order-4711", "--for", duration, "--url", "amqp://127.0.0.1:9")

    assert (ran.code, ran.err.splitlines()[0]) == (64, f"Error: {expected}")


@pytest.mark.parametrize(
    ("retries", "expected"),
    [
        ("", "5m"),
        ("mails: {levels: [1m, 5m], max: 4, park: dlq}", "21m"),
        ("orders: {by: broker, step: 10s, max: 3, park: dlq}", "6m"),
        ("orders: {by: broker, step: 10m, longest: 25m, max: 4, park: dlq}", "1h25m"),
        ("orders: {by: broker, step: 1m, max: 2, park: dlq}, mails: {levels: [5m], max: 1, park: dlq}", "10m"),
    ],
    ids=["none", "in levels", "in the queue", "no longer than the longest", "the longer of both"],
)
def test_as_long_as_a_message_can_be_under_way(retries: str, expected: str) -> None:
    """The longest wait and all retries, whoever does the waiting, and an hour more."""
    text = f"version: 1\ndelay: {{levels: [1m, 5m], cancel: true}}\nqueues: {{orders: {{type: quorum}}}}\nretry: {{{retries}}}\n"
    spec = read_spec(text, {}, file="topology.yaml")

    assert Duration(_longest_ms(spec) - Duration.parse("1h").ms) == Duration.parse(expected)


class TestStopped:
    """Ctrl-C before the broker has answered."""

    @pytest.fixture
    def file(self, tmp_path: Path) -> str:
        """A topology with cancellations."""
        (tmp_path / "topology.yaml").write_text(FILE)
        return str(tmp_path / "topology.yaml")

    @pytest.fixture
    def broker(self) -> Iterator[SimulatedBroker]:
        """The exit, and a queue in the place of the stream, which no simulated broker has."""
        with SimulatedBroker(in_turn=False) as running:
            connection = pika.BlockingConnection(pika.URLParameters(running.url))
            channel = connection.channel()
            channel.exchange_declare("delay.exchange", "topic", durable=True)
            channel.queue_declare("delay.cancelled.stream", durable=True)
            channel.queue_bind("delay.cancelled.stream", "delay.exchange", "delay.cancel")
            connection.close()
            yield running

    @pytest.mark.parametrize(("option", "done"), [((), "cancelled"), (("--undo",), "taken back")])
    def test_it_says_which_are_confirmed(
        self,
        file: str,
        broker: SimulatedBroker,
        monkeypatch: pytest.MonkeyPatch,
        option: tuple[str, ...],
        done: str,
    ) -> None:
        """And which may have got there or not."""
        published = DelayPublisher.publish

        def publish(publisher: DelayPublisher, body: bytes, **options: Any) -> Delivery:
            if (found := decode(body)) and found.message_id == "b":
                raise KeyboardInterrupt
            answer = published(publisher, body, **options)
            answer.result(10)
            return answer

        monkeypatch.setattr(DelayPublisher, "publish", publish)
        ran = delayctl("cancel", file, "a", "b", "c", *option, "--url", broker.url)

        assert (ran.code, ran.out) == (1, "")
        assert ran.err == (
            f"Error: stopped: a is {done}; not confirmed, may be {done} or not: b, c\n"
            "  fix: run it again with these ids: to do it twice changes nothing\n"
        )

    def test_it_does_not_wait_for_a_broker_that_is_blocked(
        self, file: str, broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One Ctrl-C is enough: a flush would take half a minute."""

        def stopped(_: Delivery, timeout: float | None = None) -> str:
            raise KeyboardInterrupt

        monkeypatch.setattr(Delivery, "result", stopped)
        begun = time.monotonic()
        with broker.blocked():
            ran = delayctl("cancel", file, "a", "b", "--url", broker.url)

        assert ran.err.startswith("Error: stopped: not confirmed, may be cancelled or not: a, b\n")
        assert time.monotonic() - begun < 15


def test_what_is_to_be_applied_is_named(tmp_path: Path) -> None:
    """Where the stream is not there: the command can be typed as it stands."""
    applied, file = tmp_path / "applied.yaml", tmp_path / "the shop.yaml"
    applied.write_text("version: 1\ndelay: {levels: [1m]}\n")
    file.write_text(FILE)

    with SimulatedBroker(applied) as broker:
        ran = delayctl("cancel", str(file), "order-4711", "--url", broker.url)

    assert (ran.code, ran.err.splitlines()) == (
        1,
        [
            "Error: the stream 'delay.cancelled.stream' is not on the broker",
            f"  fix: declare it: delayctl apply '{file}'",
        ],
    )
