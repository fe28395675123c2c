"""What cancel refuses before it writes anything, and how long it has a cancellation remembered."""

from pathlib import Path

import pytest
from delayctl.cli.cancel import _longest_ms
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
