"""One message at its due time: found, turned back into what the producer sent, and appended to its own topic."""

from enum import Enum, auto

from delayctl.simulator.rocketmq_message import REAL_QID, REAL_TOPIC, TAGS, MessageExt, tags_code


class Ending(Enum):
    """Why a message was not delivered, or a run of the deliver loop went no further."""

    EXHAUSTED = auto()  # There was nothing more in the queue.
    NOT_DUE = auto()
    PASSED_OVER = auto()  # The message is given up, and the run goes on.
    PUT_FAILED = auto()
    BLOCKED = auto()  # The same message is tried again.
    DROPPED = auto()  # The message is given up, and the run ends.
    BROKEN_OFF = auto()  # The whole run is repeated.


def time_up(message: MessageExt) -> MessageExt:
    """What is appended to the real topic (`messageTimeup`).

    RocketMQ takes DELAY out of the map, so that the message isn't delayed again, but stores the text that it wrote before:
    all properties are kept, those of the delay too.
    """
    properties = message.properties
    inner = message.copied(properties[REAL_TOPIC], int(properties[REAL_QID]), properties)
    inner.tags_code = tags_code(properties[TAGS]) if TAGS in properties else 0
    return inner
