"""How far the schedule service has delivered each level: in memory at once, in the file every ten seconds."""

FLUSH_DELAY_OFFSET_INTERVAL = 10_000


class DelayOffsets:
    """The recorded offsets of one run of the broker, and `delayOffset.json`, which outlives it.

    The file is written at fixed times. Nothing happens then but a copy, so the copy is made when the next offset is
    recorded or the file is looked at; what is recorded at a writing time itself comes after the writing.
    """

    def __init__(self, file: dict[int, int], started: int, interval: int = FLUSH_DELAY_OFFSET_INTERVAL) -> None:
        self.recorded = dict(file)
        self._file = file
        self._interval = interval
        self._started = started
        self._written = started

    def record(self, level: int, offset: int, time: int) -> bool:
        """Note that a level is delivered up to an offset; says whether the file was written before."""
        is_written = self.catch_up(time)
        self.recorded[level] = offset
        return is_written

    def catch_up(self, time: int) -> bool:
        """Bring the file to what it is at a time; says whether it was written since the last look."""
        last = time - (time - self._started) % self._interval
        if last <= self._written:
            return False
        self._written = last
        self.write()
        return True

    @property
    def next_write(self) -> int:
        """When the file is written next."""
        return self._written + self._interval

    def write(self) -> None:
        """Write the file now."""
        self._file.clear()
        self._file.update(self.recorded)


def corrected(stored: int, min_offset: int, max_offset: int) -> int:
    """A stored offset within what the queue has (`correctDelayOffset`)."""
    return max(min_offset, min(stored, max_offset))
