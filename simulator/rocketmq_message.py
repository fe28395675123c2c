"""RocketMQ's messages: as a producer makes them, and as the store keeps and a listener sees them."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Self

from delayctl.simulator.rocketmq_codes import NumberFormatError, UnsupportedOperationError
from delayctl.simulator.rocketmq_levels import parse_int

DELAY = "DELAY"
REAL_TOPIC = "REAL_TOPIC"
REAL_QID = "REAL_QID"
RETRY_TOPIC = "RETRY_TOPIC"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
RECONSUME_TIME = "RECONSUME_TIME"
MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
WAIT = "WAIT"
TRAN_MSG = "TRAN_MSG"
UNIQ_KEY = "UNIQ_KEY"
TAGS = "TAGS"
KEYS = "KEYS"
CONSUME_START_TIME = "CONSUME_START_TIME"
TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
TIMER_DELAY_MS = "TIMER_DELAY_MS"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"

# The transaction bits of a message's system flag.
TRANSACTION_NOT_TYPE = 0x0
TRANSACTION_PREPARED_TYPE = 0x4
TRANSACTION_COMMIT_TYPE = 0x8
TRANSACTION_ROLLBACK_TYPE = 0xC


def retry_topic(group: str) -> str:
    """The topic in which a group's failed messages come back."""
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    """The topic in which a group's messages end that failed too often."""
    return DLQ_PREFIX + group


_new = object.__new__


class _Properties:
    """What both kinds of message can be asked."""

    __slots__ = ("body", "flag", "properties", "topic")

    topic: str
    body: bytes
    flag: int
    properties: dict[str, str]

    def get_property(self, name: str) -> str | None:
        """The value of a property, the system's included."""
        return self.properties.get(name)

    @property
    def tags(self) -> str | None:
        """The tag that subscriptions filter by."""
        return self.properties.get(TAGS)

    @property
    def keys(self) -> str | None:
        """The keys that messages are looked up by."""
        return self.properties.get(KEYS)

    @property
    def delay_time_level(self) -> int:
        """The delay level, 0 where there is none; a value that is no whole number is an error."""
        text = self.properties.get(DELAY)
        if text is None:
            return 0
        level = parse_int(text)
        if level is None:
            raise NumberFormatError(DELAY, text)
        return level


class Message(_Properties):
    """A message as a producer makes it."""

    __slots__ = ()

    def __init__(self, topic: str, body: bytes, *, tags: str = "", keys: str = "", flag: int = 0) -> None:
        self.topic = topic
        self.body = body
        self.flag = flag
        self.properties = {WAIT: "true"}
        if tags:
            self.properties[TAGS] = tags
        if keys:
            self.properties[KEYS] = keys

    def put_user_property(self, name: str, value: str) -> Self:
        """Add a property that consumers will see."""
        self.properties[name] = value
        return self

    def set_delay_time_level(self, level: int) -> Self:
        """Delay the message by a level; as in RocketMQ nothing is checked here."""
        self.properties[DELAY] = str(level)
        return self

    def set_delay_time_sec(self, seconds: int) -> Self:
        """Delay the message by so many seconds: a timer message of 5.x."""
        return self.put_user_property(TIMER_DELAY_SEC, str(seconds))

    def set_delay_time_ms(self, milliseconds: int) -> Self:
        """Delay the message by so many milliseconds: a timer message of 5.x."""
        return self.put_user_property(TIMER_DELAY_MS, str(milliseconds))

    def set_deliver_time_ms(self, time: int) -> Self:
        """Deliver the message at a time of the broker's clock: a timer message of 5.x."""
        return self.put_user_property(TIMER_DELIVER_MS, str(time))


class MessageExt(_Properties):
    """A message with its place in the store; what a listener gets has the store's own copy as `stored`."""

    __slots__ = (
        "born_timestamp",
        "commit_log_offset",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "store_timestamp",
        "stored",
        "sys_flag",
        "tags_code",
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        properties: dict[str, str],
        born_timestamp: int,
        *,
        flag: int = 0,
        sys_flag: int = 0,
        reconsume_times: int = 0,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.body = body
        self.properties = properties
        self.flag = flag
        self.sys_flag = sys_flag
        self.born_timestamp = born_timestamp
        self.reconsume_times = reconsume_times

    queue_offset: int
    commit_log_offset: int
    store_timestamp: int
    tags_code: int
    stored: "MessageExt"

    def copied(self, topic: str, queue_id: int, properties: dict[str, str]) -> "MessageExt":
        """The same content for another place."""
        copy = _new(MessageExt)  # Past the constructor: this is done twice per delayed message.
        copy.topic = topic
        copy.queue_id = queue_id
        copy.properties = properties
        copy.body = self.body
        copy.flag = self.flag
        copy.sys_flag = self.sys_flag
        copy.born_timestamp = self.born_timestamp
        copy.reconsume_times = self.reconsume_times
        return copy

    def seen(self, topic: str) -> "MessageExt":
        """The copy that a client works with: its properties and counter are its own."""
        copy = self.copied(topic, self.queue_id, self.properties.copy())
        copy.store_timestamp = self.store_timestamp
        copy.queue_offset = self.queue_offset
        copy.commit_log_offset = self.commit_log_offset
        copy.tags_code = self.tags_code
        copy.stored = self
        return copy

    @property
    def msg_id(self) -> str:
        """The id that stays with a message through delays and retries."""
        return self.properties.get(UNIQ_KEY) or self.offset_msg_id

    @property
    def offset_msg_id(self) -> str:
        """The id of this one copy, from its place in the commit log."""
        return f"7F00000100002A9F{self.commit_log_offset:016X}"

    def __repr__(self) -> str:
        return f"MessageExt({self.topic!r}, {self.body!r}, queue_id={self.queue_id}, reconsume_times={self.reconsume_times})"


@lru_cache(maxsize=1024)
def java_hash(text: str) -> int:
    """`String.hashCode` of Java."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code


def tags_code(tags: str | None) -> int:
    """What the consume queue holds for a tag; 0 for none."""
    return java_hash(tags) if tags else 0


def check_batch(messages: Sequence[Message]) -> None:
    """Refuse what `MessageBatch.generateFromList` refuses."""
    for message in messages:
        if message.delay_time_level > 0:
            raise UnsupportedOperationError("a batch holds no delayed messages")
        if message.topic.startswith(RETRY_PREFIX):
            raise UnsupportedOperationError("a batch is not sent to a retry topic")
        if message.topic != messages[0].topic:
            raise UnsupportedOperationError("the messages of a batch have one topic")
        if message.properties.get(WAIT) != messages[0].properties.get(WAIT):
            raise UnsupportedOperationError("the messages of a batch wait for the store alike")
