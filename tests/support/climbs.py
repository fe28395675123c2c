"""Messages that wait any delay: how long each is to wait, and what came of it."""

import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

COUNT = int(os.environ.get("DELAYCTL_LADDER_MESSAGES", "100"))
UNIT_MS = int(os.environ.get("DELAYCTL_LADDER_UNIT_MS", "1"))
RATE = int(os.environ.get("DELAYCTL_LADDER_RATE", "250"))  # Messages a second; each is handed on at every step.
MOST_UNITS = 2**12
# Brokers count in whole milliseconds: what comes at the end of one waits so much less, which nobody else's clock can tell.
GRAIN_MS = 1
LADDER = f"{{unit: {UNIT_MS}ms, steps: 13}}"


@dataclass(frozen=True, slots=True)
class Climb:
    """One message: its id, its own key and how long it is to wait."""

    message_id: str
    key: str
    units: int

    @property
    def wait_ms(self) -> int:
        """How long it is to wait."""
        return self.units * UNIT_MS


def climbs(count: int = COUNT, *, seed: int = 7) -> tuple[Climb, ...]:
    """So many messages with random delays, the shortest and the longest among them; always the same for a seed."""
    draw = random.Random(seed)
    units = [1, MOST_UNITS, *(draw.randint(1, MOST_UNITS) for _ in range(count - 2))]
    return tuple(Climb(f"m{number}", f"order.{number}", each) for number, each in enumerate(units))


def paced(messages: Iterable[Climb]) -> Iterator[Climb]:
    """The messages, so many a second: all at once would measure how fast a broker is, not how exact."""
    begin = time.monotonic()
    for number, each in enumerate(messages):
        time.sleep(max(0.0, begin + number / RATE - time.monotonic()))
        yield each


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message as it came out, and when."""

    message_id: str
    key: str
    at_ms: float


def account(title: str, sent: Mapping[str, float], arrived: Sequence[Arrived], due: Mapping[str, float]) -> str:
    """What became of them, in a line: nothing may be lost, twice or early."""
    late = sorted(each.at_ms - due[each.message_id] for each in arrived)
    ids = [each.message_id for each in arrived]
    return (
        f"{title}: {len(sent)} sent, {len(ids)} arrived, {len(sent.keys() - set(ids))} lost,"
        f" {len(ids) - len(set(ids))} twice, {sum(map(is_early, late))} early;"
        f" late by p50 {percentile(late, 50):.1f} ms, p99 {percentile(late, 99):.1f} ms, most {late[-1]:.1f} ms"
    )


def is_early(late_ms: float) -> bool:
    """Say whether a message that came so late came before its time, as far as brokers can tell time."""
    return late_ms <= -GRAIN_MS


def percentile(ordered: Sequence[float], share: int) -> float:
    """The smallest value that so many percent are not above."""
    return ordered[-(-len(ordered) * share // 100) - 1]
