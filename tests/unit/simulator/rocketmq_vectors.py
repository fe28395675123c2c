"""What RocketMQ does, as tables: from its documentation, its source and its own tests. Times are milliseconds.

Profiles: P1 4.9.0 to 4.9.1, P2 4.9.2, P3 4.9.3, P4 4.9.4 to 4.9.8, P5 5.0.0 to 5.3.2, P6 5.3.3 and later.
"""

from typing import NamedTuple

from delayctl.simulator.rocketmq import DEFAULT_MESSAGE_DELAY_LEVEL, PutMessageStatus, ResponseCode

# Level, queue of SCHEDULE_TOPIC_XXXX, delay.
DEFAULT_LEVELS = [
    (1, 0, 1_000),
    (2, 1, 5_000),
    (3, 2, 10_000),
    (4, 3, 30_000),
    (5, 4, 60_000),
    (6, 5, 120_000),
    (7, 6, 180_000),
    (8, 7, 240_000),
    (9, 8, 300_000),
    (10, 9, 360_000),
    (11, 10, 420_000),
    (12, 11, 480_000),
    (13, 12, 540_000),
    (14, 13, 600_000),
    (15, 14, 1_200_000),
    (16, 15, 1_800_000),
    (17, 16, 3_600_000),
    (18, 17, 7_200_000),
]
DEFAULT_TABLE = {level: delay for level, _, delay in DEFAULT_LEVELS}


class Parse(NamedTuple):
    """A level string and what is read of it; `error` is None where all of it is."""

    text: str
    table: dict[int, int]
    max_level: int
    error: str | None = None


PARSE = [
    Parse(DEFAULT_MESSAGE_DELAY_LEVEL, DEFAULT_TABLE, 18),
    Parse("5s 8s", {1: 5_000, 2: 8_000}, 2),
    Parse(" ", {}, 0),
    Parse("-5s", {1: -5_000}, 1),
    Parse("0s", {1: 0}, 1),
    Parse("9223372036854775807d", {1: -86_400_000}, 1),
    Parse("", {}, 0, "StringIndexOutOfBounds"),
    Parse(" 1s 5s", {}, 0, "StringIndexOutOfBounds"),
    Parse("1s,5s", {}, 1, "NumberFormat"),
    Parse("1ms", {}, 1, "NumberFormat"),
    Parse("1.5s", {}, 1, "NumberFormat"),
    Parse("10", {}, 1, "NullPointer"),
    Parse("1w", {}, 1, "NullPointer"),
    Parse("1s 5x 10s", {1: 1_000}, 2, "NullPointer"),
    # Not in the tables: what the rules say about the rest.
    Parse("1s 5s   ", {1: 1_000, 2: 5_000}, 2),
    Parse("1s  5s", {1: 1_000}, 1, "StringIndexOutOfBounds"),
    Parse("1s\t5s", {}, 1, "NumberFormat"),
    Parse("+5s 5s 1s 1d", {1: 5_000, 2: 5_000, 3: 1_000, 4: 86_400_000}, 4),
    Parse("\u0661\u0660s", {1: 10_000}, 1),  # Arabic digits.
    Parse("\U0001d7d9s", {}, 1, "NumberFormat"),  # A digit that takes two of Java's characters.
    Parse("1S", {}, 1, "NullPointer"),
    Parse("s", {}, 1, "NumberFormat"),
    Parse("-s", {}, 1, "NumberFormat"),
    Parse("9223372036854775808s", {}, 1, "NumberFormat"),
    Parse("-9223372036854775808s", {1: 0}, 1),
]
PARSE_FAILURE_EXIT_CODE = -3

# Level, store time, due time; default levels.
DELIVER_TIMESTAMP = [(3, 0, 10_000), (18, 1_000, 7_201_000), (0, 500, 1_500), (999, 0, 1_000)]


class Put(NamedTuple):
    """DELAY and transaction type of a message for queue 2 of topic T, and where it is stored with which properties."""

    delay: str | None
    transaction: str
    topic: str
    queue_id: int
    properties: dict[str, str]


_REAL = {"REAL_TOPIC": "T", "REAL_QID": "2"}
PUT = [
    Put(None, "NOT", "T", 2, {}),
    Put("0", "NOT", "T", 2, {"DELAY": "0"}),
    Put("1", "NOT", "SCHEDULE_TOPIC_XXXX", 0, {"DELAY": "1", **_REAL}),
    Put("19", "NOT", "SCHEDULE_TOPIC_XXXX", 17, {"DELAY": "18", **_REAL}),
    Put("1959", "NOT", "SCHEDULE_TOPIC_XXXX", 17, {"DELAY": "18", **_REAL}),
    Put("3", "COMMIT", "SCHEDULE_TOPIC_XXXX", 2, {"DELAY": "3", **_REAL}),
    Put("3", "ROLLBACK", "T", 2, {"DELAY": "3"}),
    Put("3", "PREPARED", "T", 2, {"DELAY": "3"}),
    Put("-1", "NOT", "T", 2, {"DELAY": "-1"}),
]
PUT_NO_NUMBER = ["abc", "", "1.5", "2147483648"]

