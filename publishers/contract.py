"""What every delayed message carries: persistent, with an id, its due time and its level."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from delayctl.publishers import frames
from delayctl.publishers.frames import CHANNEL, Properties, encode_properties, encode_table, short_string
from delayctl.topology.ladder import headers_for, is_step_header

DUE, LEVEL, ATTEMPT, ORIGIN = "delay-due", "delay-level", "delay-attempt", "delay-origin"
HISTORY, REASON = "delay-history", "delay-parked"  # Of what failed.
FAILED_IN = "delay-queue"  # The queue of what was parked: several may share a parking queue.
EXPEDITED = "delay-expedited"  # When it was taken out of its delay on purpose, in milliseconds since 1970.
_DEATHS = ("x-death", "x-first-death-", "x-last-death-", "x-delivery-count", "x-acquired-count")
_FLAGS = (1 << 13 | 1 << 12 | 1 << 7).to_bytes(2, "big")  # Headers, delivery mode and message id.
_PERSISTENT = b"\x02"


class ContentMaker:
    """Makes the frames behind a publish method; what many messages have in common is encoded once."""

    def __init__(self, frame_max: int) -> None:
        self._frame_max = frame_max
        self._due_name = short_string(DUE) + b"l"
        self._levels: dict[str, bytes] = {}

    def make(
        self,
        body: bytes,
        message_id: str,
        *,
        due_ms: int,
        level: str | None,
        headers: Mapping[str, Any] | None,
        properties: Properties | None,
        units: int = 0,
    ) -> bytes:
        """The content header and the body; `units` is how long it waits at the ladder."""
        if units:
            headers, properties = _for_the_ladder(units, headers, properties)
        if properties is None:
            encoded = _FLAGS + self._table(due_ms, level, headers) + _PERSISTENT + short_string(message_id)
        else:
            stamps = {**({DUE: due_ms} if due_ms else {}), **({LEVEL: level} if level is not None else {})}
            combined = {**(properties.headers or {}), **(headers or {}), **stamps}
            stamped = replace(properties, headers=combined, message_id=message_id, delivery_mode=_PERSISTENT[0])
            encoded = encode_properties(stamped)
        return frames.content_frames(CHANNEL, encoded, body, self._frame_max)

    def _table(self, due_ms: int, level: str | None, headers: Mapping[str, Any] | None) -> bytes:
        own = b""
        if due_ms:
            own = self._due_name + due_ms.to_bytes(8, "big", signed=True)
        if level is not None:
            encoded = self._levels.get(level)
            if encoded is None:
                encoded = self._levels[level] = encode_table({LEVEL: level})[4:]
            own += encoded
        if headers:
            given = {name: value for name, value in headers.items() if name not in (DUE, LEVEL) or not due_ms}
            own += encode_table(given)[4:]
        return len(own).to_bytes(4, "big") + own


def _for_the_ladder(
    units: int, headers: Mapping[str, Any] | None, properties: Properties | None
) -> tuple[Mapping[str, Any], Properties | None]:
    """The headers of the steps in the place of those that an earlier wait may have left: these would add to it."""
    own = {**without_steps(headers or {}), **headers_for(units)}
    if properties is None or not properties.headers:
        return own, properties
    return own, replace(properties, headers=without_steps(properties.headers))


def without_steps(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Headers without those by which a message waits at the ladder."""
    return {name: value for name, value in headers.items() if not is_step_header(name)}


def without_deaths(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Headers to be sent on, without the broker's own: older ones take a copied x-death for a cycle, and drop it."""
    return {name: value for name, value in headers.items() if not name.startswith(_DEATHS)}
