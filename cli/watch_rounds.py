"""Work that is done again and again on a thread of its own, so that keys are answered while a broker is not."""

import queue
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")
_LAST_WORDS_S = 2.0


class Rounds(Generic[T]):
    """Rounds of work; `with` begins them, and ends them after the one that is under way."""

    def __init__(self, work: Callable[[], T], every_s: float, *, is_rested: bool = True) -> None:
        self._work = work
        self._is_rested = is_rested  # Else it was done just now.
        self._every_s = every_s
        self._results: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()
        self._stop = threading.Event()
        # A thread that waits for a broker must not keep anybody from leaving.
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Rounds[T]":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(_LAST_WORDS_S)

    @property
    def is_over(self) -> bool:
        """Say whether no more rounds are wanted."""
        return self._stop.is_set()

    def result(self, patience_s: float = 0) -> T | Exception | None:
        """What came of a round that was not asked about yet; None where there is none within the time."""
        try:
            return self._results.get(timeout=patience_s) if patience_s else self._results.get_nowait()
        except queue.Empty:
            return None

    def _run(self) -> None:
        self._stop.wait(0 if self._is_rested else self._every_s)
        while not self._stop.is_set():
            begun = time.monotonic()
            try:
                self._results.put(self._work())
            except Exception as error:  # Whoever asks for the result decides what it means.
                self._results.put(error)
            took_s = time.monotonic() - begun
            # A broker that takes long to answer is left in peace for as long.
            self._stop.wait(max(self._every_s - took_s, took_s))
