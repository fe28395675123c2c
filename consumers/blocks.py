"""How many messages are taken out of a queue at once: so few that their bodies fit into a few megabytes. Pure."""

from collections.abc import Sequence

from delayctl.consumers.inbox import Delivery

MOST_BYTES = 1 << 23  # Of bodies that are held at once; one of them more where it is larger.
FIRST = 1  # Until it is known how large they are, and how often they were given back.
_GROWTH = 20


def next_size(size: int, block: Sequence[Delivery], most: int) -> int:
    """As many as fit, judged by those that came; the next ones may be larger, and then fewer of them are kept."""
    each = max(1, bytes_of(block) // len(block))
    return max(1, min(most, size * _GROWTH, MOST_BYTES // each))


def bytes_of(block: Sequence[Delivery]) -> int:
    """How much there is in the bodies of a block."""
    return sum(len(delivery.body) for delivery in block)
