"""What a listener is given and what it answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from delayctl.simulator.rocketmq_message import MessageExt

INT_MAX = 2**31 - 1


class ConsumeConcurrentlyStatus(Enum):
    """What a concurrent listener answers; None and an exception mean RECONSUME_LATER."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


class ConsumeOrderlyStatus(Enum):
    """What an ordered listener answers; None and an exception mean SUSPEND_CURRENT_QUEUE_A_MOMENT."""

    SUCCESS = "SUCCESS"
    ROLLBACK = "ROLLBACK"
    COMMIT = "COMMIT"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


class MessageModel(Enum):
    """Whether a group shares the messages or each of its consumers gets all."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeFromWhere(Enum):
    """Where a new group begins."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class ConsumeConcurrentlyContext:
    """What a concurrent listener can set: the level of the next attempt, and the last message that counts as consumed."""

    __slots__ = ("ack_index", "delay_level_when_next_consume", "message_queue")

    def __init__(self, message_queue: tuple[str, int]) -> None:
        self.message_queue = message_queue
        self.delay_level_when_next_consume = 0
        self.ack_index = INT_MAX


class ConsumeOrderlyContext:
    """What an ordered listener can set: for how long its queue pauses."""

    __slots__ = ("message_queue", "suspend_current_queue_time_millis")

    def __init__(self, message_queue: tuple[str, int]) -> None:
        self.message_queue = message_queue
        self.suspend_current_queue_time_millis = -1


Status = TypeVar("Status")


@dataclass(frozen=True, slots=True)
class Takes(Generic[Status]):
    """Answered by a listener that is busy for so many milliseconds before its real answer."""

    milliseconds: int
    status: Status | None


MessageListenerConcurrently = Callable[
    [Sequence[MessageExt], ConsumeConcurrentlyContext],
    ConsumeConcurrentlyStatus | Takes[ConsumeConcurrentlyStatus] | None,
]
MessageListenerOrderly = Callable[[Sequence[MessageExt], ConsumeOrderlyContext], ConsumeOrderlyStatus | None]
