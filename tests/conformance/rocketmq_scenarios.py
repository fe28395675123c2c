"""What is played on a real RocketMQ and recorded, and then on the simulated one: inputs as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# A broker counts in seconds: short levels, of which the first three can be told apart.
LEVELS = "1s 2s 3s" + " 1s" * 15
SUCCESS, LATER = "CONSUME_SUCCESS", "RECONSUME_LATER"
SUSPEND, ORDERLY_SUCCESS = "SUSPEND_CURRENT_QUEUE_A_MOMENT", "SUCCESS"
THROW = "throw"


@dataclass(frozen=True)
class Answer:
    """What a listener answers: a status, None or THROW; and what it sets in its context."""

    status: str | None = SUCCESS
    level: int | None = None  # delayLevelWhenNextConsume
    ack_index: int | None = None


@dataclass(frozen=True)
class Send:
    """A message is sent to a topic's only queue; its properties are RocketMQ's own or the user's."""

    topic: str
    body: str
    properties: Mapping[str, object] = field(default_factory=dict)
    in_ms: int | None = None  # TIMER_DELIVER_MS is so far from the moment of sending.


@dataclass(frozen=True)
class Subscribe:
    """A group begins to consume; each call of its listener takes the next answer, and the last one for ever."""

    group: str
    topic: str
    answers: tuple[Answer, ...] = (Answer(),)
    max_reconsume_times: int = -1
    batch: int = 1
    model: str = "CLUSTERING"
    is_orderly: bool = False


@dataclass(frozen=True)
class Await:
    """Until a topic, consumed by anybody or not, holds so many messages of the scenario."""

    topic: str
    count: int


@dataclass(frozen=True)
class AwaitSeen:
    """Until a group's listener was given so many messages."""

    group: str
    count: int


@dataclass(frozen=True)
class AwaitAge:
    """Until it is so long ago that a message was sent."""

    body: str
    ms: int


@dataclass(frozen=True)
class AwaitWriting:
    """Until the broker has written down its offsets once since it started, which it first does after ten seconds."""


@dataclass(frozen=True)
class Stop:
    """The broker stops, in order or not at all in order."""

    kill: bool = False


@dataclass(frozen=True)
class Start:
    """The broker starts again, perhaps with another level string."""

    levels: str | None = None


Step = Send | Subscribe | Await | AwaitSeen | AwaitAge | AwaitWriting | Stop | Start


@dataclass(frozen=True)
class Scenario:
    """A play: it has the topics and groups named in it for itself."""

    name: str
    steps: tuple[Step, ...]
    levels: str = LEVELS
    is_for_4: bool = True
    flush_ms: int = 10_000  # How often the broker writes down its offsets (flushDelayOffsetInterval).

    @property
    def has_own_broker(self) -> bool:
        """Whether nobody else can play on the broker at that time."""
        return self.levels != LEVELS or any(isinstance(step, Stop | Start) for step in self.steps)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that messages are sent to."""
        return tuple(dict.fromkeys(step.topic for step in self.steps if isinstance(step, Send)))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that consume."""
        return tuple(step.group for step in self.steps if isinstance(step, Subscribe))


def _delayed(topic: str, body: str, level: object) -> Send:
    return Send(topic, body, {"DELAY": level})