TAGS_CODE = [(None, 0), ("", 0), ("TagA", 2_598_919), ("schedule_tag", 1_162_501_618)]

# Due, now, delay of the level, delivered now.
DUE_RULE = [
    (105_000, 100_000, 5_000, False),  # Just stored.
    (105_000, 104_999, 5_000, False),  # A millisecond early.
    (105_000, 99_999, 5_000, True),  # The clock is behind the store time.
    (3_600_000, 60_000, 10_000, True),  # The level was shortened, and more remains than it is long.
    (3_600_000, 3_595_000, 10_000, False),  # The level was shortened, and less remains.
    (10_000, 10_000, 3_600_000, True),  # The level was made longer.
]

# Stored at, delay of the level, delivered by P1 and P2, by P3 to P6; the broker starts at 0.
DELIVER_TIME = [(0, "8s", 8_000, 8_000), (50, "8s", 8_050, 8_100), (0, "1s", 1_000, 1_000)]

# Three messages due at 5 s, of which the second cannot be put once: what arrives when, by profile.
FIFO_WITH_FAILURE = {
    "P1": [(5_000, b"0"), (15_000, b"1"), (15_000, b"2")],
    "P2": [(5_000, b"0"), (15_000, b"1"), (15_000, b"2")],
    "P3": [(5_000, b"0"), (5_100, b"1"), (5_100, b"2")],
    "P4": [(5_000, b"0"), (5_100, b"1"), (5_100, b"2")],
    "P5": [(5_000, b"0"), (5_100, b"2")],
    "P6": [(5_000, b"0"), (5_100, b"1"), (5_100, b"2")],
}


class Row(NamedTuple):
    """One attempt: what the listener sees, and how long the message waits for the next."""

    reconsume_times: int
    time: int
    stored_in: str
    level: int | None
    delay: int


RETRY_DEFAULT = [
    Row(0, 0, "T", 3, 10_000),
    Row(1, 10_000, "%RETRY%G", 4, 30_000),
    Row(2, 40_000, "%RETRY%G", 5, 60_000),
    Row(3, 100_000, "%RETRY%G", 6, 120_000),
    Row(4, 220_000, "%RETRY%G", 7, 180_000),
    Row(5, 400_000, "%RETRY%G", 8, 240_000),
    Row(6, 640_000, "%RETRY%G", 9, 300_000),
    Row(7, 940_000, "%RETRY%G", 10, 360_000),
    Row(8, 1_300_000, "%RETRY%G", 11, 420_000),
    Row(9, 1_720_000, "%RETRY%G", 12, 480_000),
    Row(10, 2_200_000, "%RETRY%G", 13, 540_000),
    Row(11, 2_740_000, "%RETRY%G", 14, 600_000),
    Row(12, 3_340_000, "%RETRY%G", 15, 1_200_000),
    Row(13, 4_540_000, "%RETRY%G", 16, 1_800_000),
    Row(14, 6_340_000, "%RETRY%G", 17, 3_600_000),
    Row(15, 9_940_000, "%RETRY%G", 18, 7_200_000),
    Row(16, 17_140_000, "%RETRY%G", None, 0),
]
DEAD_AT = 17_140_000
DEAD_AT_P1 = 24_340_000


class Variant(NamedTuple):
    """Other settings: the attempts, the levels waited, and how the dead letter looks."""

    name: str
    levels: str
    max_reconsume_times: int
    next_level: int
    attempts: list[int]
    waited: list[int]
    dead_reconsume_times: int


