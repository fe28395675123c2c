"""A message that comes in by frames: a method, a header and as many bodies as it takes."""

from delayctl.publishers.frames import BODY, CONTENT_HEAD, HEADER, Frame, content_frames
from delayctl.testing.refusals import UNEXPECTED_FRAME, ConnectionRefusal
from pika import spec

_SIZE_OF_HEAD = 12  # Class, weight and size of the body; the properties follow.


class Content:
    """A publish of which not everything has come."""

    def __init__(self, method: spec.Basic.Publish) -> None:
        self.method = method
        self.header = b""
        self._parts: list[bytes] = []
        self._missing: int | None = None  # None: the header has not come.

    @property
    def body(self) -> bytes:
        """The body."""
        return b"".join(self._parts)

    def frames(self, channel: int, frame_max: int) -> bytes:
        """The message as it came, for the publisher to have back."""
        return content_frames(channel, self.header[_SIZE_OF_HEAD:], self.body, frame_max)

    def take(self, frame: Frame) -> bool:
        """Take in a frame; says whether the message is complete."""
        kind, _, payload = frame
        if kind == HEADER and self._missing is None:
            self.header = payload
            self._missing = int(CONTENT_HEAD.unpack_from(payload)[2])
        elif kind == BODY and self._missing is not None:
            self._parts.append(payload)
            self._missing -= len(payload)
        else:
            raise ConnectionRefusal(UNEXPECTED_FRAME, "expected the rest of a message, got another frame")
        return self._missing == 0
