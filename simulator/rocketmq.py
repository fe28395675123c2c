"""RocketMQ in virtual time: delay levels, the schedule service, consumer groups with retries and dead-letter queues.

>>> clock = VirtualClock()
>>> broker = Broker(clock)
>>> consumer = DefaultMQPushConsumer(broker, "G").subscribe("TopicA")
>>> consumer = consumer.register_message_listener(lambda messages, context: CONSUME_SUCCESS).start()
>>> sent = DefaultMQProducer(broker).send(Message("TopicA", b"hello").set_delay_time_level(3))
>>> clock.run()
>>> [(delivery.time, delivery.body) for delivery in broker.deliveries]
[(10000, b'hello')]
"""

from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rocketmq_broker import Broker
from delayctl.simulator.rocketmq_codes import (
    BrokerStartError,
    MQBrokerError,
    MQClientError,
    NumberFormatError,
    PutMessageStatus,
    ResponseCode,
    SendStatus,
    UnsupportedOperationError,
)
from delayctl.simulator.rocketmq_consumer import DefaultMQPushConsumer
from delayctl.simulator.rocketmq_directory import SubscriptionGroup
from delayctl.simulator.rocketmq_faults import Faults, JavaError, JavaException, first
from delayctl.simulator.rocketmq_levels import DEFAULT_MESSAGE_DELAY_LEVEL, DelayLevels, parse_delay_level
from delayctl.simulator.rocketmq_listener import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageModel,
    Takes,
)
from delayctl.simulator.rocketmq_log import (
    BrokerState,
    Consumed,
    Delivery,
    Discarded,
    Event,
    ListenerRaised,
    PutFailed,
    SendBackFailed,
    Stored,
)
from delayctl.simulator.rocketmq_message import SCHEDULE_TOPIC, Message, MessageExt, dlq_topic, retry_topic
from delayctl.simulator.rocketmq_producer import DefaultMQProducer, SendResult
from delayctl.simulator.rocketmq_profiles import P1, P2, P3, P4, P5, P5_EARLY, P6, PROFILES, Profile
from delayctl.simulator.rocketmq_send_back import send_message_back
from delayctl.simulator.rocketmq_timer import TimerConfig

CONSUME_SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
RECONSUME_LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER

__all__ = [
    "CONSUME_SUCCESS",
    "DEFAULT_MESSAGE_DELAY_LEVEL",
    "P1",
    "P2",
    "P3",
    "P4",
    "P5",
    "P5_EARLY",
    "P6",
    "PROFILES",
    "RECONSUME_LATER",
    "SCHEDULE_TOPIC",
    "Broker",
    "BrokerStartError",
    "BrokerState",
    "ConsumeConcurrentlyContext",
    "ConsumeConcurrentlyStatus",
    "ConsumeFromWhere",
    "ConsumeOrderlyContext",
    "ConsumeOrderlyStatus",
    "Consumed",
    "DefaultMQProducer",
    "DefaultMQPushConsumer",
    "DelayLevels",
    "Delivery",
    "Discarded",
    "Event",
    "Faults",
    "JavaError",
    "JavaException",
    "ListenerRaised",
    "MQBrokerError",
    "MQClientError",
    "Message",
    "MessageExt",
    "MessageModel",
    "NumberFormatError",
    "Profile",
    "PutFailed",
    "PutMessageStatus",
    "ResponseCode",
    "SendBackFailed",
    "SendResult",
    "SendStatus",
    "Stored",
    "SubscriptionGroup",
    "Takes",
    "TimerConfig",
    "UnsupportedOperationError",
    "VirtualClock",
    "dlq_topic",
    "first",
    "parse_delay_level",
    "retry_topic",
    "send_message_back",
]