LEVELS_OF_MESSAGES = Scenario(
    "levels",
    (
        Subscribe("levels-g", "levels"),
        Send("levels", "levels none", {"shop": "eu"}),
        *(_delayed("levels", f"levels {level}", level) for level in (0, -1, 1, 2, 3, 18, 19, 99, "x")),
        AwaitSeen("levels-g", 9),
    ),
)
FIFO = Scenario(
    "fifo",
    (
        Subscribe("fifo-g", "fifo"),
        *(_delayed("fifo", f"fifo {number}", 1 + number % 2) for number in range(20)),
        AwaitSeen("fifo-g", 20),
    ),
)
CHAIN = Scenario(
    "chain",
    (
        Subscribe("chain-g", "chain", (Answer(LATER),)),
        Subscribe("chain-calm", "chain"),
        Send("chain", "chain", {"shop": "eu"}),
        Await("%DLQ%chain-g", 1),
    ),
)
FEW_LEVELS = Scenario(
    "few levels",
    (
        Subscribe("few-g", "few", (Answer(LATER),), max_reconsume_times=3),
        _delayed("few", "few", 7),
        Await("%DLQ%few-g", 1),
    ),
    levels="1s 2s",
)
FAILURES = Scenario(
    "failures",
    (
        Subscribe("failures-g", "failures", (Answer(THROW), Answer(None), Answer(LATER), Answer())),
        _delayed("failures", "failures", 1),
        AwaitSeen("failures-g", 4),
    ),
)
CHOSEN_LEVEL = Scenario(
    "chosen level",
    (
        Subscribe(
            "chosen-g",
            "chosen",
            (Answer(LATER, level=2), Answer(LATER, level=99), Answer(LATER), Answer(LATER, level=-1)),
        ),
        Send("chosen", "chosen"),
        Await("%DLQ%chosen-g", 1),
    ),
)
DELAYED_TO_DLQ = Scenario(
    "delayed, then straight to the dead-letter queue",
    (
        Subscribe("straight-g", "straight", (Answer(LATER, level=-1),)),
        _delayed("straight", "straight", 1),
        Await("%DLQ%straight-g", 1),
    ),
)
ACK_INDEX = Scenario(
    "ack index",
    (
        *(Send("acks", f"acks {number}") for number in range(3)),
        Subscribe("acks-g", "acks", (Answer(SUCCESS, ack_index=0), Answer()), batch=3),
        AwaitSeen("acks-g", 5),
        *(Send("laters", f"laters {number}") for number in range(3)),
        Subscribe("laters-g", "laters", (Answer(LATER, ack_index=1), Answer()), batch=3),
        AwaitSeen("laters-g", 6),
        *(Send("minus", f"minus {number}") for number in range(2)),
        Subscribe("minus-g", "minus", (Answer(SUCCESS, ack_index=-1), Answer()), batch=2),
        AwaitSeen("minus-g", 4),
    ),
)
MAX_THREE = Scenario(
    "max 3",
    (
        Subscribe("three-g", "three", (Answer(LATER),), max_reconsume_times=3),
        Send("three", "three"),
        Await("%DLQ%three-g", 1),
    ),
)
MAX_NONE = Scenario(
    "max 0",
    (
        Subscribe("zero-g", "zero", (Answer(LATER),), max_reconsume_times=0),
        Send("zero", "zero"),
        Await("%DLQ%zero-g", 1),
    ),
)
BROADCASTING = Scenario(
    "broadcasting",
    (
        Subscribe("broad-g", "broad", (Answer(LATER), Answer()), model="BROADCASTING"),
        _delayed("broad", "broad 1", 1),
        AwaitSeen("broad-g", 1),
        # After four seconds level 3 would have brought the first one back.
        _delayed("broad", "broad 2", 3),
        _delayed("broad", "broad 3", 3),
        AwaitSeen("broad-g", 3),
    ),
)
ORDERLY = Scenario(
    "orderly",
    (
        Subscribe("orderly-g", "orderly", (Answer(SUSPEND),), max_reconsume_times=2, is_orderly=True),
        Send("orderly", "orderly"),
        Await("%DLQ%orderly-g", 1),
    ),
)
CRASH = Scenario(
    "crash",
    (
        Subscribe("crash-g", "crash"),
        _delayed("crash", "crash a", 1),
        AwaitSeen("crash-g", 1),
        # What was delivered until here is written down when the broker stops, and once more after its start; then no more.
        Stop(),
        Start(),
        AwaitWriting(),
        _delayed("crash", "crash b", 1),
        _delayed("crash", "crash c", 18),
        Await("crash", 2),
        Stop(kill=True),
        Start(),
        AwaitSeen("crash-g", 4),
    ),
    levels="1s" + " 1s" * 16 + " 8s",
    flush_ms=3_600_000,
)
ORDERLY_STOP = Scenario(
    "stop in order",
    (
        Subscribe("stop-g", "stop"),
        _delayed("stop", "stop a", 1),
        AwaitSeen("stop-g", 1),
        _delayed("stop", "stop b", 2),
        _delayed("stop", "stop c", 2),
        Stop(),
        AwaitAge("stop c", 20_000),
        Start(),
        AwaitSeen("stop-g", 3),
    ),
    levels="1s 20s",
)
SHORTENED = Scenario(
    "level shortened",
    (
        Subscribe("short-g", "short"),
        _delayed("short", "shortened", 3),
        _delayed("short", "lengthened", 2),
        Stop(),
        Start(levels="1s 600s 2s"),
        AwaitSeen("short-g", 2),
    ),
    levels="1s 30s 600s",
)
REMOVED = Scenario(
    "level removed",
    (
        Subscribe("gone-g", "gone"),
        _delayed("gone", "gone a", 3),
        Stop(),
        AwaitAge("gone a", 20_000),
        Start(levels="1s 4s"),
        _delayed("gone", "gone b", 2),
        AwaitSeen("gone-g", 1),
        Stop(),
        Start(levels="1s 4s 20s"),
        AwaitSeen("gone-g", 2),
    ),
    levels="1s 4s 20s",
)
TIMER = Scenario(
    "timer",
    (
        Subscribe("timer-g", "timer"),
        Send("timer", "timer seconds", {"TIMER_DELAY_SEC": 2}),
        Send("timer", "timer milliseconds", {"TIMER_DELAY_MS": 3500}),
        Send("timer", "timer due", {}, in_ms=5000),
        Send("timer", "timer past", {"TIMER_DELIVER_MS": 1}),
        Send("timer", "timer both", {"TIMER_DELAY_SEC": 6, "DELAY": 1}),
        Send("timer", "timer too far", {"TIMER_DELAY_SEC": 300_000}),
        Send("timer", "timer nonsense", {"TIMER_DELAY_SEC": "x"}),
        AwaitSeen("timer-g", 5),
    ),
    is_for_4=False,
)

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        *(LEVELS_OF_MESSAGES, FIFO, CHAIN, FEW_LEVELS, FAILURES, CHOSEN_LEVEL, DELAYED_TO_DLQ, ACK_INDEX, MAX_THREE),
        *(MAX_NONE, BROADCASTING, ORDERLY, TIMER, CRASH, ORDERLY_STOP, SHORTENED, REMOVED),
    )
}
