"""What cancel refuses before it writes anything."""

from pathlib import Path

import pytest

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
