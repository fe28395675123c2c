"""Everybody who looks at the page: told of every snapshot, and of the newest only where they are slow."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from delayctl.web.snapshot_json import beat_json, event, state_json
from delayctl.web.stage import Snapshot

MOST = 100
_LOOK_AT_END_S = 1.0


class Viewers:
    """The streams that are open; `tell` may be called from any thread."""

    def __init__(self, latest: Callable[[], Snapshot], is_over: Callable[[], bool]) -> None:
        self._latest, self._is_over = latest, is_over
        self._bells: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def are_many(self) -> bool:
        """Say whether no more are let in."""
        return len(self._bells) >= MOST

    def open(self) -> None:
        """Remember the loop that streams run in."""
        self._loop = asyncio.get_running_loop()

    def tell(self) -> None:
        """Wake everybody."""
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop is closed, maybe since this moment: nobody looks any more.
                self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        for bell in self._bells:
            bell.set()

    async def stream(self) -> AsyncIterator[bytes]:
        """The state, and again whenever it changes; a beat for every snapshot."""
        bell, shown = asyncio.Event(), -1
        bell.set()
        self._bells.add(bell)
        try:
            while not self._is_over():
                if not await _rung(bell):
                    continue
                snapshot = self._latest()
                if snapshot.version != shown:
                    yield event("state", state_json(snapshot))
                    shown = snapshot.version
                yield event("beat", beat_json(snapshot))
        finally:
            self._bells.discard(bell)


async def _rung(bell: asyncio.Event) -> bool:
    """Wait for the bell, but not so long that the end is missed."""
    try:
        await asyncio.wait_for(bell.wait(), _LOOK_AT_END_S)
    except TimeoutError:
        return False
    bell.clear()
    return True
