"""Deliveries one after the other: the next goes out when the last is dealt with, so that every run is the same."""

from collections import deque
from collections.abc import Callable, Iterable

from delayctl.simulator.rabbitmq_message import Delivery


class Push:
    """A delivery on its way to a consumer, or with it; `send` puts it on the wire."""

    __slots__ = ("delivery", "send")

    def __init__(self, delivery: Delivery, send: Callable[["Push"], None]) -> None:
        self.delivery = delivery
        self.send = send


class Turns:
    """What is with consumers, and what waits for its turn. Not in turn, everything goes out at once."""

    def __init__(self, *, in_turn: bool) -> None:
        self._in_turn = in_turn
        self._out: dict[Push, None] = {}  # In the order of sending.
        self._waiting: deque[Push] = deque()

    @property
    def unsettled(self) -> list[Delivery]:
        """What was sent and is not dealt with yet."""
        return [push.delivery for push in self._out]

    def offer(self, push: Push) -> None:
        """Send a delivery, now or when its turn comes."""
        self._waiting.append(push)
        self._proceed()

    def settle(self, pushes: Iterable[Push]) -> None:
        """These are dealt with, or nobody is there any more to deal with them; sent or not."""
        gone = set(pushes)
        for push in gone:
            self._out.pop(push, None)
        if any(push in gone for push in self._waiting):
            self._waiting = deque(push for push in self._waiting if push not in gone)
        self._proceed()

    def _proceed(self) -> None:
        while self._waiting and not (self._in_turn and self._out):
            push = self._waiting.popleft()
            self._out[push] = None
            push.send(push)
