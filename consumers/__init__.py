"""Consuming delayed messages, and trying again after growing pauses what failed."""

from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.lateness import Lateness
from delayctl.consumers.message import Message
from delayctl.consumers.outcome import DONE, RETRY, Done, Outcome, Park, Retry
from delayctl.consumers.policy import ByList, Policy, exponential, fixed, rocketmq
from delayctl.consumers.recorder import Recorder, RecordNotWritten

__all__ = [
    "DONE",
    "RETRY",
    "ByList",
    "DelayConsumer",
    "Done",
    "Lateness",
    "Message",
    "Outcome",
    "Park",
    "Policy",
    "RecordNotWritten",
    "Recorder",
    "Retry",
    "exponential",
    "fixed",
    "rocketmq",
]