RETRY_VARIANTS = [
    Variant("three retries", DEFAULT_MESSAGE_DELAY_LEVEL, 3, 0, [0, 10_000, 40_000, 100_000], [3, 4, 5], 4),
    Variant("no retry", DEFAULT_MESSAGE_DELAY_LEVEL, 0, 0, [0], [], 1),
    Variant("a negative maximum", DEFAULT_MESSAGE_DELAY_LEVEL, -2, 0, [0], [], 1),
    Variant("two levels", "1s 5s", -1, 0, list(range(0, 80_001, 5_000)), [2] * 16, 17),
    Variant("a level of its own", DEFAULT_MESSAGE_DELAY_LEVEL, 3, 2, [0, 5_000, 10_000, 15_000], [2, 2, 2], 4),
    Variant("straight to the dead letters", DEFAULT_MESSAGE_DELAY_LEVEL, -1, -1, [0], [], 1),
    Variant("four levels", "1s 5s 10s 30s", 3, 0, [0, 10_000, 40_000, 70_000], [3, 4, 4], 4),
    Variant(
        "more than sixteen",
        DEFAULT_MESSAGE_DELAY_LEVEL,
        18,
        0,
        [row.time for row in RETRY_DEFAULT] + [24_340_000, 31_540_000],
        [*range(3, 19), 18, 18],
        19,
    ),
]

# Maximum, the producer's own level, and how much later than elsewhere P1 buries.
P1_BURIES_LATE = [(-1, 0, 7_200_000), (3, 0, 60_000), (0, 4, 30_000)]


class SendBack(NamedTuple):
    """A send-back of a message with so many failures, and where its copy is stored; None for nowhere."""

    reconsume_times: int
    delay_level: int
    header_max: int | None
    group_max: int
    retry_queue_nums: int
    levels: str
    stored: tuple[str, int, str, str | None, int] | None  # Topic, queue, DELAY, REAL_TOPIC, reconsumeTimes.


_SCHEDULE = "SCHEDULE_TOPIC_XXXX"
SEND_BACK = [
    SendBack(0, 0, 16, 16, 1, DEFAULT_MESSAGE_DELAY_LEVEL, (_SCHEDULE, 2, "3", "%RETRY%G", 1)),
    SendBack(15, 0, 16, 16, 1, DEFAULT_MESSAGE_DELAY_LEVEL, (_SCHEDULE, 17, "18", "%RETRY%G", 16)),
    SendBack(0, -1, 16, 16, 1, DEFAULT_MESSAGE_DELAY_LEVEL, ("%DLQ%G", 0, "0", None, 1)),
    SendBack(0, 0, 0, 16, 1, DEFAULT_MESSAGE_DELAY_LEVEL, ("%DLQ%G", 0, "0", None, 1)),
    SendBack(0, 0, -2, 16, 1, DEFAULT_MESSAGE_DELAY_LEVEL, ("%DLQ%G", 0, "0", None, 1)),
    # The group's own maximum is dead: every Java client sends one.
    SendBack(3, 0, 16, 3, 1, DEFAULT_MESSAGE_DELAY_LEVEL, (_SCHEDULE, 5, "6", "%RETRY%G", 4)),
    SendBack(3, 0, None, 3, 1, DEFAULT_MESSAGE_DELAY_LEVEL, ("%DLQ%G", 0, "0", None, 4)),
    SendBack(0, 0, 16, 16, 0, DEFAULT_MESSAGE_DELAY_LEVEL, None),
    SendBack(0, 0, 16, 16, 1, "1s 5s", (_SCHEDULE, 1, "2", "%RETRY%G", 1)),
    # RocketMQ's own test: maximum 3, level 4.
    SendBack(0, 4, 3, 16, 1, DEFAULT_MESSAGE_DELAY_LEVEL, (_SCHEDULE, 3, "4", "%RETRY%G", 1)),
]


class Fallback(NamedTuple):
    """A message sent to the retry topic like any other: where 4.9 and 5.x store it (topic, DELAY), and its counter."""

    reconsume_times: int
    stored_4: tuple[str, str]
    stored_5: tuple[str, str]
    counter: int


FALLBACK = [
    Fallback(0, ("%RETRY%G", "3"), ("%RETRY%G", "3"), 1),
    Fallback(14, ("%RETRY%G", "17"), ("%RETRY%G", "17"), 15),
    Fallback(15, ("%DLQ%G", "18"), ("%RETRY%G", "18"), 16),
    Fallback(16, ("%DLQ%G", "18"), ("%DLQ%G", "-1"), 17),
]

# Answer, ack index (None: not set), batch size, which messages are sent back.
CLIENT_RESULT: list[tuple[str | None, int | None, int, list[int]]] = [
    ("CONSUME_SUCCESS", None, 4, []),
    ("CONSUME_SUCCESS", 1, 4, [2, 3]),
    ("CONSUME_SUCCESS", 3, 4, []),
    ("CONSUME_SUCCESS", 0, 2, [1]),
    ("RECONSUME_LATER", 2, 4, [0, 1, 2, 3]),
    (None, None, 2, [0, 1]),
]

