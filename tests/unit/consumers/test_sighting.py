"""What a message in a queue tells of itself, and which ones are meant."""

from datetime import UTC, datetime
from typing import Any

import pytest
from delayctl.consumers.deaths import Delays
from delayctl.consumers.inbox import Delivery
from delayctl.consumers.sighting import Sighting, Unreadable, Wanted, sighted, times_returned
from delayctl.publishers.frames import Properties, encode_properties

DIED = {"queue": "orders.queue", "reason": "rejected", "time": datetime(2026, 11, 16, 12, tzinfo=UTC)}
DELAYS = Delays("", frozenset({"delay.1m.queue"}), frozenset({"delay.1m.queue"}))
REJECTED = {**DIED, "exchange": "orders.exchange", "routing-keys": ["order.created"]}
WAITED = {"queue": "delay.1m.queue", "reason": "expired", "exchange": "delay.1m.exchange", "routing-keys": ["b"]}
SEEN = Sighting(
    "m-1", "order.created", "shop", 0, "ConnectionError: the bank is away", 50_000, headers={"vip": True, "n": 3}
)


def delivery(**headers: Any) -> Delivery:
    """A delivery with these headers."""
    found = Delivery(1, "some.dlq", "shop", "a.key", redelivered=False)
    found.header = b"\0" * 12 + encode_properties(Properties(headers=headers, message_id="m"))
    return found


@pytest.mark.parametrize(
    ("headers", "reason", "since"),
    [
        ({"delay-parked": "no luck", "delay-history": [{"at": 7, "reason": "x"}]}, "no luck", 7),
        ({"x-death": [DIED]}, "rejected in orders.queue", 1_794_830_400_000),
        ({"delay-history": [{"at": 7}]}, None, None),
        ({"delay-parked": "no luck", "delay-history": ["nonsense"]}, "no luck", None),
        ({"x-death": ["nonsense"]}, None, None),
    ],
)
def test_why_and_since_when(headers: dict[str, Any], reason: str | None, since: int | None) -> None:
    """As its consumer says, or else the broker; headers are written by anybody."""
    found = sighted(delivery(**headers), DELAYS)

    assert (found.reason, found.since_ms) == (reason, since)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, ("shop", "a.key", None)),
        ({"x-death": [REJECTED]}, ("orders.exchange", "order.created", "rejected in orders.queue")),
        ({"x-death": [WAITED, REJECTED]}, ("orders.exchange", "order.created", "rejected in orders.queue")),
        ({"x-death": [WAITED]}, ("shop", "a.key", "expired in delay.1m.queue")),
        (
            {"x-death": [{**WAITED, "queue": "delay.2m.queue"}]},  # A level that was taken out of the file.
            ("shop", "a.key", "expired in delay.2m.queue"),
        ),
        (
            {"x-death": [{**REJECTED, "reason": "delivery_limit"}]},
            ("orders.exchange", "order.created", "tried too often in orders.queue"),
        ),
        (
            {"x-death": [REJECTED], "delay-origin": {"exchange": "e", "key": "k"}, "delay-parked": "no luck"},
            ("e", "k", "no luck"),
        ),
        ({"x-death": [DIED]}, ("shop", "a.key", "rejected in orders.queue")),
    ],
)
def test_by_which_way_it_came_first(headers: dict[str, Any], expected: tuple[str, str, str | None]) -> None:
    """As its consumer noted it, or else the broker when it took it from one: not by the way into the parking queue."""
    found = sighted(delivery(**headers), DELAYS)

    assert (found.exchange, found.key, found.reason) == expected


def test_due_times_that_are_none() -> None:
    """Only a sensible number counts."""
    dues = [sighted(delivery(**{"delay-due": due}), DELAYS).due_ms for due in (5, "5", -1, 2**62, True)]

    assert dues == [5, None, None, None, None]


def test_headers_that_are_none() -> None:
    """Are told apart, and not counted as returned."""
    broken = delivery()
    broken.header = b"\0" * 12 + b"\x20\x00" + b"\x00\x00\x00\x03\x01a?"

    with pytest.raises(Unreadable):
        sighted(broken, DELAYS)
    assert times_returned(broken) == 0
    assert times_returned(delivery(**{"x-delivery-count": 4})) == 4


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(), True),
        (Wanted(keys=("order.*",)), True),
        (Wanted(keys=("mail.#", "#.created")), True),
        (Wanted(keys=("mail.#",)), False),
        (Wanted(reasons=("BANK",)), True),
        (Wanted(reasons=("shop", "away")), True),
        (Wanted(ids=frozenset({"m-1", "m-2"})), True),
        (Wanted(ids=frozenset({"m-2"})), False),
        (Wanted(headers=(("vip", "true"), ("n", "3"))), True),
        (Wanted(headers=(("vip", "true"), ("n", "4"))), False),
        (Wanted(headers=(("n", "3"), ("n", "4"))), True),
        (Wanted(headers=(("n", "4"), ("n", "5"))), False),
        (Wanted(headers=(("n", "3"), ("vip", "false"), ("n", "4"))), False),
        (Wanted(headers=(("none", "x"),)), False),
        (Wanted(older_than_ms=50_000), True),
        (Wanted(older_than_ms=50_001), False),
        (Wanted(newer_than_ms=50_000), False),
        (Wanted(older_than_ms=10_000, newer_than_ms=60_000), True),
        (Wanted(keys=("order.*",), reasons=("other",)), False),
    ],
)
def test_which_are_meant(wanted: Wanted, expected: bool) -> None:
    """All that is named has to hold, with one of the values that were given."""
    assert wanted.wants(SEEN, now_ms=100_000) is expected


@pytest.mark.parametrize("typed", ["m-\udcff", "m-\\xff"], ids=["as it came", "as it is shown"])
def test_an_id_that_is_no_text_can_be_copied_from_an_answer(typed: str) -> None:
    """There its bytes are escaped."""
    assert Wanted(ids=frozenset({typed})).wants(Sighting("m-\udcff", "k", "", 0), now_ms=0)


def test_an_unknown_age_is_no_age() -> None:
    """Who asks for the old ones does not get those that nobody knows the age of."""
    assert not Wanted(older_than_ms=1).wants(Sighting("m", "k", "", 0), now_ms=100)
