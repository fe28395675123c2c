"""One client's connection as the broker sees it: the handshake, the channels, and the end."""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from delayctl.publishers.frames import HEARTBEAT, METHOD, Frame, FrameReader
from delayctl.testing.refusals import (
    ACCESS_REFUSED,
    CHANNEL_ERROR,
    FRAME_ERROR,
    INTERNAL_ERROR,
    NOT_ALLOWED,
    NOT_IMPLEMENTED,
    ChannelRefusal,
    ConnectionRefusal,
    Refusal,
)
from delayctl.testing.wire import CHANNEL_MAX, FRAME_MAX, HEARTBEAT_S, PROTOCOL, decode, encode, plain
from delayctl.topology.errors import Refused
from pika import spec
from pika.amqp_object import Method

_CAPABILITIES = (
    "publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify", "connection.blocked",
    "consumer_priorities", "authentication_failure_close", "per_consumer_qos",
)  # fmt: skip
_BLOCKED = "connection.blocked"
_LONGEST_TEXT = 255


class Line(Protocol):
    """The way to the client."""

    is_paused: bool  # What the client sends stays with it.
    is_leaving: bool  # It ends when all is sent.
    heartbeat_s: int

    def send(self, data: bytes) -> None:
        """Have this sent."""


class Channel(Protocol):
    """What is done on one channel of a connection."""

    def take(self, frame: Frame, method: Method | None) -> None:
        """Take in a frame; `method` is what is in it, where it is one."""

    def close(self) -> None:
        """Give back what was not acknowledged, and stop consuming."""


class House(Protocol):
    """What a connection needs to know of the broker behind it."""

    vhost: str
    version: str

    def lets_in(self, username: str, password: str) -> bool:
        """Whether somebody may come in."""

    def left(self, session: "Session") -> None:
        """A connection has ended."""


