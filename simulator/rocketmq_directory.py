"""The topics, groups and consumers that a broker knows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from delayctl.simulator.rocketmq_message import DLQ_PREFIX, RETRY_PREFIX, MessageExt, retry_topic
from delayctl.simulator.rocketmq_store import ConsumeQueue, Store


@dataclass(slots=True)
class SubscriptionGroup:
    """What a broker knows about a consumer group; `retry_max_times` yields to what a client sends along."""

    name: str
    retry_queue_nums: int = 1
    retry_max_times: int = 16


class Member(Protocol):
    """A consumer, as far as a broker knows it."""

    def rebalance(self) -> None:
        """Find out anew which queues to read, and read on."""


class Directory:
    """Topics and groups are made when they are first heard of, unless they were set up otherwise before."""

    def __init__(self, store: Store, default_topic_queues: int) -> None:
        self.store = store
        self.groups: dict[str, SubscriptionGroup] = {}
        self.members: dict[str, list[Member]] = {}
        self.clients = 0
        self._default_queues = default_topic_queues

    def create_topic(self, topic: str, queues: int) -> None:
        """Make a topic, or give it more queues."""
        if len(self.store.topics.get(topic, ())) < queues:
            self.store.create(topic, queues)
            self.rebalance()

    def create_subscription_group(
        self, name: str, *, retry_queue_nums: int = 1, retry_max_times: int = 16
    ) -> SubscriptionGroup:
        """Set up a consumer group otherwise than it would be set up by itself."""
        self.groups[name] = group = SubscriptionGroup(name, retry_queue_nums, retry_max_times)
        return group

    def group(self, name: str) -> SubscriptionGroup:
        """A consumer group, made with its retry topic when it is first heard of."""
        group = self.groups.get(name) or self.create_subscription_group(name)
        self.create_topic(retry_topic(name), group.retry_queue_nums)
        return group

    def queues_of(self, topic: str) -> Sequence[ConsumeQueue]:
        """The queues of a topic, which is made when it is not there."""
        if topic not in self.store.topics:
            self.create_topic(topic, self._default_queues)
        return self.store.topics[topic]

    def queues_for(self, message: MessageExt) -> list[ConsumeQueue]:
        """The queues of a message's topic, its own among them: what the broker itself puts creates what it needs."""
        least = 1 if message.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)) else self._default_queues
        self.create_topic(message.topic, max(least, message.queue_id + 1))
        return self.store.topics[message.topic]

    def messages(self, topic: str) -> list[MessageExt]:
        """What a topic still holds, in the order in which it was stored."""
        return self.store.messages(topic)

    def join(self, group: str, member: Member) -> None:
        """Add a consumer to its group."""
        self.members.setdefault(group, []).append(member)
        self.rebalance()

    def leave(self, group: str, member: Member) -> None:
        """Take a consumer out of its group."""
        self.members[group].remove(member)
        self.rebalance()

    def rebalance(self) -> None:
        """Have every consumer find out which queues are its own."""
        for members in self.members.values():
            for member in members:
                member.rebalance()
