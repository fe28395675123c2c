"""What was seen while a queue was filled, and what a waiting message takes by it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from delayctl.topology.footprint import Footprint, Shape, footprint_of

STEPS = 2
FEWEST = 100  # Fewer drown in what the broker takes and gives back by itself.
_MOST_DISK = 3  # So many times what is assumed: beyond that somebody else has been writing.
_STEADY_SHARE, _STEADY_BYTES = 0.01, 200_000


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures of a broker while so many messages wait in the queue that is measured; all are bytes."""

    messages: int
    queue: int  # The memory of the queue's process.
    held: int  # What the node holds for messages of all queues: their processes, indexes, tables and bodies.
    used: int  # All memory of the node, as its alarm counts it.
    disk_free: int | None = None

    def is_steady_after(self, before: "Reading") -> bool:
        """Say whether nothing has moved since then but what always does."""
        pairs = ((self.queue, before.queue), (self.held, before.held))
        return all(abs(now - then) <= max(_STEADY_BYTES, _STEADY_SHARE * then) for now, then in pairs)


@dataclass(frozen=True, slots=True)
class Budget:
    """How far a calibration goes at most."""

    messages: int = 100_000
    size: int = 256 * 1000**2  # Bytes of bodies.
    seconds: float = 120.0

    def steps(self, body: int) -> tuple[int, ...]:
        """How many messages wait after each step; none where too few are left to measure anything."""
        most = min(self.messages, self.size // max(body, 1))
        return tuple(most * step // STEPS for step in range(1, STEPS + 1)) if most >= FEWEST else ()


@dataclass(frozen=True)
class Calibration:
    """What filling a queue of this shape showed: the empty queue first, the fullest last."""

    shape: Shape
    version: str
    node: str
    body: int
    readings: tuple[Reading, ...]
    filling_s: float  # Time spent publishing, all steps together.
    is_settled: bool = True
    is_whole: bool = True  # All steps were made; otherwise time ran out.

    @property
    def messages(self) -> int:
        """How many there were in the end."""
        return self.readings[-1].messages

    @property
    def queue_each(self) -> float:
        """Bytes of the queue's process per message."""
        return self._slope([reading.queue for reading in self.readings])

    @property
    def held_each(self) -> float:
        """Bytes per message of all that the node holds for messages."""
        return self._slope([reading.held for reading in self.readings])

    @property
    def used_each(self) -> float:
        """Bytes per message of all memory of the node: as its alarm sees it, with whatever else it did."""
        return self._slope([reading.used for reading in self.readings])

    @property
    def disk_each(self) -> float | None:
        """Bytes per message by which the free disk shrank; None where that can't have been the messages."""
        first, last = self.readings[0].disk_free, self.readings[-1].disk_free
        if first is None or last is None or not self.messages:
            return None
        each = (first - last) / self.messages
        most = _MOST_DISK * footprint_of(self.shape, self.version).disk_of(self.body)
        return each if self.body <= each <= most else None

    @property
    def per_second(self) -> float:
        """How many messages a second were published and confirmed."""
        return self.messages / self.filling_s if self.filling_s else 0.0

    @property
    def footprint(self) -> Footprint:
        """What a message takes, as far as it was measured."""
        assumed = footprint_of(self.shape, self.version)
        source = f"a calibration on RabbitMQ {self.version}"
        disk = assumed.disk if self.disk_each is None else max(0, round(self.disk_each) - self.body)
        if self.shape == "quorum":
            # What grows for ever is in the queue's process; the rest is in the log, which is written out in time.
            in_log = round(self.held_each - self.queue_each) - self.body
            log = in_log if in_log > 0 else assumed.log  # It was written out meanwhile, and says nothing.
            return replace(assumed, memory=max(1, round(self.queue_each)), disk=disk, source=source, log=log)
        return Footprint(max(1, round(max(self.queue_each, self.held_each))), False, disk, source)

    def _slope(self, values: Sequence[int]) -> float:
        return slope([reading.messages for reading in self.readings], values)


def slope(counts: Sequence[int], values: Sequence[int]) -> float:
    """By how much a value grows with each message, by least squares."""
    middle, mean = sum(counts) / len(counts), sum(values) / len(values)
    spread = sum((count - middle) ** 2 for count in counts)
    pairs = zip(counts, values, strict=True)
    return sum((count - middle) * (value - mean) for count, value in pairs) / spread if spread else 0.0
