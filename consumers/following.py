"""Following the stream of cancellations beside the real work: read from its beginning, then as they come."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from delayctl.consumers.cancelled import Cancelled, decode
from delayctl.consumers.message import Message
from delayctl.topology.arguments import STREAM_OFFSET

_LOG = logging.getLogger("delayctl.consumer")
_QUIET_S = 0.5  # Nothing has come for so long: all that was there has been read.
_PATIENCE_S = 15.0


class Reader(Protocol):
    """A consumer of the stream."""

    connected: threading.Event

    def run(self) -> None:
        """Consume until stopped."""

    def stop(self) -> None:
        """Return from `run`."""


class Following:
    """The cancellations that were read so far. `with` reads all there are before the work begins."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._cancelled = Cancelled()
        self._last = 0.0
        self._first: tuple[int, str | None, bytes] | None = None  # The earliest message of the stream, by its offset.
        self._highest = -1  # The offset of the latest.

    def note(self, message: Message) -> None:
        """Take in a message of the stream, unless it was read before: each connection reads from the beginning."""
        self._last = time.monotonic()
        if self._is_known(message):
            return
        cancellation = decode(message.body)
        if cancellation is None:
            _LOG.warning("a message in %s is no cancellation", message.queue)
        else:
            self._cancelled.note(cancellation, self._clock())

    def _is_known(self, message: Message) -> bool:
        """Whether it was read already: an old word would count again until the later one has come, too."""
        offset = message.headers.get(STREAM_OFFSET)
        if not isinstance(offset, int):
            return False
        this = offset, message.message_id, message.body
        if self._first is None or (offset <= self._first[0] and this != self._first):
            self._first, self._highest = this, -1  # The stream was deleted and made anew: it counts from 0 again.
        is_known = offset <= self._highest
        self._highest = max(self._highest, offset)
        return is_known

    def is_cancelled(self, message: Message) -> bool:
        """Say whether nobody shall handle a message, as far as is known by now."""
        return self._cancelled.has(message.message_id, self._clock())

    def start(self, reader: Reader) -> threading.Thread:
        """Read on in a thread; returns when all that was there has been read, or took too long."""
        thread = threading.Thread(target=reader.run, name="delayctl cancellations", daemon=True)
        thread.start()
        give_up = time.monotonic() + _PATIENCE_S
        if not reader.connected.wait(_PATIENCE_S):
            _LOG.warning("the cancellations can't be read yet; what was cancelled may be handled")
        self._last = self._last or time.monotonic()
        while (quiet := time.monotonic() - self._last) < _QUIET_S and time.monotonic() < give_up:
            thread.join(_QUIET_S - quiet)
        _LOG.info("%d cancellations are known", len(self._cancelled))
        return thread
