"""Consuming delayed messages, and trying again after growing pauses what failed."""

from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.message import Message
from delayctl.consumers.outcome import DONE, RETRY, Done, Outcome, Park, Retry
from delayctl.consumers.policy import ByList, Policy, exponential, fixed, rocketmq

__all__ = [
    "DONE",
    "RETRY",
    "ByList",
    "DelayConsumer",
    "Done",
    "Message",
    "Outcome",
    "Park",
    "Policy",
    "Retry",
    "exponential",
    "fixed",
    "rocketmq",
]
