"""One AMQP connection over one socket: opened step by step, then handed over to whoever polls it."""

import socket
import ssl
import struct
import time

from delayctl.publishers import frames
from delayctl.publishers.frames import CHANNEL, Frame, FrameReader, method_frame, read_short_string, short_string
from delayctl.topology.access import Access
from delayctl.topology.amqp import unreachable, vhost_trouble, wrong_password
from delayctl.topology.errors import BrokerError, NotPermitted, Refused

import delayctl

_PROTOCOL = b"AMQP\x00\x00\x09\x01"
_START, _START_OK, _TUNE, _TUNE_OK, _OPEN, _OPEN_OK = (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 41)
_CLOSE_OK = (10, 51)
_CHANNEL_OPEN, _CHANNEL_OPEN_OK, _CHANNEL_CLOSE_OK = (20, 10), (20, 11), (20, 41)
_CONFIRM, _CONFIRM_OK = (85, 10), (85, 11)
_EXCHANGE_DECLARE, _EXCHANGE_DECLARE_OK = (40, 10), (40, 11)
_QUEUE_DECLARE, _QUEUE_DECLARE_OK = (50, 10), (50, 11)
_QOS, _QOS_OK = (60, 10), (60, 11)
_CONSUME, _CONSUME_OK, _CANCEL, _CANCEL_OK = (60, 20), (60, 21), (60, 30), (60, 31)
_LARGEST_FRAME = 131_072
_PASSIVE = b"\x01"
_NOTHING = b"\x00\x00\x00\x00"  # An empty table.
_CAPABILITIES = {
    "publisher_confirms": True,
    "basic.nack": True,
    "connection.blocked": True,
    "consumer_cancel_notify": True,
    "authentication_failure_close": True,
}
_READ_AT_ONCE = 1 << 18
HEARTBEAT_S = 10  # Twice this is how long a connection may be silent before it counts as lost.
_ACCESS_REFUSED, _NOT_ALLOWED = 403, 530


class ClosedByBroker(Exception):
    """The broker closed the channel, or the whole connection, and said why."""

    def __init__(self, code: int, text: str, *, is_channel: bool) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text
        self.is_channel = is_channel


