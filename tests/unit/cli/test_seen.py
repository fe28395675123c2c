"""What is read from the headers of a parked message."""

from dataclasses import replace
from typing import Any

import pytest
from delayctl.cli.seen import seen_of
from delayctl.consumers.deaths import Delays
from delayctl.topology.examination import Seen

DELAYS = Delays("", frozenset({"delay.1m.queue"}), frozenset({"delay.1m.queue"}))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, Seen("k")),
        ({"x-death": [{"queue": "delay.1m.queue", "reason": "expired"}]}, Seen("k", waited_in="delay.1m.queue")),
        (
            {"delay-parked": "gave up", "delay-origin": {"exchange": "e", "key": "order.created"}},
            Seen("k", "gave up", first_key="order.created"),
        ),
        (
            {"x-death": [{"queue": "work", "reason": "delivery_limit", "routing-keys": ["order.created"]}]},
            Seen("k", "tried too often in work", first_key="order.created"),
        ),
        (
            {"x-death": [{"queue": "work", "reason": "rejected", "routing-keys": ["order.created"]}]},
            Seen("k", "rejected in work", first_key="order.created"),
        ),
        ({"x-death": "odd", "delay-parked": 3, "delay-origin": "odd"}, Seen("k")),
        ({"x-death": [], "delay-origin": {"key": 3}}, Seen("k")),
        ({"x-death": ["odd"]}, Seen("k")),
        ({"x-death": [{"reason": "expired"}]}, Seen("k")),
    ],
    ids=["nothing", "expired", "parked", "by the broker", "rejected", "odd types", "empty", "odd death", "no queue"],
)
def test_headers_are_read_with_care(headers: dict[str, Any], expected: Seen) -> None:
    """As far as they make sense, and no further."""
    found = seen_of("delay.exchange", "k", headers, DELAYS, 1_000)

    assert replace(found, exchange=None, headers={}) == expected


@pytest.mark.parametrize("due", [1_000, 1_001, "1000", None])
def test_the_way_that_it_came_is_kept(due: object) -> None:
    """Also the headers that would be sent on, and whether its time is up."""
    headers = {"delay-top": "5", "delay-due": due}

    found = seen_of("delay.any.exchange", "k", {**headers, "x-death": []}, DELAYS, 1_000)

    assert found == Seen("k", exchange="delay.any.exchange", headers=headers, is_due=due == 1_000)
