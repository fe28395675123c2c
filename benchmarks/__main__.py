"""Run all benchmarks and write RESULTS.md: `make bench`."""

import argparse
import os
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.apply import measure_apply
from benchmarks.backlog import measure_backlog
from benchmarks.consume import measure_consume
from benchmarks.lateness import measure_lateness
from benchmarks.perftest import measure_perftest
from benchmarks.publish import measure_publish
from benchmarks.results import SUBJECTS, Results, read_results, results_text, with_section
from benchmarks.simulator import PLACE, measure_simulator
from benchmarks.spark import measure_spark
from testbed import RunningBroker, container_broker, find_broker, native_node

USUAL = tuple(subject for subject in SUBJECTS if subject not in ("perftest", "backlog"))
RESULTS = Path(__file__).with_name("RESULTS.md")
WAYS = {"native": native_node, "container": container_broker}
if "DELAYCTL_URL" in os.environ:
    WAYS = {"given": find_broker}

Measure = Callable[[RunningBroker, argparse.Namespace], str]
MEASURES: dict[str, Measure] = {
    "apply": lambda broker, chosen: measure_apply(broker, sizes=chosen.sizes, rounds=chosen.apply_rounds),
    "publish": lambda broker, chosen: measure_publish(
        broker, rounds=chosen.rounds, scale=chosen.scale, sizes=chosen.messages
    ),
    "consume": lambda broker, chosen: measure_consume(broker, rounds=chosen.rounds, scale=chosen.scale),
    "lateness": lambda broker, chosen: measure_lateness(
        broker, waiting=chosen.waiting, rate=chosen.rate, seconds=chosen.seconds
    ),
    "spark": lambda broker, chosen: measure_spark(
        broker, rounds=chosen.rounds, sizes=[size for size in chosen.messages if size >= 10_000]
    ),
    "backlog": lambda broker, chosen: measure_backlog(broker, scale=chosen.scale),
    "perftest": lambda broker, chosen: measure_perftest(broker, rounds=chosen.rounds, scale=chosen.scale),
}


def main() -> int:
    """Measure what needs no broker, then on each broker that was asked for."""
    chosen = _options()
    results = read_results(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if "simulator" in chosen.only:
        sizes = [size for size in chosen.messages if size >= 10_000] or chosen.messages
        text = measure_simulator(rounds=chosen.rounds, sizes=sizes)
        results = _kept(results, PLACE, "simulator", text, chosen)
    on_brokers = [subject for subject in chosen.only if subject in MEASURES]
    for name, way in WAYS.items():
        if chosen.broker not in (name, "all") or not on_brokers:
            continue
        with way() as broker:
            place = f"RabbitMQ {broker.version} ({broker.how})"
            for subject in on_brokers:
                results = _kept(results, place, subject, MEASURES[subject](broker, chosen), chosen)
    return 0


def _kept(results: Results, place: str, subject: str, text: str, chosen: argparse.Namespace) -> Results:
    """Show a section, and write it into the file."""
    print(f"{place}\n\n{text}", flush=True)
    when = f"measured on {datetime.now(UTC):%Y-%m-%d}, {_rounds(subject, chosen)}"
    renewed = with_section(results, place, subject, text, when=when)
    if not chosen.dry_run:
        RESULTS.write_text(results_text(_heading(), renewed), encoding="utf-8")
    return renewed


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--broker", choices=[*WAYS, "all"], default="all")
    add("--only", choices=SUBJECTS, nargs="+", default=USUAL, help="renew these sections, keep the others")
    add("--rounds", type=int, default=3)
    add("--apply-rounds", type=int, default=5)
    add("--sizes", type=int, nargs="+", default=[40, 400, 4000], help="objects, for apply")
    add("--scale", type=float, default=1.0, help="share of the usual messages, for publish, consume and backlog")
    add(
        "--messages",
        type=int,
        nargs="+",
        default=[1_000, 10_000, 100_000, 1_000_000],
        help="for the growth of publish and of the simulator",
    )
    add("--waiting", type=int, default=100_000, help="messages in the delay, for lateness")
    add("--rate", type=int, default=1_000, help="messages a second, for lateness")
    add("--seconds", type=int, default=30, help="how long lateness is measured")
    add("--dry-run", action="store_true", help="leave RESULTS.md as it is")
    return parser.parse_args()


def _rounds(subject: str, chosen: argparse.Namespace) -> str:
    if subject == "lateness":
        return f"over {chosen.seconds} s"
    if subject == "backlog":
        return "one run"
    if subject == "simulator":
        return f"fastest of {chosen.rounds} rounds"
    return f"median of {chosen.apply_rounds if subject == 'apply' else chosen.rounds} rounds"


def _heading() -> str:
    return (
        "# Benchmark results\n\n"
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: Python {platform.python_version()}, "
        f"{platform.machine()}.\n"
        "Absolute figures are those of one small, shared machine; the ratios are what is meant to hold. In every round\n"
        "delayctl and its yardsticks run one after the other on the same broker, each in the same way.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
