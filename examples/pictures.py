"""Draws the pictures of the documentation anew: `python -m examples.pictures`. No broker is needed."""

from dataclasses import replace
from pathlib import Path

from delayctl.cli.graph_svg import svg
from delayctl.cli.graph_theme import DARK, LIGHT
from delayctl.cli.inputs import read_topology_file
from delayctl.cli.views import plan_summary
from delayctl.topology.diff import diff
from delayctl.topology.expand import expand
from delayctl.topology.figures import Figures, Statistics
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Policy, Queue, Topology, freeze_arguments
from delayctl.topology.picture_depict import depict
from delayctl.topology.picture_subject import Subject, subject_of_file, subject_of_live, subject_of_plan
from delayctl.topology.record import record_of

EXAMPLES = Path(__file__).parent
FOLDER = EXAMPLES.parent / "docs" / "pictures"


def drawn() -> dict[str, str]:
    """Every picture by the name of its file."""
    example = depict(_of_file("topology.yaml"))
    return {
        "topology.svg": svg(example, LIGHT),
        "topology-dark.svg": svg(example, DARK),
        "rocketmq.svg": svg(depict(_of_file("rocketmq.yaml")), LIGHT),
        "plan.svg": svg(depict(_of_plan("topology.yaml", "topology-next.yaml")), LIGHT),
        "start.svg": svg(depict(_of_file("start.yaml")), LIGHT),
        "drift.svg": svg(depict(_of_drift("start.yaml")), LIGHT),
    }


def _of_file(name: str) -> Subject:
    spec = read_topology_file(str(EXAMPLES / name), {})
    return subject_of_file(spec, expand(spec), title=name)


def _of_plan(before: str, after: str) -> Subject:
    """What leads from one file to another, on a broker where the first was applied."""
    live = _after_apply(expand(read_topology_file(str(EXAMPLES / before), {})))
    plan = diff(expand(read_topology_file(str(EXAMPLES / after), {})), live)
    return subject_of_plan(plan, _of_file(after), title=f"{before} → {after}", subtitle=plan_summary(plan))


def _of_drift(name: str) -> Subject:
    """A broker on which somebody took a binding away, set a policy that shortens a wait, and bound a queue."""
    spec = read_topology_file(str(EXAMPLES / name), {})
    desired = expand(spec)
    live = _after_apply(desired)
    gone = next(binding for binding in desired.bindings if binding.key == "reminder")
    shorter = Policy("shorter", "^delay\\.15m", "queues", 0, freeze_arguments({"message-ttl": 60_000}))
    theirs = Binding("delay.exchange", "queue", "audit.queue", "order.#")
    live = replace(
        live,
        queues={**live.queues, "audit.queue": Queue("audit.queue")},
        bindings=(live.bindings - {gone}) | {theirs},
        policies=(shorter,),
    )
    counts = {"delay.10s.queue": 42, "delay.15m.queue": 7, "audit.queue": 980, "delay.unrouted.queue": 3}
    figures = {queue: Figures(counts.get(queue, 0), 0) for queue in live.queues}
    return subject_of_live(spec, desired, live, Statistics(figures), title=f"{name}, on a broker")


def _after_apply(topology: Topology) -> Live:
    return Live(
        exchanges={exchange.name: exchange for exchange in topology.exchanges},
        queues={queue.name: queue for queue in topology.queues},
        bindings=frozenset(topology.bindings),
        record=record_of(topology),
    )


if __name__ == "__main__":
    for name, text in drawn().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
