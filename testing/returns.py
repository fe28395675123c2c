"""What clients give back to the broker at one moment, to tell a client that never gets on from one that is slow."""

from collections.abc import Callable

from delayctl.simulator.rabbitmq_message import Delivery

_OFTEN = 3
_FOR_SO_LONG_S = 1.5  # Of real time: whoever gives back quickly may reach a limit of deliveries, and that is an end.


class Returns:
    """Counts, by queue and message, what came back; used with the lock held."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock  # Real time, in seconds.
        self._counts: dict[tuple[str, int], int] = {}
        self._since: dict[tuple[str, int], float] = {}

    def note(self, delivery: Delivery) -> None:
        """A client gave this back."""
        which = (delivery.queue, delivery.message.number)
        self._counts[which] = self._counts.get(which, 0) + 1
        self._since.setdefault(which, self._clock())

    def clear(self) -> None:
        """Time passes: what comes back from now on is another matter."""
        self._counts.clear()
        self._since.clear()

    def hopeless(self) -> str | None:
        """The queue of a message that comes back again and again, for a while already."""
        now = self._clock()
        for which, count in self._counts.items():
            if count >= _OFTEN and now - self._since[which] >= _FOR_SO_LONG_S:
                return which[0]
        return None
