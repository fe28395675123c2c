"""Messages that arrived, as people and programs read them, and how late they were."""

import base64
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from delayctl.topology.duration import Duration
from delayctl.topology.wording import escaped_within, plural, shorten

_DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1)
_LAST_DAY = (date.max - _EPOCH).days
_MOST_OF_BODY = 80


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message and the moment it came, in milliseconds since 1970."""

    arrived_ms: int
    due_ms: int | None  # None: its publisher did not say.
    queue: str
    exchange: str
    key: str
    message_id: str | None
    attempt: int
    redelivered: bool
    headers: Mapping[str, Any]
    body: bytes
    parked: str | None = None  # Why it was given up, if it was.

    @property
    def late_ms(self) -> int | None:
        """How much later than due it came; negative where it came early."""
        return None if self.due_ms is None else self.arrived_ms - self.due_ms


class Lateness:
    """How late messages were, by the millisecond: grows with how different they are, not with how many."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.messages = 0

    def add(self, late_ms: int | None) -> None:
        """Count a message; None where it had no due time."""
        self.messages += 1
        if late_ms is not None:
            self._counts[late_ms] += 1

    @property
    def timed(self) -> int:
        """How many had a due time."""
        return self._counts.total()

    def percentile(self, percent: float) -> int | None:
        """The lateness that so many percent do not exceed."""
        rank, seen = percent / 100 * self.timed, 0
        for late_ms in sorted(self._counts):
            seen += self._counts[late_ms]
            if seen >= rank:
                return late_ms
        return None

    def figures(self) -> dict[str, int | None]:
        """What a summary says."""
        return {"p50_ms": self.percentile(50), "p99_ms": self.percentile(99), "max_ms": self.percentile(100)}


def arrival_text(arrival: Arrival) -> str:
    """One line for a message; nothing in it moves a cursor."""
    words = [
        _clock(arrival.arrived_ms),
        "no due time" if arrival.due_ms is None else f"due {_due(arrival.due_ms, arrival.arrived_ms)}",
        *([_late(arrival.late_ms)] if arrival.late_ms is not None else []),
        shorten(arrival.key) or "(no key)",
        *([f"retry {arrival.attempt}"] if arrival.attempt else []),
        *(["redelivered"] if arrival.redelivered else []),
        *([f"parked: {shorten(arrival.parked)}"] if arrival.parked else []),
        f"id {shorten(arrival.message_id)}" if arrival.message_id else "no id",
        _shown(arrival.body),
    ]
    return "  ".join(words)


def arrival_json(arrival: Arrival) -> str:
    """One line of JSON for a message; a body that is no text is given in base64."""
    try:
        body = {"body": arrival.body.decode()}
    except UnicodeDecodeError:
        body = {"body_base64": base64.b64encode(arrival.body).decode()}
    found = {
        "queue": arrival.queue,
        "arrived_ms": arrival.arrived_ms,
        "due_ms": arrival.due_ms,
        "late_ms": arrival.late_ms,
        "exchange": arrival.exchange,
        "key": arrival.key,
        "message_id": arrival.message_id,
        "attempt": arrival.attempt,
        "redelivered": arrival.redelivered,
        "parked": arrival.parked,
        "headers": arrival.headers,
    }
    return json.dumps(escaped_within({**found, **body}), default=str)


def summary_text(lateness: Lateness, *, left_there: bool) -> str:
    """What was seen, and how late it was."""
    what = f"{plural(lateness.messages, 'message')}{', left in the queue' if left_there else ''}"
    if not lateness.timed:
        return f"{what}."
    p50, p99, most = (_span(value) for value in lateness.figures().values() if value is not None)
    some = "" if lateness.timed == lateness.messages else f" of {lateness.timed:,} with a due time"
    return f"{what}. Lateness{some}: p50 {p50}, p99 {p99}, max {most}."


def _clock(at_ms: int) -> str:
    """The time of day, UTC."""
    seconds, ms = divmod(at_ms % _DAY_MS, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}"


def _due(due_ms: int, arrived_ms: int) -> str:
    """The time of day at which a message was due, behind its date where that is not the day on which it came."""
    if due_ms // _DAY_MS == arrived_ms // _DAY_MS:
        return _clock(due_ms)
    day = _EPOCH + timedelta(days=min(due_ms // _DAY_MS, _LAST_DAY))
    return f"{day:%Y-%m-%d} {_clock(due_ms)}"


def _late(late_ms: int) -> str:
    span = str(Duration(abs(late_ms)))
    return f"{span} late" if late_ms >= 0 else f"{span} early"


def _span(late_ms: int) -> str:
    return f"{'-' if late_ms < 0 else ''}{Duration(abs(late_ms))}"


def _shown(body: bytes) -> str:
    if not body:
        return "(empty)"
    # A character has up to four bytes: no more of a large body is looked at than can be shown.
    text = body[: 4 * _MOST_OF_BODY + 4].decode("utf-8", "backslashreplace")
    return shorten(text, _MOST_OF_BODY)
