"""A message as a handler sees it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from delayctl.publishers.contract import ATTEMPT, DUE, ORIGIN
from delayctl.publishers.frames import Properties, decode_properties

_END_OF_CALENDAR_MS = 253_402_300_800_000  # The year 10000.


@dataclass(frozen=True)
class Message:
    """What came, and where it first came from."""

    body: bytes
    queue: str
    redelivered: bool
    _exchange: str
    _key: str
    _header: bytes

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
        attempt = self.headers.get(ATTEMPT, 0)
        return attempt if isinstance(attempt, int) and attempt > 0 else 0

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
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def _origin(self) -> Mapping[str, Any]:
        origin = self.headers.get(ORIGIN)
        return origin if isinstance(origin, dict) else {}
