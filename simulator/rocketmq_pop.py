"""RocketMQ 5.x: the tables and names of POP consumption."""

from delayctl.simulator.rocketmq_message import RETRY_PREFIX

POP_INVISIBLE_TIME = 60_000
INVISIBLE_SECONDS = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
CK_REWRITE_SECONDS = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
GIVE_UP_AFTER = 4 * 3_600_000


def next_invisible_seconds(reconsume_times: int, *, delay_level: int = 0) -> int:
    """How long a failed message stays invisible: by the level that the listener asked for, else by its failures."""
    return INVISIBLE_SECONDS[min(delay_level or reconsume_times, len(INVISIBLE_SECONDS) - 1)]


def is_given_up(reconsume_times: int, max_reconsume_times: int, age: int) -> bool:
    """Whether a failed message is acknowledged and so dropped: it has had its attempts and is more than four hours old."""
    return reconsume_times >= max_reconsume_times and age > GIVE_UP_AFTER


def ck_rewrite_seconds(times: int) -> int:
    """How long a checkpoint waits when it is written again, having been so already so many times."""
    return CK_REWRITE_SECONDS[min(times, len(CK_REWRITE_SECONDS) - 1)]


def pop_retry_topic(topic: str, group: str, *, is_v2: bool = False) -> str:
    """The retry topic of one topic of a group."""
    return f"{RETRY_PREFIX}{group}{'+' if is_v2 else '_'}{topic}"


def parse_normal_topic(name: str, group: str) -> str:
    """The topic that a POP retry topic of a group belongs to; any other topic is its own."""
    for separator in "+_":
        prefix = f"{RETRY_PREFIX}{group}{separator}"
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name
