"""Acknowledgements, gathered: one frame for many deliveries wherever they are complete up to a point."""

from collections.abc import Iterable

from delayctl.publishers.frames import CHANNEL, ack_frame


class Acks:
    """What is done and not yet said, on one channel, where deliveries are numbered from 1."""

    def __init__(self, most: int) -> None:
        self._most = most  # With more than this done behind a slow one, they are said one by one.
        self._next = 1  # All before it are said, but for the late ones.
        self._late: set[int] = set()
        self._done: set[int] = set()
        self._settled: set[int] = set()  # Need not be said.

    @property
    def is_due(self) -> bool:
        """Whether something is done and not said."""
        return bool(self._done)

    def add(self, tags: Iterable[int]) -> None:
        """Note that these are done."""
        self._done.update(tags)

    def settle(self, tag: int) -> None:
        """Note that this one was answered in another way."""
        if tag in self._late:
            self._late.remove(tag)
        else:
            self._settled.add(tag)

    def take(self, *, all_of_them: bool) -> bytes:
        """The frames to send now."""
        said = self._take_late() + self._take_complete()
        if self._done and (all_of_them or len(self._done) > self._most):
            said += self._take_scattered()
        return said

    def _take_late(self) -> bytes:
        late = self._late & self._done if self._late else None
        if not late:
            return b""
        self._late -= late
        self._done -= late
        return _one_by_one(late)

    def _take_complete(self) -> bytes:
        """All that is done without a gap; one frame says it, unless that would include a late one."""
        done, settled, at = self._done, self._settled, self._next
        complete = []
        while True:
            if at in done:
                done.remove(at)
                complete.append(at)
            elif at in settled:
                settled.remove(at)
            else:
                break
            at += 1
        self._next = at
        if self._late or len(complete) == 1:
            return _one_by_one(complete)
        return ack_frame(CHANNEL, complete[-1], multiple=True) if complete else b""

    def _take_scattered(self) -> bytes:
        """All that is done behind a gap; what is in the gaps is late from now on."""
        done, self._done = self._done, set()
        end = max(done) + 1
        self._late.update(set(range(self._next, end)) - done - self._settled)
        self._settled = {tag for tag in self._settled if tag >= end}
        self._next = end
        return _one_by_one(done)


def _one_by_one(tags: Iterable[int]) -> bytes:
    return b"".join([ack_frame(CHANNEL, tag, multiple=False) for tag in sorted(tags)])
