"""Checks of where messages wait: on which nodes, with how many replicas, and in queues that stay."""

import re
from collections import Counter
from collections.abc import Iterator
from math import ceil

from delayctl.topology.diagnosis import Check, Symptom, enumerated, reasons, symptom_of
from delayctl.topology.examination import Examination
from delayctl.topology.figures import Figures
from delayctl.topology.findings import Severity
from delayctl.topology.status import LevelStatus
from delayctl.topology.verdict import broken_queues
from delayctl.topology.wording import command, plural

_WANTED_REPLICAS = 3
_SKEWED = 1.5  # So many times its share of leaders is too much for a node, and one more than its share never is.


def queue_down(examination: Examination) -> Iterator[Symptom]:
    """H211: a queue whose node is down, or most of whose nodes are."""
    for reason in reasons(broken_queues, examination):
        level = examination.wait(reason.at)
        details = [_replicas(level.figures)] if level.figures.members else [f"it is on {level.figures.node} alone"]
        is_quorum = bool(level.figures.members)
        show = command("rabbitmq-queues", "quorum_status", "--vhost", examination.status.vhost, level.queue)
        commands = (show,) if is_quorum else (command("rabbitmqctl", "cluster_status"),)
        yield symptom_of(reason, *commands, details=details)


def replicas_offline(examination: Examination) -> Iterator[Symptom]:
    """H212: one more that is lost may be one too many."""
    for level, figures in _replicated(examination):
        if len(figures.online) < len(figures.members) and figures.has_majority:
            message = f"{level.queue} works with {_replicas(figures)}"
            fix = "bring back the nodes that are missing"
            show = command("rabbitmq-queues", "quorum_status", "--vhost", examination.status.vhost, level.queue)
            yield Symptom(level.queue, message, fix, (show,))


def _replicas(figures: Figures) -> str:
    lost = sorted({*figures.members} - {*figures.online})
    return (
        f"{len(figures.online)} of {plural(len(figures.members), 'replica')}, those on {enumerated(lost)} are missing"
    )


def few_replicas(examination: Examination) -> Iterator[Symptom]:
    """H213: a cluster has more nodes than the queue has replicas."""
    nodes = [node.name for node in examination.status.nodes or ()]
    wanted = min(len(nodes), _WANTED_REPLICAS)
    for level, figures in _replicated(examination):
        if len(figures.members) < wanted:
            message = f"{level.queue} has {plural(len(figures.members), 'replica')} on {plural(len(nodes), 'node')}"
            spare = sorted({*nodes} - {*figures.members})[: wanted - len(figures.members)]
            vhost = examination.status.vhost
            grow = tuple(command("rabbitmq-queues", "add_member", "--vhost", vhost, level.queue, n) for n in spare)
            yield Symptom(level.queue, message, "add replicas: it goes on working meanwhile", grow)


def _replicated(examination: Examination) -> Iterator[tuple[LevelStatus, Figures]]:
    for level in examination.status.levels:
        if level.is_there and level.figures.members:
            yield level, level.figures


def leader_skew(examination: Examination) -> Iterator[Symptom]:
    """H214: one node does the work of all."""
    nodes = [node.name for node in examination.status.nodes or ()]
    if not all(node.is_running for node in examination.status.nodes or ()):
        return  # Who leads while a node is away says nothing of how it is otherwise.
    if len(nodes) < 2:
        return  # There is no other that could lead; or this user may not know the nodes.
    led = [level for level in examination.status.levels if level.figures.node in nodes]
    yield from _skewed_shards(examination, led, len(nodes))
    if len(led) < 2:
        return
    counts = Counter(level.figures.node for level in led)
    [(busiest, most)] = counts.most_common(1)
    share = len(led) / len(nodes)
    if most <= max(ceil(share) + 1, _SKEWED * share):
        return
    spread = ", ".join(f"{name}: {counts[name]}" for name in sorted(nodes))
    message = f"{busiest} leads {most} of {len(led)} waits, and there are {len(nodes)} nodes ({spread})"
    yield Symptom(busiest, message, *_spreading(examination, [x for x in led if x.figures.node == busiest]))