class Connection:
    """A connection with one channel."""

    def __init__(self, access: Access, *, name: str, heartbeat_s: int = HEARTBEAT_S) -> None:
        self._access = access
        self._name = name
        self._reader = FrameReader()
        self._ahead: list[Frame] = []  # Received, and not yet looked at.
        self.frame_max = _LARGEST_FRAME
        self.heartbeat_s = heartbeat_s
        self.socket = self._connect()
        try:
            self._open()
        except BaseException:
            self.socket.close()
            raise

    def fileno(self) -> int:
        """The socket's number, for polling."""
        return self.socket.fileno()

    def open_channel(self, *, confirms: bool) -> None:
        """Open the channel, be it again after the broker closed it."""
        self.call(_CHANNEL_OPEN, b"\x00", _CHANNEL_OPEN_OK)
        if confirms:
            self.open_confirms()

    def open_confirms(self) -> None:
        """Have the broker answer every message that is published from now on."""
        self.call(_CONFIRM, b"\x00", _CONFIRM_OK)

    def check_exchange(self, name: str) -> None:
        """Raise Refused where there is no such exchange."""
        self._check(_EXCHANGE_DECLARE, short_string(name) + b"\x00", _EXCHANGE_DECLARE_OK)

    def check_queue(self, name: str) -> int:
        """How many messages are ready there; raises Refused where there is no such queue."""
        answer = self._check(_QUEUE_DECLARE, short_string(name), _QUEUE_DECLARE_OK)
        _, end = read_short_string(answer, 4)
        return int.from_bytes(answer[end : end + 4], "big")

    def prefetch(self, count: int) -> None:
        """How many deliveries may be unacknowledged."""
        self.call(_QOS, struct.pack(">IHB", 0, count, 0), _QOS_OK)

    def consume(self, queue: str, tag: str, arguments: frames.Headers | None = None) -> None:
        """Ask for deliveries."""
        named = b"\x00\x00" + short_string(queue) + short_string(tag) + b"\x00"
        self.call(_CONSUME, named + frames.encode_table(arguments or {}), _CONSUME_OK)

    def cancel(self, tag: str) -> None:
        """Have no more deliveries; those that are on their way are kept."""
        self.call(_CANCEL, short_string(tag) + b"\x00", _CANCEL_OK)

    def cancel_frame(self, tag: str, *, is_answered: bool = False) -> bytes:
        """The frame that asks for no more deliveries; the broker need not answer it, unless it is told to."""
        return method_frame(CHANNEL, _CANCEL, short_string(tag) + (b"\x00" if is_answered else b"\x01"))

    def call(self, method: tuple[int, int], arguments: bytes, expected: tuple[int, int]) -> bytes:
        """Send a method of the channel and wait for its answer; what comes in between is kept."""
        return self._ask(CHANNEL, method, arguments, expected)

    def received(self, most: int | None = None) -> list[Frame]:
        """Every frame that has come, or those in the next so many bytes; raises OSError where the other end is gone and nothing is left.

        Never waits.
        """
        found, self._ahead = self._ahead, []
        read = 0
        while True:
            try:
                data = self.socket.recv(_READ_AT_ONCE)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return found
            except OSError:
                if found:
                    return found  # The broker's last words count; the error comes again.
                raise
            if not data:
                if found:
                    return found
                raise ConnectionResetError("the broker closed the connection")
            found += self._reader.feed(data)
            read += len(data)
            if (len(data) < _READ_AT_ONCE and not self._has_more()) or (most is not None and read >= most):
                return found

    def _has_more(self) -> bool:
        return isinstance(self.socket, ssl.SSLSocket) and bool(self.socket.pending())

    def send_now(self, data: bytes) -> None:
        """Send all of it, however long the other end takes, up to the time after which it counts as lost."""
        self.socket.settimeout(self.heartbeat_s * 2)
        self.socket.sendall(data)
        self.socket.setblocking(False)

    def close(self) -> None:
        """Say goodbye, as far as the other end still listens."""
        try:
            self.socket.settimeout(2)
            self._ask(
                0, frames.CLOSE_CONNECTION, struct.pack(">H", 200) + short_string("done") + b"\x00" * 4, _CLOSE_OK
            )
        except (OSError, BrokerError, ClosedByBroker, ValueError):
            return  # It is gone, which is what we wanted.
        finally:
            self.socket.close()

    def abort(self) -> None:
        """Drop the connection without a word."""
        self.socket.close()

    def _check(self, method: tuple[int, int], name: bytes, expected: tuple[int, int]) -> bytes:
        """A passive declaration; the channel is open afterwards, whatever came of it."""
        try:
            return self.call(method, b"\x00\x00" + name + _PASSIVE + _NOTHING, expected)
        except ClosedByBroker as closed:
            if not closed.is_channel:
                raise
            self.open_channel(confirms=False)
            if closed.code == _ACCESS_REFUSED:
                user = self._access.credentials.username
                raise NotPermitted(
                    f"user '{user}' is not permitted: {closed.text}", fix="see delayctl permissions"
                ) from closed
            raise Refused(closed.text, code=closed.code) from closed

    def _connect(self) -> socket.socket:
        access = self._access
        context = access.tls.context() if access.is_tls else None
        try:
            opened = socket.create_connection((access.host, access.port), access.timeout_s)
            try:
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return context.wrap_socket(opened, server_hostname=access.host) if context else opened
            except BaseException:
                opened.close()
                raise
        except (OSError, UnicodeError) as error:
            raise unreachable(error, access) from error

    def _open(self) -> None:
        """The handshake."""
        access = self._access
        secret = access.credentials
        vhost = access.vhost or "/"
        try:
            self.socket.settimeout(access.timeout_s)
            self.socket.sendall(_PROTOCOL)
            self._await(0, _START)
            plain = f"\x00{secret.username}\x00{secret.password}".encode()
            about = {
                "product": "delayctl",
                "version": delayctl.__version__,
                "connection_name": self._name,
                "capabilities": _CAPABILITIES,
            }
            arguments = frames.encode_table(about) + short_string("PLAIN") + len(plain).to_bytes(4, "big") + plain
            self.socket.sendall(method_frame(0, _START_OK, arguments + short_string("en_US")))
            tuned = self._await(0, _TUNE)
            channels, frame_max, heartbeat = struct.unpack_from(">HIH", tuned, 4)
            self.frame_max = min(frame_max or _LARGEST_FRAME, _LARGEST_FRAME)
            self.heartbeat_s = min(self.heartbeat_s, heartbeat) if heartbeat else self.heartbeat_s
            tuned_as = struct.pack(">HIH", channels, self.frame_max, self.heartbeat_s)
            self.socket.sendall(method_frame(0, _TUNE_OK, tuned_as))
            self._ask(0, _OPEN, short_string(vhost) + b"\x00\x00", _OPEN_OK)
        except ClosedByBroker as closed:
            if closed.code == _ACCESS_REFUSED:
                raise wrong_password(access) from closed
            if closed.code == _NOT_ALLOWED:
                raise vhost_trouble(closed.text, vhost, secret.username) from closed
            raise Refused(closed.text, code=closed.code) from closed
        except (OSError, ValueError) as error:
            raise unreachable(error, access) from error

    def _ask(self, channel: int, method: tuple[int, int], arguments: bytes, expected: tuple[int, int]) -> bytes:
        self.socket.settimeout(self._access.timeout_s if channel else self.socket.gettimeout())
        self.socket.sendall(method_frame(channel, method, arguments))
        return self._await(channel, expected)

    def _await(self, channel: int, expected: tuple[int, int]) -> bytes:
        kept: list[Frame] = []
        # For all of it: heartbeats alone must not keep us waiting.
        deadline = time.monotonic() + (self.socket.gettimeout() or self._access.timeout_s)
        try:
            while True:
                while self._ahead:
                    frame = self._ahead.pop(0)
                    kind, number, payload = frame
                    method = frames.METHOD_ID.unpack_from(payload) if kind == frames.METHOD else None
                    if method in (frames.CLOSE_CONNECTION, frames.CLOSE_CHANNEL):
                        raise self.closed(frame)
                    if number == channel and method == expected:
                        return payload
                    kept.append(frame)
                self.socket.settimeout(max(0.001, deadline - time.monotonic()))
                data = self.socket.recv(_READ_AT_ONCE)
                if not data:
                    raise ConnectionResetError("the broker closed the connection")
                self._ahead = self._reader.feed(data)
        finally:
            self._ahead[:0] = kept

    def closed(self, frame: Frame, *, begun: bytes | memoryview = b"") -> ClosedByBroker:
        """What a closing frame says; it is answered, as the protocol asks, behind the rest of what was begun."""
        _, channel, payload = frame
        is_channel = frames.METHOD_ID.unpack_from(payload) == frames.CLOSE_CHANNEL
        (code,) = struct.unpack_from(">H", payload, 4)
        text, _ = read_short_string(payload, 6)
        self.socket.settimeout(self._access.timeout_s)
        self.socket.sendall(begun)
        self.socket.sendall(method_frame(channel, _CHANNEL_CLOSE_OK if is_channel else _CLOSE_OK))
        return ClosedByBroker(code, text, is_channel=is_channel)
