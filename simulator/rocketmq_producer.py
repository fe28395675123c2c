"""RocketMQ's producer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

from delayctl.simulator.rocketmq_broker import Broker
from delayctl.simulator.rocketmq_codes import MQClientError, PutMessageStatus, SendStatus, response_code, send_status
from delayctl.simulator.rocketmq_levels import parse_int
from delayctl.simulator.rocketmq_message import (
    DELAY,
    HALF_TOPIC,
    MAX_RECONSUME_TIMES,
    REAL_QID,
    REAL_TOPIC,
    RECONSUME_TIME,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TRAN_MSG,
    TRANSACTION_COMMIT_TYPE,
    UNIQ_KEY,
    Message,
    MessageExt,
    check_batch,
)
from delayctl.simulator.rocketmq_put import set_aside
from delayctl.simulator.rocketmq_send_back import DEFAULT_MAX_RECONSUME_TIMES, redirect_retry

PUT_OK = PutMessageStatus.PUT_OK
SEND_OK = SendStatus.SEND_OK
_NOT_ALLOWED = {SCHEDULE_TOPIC, HALF_TOPIC, "rmq_sys_wheel_timer"}


@dataclass(slots=True)
class SendResult:
    """What a producer hears about a message that was stored."""

    send_status: SendStatus
    msg_id: str
    queue_id: int


class DefaultMQProducer:
    """Sends to the queues of a topic in turn, unless told which one."""

    def __init__(self, broker: Broker, producer_group: str = "DEFAULT_PRODUCER") -> None:
        self.producer_group = producer_group
        self._broker = broker
        self._clock = broker.clock
        self._turns: dict[str, Iterator[int]] = {}
        broker.clients += 1
        self._prefix = f"{broker.clients:08X}-"
        self._sent = 0

    def send(self, message: Message, *, queue_id: int | None = None) -> SendResult:
        """Send a message; where the broker doesn't store it, that is raised."""
        properties = message.properties
        # As in Java the id stays with the message, so sending the same object twice makes two copies of one message.
        if UNIQ_KEY not in properties:
            properties[UNIQ_KEY] = self._prefix + str(self._sent)
            self._sent += 1
        topic = message.topic
        turn = next(self._turns.get(topic) or self._turns_of(topic))
        chosen = turn if queue_id is None else queue_id
        inner = MessageExt(topic, chosen, message.body, properties.copy(), self._clock.wall)
        inner.flag = message.flag
        if topic[0] == "%":
            self._redirect(inner)
        status = self._broker.receive(inner)
        if status is PUT_OK:
            return SendResult(SEND_OK, properties[UNIQ_KEY], chosen)
        return SendResult(send_status(response_code(status)), properties[UNIQ_KEY], chosen)

    def send_batch(self, messages: Sequence[Message]) -> list[SendResult]:
        """Send messages of one topic together; none of them may be delayed."""
        check_batch(messages)
        return [self.send(message) for message in messages]

    def send_message_in_transaction(self, message: Message, *, commit: bool = True, strips_delay: bool = True) -> None:
        """Send a message in a transaction that ends at once.

        The Java client strips the delay level. With another client the half message itself is delayed, and then lost.
        """
        if strips_delay and message.delay_time_level != 0:
            del message.properties[DELAY]
        queue_id = next(self._turns_of(message.topic))
        half = MessageExt(message.topic, queue_id, message.body, message.properties.copy(), self._clock.wall)
        half.properties[TRAN_MSG] = "true"
        set_aside(half, HALF_TOPIC, 0)
        self._put(half)
        if commit and half.topic == HALF_TOPIC:
            self._put(_committed(half))

    def _put(self, message: MessageExt) -> None:
        send_status(response_code(self._broker.put(message)))

    def _turns_of(self, topic: str) -> Iterator[int]:
        """The queues of a topic in turn; they are counted once, when it is first sent to."""
        if topic in _NOT_ALLOWED:
            raise MQClientError(f"sending to topic {topic} is forbidden")
        self._turns[topic] = turns = cycle(range(len(self._broker.queues_of(topic))))
        return turns

    def _redirect(self, inner: MessageExt) -> None:
        if not inner.topic.startswith(RETRY_PREFIX):
            return
        inner.reconsume_times = parse_int(inner.properties.get(RECONSUME_TIME, "0")) or 0
        most = parse_int(inner.properties.get(MAX_RECONSUME_TIMES, str(DEFAULT_MAX_RECONSUME_TIMES))) or 0
        redirect_retry(self._broker, inner, most)


def _committed(half: MessageExt) -> MessageExt:
    properties = half.properties.copy()
    topic, queue_id = properties.pop(REAL_TOPIC), int(properties.pop(REAL_QID))
    inner = half.copied(topic, queue_id, properties)
    inner.sys_flag = TRANSACTION_COMMIT_TYPE
    return inner
