"""What happened in a simulated RocketMQ, as values that tests compare whole."""

from collections.abc import Mapping
from dataclasses import dataclass

from delayctl.simulator.rocketmq_codes import PutMessageStatus, ResponseCode
from delayctl.simulator.rocketmq_message import MessageExt


@dataclass(frozen=True, slots=True)
class Stored:
    """A message was appended to a queue."""

    topic: str
    queue_id: int
    body: bytes
    reconsume_times: int = 0


@dataclass(frozen=True, slots=True)
class PutFailed:
    """A message could not be appended to a queue."""

    topic: str
    queue_id: int
    body: bytes
    status: PutMessageStatus | str


@dataclass(frozen=True, slots=True)
class Consumed:
    """A listener was called with a message; the topic is the one it saw."""

    group: str
    topic: str
    body: bytes
    reconsume_times: int = 0


@dataclass(frozen=True, slots=True)
class ListenerRaised:
    """A listener raised; its messages count as failed."""

    group: str
    error: str


@dataclass(frozen=True, slots=True)
class SendBackFailed:
    """A failed message could not be sent back; the client falls back to a normal send."""

    group: str
    body: bytes
    code: ResponseCode


@dataclass(frozen=True, slots=True)
class Discarded:
    """A message is gone for good, and why."""

    topic: str
    body: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class BrokerState:
    """The broker was started, shut down or crashed."""

    state: str


Event = Stored | PutFailed | Consumed | ListenerRaised | SendBackFailed | Discarded | BrokerState


@dataclass(frozen=True, slots=True)
class Delivery:
    """One call of a listener with one message, with all that the listener could see."""

    time: int
    group: str
    topic: str
    queue_id: int
    msg_id: str
    body: bytes
    reconsume_times: int
    properties: Mapping[str, str]
    stored_in: str


def delivery(time: int, group: str, message: MessageExt) -> Delivery:
    """What a listener of a group sees of a message at a time."""
    return Delivery(
        time,
        group,
        message.topic,
        message.queue_id,
        message.msg_id,
        message.body,
        message.reconsume_times,
        message.properties.copy(),
        message.stored.topic,
    )
