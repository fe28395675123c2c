"""Topologies to test with, and the broker after a clean apply of one."""

from collections.abc import Mapping

from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Exchange, Overflow, Queue, QueueType, Settings, Topology
from delayctl.topology.plan import Plan
from delayctl.topology.record import record_of
from delayctl.topology.spec import (
    ExchangeSpec,
    LevelSpec,
    QueueSpec,
    RetrySpec,
    RouteSpec,
    SettingsHome,
    Spec,
    Target,
    WaitSpec,
)

from tests.support.memory_broker import VERSION

ORDERS = ExchangeSpec("orders.exchange")
ORDERS_QUEUE = QueueSpec("orders.queue")
ORDERS_ROUTE = RouteSpec(("order.created",), (Target("queue", "orders.queue"),), "orders.exchange", "5m")


def shop(
    levels: str = "1m 5m",
    *,
    type: QueueType = "classic",
    max_length: int | None = 10,
    max_bytes: int | None = None,
    overflow: Overflow = "drop-head",
    settings: SettingsHome = "arguments",
    exchanges: tuple[ExchangeSpec, ...] = (ORDERS,),
    queues: tuple[QueueSpec, ...] = (ORDERS_QUEUE,),
    routes: tuple[RouteSpec, ...] = (ORDERS_ROUTE,),
    retries: tuple[RetrySpec, ...] = (),
    prefix: str = "",
) -> Topology:
    """A small shop: orders wait five minutes, then reach their queue."""
    wait = WaitSpec(type, max_length, max_bytes, overflow)
    return expand(
        Spec(
            tuple(LevelSpec(name, Duration.parse(name), wait) for name in levels.split()),
            settings=settings,
            exchanges=exchanges,
            queues=queues,
            routes=routes,
            retries=retries,
            prefix=prefix,
        )
    )


def live_of(topology: Topology, backlog: Mapping[str, int] | None = None) -> Live:
    """The broker after a clean apply, with so many messages in its queues."""
    existing = topology.existing
    exchanges = (Exchange(r.name, r.type or "topic") for r in existing if r.kind == "exchange")
    queues = (Queue(r.name, Settings(type=r.type)) for r in existing if r.kind == "queue")
    return Live(
        VERSION,
        exchanges={exchange.name: exchange for exchange in (*topology.exchanges, *exchanges)},
        queues={queue.name: queue for queue in (*topology.queues, *queues)},
        bindings=frozenset(topology.bindings),
        policies=topology.policies,
        record=record_of(topology),
        backlog={name: Backlog(count) for name, count in (backlog or {}).items()},
    )


def first_plan(topology: Topology) -> Plan:
    """The plan for an empty virtual host."""
    return diff(topology, Live(VERSION))
