"""The threads that deal with deliveries, one after the other each."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence

from delayctl.consumers.finished import Finished
from delayctl.consumers.inbox import Delivery

_LOG = logging.getLogger("delayctl.consumer")


class Ticket:
    """A delivery in a worker's hands, to be finished once."""

    __slots__ = ("_finished", "_link", "_workers", "delivery")

    def __init__(self, link: int, delivery: Delivery, workers: "Workers", finished: Finished) -> None:
        self.delivery = delivery
        self._link, self._workers, self._finished = link, workers, finished

    @property
    def is_void(self) -> bool:
        """Whether its connection is gone: the broker gives the message again, whatever we do."""
        return self._link != self._workers.link

    def done(self) -> None:
        """It may be acknowledged."""
        self._finished.put(self._link, self.delivery.tag, "done")

    def try_again(self) -> None:
        """It failed, and the broker shall let it wait before it gives it again."""
        self._finished.put(self._link, self.delivery.tag, "again")

    def give_back(self) -> None:
        """The broker shall keep it, and give it again."""
        self._finished.put(self._link, self.delivery.tag, "back")


class Workers:
    """A pool of threads. `treat` finishes the ticket it is given, then or later; where it raises, it has not."""

    def __init__(self, count: int, treat: Callable[[Ticket], None], finished: Finished) -> None:
        self.link = 0  # The connection whose deliveries still count.
        self.gone: frozenset[str] = frozenset()  # Queues whose deliveries nobody need begin with any more.
        self._treat = treat
        self._finished = finished
        self._is_winding_down = False
        self._tickets: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def hand_out(self, link: int, deliveries: Sequence[Delivery]) -> None:
        """Have these dealt with."""
        put, finished = self._tickets.put, self._finished
        for delivery in deliveries:
            put(Ticket(link, delivery, self, finished))

    def renew(self) -> None:
        """Count on the next connection: what came by the one before comes again."""
        self.link += 1
        self.gone = frozenset()

    def wind_down(self) -> None:
        """Begin with nothing new: what no worker has begun with goes back."""
        self._is_winding_down = True

    def stop(self, by: float) -> None:
        """Wait for what was begun, until this moment, and end."""
        self.wind_down()
        for _ in self._threads:
            self._tickets.put(None)
        for thread in self._threads:
            thread.join(max(0.1, by - time.monotonic()))

    def _work(self) -> None:
        while (ticket := self._tickets.get()) is not None:
            if ticket.is_void:
                continue
            if self._is_winding_down or ticket.delivery.queue in self.gone:
                ticket.give_back()
                continue
            try:
                self._treat(ticket)
            except BaseException:  # Nothing ends a worker: without any, a consumer would stand still and not say so.
                _LOG.exception("a message of %s can't be dealt with; it is given back", ticket.delivery.queue)
                ticket.give_back()
