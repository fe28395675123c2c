"""AMQP 0-9-1 from the broker's side: methods and contents to and from frames."""

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from delayctl.publishers.frames import (
    METHOD_ID,
    Properties,
    content_frames,
    encode_properties,
    method_frame,
)
from delayctl.testing.refusals import NOT_IMPLEMENTED, SYNTAX_ERROR, ConnectionRefusal
from pika import spec
from pika.amqp_object import Method
from pika.exceptions import InvalidFieldTypeException

PROTOCOL = b"AMQP\x00\x00\x09\x01"
FRAME_MAX = 131_072
CHANNEL_MAX = 2_047
HEARTBEAT_S = 60


def decode(payload: bytes) -> Method:
    """The method in a frame; a refusal where it makes no sense."""
    with making_sense("a method"):
        class_id, method_id = METHOD_ID.unpack_from(payload)
        kind = spec.methods.get(class_id << 16 | method_id)
        if kind is None:
            raise ConnectionRefusal(NOT_IMPLEMENTED, f"method {class_id}, {method_id} is unknown")
        return kind().decode(payload, 4)


@contextmanager
def making_sense(what: str) -> Iterator[None]:
    """Refuse what can't be decoded."""
    try:
        yield
    except (ValueError, struct.error, IndexError, InvalidFieldTypeException) as error:
        raise ConnectionRefusal(SYNTAX_ERROR, f"{what} makes no sense: {error}") from error


def encode(channel: int, method: Method) -> bytes:
    """The frame of a method."""
    assert method.INDEX is not None
    return method_frame(channel, divmod(method.INDEX, 1 << 16), b"".join(method.encode()))


def encode_content(channel: int, method: Method, properties: Properties, body: bytes, frame_max: int) -> bytes:
    """The frames of a method that carries a message."""
    return encode(channel, method) + content_frames(channel, encode_properties(properties), body, frame_max)


def plain(value: Any) -> Any:
    """A decoded argument without the decoder's own number type."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
