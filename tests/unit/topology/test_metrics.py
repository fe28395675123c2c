"""One look at a broker to figures: every one that is known, and none that is not."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from delayctl.cli import verify_metrics
from delayctl.consumers import lateness
from delayctl.topology.diff import diff
from delayctl.topology.exposition import Metric, exposition
from delayctl.topology.figures import Figures, Node, Statistics
from delayctl.topology.live import Backlog, Live
from delayctl.topology.metrics import ACTIONS, METRICS, Reading, families
from delayctl.topology.model import Topology
from delayctl.topology.status import Facts

from tests.support.examples import live_of, shop
from tests.support.exposed import Exposed
from tests.support.golden import check_golden
from tests.support.memory_broker import MemoryBroker
from tests.support.switches import run_once
from tests.unit.cli.test_status import eventful_facts, facts

ROOT = Path(__file__).parents[3]
NOW_MS = 1_700_000_000_000
NODE = Node("rabbit@here", disk_alarm=True)


def told(found: Facts | str) -> str:
    """The exposition of a reading."""
    return exposition(families(Reading("shop.yaml", "/", 1_700_000_000_123, 45, found)))


def eventful() -> Facts:
    """A bit of everything: busy, full, silent and missing levels, a foreign policy, parked messages, a disk that is full."""
    found = eventful_facts()
    sized = replace(found.statistics.queues["delay.1m.queue"], size=4711)
    statistics = Statistics({**found.statistics.queues, "delay.1m.queue": sized}, (NODE,))
    return replace(found, live=replace(found.live, version="4.3.6"), statistics=statistics)


def test_eventful() -> None:
    """Compared whole."""
    check_golden("metrics_eventful.txt", told(eventful()))


def test_a_broker_that_can_not_be_read() -> None:
    """Nothing is told of what it was before."""
    assert told("Unreachable") == (
        "# HELP delayctl_up Whether the broker could be read: 1, or 0.\n"
        "# TYPE delayctl_up gauge\n"
        'delayctl_up{topology="shop.yaml",vhost="/"} 0\n'
        "# HELP delayctl_error_info Why the broker could not be read, by the kind of error.\n"
        "# TYPE delayctl_error_info gauge\n"
        'delayctl_error_info{topology="shop.yaml",vhost="/",kind="Unreachable"} 1\n'
        "# HELP delayctl_read_timestamp_seconds When the broker was read or tried, as a Unix time.\n"
        "# TYPE delayctl_read_timestamp_seconds gauge\n"
        'delayctl_read_timestamp_seconds{topology="shop.yaml",vhost="/"} 1700000000.123\n'
        "# HELP delayctl_read_duration_seconds How long reading the broker took.\n"
        "# TYPE delayctl_read_duration_seconds gauge\n"
        'delayctl_read_duration_seconds{topology="shop.yaml",vhost="/"} 0.045\n'
    )


def test_what_is_not_known_is_not_told() -> None:
    """Of a queue that is missing only that; of one that the broker has not spoken of, its settings."""
    found = Exposed(told(eventful()))

    missing = {name for name in found.names if found.all(name, level="2h")}
    silent = {name for name in found.names if found.all(name, level="15m")}
    assert missing == {"delayctl_level_exists"}
    assert silent == {"delayctl_level_exists", "delayctl_level_max_length", "delayctl_level_ttl_seconds"}
    assert found.by("level", "delayctl_level_exists") == {"1m": 1, "5m": 1, "15m": 1, "1h": 1, "2h": 0}


def test_a_queue_that_may_be_stuck_or_not_is_not_called_well() -> None:
    """Nothing left a level of two hours in the hour that samples go back, which is as it may be; one of 5 minutes is stuck."""
    desired = shop("5m 2h")
    lengths = tuple((NOW_MS - ago * 60_000, 3) for ago in range(60, -1, -1))
    figures = Figures(ready=3, unacknowledged=0, published=lengths, lengths=lengths)
    queues = {f"delay.{level}.queue": figures for level in ("5m", "2h")}

    found = Exposed(told(facts(desired, live_of(desired), queues)))

    assert found.by("level", "delayctl_level_waiting_messages") == {"5m": 3, "2h": 3}
    assert found.by("level", "delayctl_level_stuck_seconds") == {"5m": 330}


def test_nothing_was_applied() -> None:
    """Drift is all of it."""
    found = Exposed(told(facts(shop("5m"), Live(), {})))

    assert found.one("delayctl_applied") == found.one("delayctl_healthy") == 0
    drift = found.by("action", "delayctl_drift_changes")
    assert list(drift) == list(ACTIONS)
    assert drift["create"] == len(diff(shop("5m"), Live()).changes)


def test_users_who_may_not_see_the_nodes() -> None:
    """Whether there are alarms is not known then."""
    desired = shop()
    found = replace(facts(desired, live_of(desired), {}), statistics=Statistics({}, None))

    assert "delayctl_node_alarm" not in told(found)


def stage_of(broker: MemoryBroker, desired: Topology) -> dict[str, str]:
    """The stage of every change that is due or under way."""
    found = Exposed(told(facts(desired, broker.live(), {})))
    levels = {sample.labels["level"] for family in found.families for sample in family.samples if family.name == "delayctl_switch_stage"}  # fmt: skip
    stages = {level: found.by("stage", "delayctl_switch_stage", level=level) for level in levels}
    assert all(sum(values.values()) == 1 for values in stages.values())
    return {level: next(name for name, value in values.items() if value) for level, values in stages.items()}


def test_the_stages_of_a_switch() -> None:
    """From due to done; where only an apply is waited for, that can be told from where messages are."""
    before, after = shop("5m", max_length=10), shop("5m", max_length=20)
    broker = MemoryBroker.holding(live_of(before, {"delay.5m.queue": 3}))
    seen = [stage_of(broker, after)]

    run_once(broker, after)
    seen.append(stage_of(broker, after))
    broker.backlog["delay.5m.queue"] = Backlog(0)
    seen.append(stage_of(broker, after))
    for _ in range(3):
        run_once(broker, after)
        seen.append(stage_of(broker, after))
        broker.backlog["delay.5m.next.queue"] = Backlog(2 * (len(seen) < 5))

    expected = ["due", "empties", "renewed", "takes over", "next empties"]
    assert seen == [*({"5m": stage} for stage in expected), {}]


def test_a_level_that_goes_is_under_way_as_well() -> None:
    """Its queue leaves once it is empty."""
    before = shop("5m 1h")
    broker = MemoryBroker.holding(live_of(before, {"delay.1h.queue": 3}))
    after = shop("5m")
    run_once(broker, after)

    found = Exposed(told(facts(after, broker.live(), {})))

    assert stage_of(broker, after) == {"delay.1h.queue": "leaves"}
    assert found.one("delayctl_switch_messages", queue="delay.1h.queue") == 3
    assert found.one("delayctl_switch_longest_seconds") == 3600


@pytest.mark.parametrize(
    "metric", [*METRICS, *lateness.METRICS, *verify_metrics.METRICS], ids=lambda metric: metric.name
)
def test_every_metric_is_documented(metric: Metric) -> None:
    """By its name in docs/metrics.md, with its type; its name follows Prometheus' conventions."""
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")

    assert re.search(rf"^\| `{metric.name}` \| {metric.kind} \|", page, re.MULTILINE)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
