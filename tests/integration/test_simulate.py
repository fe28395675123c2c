"""What simulate foretells is what a broker does: the same arrivals on both, a few seconds instead of hours.

The times at which messages were really published are given to simulate, so that a machine that publishes unevenly is
not taken for a model that errs.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pika
import pytest
from delayctl.publishers.errors import Nacked
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import delayctl
from tests.support.rabbit import Rabbit

TOLERANCE = 0.05
TICK_S = 0.01
STALL_S = 0.15
MOST_RUNS = 5
WAIT, WORK = "delay.2s.queue", "work.queue"
Rate = Callable[[float], float]  # How many come per second, so many seconds after the beginning.


@dataclass
class Run:
    """What was really seen; times are seconds from the beginning."""

    started: float = field(default_factory=time.monotonic)
    published: list[float] = field(default_factory=list)
    refused: int = 0
    taken: list[tuple[float, float, str]] = field(default_factory=list)  # When, published when, why it left the wait.
    lengths: list[tuple[float, int, int]] = field(default_factory=list)  # When, in the wait, in the work queue.

    @property
    def now(self) -> float:
        """Seconds from the beginning."""
        return time.monotonic() - self.started

    def take(self, properties: pika.BasicProperties, body: bytes) -> None:
        """Take down a message that came out."""
        headers: Any = properties.headers
        self.taken.append((self.now, float(body), headers["x-death"][0]["reason"]))

    @property
    def longest_gap(self) -> float:
        """How long nobody came to look at the queues."""
        return max(later[0] - earlier[0] for earlier, later in pairwise(self.lengths))

    @property
    def early(self) -> list[float]:
        """By how much messages came before their time that had to make room."""
        return [2 - (when - published) for when, published, why in self.taken if why == "maxlen"]


def topology_text(max_length: int, overflow: str, kind: str) -> str:
    """A wait of two seconds, and a queue to work on."""
    queue = f"{{type: {kind}, max_length: {max_length}, overflow: {overflow}}}"
    routes = "[{key: order, delay: 2s, to: work.queue}]"
    return f"version: 1\ndelay: {{levels: [2s], queue: {queue}}}\nroutes: {routes}\n"


def publish(run: Run, rabbit: Rabbit, file: str, rate: Rate, length: float) -> None:
    """Publish at a rate that changes; when the machine stalls, what was missed follows at once."""
    wanted = 0.0
    with DelayPublisher(rabbit.url, topology=file) as publisher:
        deliveries = []
        before = run.now
        for tick in count():
            _pause_until(run, tick * TICK_S)
            now = min(run.now, length)
            wanted += rate(now) * (now - before)
            before = now
            while len(run.published) < int(wanted):
                run.published.append(run.now)
                deliveries.append(publisher.publish(f"{run.published[-1]}", key="order", delay="2s"))
            if now >= length:
                break
        run.refused = sum(isinstance(delivery.exception(30), Nacked) for delivery in deliveries)


def _pause_until(run: Run, moment: float) -> None:
    """Keep a pace: this is the workload itself, and waits for nothing else."""
    threading.Event().wait(max(0.0, moment - run.now))


def consume(run: Run, rabbit: Rabbit, is_over: threading.Event) -> None:
    """Take messages as fast as they come."""
    with rabbit.channel() as channel:
        for method, properties, body in channel.consume(WORK, auto_ack=True, inactivity_timeout=TICK_S):
            if method is not None and properties is not None and body is not None:
                run.take(properties, body)
            elif is_over.is_set():
                return


def consume_at(per_second: float, run: Run, rabbit: Rabbit, is_over: threading.Event) -> None:
    """Take messages at a rate; who has nothing to do saves nothing up."""
    with rabbit.channel() as channel:
        credit, before = 0.0, run.now
        for tick in count():
            _pause_until(run, tick * TICK_S)
            now = run.now
            credit, before = credit + per_second * (now - before), now
            while credit >= 1:
                method, properties, body = channel.basic_get(WORK, auto_ack=True)
                if method is None or properties is None or body is None:
                    credit = 0
                    break
                credit -= 1
                run.take(properties, body)
            if is_over.is_set():
                return


def watch(run: Run, rabbit: Rabbit, is_over: threading.Event) -> None:
    """Ask both queues for their length, again and again."""
    with rabbit.channel() as channel:
        while not is_over.is_set():
            before = run.now
            waiting, work = (channel.queue_declare(name, passive=True).method.message_count for name in (WAIT, WORK))
            run.lengths.append(((before + run.now) / 2, waiting, work))
            _pause_until(run, before + 2 * TICK_S)


@contextmanager
def in_threads(*tasks: Callable[[], None]) -> Iterator[None]:
    """Run tasks beside the block, and raise what they raise."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(task) for task in tasks]
        yield
    for future in futures:
        future.result()


def really(rabbit: Rabbit, file: str, rate: Rate, length: float, per_second: float | None = None) -> Run:
    """Run a workload on the broker until all is through; again where the machine stood still meanwhile, as it does."""
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    for _ in range(MOST_RUNS):
        run = _run(rabbit, file, rate, length, per_second)
        if run.longest_gap < STALL_S:
            break
    return run


