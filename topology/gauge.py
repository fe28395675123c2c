"""Reads what a broker has of memory and disk, and what a queue takes of it, from the management API."""

import time
from dataclasses import dataclass
from typing import Any

from delayctl.topology.access import quoted
from delayctl.topology.calibration import Reading
from delayctl.topology.errors import DelayctlError, NotPermitted, Refused
from delayctl.topology.management import Management

_COLUMNS = "name,running,mem_limit,mem_used,mem_alarm,disk_free,disk_free_limit,disk_free_alarm"
# What messages are kept in; the rest of the node's memory has other reasons to grow and to shrink.
_FOR_MESSAGES = (
    "queue_procs",
    "queue_slave_procs",
    "quorum_queue_procs",
    "quorum_queue_dlx_procs",
    "quorum_ets",
    "msg_index",
    "binary",
)
_GONE = 404
_FIRST_FIGURES_S = 15.0  # A broker renews its figures every five seconds, unless told otherwise.
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What a node has, in bytes; a limit is where its alarm stops all publishers."""

    name: str
    memory_limit: int
    memory_used: int
    disk_free: int
    disk_limit: int
    has_alarm: bool = False

    @property
    def memory_left(self) -> int:
        """What may still be used before the alarm."""
        return max(0, self.memory_limit - self.memory_used)

    @property
    def disk_left(self) -> int:
        """What may still be written before the alarm."""
        return max(0, self.disk_free - self.disk_limit)


def read_rooms(management: Management) -> tuple[NodeRoom, ...]:
    """What every node has, the one with least memory first; waits for those of a broker that has just started."""
    end = time.monotonic() + _FIRST_FIGURES_S
    while not (found := _rooms(management)):
        if time.monotonic() > end:
            raise DelayctlError(
                "no node of the broker says what it has of memory",
                fix="try again, or give --memory; management.disable_stats in the broker's configuration would be a reason",
            )
        time.sleep(_LOOK_S)
    return tuple(sorted(found, key=lambda room: (room.memory_left, room.name)))


def _rooms(management: Management) -> list[NodeRoom]:
    try:
        listed = management.get(f"nodes?columns={_COLUMNS}")
    except NotPermitted as error:
        raise NotPermitted(
            f"{error.what.removesuffix('.')}: what nodes have of memory and disk can't be read",
            fix="let an administrator add the tag monitoring (rabbitmqctl set_user_tags), or give --memory",
        ) from error
    return [_room(item) for item in listed if isinstance(item.get("mem_limit"), int) and "mem_used" in item]


def _room(item: dict[str, Any]) -> NodeRoom:
    disk = item.get("disk_free"), item.get("disk_free_limit")
    free, limit = (value if isinstance(value, int) else 0 for value in disk)
    has_alarm = bool(item.get("mem_alarm") or item.get("disk_free_alarm"))
    return NodeRoom(item["name"], item["mem_limit"], item["mem_used"], free, limit, has_alarm)


@dataclass(frozen=True, slots=True)
class Gauge:
    """The figures of a queue and of the node that it is on."""

    node: str
    reading: Reading
    fell_asleep: str  # When a classic queue last did, which is when it gives back what it does not need.
    never_sleeps: bool = False


def read_gauge(management: Management, queue: str) -> Gauge | None:
    """The figures of now; None while the broker has not looked at the queue yet."""
    try:
        found = management.get(f"queues/{management.vhost}/{quoted(queue)}")
    except Refused as error:
        if error.code != _GONE:
            raise
        return None
    name = found.get("node") or found.get("leader")
    if name is None or not isinstance(found.get("memory"), int) or "messages" not in found:
        return None
    node, memory = management.get(f"nodes/{quoted(name)}"), management.get(f"nodes/{quoted(name)}/memory")["memory"]
    if not isinstance(memory, dict) or "mem_used" not in node:
        return None
    held = sum(memory.get(part, 0) for part in _FOR_MESSAGES)
    reading = Reading(found["messages"], found["memory"], held, node["mem_used"], node.get("disk_free"))
    return Gauge(name, reading, str(found.get("idle_since") or ""), found.get("type") == "quorum")


def memory_of(management: Management, queues: frozenset[str]) -> int:
    """What the processes of these queues take now."""
    listed = management.get(f"queues/{management.vhost}?columns=name,memory")
    return sum(item.get("memory") or 0 for item in listed if item["name"] in queues)
