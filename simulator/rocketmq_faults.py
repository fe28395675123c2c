"""What a test lets go wrong: each fault is a function that is asked every time, and says what happens."""

from collections.abc import Callable

from delayctl.simulator.rocketmq_codes import PutMessageStatus, ResponseCode
from delayctl.simulator.rocketmq_message import MessageExt


class JavaException(Exception):
    """Raised by a fault: the broker's code throws an exception."""


class JavaError(Exception):
    """Raised by a fault: the broker's code throws an `Error`, such as OutOfMemoryError."""


class Faults:
    """No fault at first; assign a function to the place where something is to go wrong."""

    __slots__ = ("lookup", "put", "put_takes", "send_back")

    put: Callable[[MessageExt], PutMessageStatus | None] | None
    lookup: Callable[[MessageExt], bool] | None
    send_back: Callable[[MessageExt], ResponseCode | None] | None
    put_takes: Callable[[MessageExt], int] | None

    def __init__(self) -> None:
        self.put = None  # The status with which an append fails, None to let it pass; may raise.
        self.lookup = None  # Whether the commit log still has a waiting message; may raise.
        self.send_back = None  # What a send-back is answered, None to let it pass.
        self.put_takes = None  # How long the store takes to answer; seen in asynchronous delivery only.


def first(
    times: int, status: PutMessageStatus, *, body: bytes, topic: str
) -> Callable[[MessageExt], PutMessageStatus | None]:
    """A fault of `put`: the first so many appends of this body to this topic fail."""
    left = times

    def fault(message: MessageExt) -> PutMessageStatus | None:
        nonlocal left
        if left == 0 or (message.topic, message.body) != (topic, body):
            return None
        left -= 1
        return status

    return fault
