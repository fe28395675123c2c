"""How a topology is doing, in figures for a monitoring system: one look at a broker to families of samples. Pure.

What is not known has no sample: neither a zero nor the last known value is told in its place.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from delayctl.topology.changes import Comparison
from delayctl.topology.exposition import Family, Metric, Sample
from delayctl.topology.metrics_levels import LEVEL_METRICS, level_families
from delayctl.topology.plan import Change, Create, Delete, Plan, Replace, Update, Wait
from delayctl.topology.status import Facts, Status, status_of
from delayctl.topology.verdict import SEVERITIES, is_healthy, verdict

Labels = Mapping[str, str]

# The actions of a plan, as the label of drift tells them; moves and settles are ways that are led elsewhere.
_ACTIONS: dict[type[Change], str] = {Create: "create", Update: "update", Replace: "replace", Delete: "delete"}
_REROUTE, _REFUSED = "reroute", "refused"
ACTIONS = (*_ACTIONS.values(), _REROUTE, _REFUSED)
# Those of a change of a delay queue, and the one of a queue that goes once it is empty.
LEAVING = "leaves"
STAGES = ("due", "empties", "renewed", "takes over", "next empties", LEAVING)
_ALARMS = ("down", "partition", "memory", "disk")

UP = Metric("delayctl_up", "gauge", "Whether the broker could be read: 1, or 0.")
ERROR = Metric("delayctl_error_info", "gauge", "Why the broker could not be read, by the kind of error.")
READ_AT = Metric("delayctl_read_timestamp_seconds", "gauge", "When the broker was read or tried, as a Unix time.")
READ_TOOK = Metric("delayctl_read_duration_seconds", "gauge", "How long reading the broker took.")
BROKER = Metric("delayctl_broker_info", "gauge", "The version of the broker.")
HEALTHY = Metric("delayctl_healthy", "gauge", "Whether delayctl status calls the topology healthy: 1, or 0.")
REASONS = Metric("delayctl_reasons", "gauge", "What delayctl status has to say, by how grave it is.")
APPLIED = Metric("delayctl_applied", "gauge", "Whether anything of the topology is on the broker: 1, or 0.")
DRIFT = Metric("delayctl_drift_changes", "gauge", "What plan would change on the broker or refuses to, by action.")
PARKED = Metric("delayctl_parked_messages", "gauge", "Messages that went no further: without a way out, or given up.")
TARGET_MESSAGES = Metric("delayctl_target_messages", "gauge", "Messages in a queue right behind the way out.")
TARGET_CONSUMERS = Metric("delayctl_target_consumers", "gauge", "Consumers of a queue right behind the way out.")
STAGE = Metric("delayctl_switch_stage", "gauge", "How far the change of a delay queue is: 1 for its stage, else 0.")
SWITCH_MESSAGES = Metric("delayctl_switch_messages", "gauge", "Messages in the queue that a change waits for.")
LONGEST = Metric(
    "delayctl_switch_longest_seconds", "gauge", "How long the queue that a change waits for takes at most."
)
ALARM = Metric("delayctl_node_alarm", "gauge", "Whether a node of the broker is in this trouble: 1, or 0.")

METRICS = (
    *(UP, ERROR, READ_AT, READ_TOOK, BROKER, HEALTHY, REASONS, APPLIED, DRIFT),
    *LEVEL_METRICS,
    *(PARKED, TARGET_MESSAGES, TARGET_CONSUMERS, STAGE, SWITCH_MESSAGES, LONGEST, ALARM),
)


@dataclass(frozen=True)
class Reading:
    """One look at a broker: the facts, or the kind of error that kept them away."""

    topology: str  # What the file is called in the labels.
    vhost: str
    at_ms: int
    took_ms: int
    found: Facts | str


def families(reading: Reading) -> Iterator[Family]:
    """All that can be told of a reading."""
    labels = {"topology": reading.topology, "vhost": reading.vhost}
    is_up = isinstance(reading.found, Facts)
    yield _one(UP, labels, is_up)
    if isinstance(reading.found, str):
        yield _one(ERROR, {**labels, "kind": reading.found}, 1)
    yield _one(READ_AT, labels, reading.at_ms / 1000)
    yield _one(READ_TOOK, labels, reading.took_ms / 1000)
    if isinstance(reading.found, Facts):
        yield from _found(reading.found, labels)


def _found(facts: Facts, labels: Labels) -> Iterator[Family]:
    status = status_of(facts)
    yield _one(BROKER, {**labels, "version": status.version}, 1)
    yield from _health(status, labels)
    yield _one(APPLIED, labels, not status.is_missing)
    drift = _drift(facts.plan)
    yield Family(DRIFT, tuple(Sample({**labels, "action": action}, drift[action]) for action in ACTIONS))
    yield from level_families(status.levels, labels)
    yield from _queues(status, labels)
    yield from _switches(facts, labels)
    yield Family(ALARM, tuple(_alarms(status, labels)))


def _one(metric: Metric, labels: Labels, value: float) -> Family:
    return Family(metric, (Sample(labels, value),))


def _health(status: Status, labels: Labels) -> Iterator[Family]:
    reasons = verdict(status, source=labels["topology"])
    counts = Counter(reason.severity for reason in reasons)
    yield _one(HEALTHY, labels, is_healthy(reasons))
    yield Family(REASONS, tuple(Sample({**labels, "severity": name}, counts[name]) for name in SEVERITIES))


def _drift(plan: Plan) -> Counter[str]:
    counts = Counter(_ACTIONS.get(type(change), _REROUTE) for change in plan.changes)
    counts[_REFUSED] = len(plan.refusals)
    return counts


def _queues(status: Status, labels: Labels) -> Iterator[Family]:
    parked = ((item, {**labels, "queue": item.queue, "kind": item.kind}) for item in status.parked)
    yield Family(PARKED, tuple(Sample(own, item.messages) for item, own in parked if item.messages is not None))
    targets = [(target, {**labels, "queue": target.queue}) for target in status.targets]
    yield Family(TARGET_MESSAGES, tuple(Sample(own, t.messages) for t, own in targets if t.messages is not None))
    yield Family(TARGET_CONSUMERS, tuple(Sample(own, t.consumers) for t, own in targets if t.consumers is not None))


def _switches(facts: Facts, labels: Labels) -> Iterator[Family]:
    """What is under way: levels whose queue is switched, and queues that are to go."""
    stages = Comparison(facts.desired, facts.live).course.stages
    waits = [(wait, _place(wait, labels)) for wait in facts.plan.waits]
    yield Family(
        STAGE,
        tuple(
            Sample({**own, "stage": stage}, stages.get(wait.subject, LEAVING) == stage)
            for wait, own in waits
            for stage in STAGES
        ),
    )
    yield Family(SWITCH_MESSAGES, tuple(Sample({**own, "queue": wait.queue}, wait.messages) for wait, own in waits))
    yield Family(LONGEST, tuple(Sample(own, wait.longest.ms / 1000) for wait, own in waits))


def _place(wait: Wait, labels: Labels) -> Labels:
    return {**labels, "level": wait.subject}


def _alarms(status: Status, labels: Labels) -> Iterator[Sample]:
    for node in status.nodes or ():
        states = (not node.is_running, node.is_partitioned, node.memory_alarm, node.disk_alarm)
        for alarm, is_so in zip(_ALARMS, states, strict=True):
            yield Sample({**labels, "node": node.name, "alarm": alarm}, is_so)
