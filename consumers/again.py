"""What is sent on for a message that failed: back into a delay, or to its parking queue."""

from dataclasses import dataclass, replace
from typing import Any

from delayctl.consumers.message import Message
from delayctl.consumers.outcome import Park, Retry
from delayctl.consumers.policy import Policy
from delayctl.publishers.contract import ATTEMPT, DUE, LEVEL, ORIGIN, without_deaths
from delayctl.publishers.frames import Properties
from delayctl.topology.wording import quoted

HISTORY, REASON = "delay-history", "delay-parked"
_MOST_REMEMBERED = 50
_LONGEST_REASON = 200
_DEFAULT_EXCHANGE = ""
_COPIES = ("CC", "BCC")  # Keys that the broker routes by, too: they would lead a retry to other queues again.


@dataclass(frozen=True, slots=True)
class Plan:
    """How the failures of one queue are dealt with."""

    policy: Policy
    park: str
    back: str  # The key that leads to the queue alone.
    levels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Forward:
    """A message to be published instead of the one that failed."""

    key: str
    level: str | None  # None: at once, through `exchange`.
    exchange: str | None
    properties: Properties


def forward(message: Message, outcome: Retry | Park, plan: Plan, now_ms: int) -> Forward:
    """Decide what becomes of a message, and stamp it with how it came to this."""
    level, reason = _decide(message.attempt, outcome, plan)
    headers = _stamped(message, now_ms, outcome.reason[:_LONGEST_REASON])
    # Its own expiration would end the wait, or the parking; another's user id would not be taken from us.
    properties = replace(message.properties, expiration=None, user_id=None, headers=headers)
    if level is not None:
        headers[ATTEMPT] = message.attempt + 1
        return Forward(plan.back, level, None, properties)
    headers[REASON] = reason[:_LONGEST_REASON]
    return Forward(plan.park, None, _DEFAULT_EXCHANGE, properties)


def _decide(attempt: int, outcome: Retry | Park, plan: Plan) -> tuple[str | None, str]:
    """The level of the next retry, or None and the reason for parking."""
    why = outcome.reason or "no reason given"
    if isinstance(outcome, Park):
        return None, why
    level = plan.policy.level(attempt + 1)
    if level is None:  # A level of one's own choice does not give more retries.
        return None, f"gave up after {attempt} retries: {why}"
    if outcome.level in plan.levels:
        level = outcome.level
    return (level, why) if level in plan.levels else (None, f"there is no level {quoted(level)}: {why}")


def _stamped(message: Message, now_ms: int, reason: str) -> dict[str, Any]:
    headers = without_deaths(message.headers)
    for stale in (DUE, LEVEL, *_COPIES):
        headers.pop(stale, None)
    headers.setdefault(ORIGIN, _origin(message))
    past = headers.get(HISTORY)
    history = list(past) if isinstance(past, list) else []
    headers[HISTORY] = [*history, {"attempt": message.attempt, "at": now_ms, "reason": reason}][-_MOST_REMEMBERED:]
    return headers


def _origin(message: Message) -> dict[str, Any]:
    copies = message.headers.get("CC")
    return {"exchange": message.exchange, "key": message.key, **({"cc": copies} if copies else {})}