class Session:
    """A connection. `open_channel` makes what answers on a channel."""

    def __init__(self, line: Line, house: House, open_channel: Callable[["Session", int], Channel]) -> None:
        self.line = line
        self.frame_max = FRAME_MAX
        self.username = ""
        self._house = house
        self._open_channel = open_channel
        self._reader: FrameReader | None = None
        self._begun = b""  # Of the protocol header.
        self._ahead: deque[Frame] = deque()  # Received, and not taken yet.
        self._channels: dict[int, Channel] = {}
        self._closing: set[int] = set()  # Channels that we closed; what comes before the client's answer is ignored.
        self._is_closed = False
        self._hears_of_blocks = False

    # What happens to it.

    def received(self, data: bytes) -> None:
        """Take in what has come."""
        if self._reader is None:
            self._greet(data)
            return
        try:
            frames = self._reader.feed(data)
        except ValueError as error:
            self._refuse(0, ConnectionRefusal(FRAME_ERROR, str(error)))
            return
        self._ahead.extend(frames)
        self._take_ahead()

    def gone(self) -> None:
        """The client is gone, and all it held goes back."""
        self._end_channels()
        self._house.left(self)

    def block(self, reason: str) -> None:
        """Take nothing from the client for now, and tell it."""
        self.line.is_paused = True
        if self._hears_of_blocks:
            self.send(0, spec.Connection.Blocked(reason))

    def unblock(self) -> None:
        """Go on where it was blocked, if it was."""
        if not self.line.is_paused:
            return
        self.line.is_paused = False
        if self._hears_of_blocks:
            self.send(0, spec.Connection.Unblocked())
        self._take_ahead()

    # What channels ask of it.

    def send(self, channel: int, method: Method) -> None:
        """Send a method."""
        self.line.send(encode(channel, method))

    # The handshake.

    def _greet(self, data: bytes) -> None:
        self._begun += data
        if len(self._begun) < len(PROTOCOL):
            return
        begun, rest = self._begun[: len(PROTOCOL)], self._begun[len(PROTOCOL) :]
        if begun != PROTOCOL:
            self.line.send(PROTOCOL)
            self.line.is_leaving = True
            return
        self._reader = FrameReader()
        about: dict[str, Any] = {
            "product": "RabbitMQ",
            "version": self._house.version,
            "platform": "delayctl's simulation, in virtual time",
            "capabilities": dict.fromkeys(_CAPABILITIES, True),
        }
        self.send(0, spec.Connection.Start(server_properties=about, mechanisms="PLAIN AMQPLAIN"))
        if rest:
            self.received(rest)

    def _introduced(self, method: spec.Connection.StartOk) -> None:
        abilities = plain(method.client_properties or {}).get("capabilities", {})
        self._hears_of_blocks = isinstance(abilities, dict) and abilities.get(_BLOCKED) is True
        if method.mechanism != "PLAIN":
            raise ConnectionRefusal(ACCESS_REFUSED, f"{method.mechanism} is not known here; use PLAIN")
        response: Any = method.response  # Bytes, whatever its annotation says.
        _, _, login = response.decode(errors="replace").partition("\0")
        username, _, password = login.partition("\0")
        if not self._house.lets_in(username, password):
            raise ConnectionRefusal(
                ACCESS_REFUSED,
                "Login was refused using authentication mechanism PLAIN. For details see the broker logfile.",
            )
        self.username = username
        self.send(0, spec.Connection.Tune(CHANNEL_MAX, FRAME_MAX, HEARTBEAT_S))

    def _entered(self, method: spec.Connection.Open) -> None:
        if method.virtual_host != self._house.vhost:
            raise ConnectionRefusal(NOT_ALLOWED, f"vhost {method.virtual_host} not found")
        self.send(0, spec.Connection.OpenOk())

    # Frames.

    def _take_ahead(self) -> None:
        while self._ahead and not self.line.is_leaving and not self.line.is_paused:
            self._take(self._ahead.popleft())

    def _take(self, frame: Frame) -> None:
        kind, number, payload = frame
        try:
            method = decode(payload) if kind == METHOD else None
            if number == 0:
                self._connection_frame(kind, method)
            elif not self._is_closed:
                self._channel_frame(frame, method)
        except Refusal as refusal:
            self._refuse(number, refusal)
        except Refused as error:
            self._refuse(number, ChannelRefusal(error.code or INTERNAL_ERROR, error.what))

    def _connection_frame(self, kind: int, method: Method | None) -> None:
        match method:
            case spec.Connection.CloseOk():
                self.line.is_leaving = True
            case spec.Connection.Close():
                self._end_channels()
                self.send(0, spec.Connection.CloseOk())
                self.line.is_leaving = True
            case _ if self._is_closed or kind == HEARTBEAT:
                return
            case spec.Connection.StartOk():
                self._introduced(method)
            case spec.Connection.TuneOk():
                self.line.heartbeat_s = method.heartbeat
                self.frame_max = min(method.frame_max or FRAME_MAX, FRAME_MAX)
            case spec.Connection.Open():
                self._entered(method)
            case spec.Connection.UpdateSecret():
                self.send(0, spec.Connection.UpdateSecretOk())
            case _:
                raise ConnectionRefusal(NOT_IMPLEMENTED, f"{getattr(method, 'NAME', kind)} on channel 0")

    def _channel_frame(self, frame: Frame, method: Method | None) -> None:
        number = frame[1]
        if number in self._closing:
            if isinstance(method, spec.Channel.CloseOk):
                self._closing.remove(number)
            elif isinstance(method, spec.Channel.Close):
                self.send(number, spec.Channel.CloseOk())
            return
        channel = self._channels.get(number)
        if isinstance(method, spec.Channel.Open):
            if channel is not None:
                raise ConnectionRefusal(CHANNEL_ERROR, "second 'channel.open' seen")
            self._channels[number] = self._open_channel(self, number)
            self.send(number, spec.Channel.OpenOk())
        elif channel is None:
            raise ConnectionRefusal(CHANNEL_ERROR, f"expected 'channel.open' on channel {number}")
        elif isinstance(method, spec.Channel.Close):
            self._channels.pop(number).close()
            self.send(number, spec.Channel.CloseOk())
        else:
            channel.take(frame, method)

    # Trouble.

    def _refuse(self, number: int, refusal: Refusal) -> None:
        text = refusal.text.encode()[:_LONGEST_TEXT].decode(errors="ignore")
        arguments: dict[str, Any] = {"reply_code": refusal.code, "reply_text": text}
        if isinstance(refusal, ChannelRefusal) and number in self._channels:
            self._closing.add(number)
            self._channels.pop(number).close()
            self.send(number, spec.Channel.Close(class_id=0, method_id=0, **arguments))
        else:
            self._is_closed = True
            self._end_channels()
            self.send(0, spec.Connection.Close(class_id=0, method_id=0, **arguments))

    def _end_channels(self) -> None:
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close()
