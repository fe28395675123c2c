"""Acknowledgements, gathered: one frame for many deliveries wherever they are complete up to a point.

A broker answers each frame with as many new messages as it names, and each time it does so has its price: where a queue
is long, that of a look at the disk. So few frames for many messages make a queue empty faster, on either side.
"""

from collections.abc import Iterable

from delayctl.publishers.frames import CHANNEL, ack_frame

GATHER_S = 0.005  # What is done is said when it has waited for so long, even if it is little.


class Acks:
    """What is done and not yet said, on one channel, where deliveries are numbered from 1.

    It is said when there is `plenty`, or when the first of it has waited for a few milliseconds.
    """

    def __init__(self, plenty: int) -> None:
        self._plenty = plenty
        self._since = 0.0  # When the first of what is done was added.
        self._next = 1  # All before it are said, but for the late ones.
        self._late: set[int] = set()
        self._done: set[int] = set()
        self._settled: set[int] = set()  # Need not be said.

    @property
    def wanted(self) -> int:
        """How many more have to be done before there is anything to do here."""
        return max(1, self._plenty - len(self._done)) if self._done else 1

    def patience_s(self, now: float) -> float | None:
        """How long what is done may wait; None where nothing does."""
        return self._since + GATHER_S - now if self._done else None

    def add(self, tags: Iterable[int], now: float) -> None:
        """Note that these are done."""
        if not self._done:
            self._since = now
        self._done.update(tags)

    def settle(self, tag: int) -> None:
        """Note that this one was answered in another way."""
        if tag in self._late:
            self._late.remove(tag)
        else:
            self._settled.add(tag)

    def take(self, now: float, *, all_of_them: bool = False) -> bytes:
        """The frames to send now; what is done behind a slow delivery is said one by one, and so as late as possible."""
        is_time = all_of_them or now >= self._since + GATHER_S
        if self._done and not is_time and len(self._done) < self._plenty:
            return b""
        said = self._take_late() + self._take_complete()
        if self._done and (is_time or len(self._done) >= self._plenty):
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
