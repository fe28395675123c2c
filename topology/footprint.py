"""What a waiting message takes of a broker: the one table behind validate, simulate and capacity.

The figures were measured with `python -m benchmarks --only backlog`; docs/capacity.md has them beside these, which are
rounded up. Messages are delayctl's own, with their id and headers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from delayctl.topology.arguments import LAZY
from delayctl.topology.model import Queue
from delayctl.topology.version import parse_version

Shape = Literal["classic", "lazy", "quorum"]
SHAPES: tuple[Shape, ...] = ("classic", "lazy", "quorum")
_FIRST_WITH_NEW_CLASSIC = (4, 0, 0)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one waiting message takes, in bytes besides its body; where that was seen is `source`."""

    memory: int
    holds_bodies: bool  # The body is in memory, too.
    disk: int
    source: str
    index: int = 0  # Memory on top where the body has a page or more: it is in a store that has an index in memory.
    log: int = 0  # Memory on top, and the body's: as long as it is in the log that all quorum queues of a node share.
    log_most: int = 0  # The log takes no more than this, however many wait.

    def memory_of(self, body: int) -> int:
        """The memory of a message with a body of so many bytes."""
        index = self.index if body >= _PAGE else 0
        return self.memory + index + (body if self.holds_bodies else 0)

    def disk_of(self, body: int) -> int:
        """What a message with a body of so many bytes takes on disk."""
        return self.disk + body

    def log_of(self, body: int) -> int:
        """The memory that a message with such a body takes in the log."""
        return self.log + body if self.log_most else 0


_PAGE = 4_096
# A log is written out at 512 MiB; in memory it takes up to twice that, and meanwhile the next one has begun.
_LOG_MOST = 3 * 512 * 1024**2
_OLD_SOURCE, _NEW_SOURCE = "what was measured on RabbitMQ 3.10.8", "what was measured on RabbitMQ 4.3.6"
_OLD: dict[Shape, Footprint] = {
    "classic": Footprint(1_100, True, 330, _OLD_SOURCE, index=300),
    "lazy": Footprint(50, False, 330, _OLD_SOURCE, index=350),
    "quorum": Footprint(200, False, 450, _OLD_SOURCE, log=950, log_most=_LOG_MOST),
}
_NEW: dict[Shape, Footprint] = {
    "classic": Footprint(50, False, 330, _NEW_SOURCE, index=350),
    "lazy": Footprint(50, False, 330, _NEW_SOURCE, index=350),
    "quorum": Footprint(200, False, 370, _NEW_SOURCE, log=950, log_most=_LOG_MOST),
}


def footprint_of(shape: Shape, version: str = "") -> Footprint:
    """What a message takes in a queue of this shape; where no version is known, on the one that takes most."""
    known = parse_version(version)
    return (_NEW if known and known >= _FIRST_WITH_NEW_CLASSIC else _OLD)[shape]


def shape_of(queue: Queue) -> Shape:
    """How a queue keeps its messages."""
    if queue.settings.type == "quorum":
        return "quorum"
    return "lazy" if LAZY in queue.extra else "classic"


def dearest(shapes: Iterable[Shape], version: str = "") -> Footprint:
    """The one that takes most memory of queues that are looked at together."""
    found = [footprint_of(shape, version) for shape in shapes] or [footprint_of("classic", version)]
    return max(found, key=lambda footprint: footprint.memory)
