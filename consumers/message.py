"""A message as a handler sees it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from delayctl.consumers.inbox import Delivery
from delayctl.publishers.contract import ATTEMPT, DUE, ORIGIN, REASON
from delayctl.publishers.frames import Properties, decode_properties

_END_OF_CALENDAR_MS = 253_402_300_800_000  # The year 10000.
GIVEN_OUT = "x-delivery-count"  # How often a quorum queue has given it out in vain.
_GIVEN_UP = "delivery_limit"


@dataclass(frozen=True)
class Message:
    """What came, and where it first came from."""

    body: bytes
    queue: str
    redelivered: bool
    _exchange: str
    _key: str
    _header: bytes
    _is_counted_by_broker: bool = False  # Its queue makes it wait before a retry, and counts these.

    @classmethod
    def of(cls, came: Delivery, *, is_counted_by_broker: bool = False) -> "Message":
        """What a delivery brought."""
        return cls(came.body, came.queue, came.redelivered, came.exchange, came.key, came.header, is_counted_by_broker)

    @cached_property
    def properties(self) -> Properties:
        """All that came beside the body."""
        return decode_properties(self._header)

    @property
    def headers(self) -> Mapping[str, Any]:
        """The headers."""
        return self.properties.headers or {}

    @property
    def message_id(self) -> str | None:
        """The same for every copy of a message."""
        return self.properties.message_id

    @property
    def attempt(self) -> int:
        """How often it was tried before: 0 the first time."""
        if self._is_counted_by_broker:
            # The first time the broker does not count, and what is there is a publisher's.
            attempt = self.headers.get(GIVEN_OUT, 0) if self.redelivered else 0
        else:
            attempt = self.headers.get(ATTEMPT, 0)
        return attempt if type(attempt) is int and attempt > 0 else 0  # Anybody may have written it; true is no number.

    @property
    def exchange(self) -> str:
        """The exchange it came from when it was first tried."""
        return str(self._origin.get("exchange", self._exchange))

    @property
    def key(self) -> str:
        """The routing key it came with when it was first tried."""
        return str(self._origin.get("key", self._key))

    @property
    def due(self) -> datetime | None:
        """When it was meant to arrive, if its publisher said so."""
        due = self.headers.get(DUE)
        if not isinstance(due, int) or not 0 <= due < _END_OF_CALENDAR_MS:
            return None  # Headers are written by anybody.
        return datetime.fromtimestamp(due / 1000, UTC)

    @property
    def parked(self) -> str | None:
        """Why it was given up, if it was: what its consumer said, or that the broker lost patience with consumers."""
        said = self.headers.get(REASON)
        if isinstance(said, str):
            return said
        return f"tried too often in {self._death.get('queue')}" if self._death else None

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def _origin(self) -> Mapping[str, Any]:
        origin = self.headers.get(ORIGIN)
        if isinstance(origin, dict):
            return origin
        keys = self._death.get("routing-keys")
        if not isinstance(keys, list) or not keys:
            return {}
        return {"exchange": self._death.get("exchange"), "key": keys[0]}

    @property
    def _death(self) -> Mapping[str, Any]:
        """What the broker noted when it parked the message after too many tries; else nothing."""
        deaths = self.headers.get("x-death")
        last = deaths[0] if isinstance(deaths, list) and deaths else None
        return last if isinstance(last, dict) and last.get("reason") == _GIVEN_UP else {}
