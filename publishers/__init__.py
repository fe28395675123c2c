"""Publishing messages that arrive later: thread-safe, confirmed, as fast as the broker takes them."""

from delayctl.publishers.choice import NoSuchDelay
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import (
    ConnectionLost,
    Nacked,
    NotConfirmed,
    NotPublished,
    NotSendable,
    PublisherClosed,
    TooLarge,
    Unroutable,
    WriteRefused,
)
from delayctl.publishers.frames import Properties
from delayctl.publishers.publisher import DelayPublisher

__all__ = [
    "ConnectionLost",
    "DelayPublisher",
    "Delivery",
    "Nacked",
    "NoSuchDelay",
    "NotConfirmed",
    "NotPublished",
    "NotSendable",
    "Properties",
    "PublisherClosed",
    "TooLarge",
    "Unroutable",
    "WriteRefused",
]
