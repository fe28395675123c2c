"""Four publishers that never rest, levels that change under them, and when each message may leave at the earliest."""

import itertools
import logging
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.deaths import latest_death, told_by
from delayctl.consumers.message import Message
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.faults.account import EARLY_MS, Account
from tests.support.clocks import ClockWatch, now_ms
from tests.support.rabbit import Rabbit

LEVELS = ("apples", "berries", "cherries", "dates")
PUBLISHERS = 4
_PACE_S = 0.004


@dataclass(frozen=True)
class Setting:
    """How one level is set in a file."""

    type: str = "classic"
    ttl_ms: int = 1_000
    max_length: int = 1_000_000
    shards: int = 1

    def changed(self, way: str, chance: random.Random) -> "Setting":
        """The same level with another type, another delay, or more or less room, which is never too little."""
        if way == "type":
            return replace(self, type="quorum" if self.type == "classic" else "classic")
        if way == "ttl":
            return replace(self, ttl_ms=chance.choice([ms for ms in (700, 1_000, 1_500, 2_000) if ms != self.ttl_ms]))
        return replace(self, max_length=self.max_length + chance.choice([-1, 1]) * chance.randint(1, 400_000))


@dataclass(frozen=True)
class Orchard:
    """A file: four levels with names of their own."""

    settings: tuple[Setting, ...] = (Setting(), Setting("quorum"), Setting(), Setting("quorum"))
    home: str = "arguments"

    def changed(self, chance: random.Random) -> "Orchard":
        """Every level another one, each in a way of its own."""
        ways = chance.sample(["type", "ttl", "max_length", chance.choice(["type", "ttl"])], len(LEVELS))
        changed = (setting.changed(way, chance) for setting, way in zip(self.settings, ways, strict=True))
        return replace(self, settings=tuple(changed))

    def spread(self, *shards: int) -> "Orchard":
        """The same levels over so many queues each."""
        settings = (replace(setting, shards=n) for setting, n in zip(self.settings, shards, strict=True))
        return replace(self, settings=tuple(settings))

    def text(self) -> str:
        """The file."""
        levels = "".join(
            f"    {name}: {{ttl: {s.ttl_ms}ms, type: {s.type}, max_length: {s.max_length}, shards: {s.shards}}}\n"
            for name, s in zip(LEVELS, self.settings, strict=True)
        )
        routes = "".join(f"  - {{key: via.{name}, delay: {name}, to: target}}\n" for name in LEVELS)
        return f"version: 1\ndelay:\n  settings: {self.home}\n  levels:\n{levels}queues:\n  target: {{}}\nroutes:\n{routes}"


@dataclass
class _Sent:
    level: str
    sent_ms: int
    confirmed_ms: int | None = None


@dataclass(frozen=True)
class _Arrived:
    message_id: str
    at_ms: int
    story: str

    @classmethod
    def now(cls, message: Message) -> "_Arrived":
        """What tells one copy from another: where it waited, and whether the broker gave it out before."""
        again = ", given out again" if message.redelivered else ""
        return cls(str(message.message_id), now_ms(), f"{told_by(latest_death(message.headers))}{again}")


class Troubles(logging.Handler):
    """Hears what publishers and consumers say of lost connections: what was on its way may come twice by that."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.heard.append(f"{record.name}: {record.getMessage()}")

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Until the block ends."""
        logger = logging.getLogger("delayctl")
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)


