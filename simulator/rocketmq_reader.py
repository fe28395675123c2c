"""One consumer's reading of one queue, RocketMQ's ProcessQueue; and how a group's queues are shared out."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rocketmq_message import RETRY_PREFIX, RETRY_TOPIC, MessageExt
from delayctl.simulator.rocketmq_store import ConsumeQueue, Cursor

Item = TypeVar("Item")


class Reader:
    """How far a consumer has read a queue, and what it was given and has not finished."""

    __slots__ = (
        "_clock",
        "_is_retry",
        "_pump",
        "accepts",
        "again",
        "cursor",
        "done",
        "held",
        "is_dropped",
        "is_paused",
        "is_woken",
        "message_queue",
        "position",
        "queue",
    )

    def __init__(
        self,
        clock: VirtualClock,
        queue: ConsumeQueue,
        cursor: Cursor,
        accepts: frozenset[str] | None,
        pump: Callable[["Reader"], None],
    ) -> None:
        self._clock = clock
        self._pump = pump
        self.queue = queue
        self.cursor = cursor
        self.accepts = accepts
        self.position = self.done = cursor.committed
        self.held: dict[int, MessageExt] = {}  # By queue offset, in order.
        self.again: list[MessageExt] = []  # What an ordered listener gets once more.
        self.message_queue = (queue.topic, queue.queue_id)
        self._is_retry = queue.topic.startswith(RETRY_PREFIX)
        self.is_dropped = self.is_paused = self.is_woken = False
        queue.readers.append(self)

    def wake(self) -> None:
        """Read on, after whatever else happens at this time."""
        if not self.is_woken:
            self.is_woken = True
            self._clock.at(self._clock.now, self._read)

    def _read(self) -> None:
        self.is_woken = False
        if not self.is_dropped and not self.is_paused:
            self._pump(self)

    def take(self, most: int) -> Sequence[MessageExt]:
        """The next messages, at most so many, as the client sees them; a tag that isn't subscribed is read over.

        The topic of a retried message is that of its first attempt.
        """
        queue = self.queue
        while True:
            index = self.position - queue.base
            found = queue.messages[index : index + most]
            self.position += len(found)
            if self.accepts is not None:
                wanted = [message for message in found if message.tags in self.accepts]
                if found and not wanted:
                    continue
                found = wanted
            if self._is_retry:
                return [message.seen(message.properties.get(RETRY_TOPIC, message.topic)) for message in found]
            return [message.seen(message.topic) for message in found]

    def commit(self, *, is_kept: bool) -> None:
        """Store how far the queue is consumed: not beyond what is still held."""
        self.done = self.position
        self._store_offset()
        if not is_kept:
            self.queue.trim_consumed()

    def _store_offset(self) -> None:
        self.cursor.committed = min(self.held) if self.held else self.done

    def drop(self) -> None:
        """Another consumer reads the queue from now on; what is under way here counts no more."""
        self._store_offset()
        self.is_dropped = True
        self.queue.readers.remove(self)


def tags_of(expression: str) -> frozenset[str] | None:
    """The tags of a subscription such as `TagA || TagB`; None for all."""
    tags = frozenset(tag.strip() for tag in expression.split("||") if tag.strip())
    return None if not tags or tags == {"*"} else tags


def share(queues: Sequence[Item], index: int, members: int) -> Sequence[Item]:
    """The part of the queues that one of so many members reads (`AllocateMessageQueueAveragely`)."""
    size, more = divmod(len(queues), members)
    first = index * size + min(index, more)
    return queues[first : first + size + (index < more)]
