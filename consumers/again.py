"""What becomes of a message that failed: back into a delay, kept by the broker for a while, or to its parking queue."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from delayctl.consumers.message import Message
from delayctl.consumers.outcome import Park, Retry
from delayctl.consumers.policy import Policy
from delayctl.consumers.reasons import cut, reason_text, told
from delayctl.publishers.contract import (
    ATTEMPT,
    DUE,
    EXPEDITED,
    FAILED_IN,
    HISTORY,
    LEVEL,
    ORIGIN,
    REASON,
    without_deaths,
    without_steps,
)
from delayctl.publishers.frames import Properties
from delayctl.topology.wording import quoted

_MOST_REMEMBERED = 50
COPIES = ("CC", "BCC")  # Keys that the broker routes by, too: they would lead a retry to other queues again.


@dataclass(frozen=True, slots=True)
class InLevels:
    """Retries that wait in levels: each is published to one of them."""

    policy: Policy
    back: str  # The key that leads to the queue alone.
    levels: frozenset[str]


@dataclass(frozen=True, slots=True)
class ByBroker:
    """Retries that wait in the queue itself: the broker keeps what is rejected, so many times."""

    most: int


@dataclass(frozen=True, slots=True)
class Parking:
    """A queue for what is given up, and the way that leads to it."""

    queue: str
    exchange: str
    key: str
    is_retried: bool = False  # It has a retry of its own, and begins to count anew.


@dataclass(frozen=True, slots=True)
class Plan:
    """How the failures of one queue are dealt with."""

    retries: InLevels | ByBroker
    parking: Parking


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Try it again after this level; None where the broker knows how long."""

    level: str | None


@dataclass(frozen=True, slots=True)
class Forward:
    """A message to be published instead of the one that failed."""

    key: str
    level: str | None  # None: at once, through `exchange`.
    exchange: str | None
    properties: Properties


def forward(message: Message, outcome: Retry | Park, plan: Plan, now_ms: int) -> Forward | None:
    """Decide what becomes of a message, and stamp it with how it came to this; None where the broker shall keep it."""
    why = reason_text(outcome.reason)
    decision = decide(message.attempt, replace(outcome, reason=why), plan.retries)
    if decision == RetryAfter(None):
        return None
    headers = _stamped(message, now_ms, why)
    # Its own expiration would end the wait, or the parking; another's user id would not be taken from us.
    properties = replace(message.properties, expiration=None, user_id=None, headers=headers)
    if isinstance(decision, RetryAfter):
        assert isinstance(plan.retries, InLevels)
        headers[ATTEMPT] = message.attempt + 1
        return Forward(plan.retries.back, decision.level, None, properties)
    if plan.parking.is_retried:
        headers.pop(ATTEMPT, None)
    elif message.attempt:
        headers[ATTEMPT] = message.attempt
    headers |= {REASON: cut(decision.reason), FAILED_IN: message.queue}
    return Forward(plan.parking.key, None, plan.parking.exchange, properties)


def without_history(onward: Forward) -> Forward:
    """The same with shorter headers: they say how often it failed, and no longer how."""
    headers = {name: value for name, value in (onward.properties.headers or {}).items() if name != HISTORY}
    return replace(onward, properties=replace(onward.properties, headers=headers))


def decide(attempt: int, outcome: Retry | Park, retries: InLevels | ByBroker) -> RetryAfter | Park:
    """What comes next for a message that was tried again so often."""
    why = outcome.reason or "no reason given"
    if isinstance(outcome, Park):
        return Park(why)
    if isinstance(retries, ByBroker):
        return RetryAfter(None) if attempt < retries.most else _given_up(attempt, why)
    try:
        following: object = retries.policy.level(attempt + 1)
    except BaseException as error:  # It would fail the next time, too, and nobody would count how often.
        return Park(f"the retry policy failed with {told(error)}: {why}")
    if following is None:  # A level of one's own choice does not give more retries.
        return _given_up(attempt, why)
    for level in (outcome.level, following):
        if isinstance(level, str) and level in retries.levels:
            return RetryAfter(level)
    return Park(f"there is no level {quoted(reason_text(following))}: {why}")


def _given_up(attempt: int, why: str) -> Park:
    return Park(f"gave up after {attempt} retries: {why}")


def _stamped(message: Message, now_ms: int, reason: str) -> dict[str, Any]:
    headers = without_steps(without_deaths(message.headers))
    for stale in (DUE, LEVEL, EXPEDITED, *COPIES):
        headers.pop(stale, None)
    headers.setdefault(ORIGIN, _origin(message))
    headers[HISTORY] = history_with(headers, message.attempt, now_ms, reason)
    return headers


def history_with(headers: Mapping[str, Any], attempt: int, now_ms: int, reason: str) -> list[Any]:
    """What headers tell of a message's past, and what has come of it now; the last fifty of it."""
    past = headers.get(HISTORY)
    history = list(past) if isinstance(past, list) else []
    return [*history, {"attempt": attempt, "at": now_ms, "reason": reason}][-_MOST_REMEMBERED:]


def _origin(message: Message) -> dict[str, Any]:
    copies = message.headers.get("CC")
    return {"exchange": message.exchange, "key": message.key, **({"cc": copies} if copies else {})}
