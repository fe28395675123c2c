"""Who is handed messages."""

from collections.abc import Callable
from typing import Final

from delayctl.simulator.rabbitmq_message import Delivery

NO_LIMIT: Final = 2**60


class Consumer:
    """Somebody who is handed messages as long as fewer than `prefetch` wait for an answer; 0 means any number."""

    __slots__ = ("is_cancelled", "is_waiting", "most", "no_ack", "on_delivery", "queue", "tag", "unacked")

    def __init__(
        self, tag: str, queue: str, on_delivery: Callable[[Delivery], None], *, prefetch: int, no_ack: bool
    ) -> None:
        self.tag = tag
        self.queue = queue
        self.on_delivery = on_delivery
        self.most = NO_LIMIT if no_ack or not prefetch else prefetch  # So many may wait for an answer.
        self.no_ack = no_ack
        self.unacked = 0
        self.is_waiting = True  # Whether it has its turn among the others.
        self.is_cancelled = False

    @property
    def is_full(self) -> bool:
        """Whether it must answer before it gets more."""
        return self.unacked >= self.most
