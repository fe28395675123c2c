"""RocketMQ's push consumer."""

from typing import Self

from delayctl.simulator.rocketmq_broker import Broker
from delayctl.simulator.rocketmq_codes import MQClientError
from delayctl.simulator.rocketmq_concurrently import ConsumeMessageConcurrently
from delayctl.simulator.rocketmq_listener import (
    ConsumeFromWhere,
    MessageListenerConcurrently,
    MessageListenerOrderly,
    MessageModel,
)
from delayctl.simulator.rocketmq_message import DLQ_PREFIX, RETRY_PREFIX, retry_topic
from delayctl.simulator.rocketmq_orderly import ConsumeMessageOrderly
from delayctl.simulator.rocketmq_reader import Reader, share, tags_of
from delayctl.simulator.rocketmq_settings import ConsumerSettings
from delayctl.simulator.rocketmq_store import ConsumeQueue, Cursor

CONSUME_TIMESTAMP_AGO = 30 * 60_000


class DefaultMQPushConsumer:
    """A consumer of a group; set it up, then `start` it. Setters answer with the consumer, to be chained."""

    def __init__(self, broker: Broker, consumer_group: str) -> None:
        self._broker = broker
        broker.clients += 1
        self._number = broker.clients
        self.settings = ConsumerSettings(consumer_group)
        self._subscriptions: dict[str, frozenset[str] | None] = {}
        self._listener: MessageListenerConcurrently | None = None
        self._orderly: MessageListenerOrderly | None = None
        self._service: ConsumeMessageConcurrently | ConsumeMessageOrderly | None = None
        self._readers: dict[ConsumeQueue, Reader] = {}

    @property
    def consumer_group(self) -> str:
        """The group's name."""
        return self.settings.consumer_group

    def subscribe(self, topic: str, sub_expression: str = "*") -> Self:
        """Read a topic, or only some tags of it: `TagA || TagB`."""
        self._subscriptions[topic] = tags_of(sub_expression)
        return self

    def register_message_listener(self, listener: MessageListenerConcurrently) -> Self:
        """Consume concurrently with a function of messages and context."""
        self._listener, self._orderly = listener, None
        return self

    def register_message_listener_orderly(self, listener: MessageListenerOrderly) -> Self:
        """Consume every queue in order with a function of messages and context."""
        self._listener, self._orderly = None, listener
        return self

    def set_max_reconsume_times(self, times: int) -> Self:
        """How often a message is tried again; -1 means 16, in ordered consumption without end."""
        self.settings.max_reconsume_times = times
        return self

    def set_message_model(self, model: MessageModel) -> Self:
        """Whether the group shares the messages."""
        self.settings.message_model = model
        return self

    def set_consume_message_batch_max_size(self, size: int) -> Self:
        """How many messages a listener gets at once."""
        self.settings.consume_message_batch_max_size = size
        return self

    def set_consume_timeout(self, minutes: int) -> Self:
        """After how many minutes a message counts as failed though its listener is still busy."""
        self.settings.consume_timeout = minutes
        return self

    def set_suspend_current_queue_time_millis(self, milliseconds: int) -> Self:
        """For how long an ordered queue pauses after a failure."""
        self.settings.suspend_current_queue_time_millis = milliseconds
        return self

    def set_consume_from_where(self, where: ConsumeFromWhere) -> Self:
        """Where a new group begins."""
        self.settings.consume_from_where = where
        return self

    def start(self) -> Self:
        """Join the group and consume."""
        if self._listener is not None:
            self._service = ConsumeMessageConcurrently(self._broker, self.settings, self._listener)
        elif self._orderly is not None:
            self._service = ConsumeMessageOrderly(self._broker, self.settings, self._orderly)
        else:
            raise MQClientError("the consumer has no listener", fix="call register_message_listener first")
        self._broker.group(self.consumer_group)
        if self._is_clustering:
            self._subscriptions[retry_topic(self.consumer_group)] = None
        self._broker.join(self.consumer_group, self)
        return self

    def shutdown(self) -> None:
        """Leave the group; what is not finished goes to another consumer of it."""
        for reader in self._readers.values():
            reader.drop()
        self._readers.clear()
        self._broker.leave(self.consumer_group, self)

    @property
    def _is_clustering(self) -> bool:
        return self.settings.message_model is MessageModel.CLUSTERING

    def rebalance(self) -> None:
        """Take the queues that are this consumer's share, give up those that are not any more, and read on."""
        mine = [queue for topic in self._subscriptions for queue in self._share(topic)]
        for queue in [queue for queue in self._readers if queue not in mine]:
            self._readers.pop(queue).drop()
        for queue in mine:
            if queue not in self._readers:
                self._readers[queue] = self._reader(queue)
            self._readers[queue].wake()

    def _share(self, topic: str) -> "list[ConsumeQueue]":
        queues = list(self._broker.store.topics.get(topic, ()))
        if topic.startswith(DLQ_PREFIX) and not self._broker.profile.dlq_readable:
            return []
        if not self._is_clustering:
            return queues
        members = self._broker.members[self.consumer_group]
        return list(share(queues, members.index(self), len(members)))

    def _reader(self, queue: ConsumeQueue) -> Reader:
        assert self._service is not None
        # In broadcasting every consumer keeps an offset of its own.
        name = self.consumer_group if self._is_clustering else f"{self.consumer_group}@{self._number}"
        cursor = queue.cursors.setdefault(name, Cursor(self._first_offset(queue)))
        return Reader(self._broker.clock, queue, cursor, self._subscriptions[queue.topic], self._service.pump)

    def _first_offset(self, queue: ConsumeQueue) -> int:
        """Where a new group begins.

        CONSUME_FROM_LAST_OFFSET begins at the first message too: a broker answers 0 as long as a queue has lost nothing.
        """
        if self.settings.consume_from_where is not ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            return queue.base
        if queue.topic.startswith(RETRY_PREFIX):
            return queue.max_offset
        since = self._broker.clock.wall - CONSUME_TIMESTAMP_AGO
        older = sum(message.store_timestamp < since for message in queue.messages)
        return queue.base + older
