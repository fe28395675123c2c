"""Run all benchmarks and write RESULTS.md: `make bench`."""

import argparse
import os
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.apply import measure_apply
from benchmarks.consume import measure_consume
from benchmarks.lateness import measure_lateness
from benchmarks.perftest import measure_perftest
from benchmarks.publish import measure_publish
from benchmarks.results import SUBJECTS, read_results, results_text, with_section
from testbed import RunningBroker, container_broker, find_broker, native_node

USUAL = tuple(subject for subject in SUBJECTS if subject != "perftest")
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
    "perftest": lambda broker, chosen: measure_perftest(broker, rounds=chosen.rounds, scale=chosen.scale),
}


def main() -> int:
    """Measure on each broker that was asked for."""
    chosen = _options()
    results = read_results(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name, way in WAYS.items():
        if chosen.broker not in (name, "all"):
            continue
        with way() as broker:
            place = f"RabbitMQ {broker.version} ({broker.how})"
            for subject in chosen.only:
                text = MEASURES[subject](broker, chosen)
                print(f"{place}\n\n{text}", flush=True)
                when = f"measured on {datetime.now(UTC):%Y-%m-%d}, {_rounds(subject, chosen)}"
                results = with_section(results, place, subject, text, when=when)
                if not chosen.dry_run:
                    RESULTS.write_text(results_text(_heading(), results), encoding="utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--broker", choices=[*WAYS, "all"], default="all")
    add("--only", choices=SUBJECTS, nargs="+", default=USUAL, help="renew these sections, keep the others")
    add("--rounds", type=int, default=3)
    add("--apply-rounds", type=int, default=5)
    add("--sizes", type=int, nargs="+", default=[40, 400, 4000], help="objects, for apply")
    add("--scale", type=float, default=1.0, help="share of the usual messages, for publish and consume")
    add(
        "--messages", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000], help="for the growth of publish"
    )
    add("--waiting", type=int, default=100_000, help="messages in the delay, for lateness")
    add("--rate", type=int, default=1_000, help="messages a second, for lateness")
    add("--seconds", type=int, default=30, help="how long lateness is measured")
    add("--dry-run", action="store_true", help="leave RESULTS.md as it is")
    return parser.parse_args()


def _rounds(subject: str, chosen: argparse.Namespace) -> str:
    if subject == "lateness":
        return f"over {chosen.seconds} s"
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
