"""One thread looks at the broker, whatever the number of viewers, and goes on when it is away."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from delayctl.topology.errors import DelayctlError
from delayctl.topology.figures import Samples
from delayctl.web.stage import Away, Observation, Snapshot, Stage

_LOOK_EVERY_S = 3.0  # At the whole of it; in between messages are counted.
_REST = 4  # A look that took a second is followed by so many seconds without one.
_REMEMBERED = 1_200  # Points per queue.


def now_ms() -> int:
    """The present time."""
    return time.time_ns() // 1_000_000


class Watch:
    """The latest snapshot, renewed again and again; `tell` is called after each."""

    tell: Callable[[], None]

    def __init__(self, stage: Stage, every_s: float) -> None:
        self._stage, self._every_s = stage, every_s
        self.tell = lambda: None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="delayctl watch", daemon=True)
        self._look_at = 0.0
        self._past: dict[str, deque[tuple[int, int]]] = {}
        self._lock = threading.Lock()
        self.latest = Snapshot(now_ms())

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a look that is under way is not waited for long."""
        self._ended.set()
        self._thread.join(2)

    def look_soon(self) -> None:
        """Look at the whole of it on the next beat: something was changed."""
        self._look_at = 0.0

    def history(self) -> dict[str, Samples]:
        """How many messages waited when, per queue."""
        with self._lock:
            return {name: tuple(samples) for name, samples in self._past.items()}

    def _run(self) -> None:
        try:
            self._look_on()
        finally:
            self._stage.close()

    def _look_on(self) -> None:
        while not self._ended.is_set():
            started = time.monotonic()
            self.latest = self._next(self.latest)
            self._remember(self.latest)
            self.tell()
            self._ended.wait(max(self._every_s - (time.monotonic() - started), self._every_s / 4))

    def _next(self, last: Snapshot) -> Snapshot:
        try:
            return self._looked(last) if self._is_look_due(last) else self._counted(last)
        except DelayctlError as error:
            return _gone(last, error.what, error.fix)
        except Exception as error:  # Whatever it is: it is shown, and looked at again on the next beat.
            return _gone(last, f"delayctl met something it did not foresee: {type(error).__name__}", None)

    def _is_look_due(self, last: Snapshot) -> bool:
        return last.observation is None or last.away is not None or time.monotonic() >= self._look_at

    def _looked(self, last: Snapshot) -> Snapshot:
        self._look_at = started = time.monotonic()
        found = self._stage.observe()
        took = time.monotonic() - started
        if self._look_at:  # Else somebody asked for another look meanwhile.
            self._look_at = time.monotonic() + max(_LOOK_EVERY_S, _REST * took)
        is_same = last.observation is not None and _shown(last.observation) == _shown(found)
        at = now_ms()
        return Snapshot(at, found, at, found.counts, None, last.version + (not is_same))

    def _counted(self, last: Snapshot) -> Snapshot:
        assert last.observation is not None
        counts = self._stage.count(last.observation.counted)
        at = now_ms()
        return replace(last, at_ms=at, seen_ms=at, counts=counts, away=None)

    def _remember(self, snapshot: Snapshot) -> None:
        """Go on where the broker's own memory ends."""
        if snapshot.observation is None or snapshot.away is not None:
            return
        with self._lock:
            for name, samples in snapshot.observation.history.items():
                past = self._past.get(name)
                if past is None:
                    ahead = snapshot.at_ms - samples[-1][0] if samples else 0  # Its clock may not be ours.
                    past = self._past[name] = deque(((at + ahead, n) for at, n in samples), maxlen=_REMEMBERED)
                count = snapshot.counts.get(name)
                if count is not None:
                    past.append((snapshot.at_ms, count))


def _shown(observation: Observation) -> tuple[object, ...]:
    return observation.state, observation.map, observation.counted


def _gone(last: Snapshot, what: str, fix: str | None) -> Snapshot:
    at = now_ms()
    since = last.away.since_ms if last.away else at
    return replace(last, at_ms=at, away=Away(since, what, fix))
