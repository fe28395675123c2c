"""What happens on the simulated broker, as values: the log that a test compares whole.

Messages are told apart by their number: the first publish is 1, and every copy of it keeps that.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    """A message was published, and goes to these queues."""

    message: int
    exchange: str
    key: str
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Returned:
    """A mandatory message had no queue to go to."""

    message: int
    exchange: str
    key: str


@dataclass(frozen=True, slots=True)
class Nacked:
    """A full queue refused a message, and its publisher is told."""

    message: int
    queue: str


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """A message left a queue through its dead-letter exchange for these queues; none means that it is lost."""

    message: int
    queue: str
    reason: str
    exchange: str
    key: str
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A message is gone: the queue has no dead-letter exchange, or the target is full, or it would have circled."""

    message: int
    queue: str
    reason: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A message that is dead-lettered at least once has no way out yet; it stays, and is tried again later."""

    message: int
    queue: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message was handed to a consumer; to the consumer "" by `get`."""

    message: int
    queue: str
    consumer: str
    is_redelivered: bool = False


@dataclass(frozen=True, slots=True)
class Acked:
    """A consumer is done with a message."""

    message: int
    queue: str


@dataclass(frozen=True, slots=True)
class Requeued:
    """A consumer gave a message back to its queue."""

    message: int
    queue: str


@dataclass(frozen=True, slots=True)
class QueueExpired:
    """A queue that nobody used is gone, with the messages in it."""

    queue: str
    messages: int


Event = Published | Returned | Nacked | DeadLettered | Dropped | Kept | Delivered | Acked | Requeued | QueueExpired
