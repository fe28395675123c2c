"""The same delays on SimPy, in four ways.

`full` does for these messages what the model does: exchanges that find queues by key, with an alternate exchange where there are
none, an answer to the publisher, a limit, expiry at the head of a queue, x-death with all its fields, a consumer that is handed
no more than its prefetch, deliveries that are acknowledged once. It is written as SimPy's users write: queues are stores, whoever
waits is a process. What takes no time is a call, not an event: a confirm is the answer of `publish`, and the prefetch is a number
that is looked at. With an event for each confirm and a container for the prefetch it would be a third slower.

`each` is the same with a process for every message that waits, which is the common way to write a delay. `lean` is the same
without stores: one event wakes whoever waits at an empty deque; that is as fast as SimPy gets, and hardly how it is used. `bare`
leaves out all but the stores: messages wait in one and reach another.

None of them has what these messages don't need: topic patterns, headers, further keys, quorum queues, policies, requeueing,
circles, a log, several consumers. The model has all that, and has to find out for every message that it needs none of it.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

import simpy

Arrivals = Iterable[tuple[int, int]]  # When, and into which level.
Steps = Generator[Any, Any, None]
Death = tuple[str, str, str, str, int, int]  # Queue, reason, exchange, key, time, how many.
MAX_LENGTH = 5_000_000
PREFETCH = 200


@dataclass(slots=True)
class Letter:
    """A message on its way."""

    number: int
    exchange: str
    key: str
    body: bytes
    due: int = 0
    deaths: tuple[Death, ...] = ()


@dataclass(slots=True)
class Delivery:
    """A message with a consumer."""

    letter: Letter
    is_open: bool = True


def bare(arrivals: Arrivals, levels: list[int], key: str, body: bytes) -> int:
    """Messages wait, and are counted when they come out."""
    env = simpy.Environment()
    queues = [simpy.Store(env) for _ in levels]
    work = simpy.Store(env)
    taken = 0

    def publish() -> Steps:
        for number, (time, level) in enumerate(arrivals):
            if time > env.now:
                yield env.timeout(time - env.now)
            queues[level].put(Letter(number, "", key, body, int(env.now) + levels[level]))

    def wait(number: int) -> Steps:
        while True:
            letter = yield queues[number].get()
            if letter.due > env.now:
                yield env.timeout(letter.due - env.now)
            work.put(letter)

    def consume() -> Steps:
        nonlocal taken
        while True:
            yield work.get()
            taken += 1

    for process in (consume(), publish(), *map(wait, range(len(levels)))):
        env.process(process)
    env.run()
    return taken


class _Broker:
    def __init__(self, env: Any) -> None:
        self.env = env
        self.exchanges: dict[str, dict[str, tuple[_Queue, ...]]] = {}
        self.alternates: dict[str, str] = {}
        self.published = 0

    def way(self, exchange: str, key: str) -> tuple["_Queue", ...]:
        queues = self.exchanges[exchange].get(key)
        if queues is None:
            alternate = self.alternates.get(exchange)
            queues = () if alternate is None else self.way(alternate, key)
        return queues

    def publish(self, exchange: str, key: str, body: bytes) -> tuple["_Queue", ...]:
        """The queues that it went to: the confirm."""
        self.published += 1
        queues = self.way(exchange, key)
        for queue in queues:
            queue.put(Letter(self.published, exchange, key, body))
        return queues


class _Queue:
    """A queue as a store."""

    def __init__(self, broker: _Broker, name: str, ttl: int | None = None, exit: str | None = None) -> None:
        self.broker, self.env, self.name, self.ttl, self.exit = broker, broker.env, name, ttl, exit
        self.store = simpy.Store(broker.env)
        self.unacked = 0
        self.room: Any = None  # What a consumer with too many unanswered waits for.

    def put(self, letter: Letter) -> None:
        if self.ttl is not None:
            letter.due = self.env.now + self.ttl
        self.store.put(letter)
        if len(self.store.items) > MAX_LENGTH:
            self.bury(self.store.items.pop(0), "maxlen")

    def bury(self, letter: Letter, reason: str) -> None:
        if self.exit is None:
            return
        letter.deaths = ((self.name, reason, letter.exchange, letter.key, self.env.now, 1), *letter.deaths)
        letter.exchange = self.exit
        for queue in self.broker.way(self.exit, letter.key):
            queue.put(letter)

    def expire(self) -> Steps:
        env, store = self.env, self.store
        while True:
            letter = yield store.get()
            if letter.due > env.now:
                yield env.timeout(letter.due - env.now)
            self.bury(letter, "expired")

    def hand_out(self, on_delivery: Callable[[Delivery], None]) -> Steps:
        while True:
            if self.unacked >= PREFETCH:
                self.room = self.env.event()
                yield self.room
            letter = yield self.store.get()
            self.unacked += 1
            on_delivery(Delivery(letter))

    def ack(self, delivery: Delivery) -> None:
        if not delivery.is_open:
            raise ValueError("unknown delivery tag")
        delivery.is_open = False
        self.unacked -= 1
        if self.room is not None:
            self.room.succeed()
            self.room = None


class _EachWaits(_Queue):
    """A queue of as many processes as there are messages; one too many is turned away, as none can be taken out."""

    waiting = 0

    def put(self, letter: Letter) -> None:
        if self.ttl is None:
            super().put(letter)
        elif self.waiting >= MAX_LENGTH:
            self.bury(letter, "maxlen")
        else:
            self.waiting += 1
            self.env.process(self._wait(letter))

    def _wait(self, letter: Letter) -> Steps:
        yield self.env.timeout(self.ttl)
        self.waiting -= 1
        self.bury(letter, "expired")


class _Lean(_Queue):
    """A queue as a deque, with an event where somebody waits at its empty end."""

    def __init__(self, broker: _Broker, name: str, ttl: int | None = None, exit: str | None = None) -> None:
        super().__init__(broker, name, ttl, exit)
        self.items: deque[Letter] = deque()
        self.came: Any = None

    def put(self, letter: Letter) -> None:
        if self.ttl is not None:
            letter.due = self.env.now + self.ttl
        self.items.append(letter)
        if self.came is not None:
            self.came.succeed()
            self.came = None
        if len(self.items) > MAX_LENGTH:
            self.bury(self.items.popleft(), "maxlen")

    def expire(self) -> Steps:
        env, items = self.env, self.items
        while True:
            if not items:
                self.came = env.event()
                yield self.came
            due = items[0].due
            if due > env.now:
                yield env.timeout(due - env.now)
            self.bury(items.popleft(), "expired")

    def hand_out(self, on_delivery: Callable[[Delivery], None]) -> Steps:
        items = self.items
        while True:
            if self.unacked >= PREFETCH:
                self.room = self.env.event()
                yield self.room
            if not items:
                self.came = self.env.event()
                yield self.came
            self.unacked += 1
            on_delivery(Delivery(items.popleft()))


def _run(kind: type[_Queue], arrivals: Arrivals, levels: list[int], key: str, body: bytes) -> int:
    env = simpy.Environment()
    broker = _Broker(env)
    work = kind(broker, "work")
    queues = [kind(broker, f"delay.{level}.queue", level, "exit") for level in levels]
    entrances = [f"entrance.{level}" for level in levels]
    broker.exchanges = {"exit": {key: (work,)}}
    broker.exchanges |= {name: {key: (queue,)} for name, queue in zip(entrances, queues, strict=True)}
    taken = 0

    def publish() -> Steps:
        for time, level in arrivals:
            if time > env.now:
                yield env.timeout(time - env.now)
            broker.publish(entrances[level], key, body)

    def consume(delivery: Delivery) -> None:
        nonlocal taken
        taken += 1
        work.ack(delivery)

    expiring = [] if kind is _EachWaits else [queue.expire() for queue in queues]
    for process in (work.hand_out(consume), publish(), *expiring):
        env.process(process)
    env.run()
    return taken


Way = Callable[[Arrivals, list[int], str, bytes], int]
WAYS: dict[str, Way] = {
    "full": lambda *given: _run(_Queue, *given),
    "each": lambda *given: _run(_EachWaits, *given),
    "lean": lambda *given: _run(_Lean, *given),
    "bare": bare,
}
