"""Following the stream of cancellations beside the real work: read from its beginning, then as they come."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from delayctl.consumers.cancelled import Cancelled, decode
from delayctl.consumers.message import Message

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

    def note(self, message: Message) -> None:
        """Take in a message of the stream."""
        self._last = time.monotonic()
        cancellation = decode(message.body)
        if cancellation is None:
            _LOG.warning("a message in %s is no cancellation", message.queue)
        else:
            self._cancelled.note(cancellation, self._clock())

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
