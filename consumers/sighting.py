"""What is known of a message in a queue without asking anybody: its key, since when it is there, when it is due."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from delayctl.consumers.deaths import Delays, death_at_home, latest_death, told_by, way_in
from delayctl.consumers.inbox import Delivery
from delayctl.consumers.message import GIVEN_OUT, Message
from delayctl.publishers.contract import DUE, HISTORY, ORIGIN, REASON
from delayctl.topology.routing import topic_matches
from delayctl.topology.wording import escaped

_UNREADABLE = (ValueError, IndexError, struct.error)
_END_OF_CALENDAR_MS = 253_402_300_800_000


@dataclass(frozen=True, slots=True)
class Sighting:
    """A message that lies in a queue; times are milliseconds since 1970, None where nobody said."""

    message_id: str | None
    key: str  # That it first came with.
    exchange: str
    attempt: int
    reason: str | None = None  # Why it was parked.
    since_ms: int | None = None  # When it was parked.
    due_ms: int | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Body:
    """The beginning of a body, and how long all of it is."""

    start: bytes
    size: int


class Unreadable(ValueError):
    """The headers of a message can't be understood."""


def sighted(came: Delivery, delays: Delays) -> Sighting:
    """What a delivery tells of itself; raises Unreadable where its headers are no headers."""
    try:
        message = Message.of(came)
        headers = message.headers
    except _UNREADABLE as error:
        raise Unreadable(str(error)) from error
    last, at_home = latest_death(headers), death_at_home(headers, delays)
    exchange, key = _first_way(message, at_home)
    return Sighting(
        message.message_id,
        key,
        exchange,
        message.attempt,
        _reason(headers, at_home or last),
        _parked_at(headers, last),
        _moment(headers.get(DUE)),
        headers,
    )


def is_worn(came: Delivery, most_returns: int | None) -> bool:
    """Say whether a message was given back so often that it should not be once more; None: as often as one likes."""
    return most_returns is not None and times_returned(came) >= most_returns


def _first_way(message: Message, at_home: Mapping[str, Any]) -> tuple[str, str]:
    """The exchange and the key of a message before anybody parked it, as far as its consumer or the broker noted them."""
    noted = None if isinstance(message.headers.get(ORIGIN), dict) else way_in(at_home)
    return noted or (message.exchange, message.key)


def _reason(headers: Mapping[str, Any], death: Mapping[str, Any]) -> str | None:
    said = headers.get(REASON)
    return said if isinstance(said, str) else told_by(death)


def times_returned(came: Delivery) -> int:
    """How often a quorum queue has given a message out in vain, and counted it; other queues don't count."""
    try:
        count = Message.of(came).headers.get(GIVEN_OUT)
    except _UNREADABLE:
        return 0
    return count if isinstance(count, int) else 0


def _parked_at(headers: Mapping[str, Any], death: Mapping[str, Any]) -> int | None:
    history = headers.get(HISTORY)
    last = history[-1] if REASON in headers and isinstance(history, list) and history else None
    if isinstance(last, dict):
        return _moment(last.get("at"))
    died = death.get("time")
    return int(died.timestamp() * 1000) if isinstance(died, datetime) else None


def _moment(value: object) -> int | None:
    """Milliseconds since 1970, if it is that: headers are written by anybody."""
    return value if type(value) is int and 0 < value < _END_OF_CALENDAR_MS else None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages are meant: all that is named has to hold."""

    keys: tuple[str, ...] = ()  # Patterns as of a topic exchange, any of which will do.
    ids: frozenset[str] = frozenset()
    reasons: tuple[str, ...] = ()  # Any of these words within the reason.
    headers: tuple[tuple[str, str], ...] = ()  # Names and values; of those with the same name any will do.
    older_than_ms: int | None = None
    newer_than_ms: int | None = None

    def wants(self, seen: Sighting, now_ms: int) -> bool:
        """Say whether a message is meant."""
        return (
            (not self.keys or any(topic_matches(pattern, seen.key) for pattern in self.keys))
            and (not self.ids or bool(self.ids & ids_of(seen)))
            and (not self.reasons or any(_contains(seen.reason, words) for words in self.reasons))
            and all((name, _text(seen.headers.get(name))) in self.headers for name, _ in self.headers)
            and self._is_of_age(seen.since_ms, now_ms)
        )

    def _is_of_age(self, since_ms: int | None, now_ms: int) -> bool:
        if self.older_than_ms is None and self.newer_than_ms is None:
            return True
        if since_ms is None:
            return False  # Nobody said how old it is.
        age_ms = now_ms - since_ms
        is_old = self.older_than_ms is None or age_ms >= self.older_than_ms
        return is_old and (self.newer_than_ms is None or age_ms < self.newer_than_ms)


def ids_of(seen: Sighting) -> set[str]:
    """The id of a message as it came, and as it is shown where bytes in it are no text: somebody may have copied that."""
    return set() if seen.message_id is None else {seen.message_id, escaped(seen.message_id)}


def _contains(reason: str | None, words: str) -> bool:
    return reason is not None and words.lower() in reason.lower()


def _text(value: object) -> str | None:
    """A header as it is written on a command line."""
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
