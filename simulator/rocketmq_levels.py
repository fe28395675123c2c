"""RocketMQ's level string `messageDelayLevel`, read exactly as its Java code reads it."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from delayctl.topology.spec import ROCKETMQ_LEVELS

DEFAULT_MESSAGE_DELAY_LEVEL = ROCKETMQ_LEVELS
UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# What `computeDeliverTimestamp` adds for a level that is in no table.
UNKNOWN_LEVEL_DELAY = 1_000
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DelayLevels:
    """What came of a level string: the table as far as it was read, and the error that ended the reading, if any."""

    table: Mapping[int, int]
    max_level: int
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the whole string could be read; a broker starts with no other."""
        return self.error is None

    def clamp(self, level: int) -> int:
        """The level that a put uses: above the last one the last."""
        return min(level, self.max_level)

    def deliver_timestamp(self, level: int, store_timestamp: int) -> int:
        """When a message of a level is due (`computeDeliverTimestamp`)."""
        due = store_timestamp + self.table.get(level, UNKNOWN_LEVEL_DELAY)
        return due if due <= LONG_MAX else wrapped(due)


def parse_delay_level(text: str) -> DelayLevels:
    """Read a level string; what cannot be read ends the reading and leaves what was read before."""
    table: dict[int, int] = {}
    max_level = 0
    error = None
    for level, token in enumerate(java_split(text), start=1):
        if not token:
            error = "StringIndexOutOfBounds"
            break
        # The Java code counts the level before it looks at the number.
        max_level = level
        number = parse_long(token[:-1])
        unit = UNIT_MS.get(token[-1])
        if number is None or unit is None:
            error = "NumberFormat" if number is None else "NullPointer"
            break
        table[level] = wrapped(number * unit)
    return DelayLevels(MappingProxyType(table), max_level, error)


def java_split(text: str) -> list[str]:
    """`text.split(" ")` of Java: empty tokens at the end are dropped, all others kept."""
    if " " not in text:
        return [text]
    tokens = text.split(" ")
    while tokens and not tokens[-1]:
        tokens.pop()
    return tokens


def parse_long(text: str) -> int | None:
    """`Long.parseLong`: a sign and decimal digits of any script within 64 bits; None where Java throws."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not all(_is_java_digit(character) for character in digits):
        return None
    number = int("".join(str(unicodedata.decimal(digit)) for digit in digits))
    number = -number if text[0] == "-" else number
    return number if wrapped(number) == number else None


def _is_java_digit(character: str) -> bool:
    # Java looks at 16-bit units, so digits beyond the first plane are two surrogates to it.
    return ord(character) <= 0xFFFF and unicodedata.category(character) == "Nd"


@lru_cache(maxsize=4096)
def parse_int(text: str) -> int | None:
    """`Integer.parseInt`: as `parse_long`, within 32 bits."""
    number = parse_long(text)
    return number if number is not None and -(2**31) <= number < 2**31 else None


def wrapped(number: int) -> int:
    """A number as 64-bit arithmetic without a check leaves it."""
    return (number + 2**63) % 2**64 - 2**63


def queue_id_of(level: int) -> int:
    """The queue of SCHEDULE_TOPIC_XXXX in which a level waits (`delayLevel2QueueId`)."""
    return level - 1


def level_of(queue_id: int) -> int:
    """The level that waits in a queue of SCHEDULE_TOPIC_XXXX (`queueId2DelayLevel`)."""
    return queue_id + 1
