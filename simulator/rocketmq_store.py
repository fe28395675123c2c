"""What a broker has on disk: topics with their queues, and the two offset files. All of it survives a crash."""

from typing import Protocol

from delayctl.simulator.rocketmq_message import SCHEDULE_TOPIC, MessageExt

DEFAULT_TOPIC_QUEUES = 4
SCHEDULE_TOPIC_QUEUES = 18
TRIM_AT = 1_024


class Cursor:
    """How far a group has consumed a queue: everything before `committed` is done."""

    __slots__ = ("committed",)

    def __init__(self, committed: int) -> None:
        self.committed = committed


class Woken(Protocol):
    """Someone who reads a queue and is told when a message arrives."""

    is_woken: bool

    def wake(self) -> None:
        """Read on."""


class ConsumeQueue:
    """A queue of a topic. Messages before `base` are no longer kept; `readers` are woken when one arrives."""

    __slots__ = ("base", "cursors", "messages", "queue_id", "readers", "topic")

    def __init__(self, topic: str, queue_id: int) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.base = 0
        self.messages: list[MessageExt] = []
        self.cursors: dict[str, Cursor] = {}
        self.readers: list[Woken] = []

    @property
    def max_offset(self) -> int:
        """The offset that the next message gets."""
        return self.base + len(self.messages)

    def trim(self, offset: int) -> None:
        """Forget messages before an offset, when that is worth the work."""
        done = offset - self.base
        if done >= len(self.messages) or (done > TRIM_AT and done * 2 > len(self.messages)):
            del self.messages[:done]
            self.base += done

    def trim_consumed(self) -> None:
        """Forget what every group has consumed; a queue without groups keeps everything."""
        if self.cursors:
            self.trim(min(cursor.committed for cursor in self.cursors.values()))


class Store:
    """Topics, and the offsets that the schedule service wrote last (`delayOffset.json`)."""

    def __init__(self) -> None:
        self.topics: dict[str, list[ConsumeQueue]] = {}
        self.delay_offsets: dict[int, int] = {}
        self.commit_log_offset = 0
        self.create(SCHEDULE_TOPIC, SCHEDULE_TOPIC_QUEUES)

    def create(self, topic: str, queues: int) -> list[ConsumeQueue]:
        """Make sure that a topic has at least so many queues."""
        found = self.topics.setdefault(topic, [])
        found.extend(ConsumeQueue(topic, queue_id) for queue_id in range(len(found), queues))
        return found

    def messages(self, topic: str) -> list[MessageExt]:
        """What a topic holds, in the order in which it was stored."""
        found = [message for queue in self.topics.get(topic, ()) for message in queue.messages]
        return sorted(found, key=lambda message: message.commit_log_offset)
