"""The same delays on SimPy, as its users write: queues are stores, whoever waits is a process.

Two ways. `full` does what the model does for these messages: a publisher that awaits each confirm, exchanges with bindings, a
limit, expiry at the head of a queue, x-death, a consumer with a prefetch that acknowledges. `bare` leaves out all that can be left
out: messages wait in a store and reach another one. Both have one process per level, which was faster than one per message.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import simpy

Arrivals = Iterable[tuple[int, int]]  # When, and into which level.
Steps = Generator[Any, Any, None]
MAX_LENGTH = 5_000_000
PREFETCH = 200


@dataclass(slots=True)
class Letter:
    """A message on its way."""

    key: str
    body: bytes
    due: int = 0
    headers: dict[str, object] = field(default_factory=dict)


def bare(arrivals: Arrivals, levels: list[int], key: str, body: bytes) -> int:
    """Messages wait, and are counted when they come out."""
    env = simpy.Environment()
    queues = [simpy.Store(env) for _ in levels]
    work = simpy.Store(env)
    taken = 0

    def publish() -> Steps:
        for time, level in arrivals:
            if time > env.now:
                yield env.timeout(time - env.now)
            queues[level].put(Letter(key, body, int(env.now) + levels[level]))

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


def full(arrivals: Arrivals, levels: list[int], key: str, body: bytes) -> int:
    """The same with all that the broker does about them."""
    env = simpy.Environment()
    work = _Queue(env, "work")
    exit = _Exchange({key: [work]})
    queues = [_Queue(env, f"delay.{level}.queue", ttl=level, exit=exit) for level in levels]
    entrances = [_Exchange({key: [queue]}) for queue in queues]
    credit = simpy.Container(env, capacity=PREFETCH, init=PREFETCH)
    taken = 0

    def publish() -> Steps:
        for time, level in arrivals:
            if time > env.now:
                yield env.timeout(time - env.now)
            confirm = env.event()
            entrances[level].route(Letter(key, body))
            confirm.succeed()
            yield confirm

    def consume() -> Steps:
        nonlocal taken
        while True:
            yield credit.get(1)
            yield work.store.get()
            taken += 1
            yield credit.put(1)

    for process in (consume(), publish(), *(queue.expire() for queue in queues)):
        env.process(process)
    env.run()
    return taken


@dataclass
class _Exchange:
    bindings: Mapping[str, list["_Queue"]]

    def route(self, letter: Letter) -> None:
        for queue in self.bindings.get(letter.key, ()):
            queue.put(letter)


class _Queue:
    def __init__(self, env: Any, name: str, ttl: int | None = None, exit: _Exchange | None = None) -> None:
        self.env, self.name, self.ttl, self.exit = env, name, ttl, exit
        self.store = simpy.Store(env)

    def put(self, letter: Letter) -> None:
        if self.ttl is not None:
            letter.due = int(self.env.now) + self.ttl
        self.store.put(letter)
        if len(self.store.items) > MAX_LENGTH:
            self.bury(self.store.items.pop(0), "maxlen")

    def bury(self, letter: Letter, reason: str) -> None:
        deaths = letter.headers.setdefault("x-death", deque())
        assert isinstance(deaths, deque)
        deaths.appendleft({"queue": self.name, "reason": reason, "count": 1, "time": self.env.now})
        if self.exit is not None:
            self.exit.route(letter)

    def expire(self) -> Steps:
        while True:
            letter = yield self.store.get()
            if letter.due > self.env.now:
                yield self.env.timeout(letter.due - self.env.now)
            self.bury(letter, "expired")


WAYS: dict[str, Callable[[Arrivals, list[int], str, bytes], int]] = {"full": full, "bare": bare}