# What the context says, what the consumer says, for how long the queue pauses.
SUSPEND = [(-1, 1_000, 1_000), (5, 1_000, 10), (40_000, 1_000, 30_000), (200, 1_000, 200)]
ORDERLY_NO_MAXIMUM = 2_147_483_647

CUSTOMIZED_POLICY = [(0, 10_000), (10, 540_000), (-1, 10_000), (100, 7_200_000)]
EXPONENTIAL_POLICY = [(0, 5_000), (10, 5_120_000), (-1, 5_000), (100, 7_200_000), (11, 7_200_000)]
MAX_ATTEMPTS = [(3, 4), (10, 11), (16, 17)]

# Time asked for, precision, TIMER_OUT_MS, earliest delivery.
TIMER = [
    (10_500, 1_000, 10_000, 11_000),
    (10_000, 1_000, 9_000, 10_000),
    (10_999, 1_000, 10_000, 11_000),
    (10_550, 100, 10_500, 10_600),
]
TIMER_LONGEST_SEC = 259_200
TIMER_TOO_LONG_SEC = 259_220

# Wait asked for, level that the proxy takes.
PROXY_LEVEL = [(-5, 1), (0, 1), (1_000, 2), (10_000, 4), (59_999, 5), (7_199_999, 18), (99_999_999, 18)]

POP_TABLE = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
# Level, failures, seconds.
POP_INVISIBLE = [(0, 0, 10), (0, 1, 30), (0, 2, 60), (0, 15, 7_200), (0, 40, 7_200), (2, 9, 60)]
POP_CK_REWRITE = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
POP_RETRY_TOPIC = ("test-topic", "test-group", "%RETRY%test-group_test-topic", "%RETRY%test-group+test-topic")

# Stored, smallest and largest offset of the queue, corrected.
OFFSET_CORRECTION = [(77, 0, 74, 74), (5, 10, 74, 10), (2**62, 0, 0, 0), (-(2**62), 0, 0, 0), (3, 0, 0, 0)]


class ClockJump(NamedTuple):
    """A level of 5 s, stored at 2 s; at 3.05 s the clock goes back. Delivery in time that passes, and by the clock."""

    back: int
    polling: tuple[int, int]
    countdown: tuple[int, int]


CLOCK_JUMPS = [ClockJump(2_000, (3_100, 1_100), (9_000, 7_000)), ClockJump(500, (7_500, 7_000), (7_500, 7_000))]

# Pending, resends of the head, accepted.
ASYNC_FLOW = [(2_000, 0, True), (2_001, 0, False), (1, 3, True), (1, 4, False)]

STATUS_TO_RESPONSE = [
    (PutMessageStatus.PUT_OK, ResponseCode.SUCCESS),
    (PutMessageStatus.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_DISK_TIMEOUT),
    (PutMessageStatus.FLUSH_SLAVE_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT),
    (PutMessageStatus.SLAVE_NOT_AVAILABLE, ResponseCode.SLAVE_NOT_AVAILABLE),
    (PutMessageStatus.MESSAGE_ILLEGAL, ResponseCode.MESSAGE_ILLEGAL),
    (PutMessageStatus.PROPERTIES_SIZE_EXCEEDED, ResponseCode.MESSAGE_ILLEGAL),
    (PutMessageStatus.CREATE_MAPPED_FILE_FAILED, ResponseCode.SYSTEM_ERROR),
    (PutMessageStatus.OS_PAGE_CACHE_BUSY, ResponseCode.SYSTEM_ERROR),
    (PutMessageStatus.SERVICE_NOT_AVAILABLE, ResponseCode.SERVICE_NOT_AVAILABLE),
    (PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL, ResponseCode.MESSAGE_ILLEGAL),
    (PutMessageStatus.WHEEL_TIMER_NOT_ENABLE, ResponseCode.SYSTEM_ERROR),
]


class Expectation(NamedTuple):
    """What RocketMQ's own integration tests expect of ten messages that fail while they have failed less than so often."""

    messages: int
    failures: int
    retries: int
    successes: int


RETRY_COUNT = Expectation(messages=10, failures=2, retries=20, successes=10)
# A group's maximum of one retry, for a client that sends none of its own: so many deliveries, then the dead letter.
GROUP_MAXIMUM_OF_ONE = 2
# Level, and the shortest and longest time from birth to arrival of a hundred messages.
ARRIVAL_WINDOWS = [(1, 1_000, 5_000), (2, 5_000, 10_000), (3, 10_000, 30_000), (4, 30_000, 60_000)]
# Level 2 within a second of five.
CLOSE_ARRIVAL = (2, 5_000, 1_000)
