"""Run all benchmarks and write RESULTS.md: `make bench`."""

import argparse
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.apply import measure_apply
from testbed import container_broker, native_node

RESULTS = Path(__file__).with_name("RESULTS.md")
WAYS = {"native": native_node, "container": container_broker}


def main() -> int:
    """Measure on each broker that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--broker", choices=[*WAYS, "all"], default="all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[40, 400, 4000])
    chosen = parser.parse_args()
    sections = [_heading(chosen.rounds)]
    for name, way in WAYS.items():
        if chosen.broker in (name, "all"):
            with way() as broker:
                sections.append(f"## RabbitMQ {broker.version} ({broker.how})\n")
                sections.append(measure_apply(broker, sizes=chosen.sizes, rounds=chosen.rounds))
    text = "\n".join(sections)
    RESULTS.write_text(text, encoding="utf-8")
    print(text)
    return 0


def _heading(rounds: int) -> str:
    return (
        "# Benchmark results\n\n"
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: Python {platform.python_version()}, "
        f"{platform.machine()}, median of {rounds} rounds.\n"
        "Absolute figures are those of one small, shared machine; the ratios are what is meant to hold. In every round\n"
        "delayctl and its yardstick run one after the other on the same broker.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
