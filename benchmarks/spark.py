"""The Spark sink beside the publisher alone and the broker's limit, and what its workers need."""

from delayctl.topology.access import access_from

from benchmarks.contest import Measured, middle, run
from benchmarks.publish_ways import QUEUE, TOPOLOGY
from benchmarks.vhost import Vhost, apply_text
from testbed import RunningBroker

_BARE, _ALONE, _BAR = "bare socket", "DelayPublisher", "Spark, 2 partitions"
_MODULES = {
    _BARE: "benchmarks.publish_ways",
    _ALONE: "benchmarks.publish_ways",
    "Spark, 1 partition": "benchmarks.spark_ways",
    _BAR: "benchmarks.spark_ways",
    "Spark, 4 partitions": "benchmarks.spark_ways",
}
_COUNT = 200_000  # Enough that Spark's own second or two per job does not decide.


def measure_spark(broker: RunningBroker, *, rounds: int, sizes: list[int]) -> str:
    """Measure every way in every round, then the sink at every size; writes the tables."""
    access = access_from(broker.url, management_url=broker.management_url)
    with Vhost(access, "bench-spark") as vhost:
        apply_text(vhost, TOPOLOGY)
        turns = [{name: _one(vhost, name, _COUNT) for name in _MODULES} for _ in range(rounds)]
        grown = [_one(vhost, _BAR, size) for size in sizes]
    lines = [
        f"### Spark: {_COUNT:,} rows from Parquet into a delay, confirmed, persistent messages of 200 bytes\n",
        "Bar for two partitions on `local[2]`: ≥ 0.7 × the publisher alone. All of Spark, its two Python workers and the broker share",
        "the two cores of the machine; the time includes Spark's planning of the job, not its start. The bare socket is what the",
        "broker allows one connection.\n",
        "| way | messages/s | of the publisher's rate | of the bare socket's | bar |",
        "|---|---:|---:|---:|---:|",
        *(_line(name, turns) for name in _MODULES),
        "\nWhat a Python worker of Spark needs (bar: flat from 10 thousand to 1 million rows):\n",
        "| rows | seconds | messages/s | most memory of a worker |",
        "|---:|---:|---:|---:|",
        *(f"| {each.count:,} | {each.seconds:.1f} | {each.rate:,.0f} | {each.mib_most:.0f} MiB |" for each in grown),
        "",
    ]
    return "\n".join(lines)


def _one(vhost: Vhost, name: str, count: int) -> Measured:
    """One contestant, into an empty queue."""
    measured = run(_MODULES[name], name, vhost.url, count)
    vhost.purge(QUEUE)
    return measured


def _line(name: str, turns: list[dict[str, Measured]]) -> str:
    rate = middle([turn[name].rate for turn in turns])
    alone = middle([turn[name].rate / turn[_ALONE].rate for turn in turns])
    bare = middle([turn[name].rate / turn[_BARE].rate for turn in turns])
    return f"| {name} | {rate:,.0f} | {alone:.2f} × | {bare:.2f} × | {'≥ 0.7 ×' if name == _BAR else ''} |"
