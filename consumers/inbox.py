"""Frames to deliveries: a method, a header and as many bodies as it takes."""

import struct

from delayctl.publishers import frames
from delayctl.publishers.frames import Frame

_SIZE = struct.Struct(">Q")


class Delivery:
    """One message as it came in, still encoded."""

    __slots__ = ("body", "exchange", "header", "key", "queue", "received_ms", "redelivered", "tag")

    def __init__(self, tag: int, queue: str, exchange: str, key: str, *, redelivered: bool) -> None:
        self.tag, self.queue, self.exchange, self.key, self.redelivered = tag, queue, exchange, key, redelivered
        self.header = b""
        self.body = b""
        self.received_ms = 0  # Since 1970; whoever reads the socket knows.


class Inbox:
    """Puts deliveries together; consumer tags are the names of their queues."""

    def __init__(self) -> None:
        self._current: Delivery | None = None
        self._missing = 0
        self._parts: list[bytes] = []

    def take(self, frame: Frame) -> Delivery | None:
        """Take in a frame of a delivery, and give the delivery that it completes."""
        kind, _, payload = frame
        if kind == frames.METHOD:
            queue, at = frames.read_short_string(payload, 4)
            (tag,) = _SIZE.unpack_from(payload, at)
            exchange, end = frames.read_short_string(payload, at + 9)
            key, _ = frames.read_short_string(payload, end)
            self._current = Delivery(tag, queue, exchange, key, redelivered=bool(payload[at + 8] & 1))
            return None
        current = self._current
        if current is None:
            return None
        if kind == frames.HEADER:
            current.header = payload
            (self._missing,) = _SIZE.unpack_from(payload, 4)
        else:
            self._missing -= len(payload)
            if self._missing or self._parts:
                self._parts.append(payload)
            else:
                current.body = payload
        if self._missing:
            return None
        if self._parts:
            current.body, self._parts = b"".join(self._parts), []
        self._current = None
        return current
