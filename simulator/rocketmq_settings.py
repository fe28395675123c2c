"""A consumer's settings."""

from dataclasses import dataclass

from delayctl.simulator.rocketmq_listener import INT_MAX, ConsumeFromWhere, MessageModel
from delayctl.simulator.rocketmq_send_back import DEFAULT_MAX_RECONSUME_TIMES


@dataclass(slots=True)
class ConsumerSettings:
    """What `DefaultMQPushConsumer` can be told, with RocketMQ's defaults."""

    consumer_group: str
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_message_batch_max_size: int = 1
    max_reconsume_times: int = -1
    consume_timeout: int = 15  # Minutes.
    suspend_current_queue_time_millis: int = 1_000

    @property
    def max_retries(self) -> int:
        """The maximum that a concurrent consumer sends to the broker."""
        return DEFAULT_MAX_RECONSUME_TIMES if self.max_reconsume_times == -1 else self.max_reconsume_times

    @property
    def max_retries_in_order(self) -> int:
        """The maximum of an ordered consumer: as good as none unless set."""
        return INT_MAX if self.max_reconsume_times == -1 else self.max_reconsume_times

    @property
    def consume_timeout_ms(self) -> int:
        """After how long a listener's message is sent back though it is still at it."""
        return self.consume_timeout * 60_000
