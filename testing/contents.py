"""Messages between the wire and the model."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from delayctl.consumers.message import Message
from delayctl.publishers.frames import BASIC, CONTENT_HEAD, Properties, decode_properties, encode_properties
from delayctl.simulator import rabbitmq_message as model

_DEATHS = "x-death"
_SHARED = tuple(name for name in Properties.__slots__ if name not in ("headers", "timestamp"))


def to_model(header: bytes) -> tuple[Mapping[str, object] | None, model.Properties]:
    """The headers and the other properties in the payload of a content header."""
    found = decode_properties(header)
    moment = found.timestamp
    seconds = int(moment.timestamp()) if isinstance(moment, datetime) else moment
    shared: dict[str, Any] = {name: getattr(found, name) for name in _SHARED}
    return found.headers, model.Properties(timestamp=seconds, **shared)


def to_wire(headers: Mapping[str, object], properties: model.Properties) -> Properties:
    """The properties as a client gets them."""
    shared: dict[str, Any] = {name: getattr(properties, name) for name in _SHARED}
    return Properties(headers=_with_moments(headers) or None, timestamp=properties.timestamp, **shared)


def to_message(delivery: model.Delivery) -> Message:
    """A message as a handler would see it."""
    encoded = encode_properties(to_wire(delivery.headers, delivery.properties))
    header = CONTENT_HEAD.pack(BASIC, 0, len(delivery.body), 0)[:-2] + encoded
    return Message(delivery.body, delivery.queue, delivery.redelivered, delivery.exchange, delivery.key, header)


def _with_moments(headers: Mapping[str, object]) -> dict[str, object]:
    """The model counts the seconds of deaths; on the wire they are moments."""
    deaths = headers.get(_DEATHS)
    if not isinstance(deaths, list):
        return dict(headers)
    return {**headers, _DEATHS: [_with_moment(death) for death in deaths]}


def _with_moment(death: object) -> object:
    if isinstance(death, dict) and isinstance(death.get("time"), int):
        return {**death, "time": datetime.fromtimestamp(death["time"], UTC)}
    return death