@dataclass
class Load:
    """What was sent when, and from when to when which delays were in force.

    Where the machine's clock is set forward meanwhile, brokers let go what waits: that is not early.
    """

    book: Account
    sent: dict[str, _Sent] = field(default_factory=dict)
    arrived: list["_Arrived"] = field(default_factory=list)
    clock: ClockWatch = field(default_factory=ClockWatch)
    troubles: Troubles = field(default_factory=Troubles)
    phases: list[tuple[int, tuple[Orchard, ...]]] = field(default_factory=list)  # Since when, any of these holds.

    def holds(self, *orchards: Orchard) -> None:
        """Say that from now on every level is as in one of these."""
        self.phases.append((now_ms(), orchards))

    def send(self, publisher: DelayPublisher, level: str, message_id: str) -> Delivery:
        """Publish one message, and note when."""
        note = self.sent[message_id] = _Sent(level, now_ms())
        delivery = publisher.publish(b"x" * 200, key=f"via.{level}", level=level, message_id=message_id)
        delivery.add_done_callback(lambda _: setattr(note, "confirmed_ms", now_ms()))
        return delivery

    def receive(self, message: Message) -> None:
        """Note that a message came."""
        self.arrived.append(_Arrived.now(message))
        self.book.delivered(str(message.message_id))

    def judge(self) -> None:
        """Enter all that came before its time into the account, and whether the clock was set meanwhile."""
        if self.clock.steps:
            self.book.title += f" (the clock was set by {', '.join(map(str, self.clock.steps))} ms)"
        if self.troubles.heard:
            self.book.title += f" ({'; '.join(dict.fromkeys(self.troubles.heard))})"
        for came in self.arrived:
            note = self.sent[came.message_id]
            waited_ms = came.at_ms - note.sent_ms + self.clock.gained(note.sent_ms, came.at_ms)
            if (missing := self._shortest_ms(note) - waited_ms) > EARLY_MS:
                self.book.early.append(missing)

    def copies(self) -> list[str]:
        """The story of every message that came more than once: where each copy waited, and how long after sending it came."""
        stories: dict[str, list[str]] = {}
        for came in self.arrived:
            if self.book.received[came.message_id] > 1:
                after = f"after {came.at_ms - self.sent[came.message_id].sent_ms} ms"
                stories.setdefault(came.message_id, []).append(f"{after}, {came.story}")
        return [f"{message_id}: {'; '.join(copies)}" for message_id, copies in stories.items()]

    def _shortest_ms(self, note: _Sent) -> int:
        """The shortest delay that was in force at any time between sending and confirming."""
        until_ms = note.confirmed_ms or now_ms()
        ends = [since for since, _ in self.phases[1:]] + [until_ms + 1]
        there = [
            o for (since, o), end in zip(self.phases, ends, strict=True) if since <= until_ms and end > note.sent_ms
        ]
        index = LEVELS.index(note.level)
        return min(orchard.settings[index].ttl_ms for orchards in there for orchard in orchards)


@contextmanager
def under_load(rabbit: Rabbit, topology: TopologyFile, load: Load) -> Iterator[None]:
    """Four publishers and a consumer, each with a connection of its own, until the block ends and all has arrived."""
    consumer = DelayConsumer(rabbit.url, topology=topology.path)
    consumer.handle("target", load.receive)
    listening = threading.Thread(target=consumer.run, daemon=True)
    listening.start()
    with load.clock, load.troubles.listening():
        with ExitStack() as stack:
            for number in range(PUBLISHERS):
                stack.enter_context(_publishing(rabbit, topology, load, number))
            yield
        wanted = set(load.book.confirmed)
        until(lambda: load.book.has(wanted), 60, what="the arrival of all that was confirmed")
        consumer.stop()
        listening.join(30)
    load.judge()


@contextmanager
def _publishing(rabbit: Rabbit, topology: TopologyFile, load: Load, number: int) -> Iterator[None]:
    is_over = threading.Event()

    def publish(publisher: DelayPublisher) -> None:
        for turn, level in zip(itertools.count(), itertools.cycle(LEVELS), strict=False):
            if is_over.wait(_PACE_S):
                return
            load.book.watch(f"{number}-{turn}", partial(load.send, publisher, level))

    with DelayPublisher(rabbit.url, topology=topology.path) as publisher:
        thread = threading.Thread(target=publish, args=(publisher,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(60)
        publisher.flush(60)
