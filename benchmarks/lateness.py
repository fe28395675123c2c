"""How late messages are that waited among many, beside celery's countdown and dramatiq's delay."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pika
from delayctl.topology.access import Access, access_from

from benchmarks.lateness_ways import topology
from benchmarks.levels import kinds_of_level
from benchmarks.vhost import Vhost, apply_text
from testbed import RunningBroker
from testbed.wait import until

_FOLDER = Path(__file__).parent
_PEER_RATE = 200  # Celery publishes no more than some 600 a second here.
_PEER_WAIT_S = 5
_PEER_SECONDS = 10
_LONGER_S = 10
_CELERY = ("celery", "-A", "benchmarks.celery_app", "worker", "--concurrency=2", "--loglevel=ERROR")
_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
_DRAMATIQ = ("dramatiq", "benchmarks.dramatiq_app", "--processes=2", "--threads=8")


@dataclass(frozen=True)
class Late:
    """The lateness of the messages of one way, in milliseconds."""

    name: str
    rate: int
    waiting: int
    late_ms: tuple[float, ...]

    def percentile(self, percent: float) -> float:
        """The lateness that so many percent do not exceed."""
        ordered = sorted(self.late_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def measure_lateness(broker: RunningBroker, *, waiting: int, rate: int, seconds: int) -> str:
    """Measure the three ways one after the other; writes the table and draws the picture."""
    access = access_from(broker.url, management_url=broker.management_url)
    with tempfile.TemporaryDirectory() as folder:
        found = [
            _ours(access, Path(folder), waiting, rate, seconds, lazy=lazy) for lazy in kinds_of_level(broker.version)
        ]
    with Vhost(access, "bench-lateness") as vhost, tempfile.TemporaryDirectory() as folder:
        for name, worker, queue in (
            ("celery", [*_CELERY, *_QUIET], "celery"),
            ("dramatiq", [*_DRAMATIQ], "default.DQ"),
        ):
            found.append(_peer(vhost, Path(folder), name, worker, queue))
    picture = _FOLDER / f"lateness-{broker.version}.png"
    draw(found, picture, title=f"Lateness on RabbitMQ {broker.version}")
    lines = [
        f"### Lateness with {found[0].waiting:,} waiting, {rate:,} messages a second in and out (bar: p99 ≤ 50 ms)\n",
        "From the due time to the handler, through DelayPublisher, a level and DelayConsumer; a due time is a whole millisecond.",
        f"Celery and dramatiq can't publish that fast with confirms: {_PEER_RATE} a second with a delay of {_PEER_WAIT_S} s, so that",
        f"{_PEER_RATE * _PEER_WAIT_S:,} wait, in the memory of their workers. A level can be lazy before 3.12; all are, later.\n",
        "| way | messages/s | waiting | measured | p50 | p99 | max | earliest |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *(_line(late) for late in found),
        f"\n![How many messages were how late]({picture.name})\n",
    ]
    return "\n".join(lines)


def _line(late: Late) -> str:
    figures = " | ".join(f"{late.percentile(percent):.1f} ms" for percent in (50, 99, 100, 0))
    return f"| {late.name} | {late.rate:,} | {late.waiting:,} | {len(late.late_ms):,} | {figures} |"


def _ours(access: Access, folder: Path, waiting: int, rate: int, seconds: int, *, lazy: bool) -> Late:
    with Vhost(access, "bench-lateness") as vhost:
        wait_s = max(1, waiting // rate)
        apply_text(vhost, topology(wait_s, lazy=lazy))
        late_ms, held = _in_and_out(vhost, folder / "ours.json", wait_s, rate, seconds)
    level = "lazy level" if lazy else "level"
    return _told(Late(f"DelayPublisher, {level}, DelayConsumer", rate, held, late_ms))


def _in_and_out(vhost: Vhost, answer: Path, wait_s: int, rate: int, seconds: int) -> tuple[tuple[float, ...], int]:
    """Fill the level at its pace; from then on as many come out as go in, and these are measured."""
    count = rate * seconds
    # It goes on for some seconds more than it has to, so that the level is as full at the end as it was at first.
    figures = (str(wait_s), str(rate), str(count + (wait_s + _LONGER_S) * rate))
    with (
        _process(vhost, answer, "-m", "benchmarks.lateness_ways", "consume", str(wait_s), str(count)) as consumer,
        _process(vhost, answer, "-m", "benchmarks.lateness_ways", "publish", *figures) as publisher,
    ):
        code = consumer.wait(timeout=3 * (wait_s + seconds) + 60)
        held = _depth(vhost, f"delay.{wait_s}s.queue")[0]
        assert (code, publisher.poll() or 0) == (0, 0)
    return tuple(json.loads(answer.read_text())), held


def _peer(vhost: Vhost, folder: Path, name: str, worker: Sequence[str], queue: str) -> Late:
    answer, count = folder / name, _PEER_RATE * _PEER_SECONDS
    answer.touch()
    with _process(vhost, answer, "-m", *worker):
        until(lambda: _depth(vhost, queue)[1], 60, what=f"a worker of {name}")
        figures = (str(_PEER_WAIT_S), str(_PEER_RATE), str(count))
        with _process(vhost, answer, "-m", "benchmarks.lateness_ways", name, *figures) as publisher:
            assert publisher.wait(timeout=120) == 0
        until(lambda: len(answer.read_text().splitlines()) >= count, 60, what=f"the messages of {name}")
    return _told(Late(name, _PEER_RATE, _PEER_RATE * _PEER_WAIT_S, tuple(map(float, answer.read_text().splitlines()))))


def _told(late: Late) -> Late:
    p50, p99, most = (late.percentile(percent) for percent in (50, 99, 100))
    print(f"bench: lateness {late.name}: p50 {p50:.1f}, p99 {p99:.1f}, max {most:.1f} ms", file=sys.stderr, flush=True)
    return late


@contextmanager
def _process(vhost: Vhost, answer: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended with the block."""
    environment = {**os.environ, "BENCH_URL": vhost.url, "BENCH_ANSWER": str(answer), "C_FORCE_ROOT": "1"}
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def _depth(vhost: Vhost, queue: str) -> tuple[int, int]:
    """Messages ready in a queue, and its consumers; zeros while there is no such queue."""
    connection = pika.BlockingConnection(pika.URLParameters(vhost.url))
    try:
        found = connection.channel().queue_declare(queue, passive=True).method
        return found.message_count, found.consumer_count
    except pika.exceptions.ChannelClosedByBroker:
        return 0, 0
    finally:
        connection.close()


def draw(found: Sequence[Late], file: Path, *, title: str) -> None:
    """A histogram of all ways over one axis of milliseconds."""
    import matplotlib as library  # noqa: PLC0415

    library.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    most = max(late.percentile(100) for late in found)
    edges = [0.25 * 1.25**step for step in range(200) if 0.25 * 1.25 ** (step - 1) <= most]
    figure, axes = pyplot.subplots(figsize=(9, 4.5))
    for late in found:
        values = [max(edges[0], value) for value in late.late_ms]
        weights = [100 / len(values)] * len(values)
        label = f"{late.name}: {late.rate:,}/s, {late.waiting:,} waiting"
        axes.hist(values, bins=edges, weights=weights, histtype="stepfilled", alpha=0.5, label=label)
    axes.axvline(50, color="grey", linestyle="--", linewidth=1)
    axes.set(xscale="log", xlabel="late by, ms", ylabel="% of messages", title=title)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
    figure.savefig(file, dpi=100, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)
