"""What is sent on for a message that failed."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from delayctl.consumers.again import HISTORY, REASON, Plan, forward
from delayctl.consumers.message import Message
from delayctl.consumers.outcome import Park, Retry
from delayctl.consumers.policy import ByList
from delayctl.publishers.frames import Properties, encode_properties

PLAN = Plan(ByList(["10s", "1m"]), "work.dlq", "delay.retry.work", frozenset({"10s", "1m", "5m"}))


def message(headers: dict[str, Any] | None = None, properties: Properties | None = None) -> Message:
    """A message of queue `work`, as it came."""
    stamped = replace(properties or Properties(message_id="m-1"), headers=headers or {})
    return Message(b"body", "work", False, "delay.exchange", "order.created", bytes(12) + encode_properties(stamped))


def test_a_retry_leads_back_to_its_queue_alone() -> None:
    """With its attempt, its origin and what happened."""
    onward = forward(message({"shop": "eu"}), Retry(reason="no luck"), PLAN, 7)

    assert (onward.key, onward.level, onward.exchange) == ("delay.retry.work", "10s", None)
    assert onward.properties.headers == {
        "shop": "eu",
        "delay-attempt": 1,
        "delay-origin": {"exchange": "delay.exchange", "key": "order.created"},
        HISTORY: [{"attempt": 0, "at": 7, "reason": "no luck"}],
    }


def test_the_origin_is_the_first_one() -> None:
    """A second retry remembers where the message came from before the first."""
    origin = {"exchange": "orders", "key": "order.created"}
    again = message({"delay-origin": origin, "delay-attempt": 1})

    onward = forward(again, Retry(), PLAN, 7)

    assert onward.level == "1m"
    assert onward.properties.headers is not None
    assert onward.properties.headers["delay-origin"] == origin
    assert (again.exchange, again.key, again.attempt) == ("orders", "order.created", 1)


def test_enough_is_enough() -> None:
    """After the last retry it is parked, with the reason and all that happened."""
    onward = forward(message({"delay-attempt": 2}), Retry(level="5m", reason="still none"), PLAN, 7)

    assert (onward.key, onward.level, onward.exchange) == ("work.dlq", None, "")
    assert onward.properties.headers is not None
    assert onward.properties.headers[REASON] == "gave up after 2 retries: still none"
    assert onward.properties.headers["delay-attempt"] == 2


@pytest.mark.parametrize(
    ("outcome", "level", "reason"),
    [
        (Retry(level="5m"), "5m", None),
        (Retry(level="7m"), "10s", None),  # There is no such level: the policy decides.
        (Park("broken"), None, "broken"),
        (Park(), None, "no reason given"),
    ],
)
def test_a_handler_may_choose(outcome: Retry | Park, level: str | None, reason: str | None) -> None:
    """A level of its own, or the parking queue at once."""
    onward = forward(message(), outcome, PLAN, 7)

    assert onward.level == level
    assert (onward.properties.headers or {}).get(REASON) == reason


def test_a_policy_with_a_level_that_is_not_there_parks() -> None:
    """Rather than go round in circles."""
    onward = forward(message(), Retry(reason="x"), replace(PLAN, policy=ByList(["7m"])), 7)

    assert (onward.level, (onward.properties.headers or {})[REASON]) == (None, "there is no level '7m': x")


def test_what_the_broker_wrote_is_stripped() -> None:
    """Traces of dead-lettering, stale stamps, and keys that would lead to other queues again."""
    came = message(
        {"x-death": [{"count": 1}], "x-first-death-queue": "q", "delay-due": 5, "delay-level": "1m", "CC": ["other"]}
    )

    headers = forward(came, Retry(), PLAN, 7).properties.headers or {}

    assert sorted(headers) == ["delay-attempt", HISTORY, "delay-origin"]
    assert headers["delay-origin"]["cc"] == ["other"]


def test_what_would_end_the_wait_or_be_refused_is_dropped() -> None:
    """An expiration of its own, and the user id of another; everything else stays."""
    given = Properties(
        expiration="5", user_id="alice", content_type="text/plain", timestamp=datetime(2026, 1, 1, tzinfo=UTC)
    )

    properties = forward(message(properties=given), Retry(), PLAN, 7).properties

    assert replace(properties, headers=None) == replace(given, expiration=None, user_id=None)


def test_the_history_is_bounded() -> None:
    """However often it failed, and however much was said."""
    past = [{"attempt": n, "at": n, "reason": "x"} for n in range(60)]

    headers = forward(message({HISTORY: past}), Retry(reason="y" * 1000), PLAN, 7).properties.headers or {}

    assert len(headers[HISTORY]) == 50
    assert headers[HISTORY][-1] == {"attempt": 0, "at": 7, "reason": "y" * 200}


@pytest.mark.parametrize("attempt", ["three", -4, None])
def test_a_strange_attempt_counts_as_none(attempt: Any) -> None:
    """Headers are written by anybody."""
    assert message({"delay-attempt": attempt}).attempt == 0
