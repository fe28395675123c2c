"""The faults that a test has a simulated broker show to its clients."""

from collections.abc import Iterator
from contextlib import contextmanager

from delayctl.testing.node import Node
from delayctl.testing.options import check_count


class Troubled:
    """A broker that can be told to misbehave."""

    _node: Node

    def drop_connections(self) -> None:
        """Cut every connection without a word, as a network does; clients may come again at once."""
        self._node.drop_connections()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Be away for a while, as a broker that restarts: connections are cut, and nobody gets in."""
        self._node.go_away()
        try:
            yield
        finally:
            self._node.come_back()

    @contextmanager
    def blocked(self, reason: str = "low on memory") -> Iterator[None]:
        """Be short of memory or disk for a while: whoever publishes is told that it is blocked, and has to wait."""
        self._node.block(reason)
        try:
            yield
        finally:
            self._node.unblock()

    def refuse_publishes(self, count: int = 1) -> None:
        """Refuse the next messages (basic.nack), as a queue that can't keep them."""
        check_count("the number of messages to refuse", count)
        self._node.refuse(count)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Take messages and say nothing for a while; what was not said is said at the end, to those still there."""
        self._node.hold_answers(is_held=True)
        try:
            yield
        finally:
            self._node.hold_answers(is_held=False)
