"""The founders' backlog test on today's brokers: how much memory messages take that wait. `--only backlog`.

First as they did it, with bare messages; then with delayctl's own, whose figures are those of topology/footprint.py.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pika
from delayctl.publishers.calibrate import Rest, calibrate, read_at_rest
from delayctl.topology.access import access_from
from delayctl.topology.amqp import AmqpSession, parameters
from delayctl.topology.arguments import LAZY
from delayctl.topology.calibration import Budget, Calibration, Reading
from delayctl.topology.duration import Duration
from delayctl.topology.footprint import SHAPES, Shape
from delayctl.topology.management import Management
from delayctl.topology.model import Queue, Settings

from benchmarks.levels import kinds_of_level
from benchmarks.vhost import Vhost
from testbed import RunningBroker
from testbed.wait import until

_MB = 1_000_000
_SETTLE_S = 60.0
_SIZES = (40, 400, 4_000, 8_000)


@dataclass(frozen=True)
class Trial:
    """A kind of body, and what the founders saw of so many: megabytes by count."""

    bodies: str
    founders: dict[int, int]
    body: Callable[[int], bytes]


_TRIALS = (
    Trial("40 bytes", {100_000: 101, 230_000: 230}, lambda _: b"x" * 40),
    Trial("integers", {70_000: 64, 240_000: 240}, lambda number: str(number).encode()),
)


@dataclass(frozen=True)
class Seen:
    """What a broker took for so many messages."""

    shape: Shape
    trial: Trial
    count: int
    empty: Reading
    full: Reading

    def line(self) -> str:
        """A line of the table."""
        queue, held = self.full.queue - self.empty.queue, self.full.held - self.empty.held
        founders = self.trial.founders.get(self.count)
        return (
            f"| {self.shape} | {self.trial.bodies} | {self.count:,} | {f'{founders} MB' if founders else ''} "
            f"| {self.empty.used / _MB:,.0f} → {self.full.used / _MB:,.0f} MB | {queue / _MB:,.1f} MB | {held / _MB:,.1f} MB "
            f"| {queue / self.count:,.0f} B | {held / self.count:,.0f} B |"
        )


def measure_backlog(broker: RunningBroker, *, scale: float) -> str:
    """Fill queues of every type that the broker knows; writes both tables."""
    access = access_from(broker.url, management_url=broker.management_url)
    shapes = _shapes(broker.version)
    with Vhost(access, "bench-backlog") as vhost:
        seen = [found for shape in shapes for trial in _TRIALS for found in _tried(vhost, shape, trial, scale)]
        own = [_own(vhost, shape, size, scale) for shape in shapes for size in _SIZES]
    lines = [
        "### Backlog: what waiting messages take\n",
        "Bare, persistent messages, as the founders of the project sent them to an older broker. Memory of the node before and after, as its",
        "alarm counts it; then what came on top in the queue's process, and in all that the node holds for messages (processes,",
        "indexes, tables and bodies of all queues), after the figures had come to rest.\n",
        "| queue | bodies | messages | founders | node, all memory | queue process | node, for messages | process, each | node, each |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
        *(found.line() for found in seen),
        "\nThe same with delayctl's own messages, which carry an id and headers:\n",
        "| queue | body | messages | process, each | node for messages, each | node all, each | free disk, each | confirmed/s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *(_own_line(found) for found in own),
        "",
    ]
    return "\n".join(lines)


def _shapes(version: str) -> tuple[Shape, ...]:
    return tuple(shape for shape in SHAPES if shape != "lazy" or True in kinds_of_level(version))


def _tried(vhost: Vhost, shape: Shape, trial: Trial, scale: float) -> Iterator[Seen]:
    """One queue, filled step by step."""
    settings = Settings(type="quorum" if shape == "quorum" else "classic", ttl=Duration.parse("1d"))
    queue = Queue(f"backlog.{shape}", settings, extra=(LAZY,) if shape == "lazy" else ())
    management = Management(vhost.access, vhost.name)
    with AmqpSession(vhost.access) as session:
        session.put(queue)
        try:
            empty, sent = _rested(management, queue.name, 0, None), 0
            last = empty
            for usual in trial.founders:
                count = int(usual * scale)
                _publish(vhost, queue.name, [trial.body(number) for number in range(sent, count)])
                until(lambda: session.count(queue.name).messages == count, 300)  # noqa: B023 (asked at once)
                sent = count
                last = _rested(management, queue.name, count, last)
                yield Seen(shape, trial, count, empty.gauge.reading, last.gauge.reading)
        finally:
            session.delete_queue(queue.name, guarded=False)


def _rested(management: Management, queue: str, count: int, before: Rest | None) -> Rest:
    found = read_at_rest(management, queue, count, _SETTLE_S, before=before)
    assert found is not None, f"nothing is said of {count} messages"
    print(f"bench: {queue} {count:,}: {found}", file=sys.stderr, flush=True)
    return found


def _publish(vhost: Vhost, queue: str, bodies: list[bytes]) -> None:
    connection = pika.BlockingConnection(parameters(vhost.access))
    channel, persistent = connection.channel(), pika.BasicProperties(delivery_mode=2)
    for body in bodies:
        channel.basic_publish("", queue, body, persistent)
    connection.close()


def _own(vhost: Vhost, shape: Shape, size: int, scale: float) -> Calibration:
    def tell(text: str) -> None:
        print(f"bench: {shape}, {size} bytes: {text}", file=sys.stderr, flush=True)

    budget = Budget(size=10**9, messages=int(50_000 * scale), seconds=300)
    return calibrate(
        vhost.access, Management(vhost.access, vhost.name), shape, body=size, budget=budget, prefix="", tell=tell
    )


def _own_line(found: Calibration) -> str:
    disk = "not seen" if found.disk_each is None else f"{found.disk_each:,.0f} B"
    return (
        f"| {found.shape} | {found.body:,} B | {found.messages:,} | {found.queue_each:,.0f} B | {found.held_each:,.0f} B "
        f"| {found.used_each:,.0f} B | {disk} | {found.per_second:,.0f} |"
    )
