"""What is sent on for a message that failed."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from delayctl.consumers.again import ByBroker, Forward, InLevels, Parking, Plan
from delayctl.consumers.again import forward as forward_or_keep
from delayctl.consumers.message import Message
from delayctl.consumers.outcome import Park, Retry
from delayctl.consumers.policy import ByList
from delayctl.publishers.contract import FAILED_IN, HISTORY, REASON
from delayctl.publishers.frames import Properties, encode_properties

PARKING = Parking("work.dlq", "delay.exchange", "delay.park.work.dlq")
LEVELS = InLevels(ByList(["10s", "1m"]), "delay.retry.work", frozenset({"10s", "1m", "5m"}))
PLAN = Plan(LEVELS, PARKING)
KEPT = Plan(ByBroker(3), PARKING)


def message(headers: dict[str, Any] | None = None, properties: Properties | None = None) -> Message:
    """A message of queue `work`, as it came."""
    stamped = replace(properties or Properties(message_id="m-1"), headers=headers or {})
    return Message(b"body", "work", False, "delay.exchange", "order.created", bytes(12) + encode_properties(stamped))


def forward(came: Message, outcome: Retry | Park, plan: Plan, now_ms: int) -> Forward:
    """What is published for a message, which something is."""
    onward = forward_or_keep(came, outcome, plan, now_ms)
    assert onward is not None
    return onward


@pytest.mark.parametrize("written", [True, -1, "2", 1.5, None])
def test_an_attempt_that_is_no_count_is_the_first(written: object) -> None:
    """Anybody may have written the header; in a record it has to be a number."""
    attempt = message({"delay-attempt": written}).attempt

    assert (attempt, type(attempt)) == (0, int)


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

    assert (onward.key, onward.level, onward.exchange) == ("delay.park.work.dlq", None, "delay.exchange")
    assert onward.properties.headers is not None
    assert onward.properties.headers[REASON] == "gave up after 2 retries: still none"
    assert onward.properties.headers["delay-attempt"] == 2


def test_a_parking_queue_with_a_retry_counts_anew() -> None:
    """With the old count it would give up at its first failure."""
    onward = forward(message({"delay-attempt": 2}), Retry(), Plan(LEVELS, replace(PARKING, is_retried=True)), 7)

    assert sorted(onward.properties.headers or {}) == [HISTORY, "delay-origin", REASON, FAILED_IN]


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
    onward = forward(message(), Retry(reason="x"), Plan(replace(LEVELS, policy=ByList(["7m"])), PARKING), 7)

    assert (onward.level, (onward.properties.headers or {})[REASON]) == (None, "there is no level '7m': x")


def test_what_the_broker_wrote_is_stripped() -> None:
    """Traces of dead-lettering, stale stamps, and keys that would lead to other queues again."""
    came = message(
        {
            "x-death": [{"count": 1}],
            "x-first-death-queue": "q",
            "delay-due": 5,
            "delay-level": "1m",
            "delay-expedited": 3,
            "CC": ["other"],
        }
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


@pytest.mark.parametrize(
    ("said", "reason"),
    [("file \ud800.txt", "file \\ud800.txt"), ("\udcff" * 300, ("\\udcff" * 300)[:200]), ("Grüße €", "Grüße €")],
)
@pytest.mark.parametrize("attempt", [0, 2])
def test_what_is_no_character_is_spelled_out(said: str, reason: str, attempt: int) -> None:
    """Else nobody could send the message on: it would come again for ever, and never be counted or parked."""
    onward = forward(message({"delay-attempt": attempt}), Retry(reason=said), PLAN, 7)

    headers = onward.properties.headers or {}
    assert encode_properties(onward.properties)
    assert headers[HISTORY][-1]["reason"] == reason
    assert headers.get(REASON) == (f"gave up after 2 retries: {reason}"[:200] if attempt else None)


@pytest.mark.parametrize("attempt", ["three", -4, None])
def test_a_strange_attempt_counts_as_none(attempt: Any) -> None:
    """Headers are written by anybody."""
    assert message({"delay-attempt": attempt}).attempt == 0


def given_out(times: int | None, headers: dict[str, Any] | None = None) -> Message:
    """A message of a queue whose retries wait in it, given out so often in vain."""
    counted = {} if times is None else {"x-delivery-count": times, "x-acquired-count": times}
    encoded = encode_properties(Properties(message_id="m-1", headers={**(headers or {}), **counted}))
    return Message(b"body", "work", bool(times), "orders", "order.created", bytes(12) + encoded, True)


@pytest.mark.parametrize("times", [None, 1, 2])
@pytest.mark.parametrize("outcome", [Retry(reason="no luck"), Retry(level="5m")])
def test_the_broker_keeps_what_waits_in_its_queue(times: int | None, outcome: Retry) -> None:
    """Nothing is published, whatever level the handler would like."""
    assert forward_or_keep(given_out(times), outcome, KEPT, 7) is None


def test_the_broker_counts_what_waits_in_its_queue() -> None:
    """What a header says at the first time is not the broker's; nor is a count that is none."""
    came = [given_out(None), given_out(2), given_out(None, {"x-delivery-count": 7}), given_out(1, {"delay-attempt": 5})]

    assert [message.attempt for message in came] == [0, 2, 0, 1]


@pytest.mark.parametrize(
    ("times", "outcome", "reason"),
    [(3, Retry(reason="no luck"), "gave up after 3 retries: no luck"), (1, Park("broken"), "broken")],
)
def test_what_waited_in_its_queue_is_parked_with_its_reason(times: int, outcome: Retry | Park, reason: str) -> None:
    """By the consumer, which knows why; the broker's own counts are taken off."""
    onward = forward(given_out(times, {"shop": "eu"}), outcome, KEPT, 7)

    assert (onward.key, onward.level, onward.exchange) == ("delay.park.work.dlq", None, "delay.exchange")
    assert onward.properties.headers == {
        "shop": "eu",
        "delay-attempt": times,
        "delay-origin": {"exchange": "orders", "key": "order.created"},
        HISTORY: [{"attempt": times, "at": 7, "reason": outcome.reason}],
        REASON: reason,
        FAILED_IN: "work",
    }


def test_what_the_broker_has_parked_tells_its_story() -> None:
    """Where it came from is in the broker's own words, and so is the reason."""
    death = {"reason": "delivery_limit", "queue": "work", "exchange": "orders", "routing-keys": ["order.created"]}
    encoded = encode_properties(Properties(headers={"x-death": [death]}))
    parked = Message(b"", "work.dlq", False, "delay.exchange", "delay.park.work.dlq", bytes(12) + encoded)

    assert (parked.exchange, parked.key, parked.parked) == ("orders", "order.created", "tried too often in work")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-death": "delivery_limit"},
        {"x-death": []},
        {"x-death": [5]},
        {"x-death": [{"reason": "expired", "exchange": "e", "routing-keys": ["k"]}]},
        {"x-death": [{"reason": "delivery_limit", "routing-keys": []}]},
        {"delay-origin": 5},
    ],
)
def test_headers_are_written_by_anybody(headers: dict[str, Any]) -> None:
    """What is no story of a parking leaves a message as it came."""
    assert (message(headers).exchange, message(headers).key) == ("delay.exchange", "order.created")
