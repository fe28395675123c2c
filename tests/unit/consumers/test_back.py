"""Waiting for what was given back."""

from collections.abc import Sequence

import pytest
from delayctl.consumers.back import await_back


@pytest.mark.parametrize(
    ("counts", "waited_s"),
    [
        ([100], 0),
        ([0, 100], 1),
        ([0, 30, 30, 60, 60, 90, 90, 100], 7),
        ([0, 30, 60, 60, 60], 4),
        ([90, 40, 40], 2),
        ([0, 0, 0], 2),
        ([250], 0),
    ],
    ids=[
        "at once",
        "soon",
        "little by little",
        "some were taken",
        "others take them",
        "all are gone",
        "more than were held",
    ],
)
def test_as_long_as_more_come_back(counts: Sequence[int], waited_s: int) -> None:
    """A hundred were held; every look takes a second, and two without any more are enough."""
    seconds, coming = [0], iter(counts)

    def rest() -> None:
        seconds[0] += 1

    await_back(100, lambda: next(coming), rest, lambda: seconds[0])

    assert (seconds[0], list(coming)) == (waited_s, [])
