"""What a broker does to a message before it is stored: a delayed one changes its topic and remembers its own."""

from delayctl.simulator.rocketmq_codes import NumberFormatError
from delayctl.simulator.rocketmq_levels import DelayLevels, parse_int
from delayctl.simulator.rocketmq_message import (
    DELAY,
    REAL_QID,
    REAL_TOPIC,
    SCHEDULE_TOPIC,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRANSACTION_COMMIT_TYPE,
    TRANSACTION_NOT_TYPE,
    TRANSACTION_ROLLBACK_TYPE,
    MessageExt,
)

TIMER_PROPERTIES = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)


def is_delayable(message: MessageExt) -> bool:
    """Whether a message's transaction bits let it be delayed."""
    # The bits of "rollback" are those of "prepared" and "commit" together.
    return message.sys_flag & TRANSACTION_ROLLBACK_TYPE in (TRANSACTION_NOT_TYPE, TRANSACTION_COMMIT_TYPE)


def set_aside(message: MessageExt, topic: str, queue_id: int) -> None:
    """Let a message wait in a system topic; its properties remember where it belongs."""
    properties = message.properties
    properties[REAL_TOPIC] = message.topic
    properties[REAL_QID] = str(message.queue_id)
    message.topic = topic
    message.queue_id = queue_id


def schedule_message(message: MessageExt, delay: str, levels: DelayLevels) -> int | None:
    """Turn a message with a level above 0 into one of SCHEDULE_TOPIC_XXXX; answers with the level that it waits."""
    level = parse_int(delay)
    if level is None:
        raise NumberFormatError(DELAY, delay)
    if level <= 0 or (message.sys_flag and not is_delayable(message)):
        return None
    if level > levels.max_level:
        level = levels.max_level
        message.properties[DELAY] = str(level)
    set_aside(message, SCHEDULE_TOPIC, level - 1)
    return level
