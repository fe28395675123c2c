"""Which message a closed channel is about."""

import pytest
from delayctl.publishers.blame import guilty
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import TooLarge, Unroutable, WriteRefused
from delayctl.publishers.window import Entry

MISSING = "NOT_FOUND - no exchange 'delay.1m.exchange' in vhost 'shop'"
CLOSED = "ACCESS_REFUSED - access to exchange 'delay.1m.exchange' in vhost 'shop' refused for user 'bob'"
TOPIC = "ACCESS_REFUSED - access to topic 'a.b' in exchange 'delay.1m.exchange' in vhost 'shop' refused for user 'bob'"
LARGE = "PRECONDITION_FAILED - message size 146800640 is larger than configured max size 16777216"
LARGE_TOO = "PRECONDITION_FAILED - message size 146800640 larger than max size 134217728"
OTHER = "PRECONDITION_FAILED - invalid expiration 'soon'"


@pytest.mark.parametrize(
    ("code", "text", "message", "error"),
    [
        (404, MISSING, ("delay.1m.exchange", "a.b", 10), Unroutable),
        (404, MISSING, ("shop", "a.b", 10), None),  # Named like the virtual host, and innocent.
        (404, MISSING, ("delay.5m.exchange", "a.b", 10), None),
        (403, CLOSED, ("delay.1m.exchange", "a.b", 10), WriteRefused),
        (403, CLOSED, ("bob", "a.b", 10), None),
        (403, TOPIC, ("delay.1m.exchange", "a.b", 10), WriteRefused),
        (403, TOPIC, ("delay.1m.exchange", "a.c", 10), None),
        (406, LARGE, ("any", "a.b", 146_800_640), TooLarge),
        (406, LARGE, ("any", "a.b", 16_777_216), None),
        (406, LARGE_TOO, ("any", "a.b", 146_800_640), TooLarge),
        (406, OTHER, ("any", "a.b", 10), None),
        (320, "CONNECTION_FORCED - exchange 'any'", ("any", "a.b", 10), None),
    ],
)
def test_the_guilty_are_those_that_the_broker_names(
    code: int, text: str, message: tuple[str, str, int], error: type[Exception] | None
) -> None:
    """The others are sent again."""
    exchange, key, size = message

    found = guilty(code, text, Entry("id", exchange, key, b"", size, Delivery()))

    assert type(found) is (error or type(None))