def _skewed_shards(examination: Examination, led: list[LevelStatus], nodes: int) -> Iterator[Symptom]:
    """Shards are there to be spread: a node has one too many as soon as another could have it."""
    for whole in examination.desired.sharded:
        shards = [level for level in led if level.queue in whole.queues]
        counts = Counter(level.figures.node for level in shards)
        busiest, most = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        if most > ceil(len(whole.shards) / nodes):
            message = (
                f"{busiest} leads {most} of {len(shards)} shards of {whole.name}, and there are {plural(nodes, 'node')}"
            )
            yield Symptom(
                whole.queue, message, *_spreading(examination, [x for x in shards if x.figures.node == busiest])
            )


def _spreading(examination: Examination, levels: list[LevelStatus]) -> tuple[str, tuple[str, ...]]:
    """How to have the leaders spread: those of quorum queues at once, classic queues when they are made anew."""
    ours = f"^{re.escape(examination.desired.prefix)}" if examination.desired.prefix else ".*"
    words = ("rabbitmq-queues", "rebalance", "quorum", "--vhost-pattern", f"^{re.escape(examination.status.vhost)}$")
    rebalance = command(*words, "--queue-pattern", ours)
    if any(level.figures.members for level in levels):
        return "spread the leaders; set queue_leader_locator = balanced for queues to come", (rebalance,)
    fix = (
        "a classic queue stays where it was declared: set queue_leader_locator = balanced in rabbitmq.conf (4.x also by"
        " policy) before it is declared anew, or use type: quorum, whose leaders can be moved"
    )
    return fix, (command("delayctl", "plan", examination.source),)


def short_lived(examination: Examination) -> Iterator[Symptom]:
    """H215: a queue on the way that does not stay."""
    status = examination.status
    waits, parks = ({item.queue for item in items} for items in (status.levels, status.parked))
    for name in sorted({*waits, *parks, *(target.queue for target in status.targets)}):
        if queue := examination.live.queues.get(name):
            settings = examination.network.queues[name].settings
            ends = [] if queue.durable else ["it does not outlive a restart of its node (not durable)"]
            ends += ["it goes with its last consumer (auto-delete)"] if queue.auto_delete else []
            ends += [f"it is deleted when unused for {settings.expires} (expires)"] if settings.expires else []
            if ends:
                yield _ending(examination, name, "; ".join(ends))


def _ending(examination: Examination, queue: str, how: str) -> Symptom:
    fix = "let it be durable, without auto-delete and expires: a queue can't be changed, so delete it when it is empty"
    delete = command("rabbitmqctl", "delete_queue", "-p", examination.status.vhost, queue, "--if-empty")
    commands = (delete, command("delayctl", "apply", examination.source))
    return Symptom(queue, f"{queue} does not stay: {how}", fix, commands)


CHECKS: tuple[Check, ...] = (
    Check(
        "H211",
        "queue-down",
        Severity.ERROR,
        "A wait is down, or without a majority.",
        "It takes nothing and lets nothing go until its node, or more than half of its nodes, are back.",
        queue_down,
    ),
    Check(
        "H212",
        "replicas-offline",
        Severity.WARNING,
        "A wait has lost some of its replicas.",
        "A quorum queue works while more than half of its replicas do; the next loss may stop it.",
        replicas_offline,
    ),
    Check(
        "H213",
        "few-replicas",
        Severity.WARNING,
        "A wait has fewer replicas than the cluster could give it.",
        "Queues that were declared when the cluster was smaller stay as they are; with their node, what waits is gone.",
        few_replicas,
    ),
    Check(
        "H214",
        "leader-skew",
        Severity.WARNING,
        "One node leads most of the waits.",
        "All that a queue does is done by its leader. By default queues are led by the node that they were declared at.",
        leader_skew,
    ),
    Check(
        "H215",
        "short-lived",
        Severity.WARNING,
        "A queue on the way of delayed messages does not stay.",
        "What waits is gone with its queue; what comes out finds no way to a target that is gone.",
        short_lived,
    ),
)
