"""Which messages were cancelled, and until when that is remembered; and how a cancellation is written down."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

_MOST_ID_LENGTH = 255
_TIDY_UP_AT = 1_000


@dataclass(frozen=True, slots=True)
class Cancellation:
    """A message that nobody shall handle, until this moment (milliseconds since 1970); 0 takes it back."""

    message_id: str
    until_ms: int


def encode(cancellation: Cancellation) -> bytes:
    """A cancellation as the body of a message."""
    return json.dumps({"message_id": cancellation.message_id, "until": cancellation.until_ms}).encode()


def decode(body: bytes) -> Cancellation | None:
    """The cancellation that a body holds; None where it holds something else, which anybody may have sent."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, Mapping):
        return None
    message_id, until = said.get("message_id"), said.get("until")
    if not isinstance(message_id, str) or not 0 < len(message_id) <= _MOST_ID_LENGTH or not isinstance(until, int):
        return None
    return Cancellation(message_id, until)


class Cancelled:
    """Cancellations by id, the last word counting. One thread notes them, any thread asks."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}
        self._tidy_up_at = _TIDY_UP_AT

    def note(self, cancellation: Cancellation, now_ms: int) -> None:
        """Take in a cancellation, or that one was taken back."""
        if cancellation.until_ms <= now_ms:
            self._until.pop(cancellation.message_id, None)
            return
        self._until[cancellation.message_id] = cancellation.until_ms
        if len(self._until) >= self._tidy_up_at:
            self._until = {name: until for name, until in self._until.items() if until > now_ms}
            self._tidy_up_at = max(_TIDY_UP_AT, 2 * len(self._until))

    def has(self, message_id: str | None, now_ms: int) -> bool:
        """Say whether a message is cancelled."""
        return message_id is not None and self._until.get(message_id, 0) > now_ms

    def __len__(self) -> int:
        return len(self._until)
