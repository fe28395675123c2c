"""What a client does with a failed message: send it back, and if that fails send it to the retry topic itself."""

from delayctl.simulator.rocketmq_broker import Broker
from delayctl.simulator.rocketmq_codes import STORED_LATE, PutMessageStatus, ResponseCode
from delayctl.simulator.rocketmq_log import SendBackFailed
from delayctl.simulator.rocketmq_message import (
    DELAY,
    MAX_RECONSUME_TIMES,
    RECONSUME_TIME,
    RETRY_TOPIC,
    TRAN_MSG,
    MessageExt,
    retry_topic,
)
from delayctl.simulator.rocketmq_send_back import redirect_retry, retry_level, send_message_back


def give_back(broker: Broker, message: MessageExt, group: str, *, delay_level: int, max_reconsume_times: int) -> bool:
    """Get rid of a failed message for now; False if neither the broker's way nor the fallback worked."""
    code = send_message_back(
        broker, message.stored, group, delay_level=delay_level, max_reconsume_times=max_reconsume_times
    )
    if code is ResponseCode.SUCCESS:
        return True
    broker.note(SendBackFailed(group, message.body, code))
    return send_as_normal_message(broker, message, group, message.reconsume_times + 1, max_reconsume_times)


def send_as_normal_message(
    broker: Broker, message: MessageExt, group: str, reconsume_times: int, max_reconsume_times: int
) -> bool:
    """Send a failed message to the retry topic like any other message; the level that the listener asked for is ignored."""
    inner = fallback_message(broker, message, group, reconsume_times, max_reconsume_times)
    if not broker.is_running:
        return False
    redirect_retry(broker, inner, max_reconsume_times)
    status = broker.receive(inner)
    return status is PutMessageStatus.PUT_OK or status in STORED_LATE


def fallback_message(
    broker: Broker, message: MessageExt, group: str, reconsume_times: int, max_reconsume_times: int
) -> MessageExt:
    """The message of a fallback. The listener's own message changes with it: in Java they share their properties."""
    properties = message.properties
    properties[RETRY_TOPIC] = message.topic
    properties[RECONSUME_TIME] = str(reconsume_times)
    properties[MAX_RECONSUME_TIMES] = str(max_reconsume_times)
    properties.pop(TRAN_MSG, None)
    properties[DELAY] = str(retry_level(message.reconsume_times))
    now = broker.clock.wall
    topic = retry_topic(group)
    inner = MessageExt(topic, 0, message.body, properties.copy(), now, flag=message.flag)
    inner.reconsume_times = reconsume_times
    return inner
