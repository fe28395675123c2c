"""The publisher beside a bare socket and other clients, and how its cost grows."""

from delayctl.topology.access import Access, access_from

from benchmarks.contest import Measured, middle, run
from benchmarks.levels import kinds_of_level
from benchmarks.publish_ways import LAZY_TOPOLOGY, QUEUE, TOPOLOGY
from benchmarks.vhost import Vhost, apply_text
from testbed import RunningBroker

_WAYS = "benchmarks.publish_ways"
# So many that each takes a second or two.
_COUNTS = {
    "bare socket": 40_000,
    "DelayPublisher": 40_000,
    "pika SelectConnection": 20_000,
    "aio-pika": 4_000,
    "kombu": 1_500,
    "pika BlockingConnection": 1_500,
    "dramatiq": 1_200,
    "celery": 1_000,
}
_BARE, _OURS = "bare socket", "DelayPublisher"
_BARS = {_BARE: 0.8, "aio-pika": 5.0, "pika BlockingConnection": 10.0}
_TARGETS = {"celery": "celery", "dramatiq": "default.DQ"}
_HOW = {
    _BARE: "pre-encoded frames, window of 2,000",
    _OURS: "as it comes, window of 4,096",
    "pika SelectConnection": "callbacks, window of 2,000",
    "aio-pika": "gather of 500",
    "kombu": "confirm_publish, one by one",
    "pika BlockingConnection": "confirm per message",
    "dramatiq": "send_with_options(delay), confirm_delivery",
    "celery": "apply_async(countdown), confirm_publish",
}


def measure_publish(broker: RunningBroker, *, rounds: int, scale: float, sizes: list[int]) -> str:
    """Measure every way in every round, then ours at every size; writes the tables, those of lazy levels where there are such."""
    access = access_from(broker.url, management_url=broker.management_url)
    return "\n".join(
        _into(access, rounds=rounds, scale=scale, sizes=sizes, lazy=lazy) for lazy in kinds_of_level(broker.version)
    )


def _into(access: Access, *, rounds: int, scale: float, sizes: list[int], lazy: bool) -> str:
    """The tables of one kind of level."""
    with Vhost(access, "bench-publish") as vhost:
        apply_text(vhost, LAZY_TOPOLOGY if lazy else TOPOLOGY)
        turns = [{name: _one(vhost, name, _count(name, scale)) for name in _COUNTS} for _ in range(rounds)]
        grown = [_one(vhost, _OURS, size) for size in sizes]
    delay = "a lazy delay, which is what lint advises before 3.12" if lazy else "a delay"
    lines = [
        f"### Publish: confirmed, persistent messages of 200 bytes into {delay}, one connection\n",
        "Bars for DelayPublisher: ≥ 0.8 × the bare socket, ≥ 5 × aio-pika, ≥ 10 × pika BlockingConnection. Celery and dramatiq",
        "publish to queues of their own, not mandatory, and their messages wait in the workers' memory. The last column is what the",
        "broker allows: the bare socket's rate, each client = 1.\n",
        "| client | how | messages/s | CPU per message | DelayPublisher's rate, this = 1 | bar | bare socket's |",
        "|---|---|---:|---:|---:|---:|---:|",
        *(_line(name, turns) for name in _COUNTS),
        "\nHow DelayPublisher's cost grows:\n",
        "| messages | seconds | messages/s | CPU per message | memory before | most memory |",
        "|---:|---:|---:|---:|---:|---:|",
        *(_growth_line(measured) for measured in grown),
        "",
    ]
    return "\n".join(lines)


def _count(name: str, scale: float) -> int:
    return max(100, int(_COUNTS[name] * scale))


def _one(vhost: Vhost, name: str, count: int) -> Measured:
    """One contestant, into an empty queue."""
    measured = run(_WAYS, name, vhost.url, count)
    vhost.purge(_TARGETS.get(name, QUEUE))
    return measured


def _line(name: str, turns: list[dict[str, Measured]]) -> str:
    rate = middle([turn[name].rate for turn in turns])
    cpu = middle([turn[name].cpu_us for turn in turns])
    ratio = middle([turn[_OURS].rate / turn[name].rate for turn in turns])
    ceiling = middle([turn[_BARE].rate / turn[name].rate for turn in turns])
    bar = f"≥ {_BARS[name]:g} ×" if name in _BARS else ""
    return f"| {name} | {_HOW[name]} | {rate:,.0f} | {cpu:.1f} µs | {ratio:.2f} × | {bar} | {ceiling:.2f} × |"


def _growth_line(measured: Measured) -> str:
    return (
        f"| {measured.count:,} | {measured.seconds:.2f} | {measured.rate:,.0f} | {measured.cpu_us:.1f} µs "
        f"| {measured.mib_before:.0f} MiB | {measured.mib_most:.0f} MiB |"
    )
