"""The consumer beside a bare pika consumer and other clients."""

from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.access import access_from

from benchmarks.consume_ways import QUEUE, TOPOLOGY
from benchmarks.contest import Measured, middle, run
from benchmarks.vhost import Vhost, apply_text, understand
from testbed import RunningBroker

_WAYS = "benchmarks.consume_ways"
_COUNTS = {
    "pika SelectConnection": 20_000,
    "pika BlockingConnection": 20_000,
    "DelayConsumer": 20_000,
    "aio-pika": 10_000,
    "kombu": 10_000,
}
_OURS = "DelayConsumer"
_BAR_AGAINST = ("pika SelectConnection", "pika BlockingConnection")


def measure_consume(broker: RunningBroker, *, rounds: int, scale: float) -> str:
    """Measure every way in every round; writes the table."""
    access = access_from(broker.url, management_url=broker.management_url)
    with Vhost(access, "bench-consume") as vhost:
        apply_text(vhost, TOPOLOGY)
        turns = [{name: _one(vhost, name, int(_COUNTS[name] * scale)) for name in _COUNTS} for _ in range(rounds)]
    lines = [
        "### Consume, handle (doing nothing), acknowledge: messages of 200 bytes, prefetch 200\n",
        "Bar for DelayConsumer: ≥ 0.8 × a bare pika consumer. All others acknowledge 100 messages at a time; DelayConsumer decides",
        "by itself, hands messages to four workers, and its time includes connecting and the graceful stop.\n",
        "| client | messages/s | CPU per message | DelayConsumer's rate, this = 1 | bar |",
        "|---|---:|---:|---:|---:|",
        *(_line(name, turns) for name in _COUNTS),
        "",
    ]
    return "\n".join(lines)


def _one(vhost: Vhost, name: str, count: int) -> Measured:
    """One contestant, with exactly so many messages."""
    vhost.purge(QUEUE)
    with DelayPublisher(vhost.url, topology=understand(TOPOLOGY)) as publisher:
        for _ in range(count):
            publisher.publish(b"x" * 200, key=QUEUE, exchange="")
    return run(_WAYS, name, vhost.url, count)


def _line(name: str, turns: list[dict[str, Measured]]) -> str:
    rate = middle([turn[name].rate for turn in turns])
    cpu = middle([turn[name].cpu_us for turn in turns])
    ratio = middle([turn[_OURS].rate / turn[name].rate for turn in turns])
    bar = "≥ 0.8 ×" if name in _BAR_AGAINST else ""
    return f"| {name} | {rate:,.0f} | {cpu:.1f} µs | {ratio:.2f} × | {bar} |"
