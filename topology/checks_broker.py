"""Checks of the broker itself: its nodes and their alarms, its version, its figures."""

from collections.abc import Iterator

from delayctl.topology.diagnosis import Check, Symptom, reasons, symptom_of
from delayctl.topology.examination import Examination
from delayctl.topology.figures import Node
from delayctl.topology.findings import Severity
from delayctl.topology.verdict import (
    disk_alarms,
    lost_nodes,
    memory_alarms,
    partitions,
    silent_figures,
    unseen_nodes,
)
from delayctl.topology.wording import command, plural

_MEGABYTE = 1_000_000


def memory_alarm(examination: Examination) -> Iterator[Symptom]:
    """H101: no publisher gets a message in."""
    for reason in reasons(memory_alarms, examination):
        node = _node(examination, reason.at)
        details = [f"uses {_megabytes(node.memory_used)}; its limit is {_megabytes(node.memory_limit)}"]
        fix = "let consumers catch up, or raise the limit while you look for what uses it"
        breakdown = command("rabbitmq-diagnostics", "-n", reason.at, "memory_breakdown")
        raised = command("rabbitmqctl", "-n", reason.at, "set_vm_memory_high_watermark", "0.7")
        yield symptom_of(reason, breakdown, raised, details=details, fix=fix)


def disk_alarm(examination: Examination) -> Iterator[Symptom]:
    """H102: no publisher gets a message in."""
    for reason in reasons(disk_alarms, examination):
        node = _node(examination, reason.at)
        details = [f"{_megabytes(node.disk_free)} are free; it stops at {_megabytes(node.disk_limit)}"]
        fix = "free some of it, or lower the limit if it was set too high"
        status = command("rabbitmq-diagnostics", "-n", reason.at, "status")
        lowered = command("rabbitmqctl", "-n", reason.at, "set_disk_free_limit", "1GB")
        yield symptom_of(reason, status, lowered, details=details, fix=fix)


def node_down(examination: Examination) -> Iterator[Symptom]:
    """H103: what waits on it alone does not leave, and quorums are thinner."""
    for reason in reasons(lost_nodes, examination):
        alone = [level.queue for level in examination.status.levels if _is_only_on(reason.at, examination, level.queue)]
        details = [f"{plural(len(alone), 'wait')} of this topology only there: {', '.join(alone)}"] if alone else []
        fix = "start it again on its host; a node that will not come back is forgotten by the others"
        forget = command("rabbitmqctl", "forget_cluster_node", reason.at)
        yield symptom_of(reason, "systemctl start rabbitmq-server", forget, details=details, fix=fix)


def _is_only_on(node: str, examination: Examination, queue: str) -> bool:
    figures = examination.wait(queue).figures
    return figures.node == node and not figures.members


def partition(examination: Examination) -> Iterator[Symptom]:
    """H104: two halves of a cluster each go their own way."""
    for reason in reasons(partitions, examination):
        fix = "mend the network, then restart the nodes of the smaller side: they take over what the others have"
        status = command("rabbitmqctl", "-n", reason.at, "cluster_status")
        stop, start = (command("rabbitmqctl", "-n", reason.at, what) for what in ("stop_app", "start_app"))
        yield symptom_of(reason, status, stop, start, fix=fix)


def version_bug(examination: Examination) -> Iterator[Symptom]:
    """H105: what lint says of the release."""
    for finding in examination.lint:
        if finding.code == "D403":
            yield Symptom(finding.at, finding.message, finding.fix, ("rabbitmqctl version",))


def statistics_off(examination: Examination) -> Iterator[Symptom]:
    """H106: without figures most of what can be wrong is not seen."""
    if examination.statistics_are_off:
        message = (
            "the broker keeps no figures: what waits, what is full, stuck or early, alarms and clients can't be seen"
        )
        setting = "application:set_env(rabbitmq_management_agent, disable_metrics_collector, false)."
        fix = "set management_agent.disable_metrics_collector = false in rabbitmq.conf and restart; at once, until then, with"
        yield Symptom("", message, fix, (command("rabbitmqctl", "eval", setting),))
        return
    for reason in reasons(silent_figures, examination):
        again = command("delayctl", "doctor", examination.source)
        yield symptom_of(reason, again, fix="ask again in some seconds: queues that were just made have no figures yet")


def nodes_unseen(examination: Examination) -> Iterator[Symptom]:
    """H107: whether there are alarms is not known."""
    for reason in reasons(unseen_nodes, examination):
        tags = command("rabbitmqctl", "set_user_tags", "USER", "monitoring", "policymaker")
        yield symptom_of(reason, tags, fix="let an administrator add the tag monitoring to those that the user has")


def _node(examination: Examination, name: str) -> Node:
    return next(node for node in examination.status.nodes or () if node.name == name)


def _megabytes(size: int | None) -> str:
    return "an unknown amount" if size is None else f"{size / _MEGABYTE:,.0f} MB"


CHECKS: tuple[Check, ...] = (
    Check(
        "H101",
        "memory-alarm",
        Severity.ERROR,
        "A node is short of memory.",
        "Every connection that publishes is blocked, on all nodes; what waits goes on expiring.",
        memory_alarm,
    ),
    Check(
        "H102",
        "disk-alarm",
        Severity.ERROR,
        "A node is short of disk.",
        "Every connection that publishes is blocked, on all nodes; what waits goes on expiring.",
        disk_alarm,
    ),
    Check(
        "H103",
        "node-down",
        Severity.ERROR,
        "A node of the cluster is down.",
        "What waits in a classic queue there does not leave before the node is back; quorum queues have one vote less.",
        node_down,
    ),
    Check(
        "H104",
        "partition",
        Severity.ERROR,
        "Nodes have lost sight of each other.",
        "Each side goes on by itself, and what one of them did is undone when they meet again.",
        partition,
    ),
    Check(
        "H105",
        "version-bug",
        Severity.WARNING,
        "The broker's release has a bug that touches this topology.",
        "Each is taken from RabbitMQ's own release notes and issues, with the releases that mend it.",
        version_bug,
    ),
    Check(
        "H106",
        "no-figures",
        Severity.WARNING,
        "The broker says nothing of its queues.",
        "What is full, stuck or early is worked out from the figures of the management API.",
        statistics_off,
    ),
    Check(
        "H107",
        "nodes-unseen",
        Severity.INFO,
        "The user may not see the nodes.",
        "Alarms, nodes that are down and leaders are for users with the tag monitoring.",
        nodes_unseen,
    ),
)
