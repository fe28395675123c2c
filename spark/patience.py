"""How long to go on trying while a queue is full."""

from collections.abc import Collection, Hashable

_MANY = 100


class Patience:
    """Counts for every queue by itself, as far as it is known to which a message goes.

    Several may hide behind one entrance, as those of a level with shards. So while messages wait, only one of them that
    is taken at last makes the time begin anew; and a queue that was given up is waited for again when it has taken
    many in a row. One may have many names, as where every message has a routing key of its own: when many are given up,
    none is waited for any more.
    """

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._full_since: dict[Hashable, float] = {}
        self._given_up: dict[Hashable, int] = {}  # And how many it has taken since it last refused one.

    @property
    def is_tried(self) -> bool:
        """Whether it matters what queues take."""
        return bool(self._full_since or self._given_up)

    def took(self, queue: Hashable, *, has_waited: bool) -> None:
        """A queue has taken a message, perhaps one that it had refused before."""
        if has_waited:
            self._full_since.pop(queue, None)
        if queue in self._given_up:
            self._given_up[queue] += 1
            if self._given_up[queue] >= _MANY:
                del self._given_up[queue]

    def is_over(self, queue: Hashable, now_s: float) -> bool:
        """A queue has refused a message: says whether it has done so for too long."""
        if queue not in self._given_up and len(self._given_up) >= _MANY:
            return True
        if queue in self._given_up or now_s - self._full_since.setdefault(queue, now_s) > self._span_s:
            self._given_up[queue] = 0
            return True
        return False

    def wait_for(self, queues: Collection[Hashable]) -> None:
        """Messages wait for these queues, and for no others: since when those were full does not matter any more."""
        self._full_since = {queue: since for queue, since in self._full_since.items() if queue in queues}
