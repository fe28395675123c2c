"""A failed message at the broker: back to wait for another attempt, or to the dead-letter queue."""

from delayctl.simulator.rocketmq_broker import Broker
from delayctl.simulator.rocketmq_codes import PutMessageStatus, ResponseCode
from delayctl.simulator.rocketmq_message import (
    DELAY,
    ORIGIN_MESSAGE_ID,
    RETRY_PREFIX,
    RETRY_TOPIC,
    WAIT,
    MessageExt,
    dlq_topic,
    retry_topic,
)
from delayctl.topology.spec import ROCKETMQ_FIRST_RETRY_LEVEL

DEFAULT_MAX_RECONSUME_TIMES = 16


def retry_level(reconsume_times: int) -> int:
    """The level that a message waits after it has failed, when nobody asks for another."""
    return ROCKETMQ_FIRST_RETRY_LEVEL + reconsume_times


def send_message_back(
    broker: Broker,
    message: MessageExt,
    group_name: str,
    *,
    delay_level: int = 0,
    max_reconsume_times: int | None = None,
) -> ResponseCode:
    """Take back a stored message that a group failed to consume (CONSUMER_SEND_MSG_BACK).

    The maximum is the request's, and the group's only where the request has none.
    """
    if not broker.is_running:
        return ResponseCode.SERVICE_NOT_AVAILABLE
    if broker.faults.send_back is not None and (code := broker.faults.send_back(message)) is not None:
        return code
    group = broker.group(group_name)
    if group.retry_queue_nums <= 0:
        return ResponseCode.SUCCESS
    most = group.retry_max_times if max_reconsume_times is None else max_reconsume_times
    copy = _copy(message, group_name, broker.choose_retry_queue(group.retry_queue_nums))
    if message.reconsume_times >= most or delay_level < 0:
        copy.topic, copy.queue_id = dlq_topic(group_name), 0
        if not broker.profile.dlq_keeps_delay:
            copy.properties[DELAY] = "0"
    else:
        copy.properties[DELAY] = str(delay_level or retry_level(message.reconsume_times))
    is_stored = broker.put(copy) is PutMessageStatus.PUT_OK
    return ResponseCode.SUCCESS if is_stored else ResponseCode.SYSTEM_ERROR


def _copy(message: MessageExt, group_name: str, queue_id: int) -> MessageExt:
    """What is stored of a failed message: all that it was, and one attempt more."""
    properties = message.properties.copy()
    properties.setdefault(RETRY_TOPIC, message.topic)
    properties.setdefault(ORIGIN_MESSAGE_ID, message.offset_msg_id)
    properties[WAIT] = "false"
    copy = message.copied(retry_topic(group_name), queue_id, properties)
    copy.reconsume_times += 1
    return copy


def redirect_retry(broker: Broker, message: MessageExt, max_reconsume_times: int) -> None:
    """Judge a message that a client sends to its retry topic like any other (`handleRetryAndDLQ`).

    4.9 buries it one attempt earlier than a send-back does, and lets it wait before it is buried.
    """
    group_name = message.topic.removeprefix(RETRY_PREFIX)
    broker.group(group_name)
    attempts = message.reconsume_times
    if attempts > max_reconsume_times or (attempts == max_reconsume_times and not broker.profile.is_5):
        message.topic, message.queue_id = dlq_topic(group_name), 0
        if broker.profile.is_5:
            message.properties[DELAY] = "-1"
