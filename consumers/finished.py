"""What the workers have finished, and a bell for the thread that tells the broker."""

import select
import socket
import sys
from collections import deque
from collections.abc import Iterator
from typing import Literal

Answer = Literal["done", "again", "back"]  # To be acknowledged; to be tried again; to be given again as it was.
Result = tuple[int, int, Answer]  # Connection, delivery tag, and what is to be said of it.

_NEVER = sys.maxsize


class Finished:
    """Filled by any thread; one thread waits for it together with its connection."""

    def __init__(self) -> None:
        self._results: deque[Result] = deque()
        self._wanted = _NEVER  # So many make the bell ring.
        self._ear, self._bell = socket.socketpair()
        self._ear.setblocking(False)
        self._bell.setblocking(False)

    def put(self, link: int, tag: int, answer: Answer) -> None:
        """Note that a delivery is finished."""
        self._results.append((link, tag, answer))
        if len(self._results) >= self._wanted:
            self._wanted = _NEVER
            self.ring()

    def ring(self) -> None:
        """Wake the waiting thread."""
        try:
            self._bell.send(b"!")
        except OSError:
            return  # It is awake, with more than enough reasons, or it is gone.

    def fileno(self) -> int:
        """The number to poll."""
        return self._ear.fileno()

    def announce(self, wanted: int) -> bool:
        """Ask to be woken when so many have come; False where they have already."""
        self._wanted = wanted
        return len(self._results) < wanted

    def hush(self) -> None:
        """Ask for nothing, and forget that the bell was rung."""
        self._wanted = _NEVER
        try:
            self._ear.recv(4096)
        except BlockingIOError:
            return

    def take(self) -> Iterator[Result]:
        """All that has come."""
        while self._results:
            yield self._results.popleft()

    def rest(self, seconds: float) -> None:
        """Wait so long, or until the bell is rung."""
        poller = select.poll()  # A select takes no number beyond 1,023.
        poller.register(self._ear, select.POLLIN)
        poller.poll(seconds * 1000)

    def close(self) -> None:
        """Nobody waits any more."""
        self._ear.close()
        self._bell.close()
