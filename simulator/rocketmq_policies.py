"""RocketMQ 5.x: how long a failed message waits by a group's retry policy, and the levels of the proxy."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from delayctl.simulator.rocketmq_levels import DEFAULT_MESSAGE_DELAY_LEVEL, DelayLevels, parse_delay_level

DEFAULT_DELAYS = tuple(parse_delay_level(DEFAULT_MESSAGE_DELAY_LEVEL).table.values())


class RetryPolicy(Protocol):
    """Says how long a message waits that has failed so often."""

    def next_delay_duration(self, reconsume_times: int) -> int:
        """The wait in milliseconds."""


@dataclass(frozen=True, slots=True)
class CustomizedRetryPolicy:
    """A list of waits, used from the third on."""

    next: Sequence[int] = DEFAULT_DELAYS

    def next_delay_duration(self, reconsume_times: int) -> int:
        """The wait in milliseconds; beyond the list its last."""
        return self.next[min(max(reconsume_times, 0) + 2, len(self.next) - 1)]


@dataclass(frozen=True, slots=True)
class ExponentialRetryPolicy:
    """Waits that grow by a factor up to a bound."""

    initial: int = 5_000
    max: int = 7_200_000
    multiplier: int = 2

    def next_delay_duration(self, reconsume_times: int) -> int:
        """The wait in milliseconds."""
        factor: int = self.multiplier ** min(max(reconsume_times, 0), 32)
        return min(self.max, self.initial * factor)


class GroupRetryPolicyType(Enum):
    """Which of the two a group asks for."""

    EXPONENTIAL = "EXPONENTIAL"
    CUSTOMIZED = "CUSTOMIZED"


@dataclass(frozen=True, slots=True)
class GroupRetryPolicy:
    """A group's choice; what it asks for and hasn't got is the default list."""

    type: GroupRetryPolicyType | None = GroupRetryPolicyType.CUSTOMIZED
    exponential_retry_policy: ExponentialRetryPolicy | None = None
    customized_retry_policy: CustomizedRetryPolicy | None = None

    @property
    def retry_policy(self) -> RetryPolicy:
        """The policy that applies."""
        if self.type is GroupRetryPolicyType.EXPONENTIAL:
            return self.exponential_retry_policy or CustomizedRetryPolicy()
        if self.type is GroupRetryPolicyType.CUSTOMIZED:
            return self.customized_retry_policy or CustomizedRetryPolicy()
        return CustomizedRetryPolicy()


def max_attempts(retry_max_times: int) -> int:
    """How many attempts a gRPC client is told to make."""
    return retry_max_times + 1


def compute_delay_level(levels: DelayLevels, interval: int) -> int:
    """The level that the proxy takes for a wait (`useDelayLevel`): the first that is longer, else the last."""
    by_delay = sorted(levels.table.items(), key=lambda item: item[1])
    return next((level for level, delay in by_delay if delay > interval), by_delay[-1][0])
