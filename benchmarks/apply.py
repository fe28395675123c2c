"""apply against definitions import, plan against a bare read of the definitions, and how both grow."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from delayctl.topology.access import Access, access_from
from delayctl.topology.management import Management
from delayctl.topology.model import Topology
from delayctl.topology.rabbit import RabbitBroker
from delayctl.topology.survey import make_plan

from benchmarks.vhost import Vhost, apply_text, understand
from testbed import RunningBroker

_FIXED_OBJECTS = 13  # Exit, parking and three levels.
_TEMPLATE = """\
version: 1
delay: {levels: [1m, 5m, 15m]}
routes:
{% for i in range(routes) %}
  - {from: service{{ i }}.exchange, key: order.{{ i }}, delay: 15m, to: service{{ i }}.queue}
{% endfor %}
"""


@dataclass(frozen=True)
class Round:
    """Seconds that each thing took, one after the other on the same broker."""

    apply: float
    imported: float
    file: float  # From the file's text to the desired topology.
    plan: float  # Read the broker, compare, judge.
    read: float  # Read and decode the definitions, nothing more.


@dataclass(frozen=True)
class Row:
    """One size: medians, and medians of the ratios within a round."""

    objects: int
    rounds: tuple[Round, ...]

    def seconds(self, name: str) -> float:
        """The median of one column."""
        return float(median(getattr(turn, name) for turn in self.rounds))

    def ratio(self, ratio: Callable[[Round], float]) -> float:
        """The median of a ratio."""
        return median(map(ratio, self.rounds))


def measure_apply(broker: RunningBroker, *, sizes: list[int], rounds: int) -> str:
    """Measure every size and write the tables."""
    rows = [_measure(broker, size, rounds) for size in sizes]
    first, last = rows[0], rows[-1]
    growth = {name: last.seconds(name) / first.seconds(name) for name in ("apply", "imported", "file", "plan", "read")}
    lines = [
        "### First apply, against importing the same definitions (bar at 4,000 objects: ≥ 1.0 ×)\n",
        "| objects | apply | import | apply's speed, import = 1 | objects/s |",
        "|---:|---:|---:|---:|---:|",
        *(_apply_line(row) for row in rows),
        "\n### Plan with nothing to do, against reading and decoding the definitions (bar at 4,000 objects: ≤ 3 ×)\n",
        "*Plan* reads the broker, compares and judges; *file* is what comes before it: render, parse and expand the text. The",
        "command does both, so the last column is the one to hold against the bar. *Read* opens a connection of its own, too.\n",
        "| objects | plan | read | plan's time, read = 1 | file | file and plan, read = 1 |",
        "|---:|---:|---:|---:|---:|---:|",
        *(_plan_line(row) for row in rows),
        "",
        f"From {first.objects:,} to {last.objects:,} objects ({last.objects / first.objects:.0f} ×): "
        f"apply takes {growth['apply']:.0f} × as long (import {growth['imported']:.0f} ×), "
        f"plan {growth['plan']:.0f} × (read {growth['read']:.0f} ×), the file {growth['file']:.0f} ×.\n",
    ]
    return "\n".join(lines)


def _apply_line(row: Row) -> str:
    speed = row.ratio(lambda turn: turn.imported / turn.apply)
    applied = row.seconds("apply")
    return f"| {row.objects:,} | {applied:.2f} s | {row.seconds('imported'):.2f} s | {speed:.2f} × | {row.objects / applied:,.0f} |"


def _plan_line(row: Row) -> str:
    plan, read, file = (f"{row.seconds(name) * 1000:.0f} ms" for name in ("plan", "read", "file"))
    alone = row.ratio(lambda turn: turn.plan / turn.read)
    together = row.ratio(lambda turn: (turn.file + turn.plan) / turn.read)
    return f"| {row.objects:,} | {plan} | {read} | {alone:.2f} × | {file} | {together:.2f} × |"


def _measure(broker: RunningBroker, size: int, rounds: int) -> Row:
    text = _TEMPLATE.replace("routes)", f"{max(1, (size - _FIXED_OBJECTS) // 4)})")
    access = access_from(broker.url, management_url=broker.management_url)
    definitions = _definitions(access, text)
    turns = (_round(access, text, definitions, apply_first=bool(turn % 2)) for turn in range(rounds))
    return Row(sum(map(len, definitions.values())), tuple(turns))


def _definitions(access: Access, text: str) -> dict[str, Any]:
    """What an apply of the text leaves on the broker, ready to be imported."""
    with Vhost(access, "bench-apply") as vhost:
        apply_text(vhost, text)
        exported = vhost.read()
    return {key: exported[key] for key in ("exchanges", "queues", "bindings")}


def _round(access: Access, text: str, definitions: Any, *, apply_first: bool) -> Round:
    """Measure once; whoever goes first meets a colder broker, so apply and import take turns."""
    with Vhost(access, "bench-apply") as ours, Vhost(access, "bench-import") as theirs:
        first = _timed(lambda: apply_text(ours, text)) if apply_first else 0.0
        imported = _timed(lambda: theirs.import_definitions(definitions))
        applied = first or _timed(lambda: apply_text(ours, text))
        desired = understand(text)
        times = [
            (_timed(lambda: understand(text)), _timed(lambda: _plan(ours, desired)), _timed(ours.read))
            for _ in range(7)
        ]
    file, plan, read = (median(column) for column in zip(*times, strict=True))
    print(
        f"bench: apply {applied:.2f} s, import {imported:.2f} s, file {file:.3f} s, plan {plan:.3f} s, read {read:.3f} s",
        file=sys.stderr,
    )
    return Round(applied, imported, file, plan, read)


def _plan(vhost: Vhost, desired: Topology) -> None:
    management = Management(vhost.access, vhost.name)
    with RabbitBroker(vhost.access, management) as broker:
        plan, _ = make_plan(desired, management, broker, vhost=vhost.name)
    assert plan.is_empty, plan.changes[:3]


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
