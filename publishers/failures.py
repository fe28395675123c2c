"""Failures that nobody was told of yet: kept for the next flush, the first of them by name."""

from functools import partial
from itertools import count

from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import NotPublished

_MOST_NAMED = 10_000  # About a kilobyte each; a service that never asks must not grow for ever.
_TIDY_UP_AFTER = 1_000  # Failures at least, before those are forgotten that somebody was told of since.


class Failures:
    """Those since the last flush; whoever fills it or takes it away holds a lock."""

    def __init__(self) -> None:
        self._named: list[tuple[Delivery, NotPublished]] = []
        self._beyond = 0
        self._seen = count()  # Of those beyond; told by any thread at any time, and counts in one step.
        self._until_tidy = _TIDY_UP_AFTER

    def add(self, delivery: Delivery, error: NotPublished) -> None:
        """Keep a failure, or count it where there are too many; its future is not told yet."""
        self._until_tidy -= 1
        if self._until_tidy <= 0:
            self._named = [each for each in self._named if not each[0].is_watched]
            self._until_tidy = max(_TIDY_UP_AFTER, len(self._named))
        if len(self._named) < _MOST_NAMED:
            self._named.append((delivery, error))
            return
        # Its future is not kept: it says itself when somebody is told after all.
        self._beyond += 1
        delivery.once_told(partial(next, self._seen))

    def unseen(self) -> tuple[tuple[NotPublished, ...], int]:
        """What nobody was told of, and how many more there are; to be asked once."""
        return tuple(error for delivery, error in self._named if not delivery.is_watched), self._beyond - next(
            self._seen
        )
