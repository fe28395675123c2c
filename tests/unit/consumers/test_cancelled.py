"""Cancellations: how they are written down, and what is remembered of them."""

import pytest
from delayctl.consumers.cancelled import Cancellation, Cancelled, decode, encode


def test_there_and_back() -> None:
    """What is written is what is read."""
    cancellation = Cancellation("order-4711 ü", 1_700_000_000_000)

    assert decode(encode(cancellation)) == cancellation


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON",
        b"[]",
        b'{"message_id": 3, "until": 5}',
        b'{"message_id": "", "until": 5}',
        b'{"message_id": "a"}',
        b'{"message_id": "' + b"x" * 300 + b'", "until": 5}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_anybody_may_send_anything(body: bytes) -> None:
    """What is no cancellation is none."""
    assert decode(body) is None


def test_the_last_word_counts() -> None:
    """It is cancelled until then, unless it is taken back."""
    cancelled = Cancelled()
    cancelled.note(Cancellation("a", 100), now_ms=10)
    cancelled.note(Cancellation("b", 100), now_ms=10)
    cancelled.note(Cancellation("b", 0), now_ms=10)

    found = [cancelled.has(name, now) for name, now in (("a", 99), ("a", 100), ("b", 50), ("c", 50), (None, 50))]

    assert found == [True, False, False, False, False]


def test_what_is_over_is_forgotten() -> None:
    """A consumer that runs for years does not grow with all that was ever cancelled."""
    cancelled = Cancelled()

    for number in range(100_000):
        cancelled.note(Cancellation(f"m-{number}", number + 100), now_ms=number)

    assert len(cancelled) <= 1_100
    assert cancelled.has("m-99999", 100_000)