def _run(rabbit: Rabbit, file: str, rate: Rate, length: float, per_second: float | None) -> Run:
    run, is_over = Run(), threading.Event()
    take = consume if per_second is None else partial(consume_at, per_second)
    with in_threads(lambda: take(run, rabbit, is_over), lambda: watch(run, rabbit, is_over)):
        try:
            publish(run, rabbit, file, rate, length)
            until(lambda: len(run.taken) + run.refused == len(run.published), 40, what="the last message")
            until(lambda: run.lengths[-1][1:] == (0, 0), 10, what="empty queues")
        finally:
            is_over.set()
    return run


def foretold(run: Run, file: str, folder: Path, *options: str) -> Any:
    """What simulate says of the arrivals that were."""
    arrivals = folder / "arrivals.csv"
    arrivals.write_text("time\n" + "\n".join(f"{moment:.3f}" for moment in run.published) + "\n")
    ran = delayctl("simulate", file, "--arrivals", str(arrivals), "--step", "10ms", "--output", "json", *options)
    assert (ran.code, ran.err) == (0, "")
    return json.loads(ran.out)


def length_at(found: Any, moment: float) -> int:
    """How many wait at a time, as foretold."""
    backlog = found["backlog"]
    number = int(moment * 1000) // backlog["interval_ms"]
    return int(backlog["most"][number]) if number < len(backlog["most"]) else 0


def assert_backlogs_agree(run: Run, found: Any, column: int) -> None:
    """The most that waits is the same within the tolerance, and so is what waits over time, in the mean."""
    seen = [(row[0], row[column]) for row in run.lengths]
    peak = max(length for _, length in seen)
    gaps = [abs(length - length_at(found, moment)) for moment, length in seen]
    assert found["most_waiting"]["count"] == pytest.approx(peak, rel=TOLERANCE)
    assert sum(gaps) / len(gaps) <= TOLERANCE * peak


def assert_drained_in_time(run: Run, answer: Any) -> None:
    """The last message is taken when simulate says so."""
    foretold_s = max(queue["empty_at_ms"] or 0 for queue in (*answer["levels"], *answer["queues"])) / 1000
    assert foretold_s == pytest.approx(max(when for when, _, _ in run.taken), rel=TOLERANCE)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_steady_stream_with_room(rabbit: Rabbit, topology: TopologyFile, tmp_path: Path, kind: str) -> None:
    """300/s wait two seconds: 600 at a time, and none leaves early."""
    file = topology.write(topology_text(1000, "drop-head", kind))

    run = really(rabbit, file, lambda _: 300, 5)
    answer = foretold(run, file, tmp_path)

    assert answer["fits"]
    assert (run.early, run.refused) == ([], 0)
    assert_backlogs_agree(run, answer["levels"][0], 1)
    assert_drained_in_time(run, answer)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_an_overflow_that_hastens(rabbit: Rabbit, topology: TopologyFile, tmp_path: Path, kind: str) -> None:
    """300/s into room for 300: as many leave early as foretold, and by as much."""
    file = topology.write(topology_text(300, "drop-head", kind))

    run = really(rabbit, file, lambda _: 300, 5)
    answer = foretold(run, file, tmp_path)

    (level,) = answer["levels"]
    assert level["early"]["share"] == pytest.approx(len(run.early) / len(run.published), abs=TOLERANCE)
    assert level["early"]["median_ms"] / 1000 == pytest.approx(median(run.early), abs=TOLERANCE * 2)
    assert_backlogs_agree(run, level, 1)
    assert_drained_in_time(run, answer)


def test_a_burst_and_a_slow_consumer(rabbit: Rabbit, topology: TopologyFile, tmp_path: Path) -> None:
    """A second of 800/s comes out of the wait as it went in, and 150/s work it off."""
    file = topology.write(topology_text(5000, "drop-head", "classic"))

    run = really(rabbit, file, lambda now: 800 if 1 <= now < 2 else 100, 4, per_second=150)
    answer = foretold(run, file, tmp_path, "--consume", "150/s")

    (level,), (queue,) = answer["levels"], answer["queues"]
    assert run.early == []
    assert_backlogs_agree(run, level, 1)
    assert_backlogs_agree(run, queue, 2)
    assert_drained_in_time(run, answer)
    late = sorted(when - published - 2 for when, published, _ in run.taken)
    assert queue["late"]["median_ms"] / 1000 == pytest.approx(median(late), abs=TOLERANCE * late[-1])


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_an_overflow_that_refuses(rabbit: Rabbit, topology: TopologyFile, tmp_path: Path, kind: str) -> None:
    """300/s into room for 300 that refuses: as many publishers are told as foretold."""
    file = topology.write(topology_text(300, "reject-publish", kind))

    run = really(rabbit, file, lambda _: 300, 5)
    answer = foretold(run, file, tmp_path)

    (level,) = answer["levels"]
    assert level["refused"]["share"] == pytest.approx(run.refused / len(run.published), abs=TOLERANCE)
    assert_backlogs_agree(run, level, 1)
    assert_drained_in_time(run, answer)
