"""What a broker says of itself besides its definitions: memory, nodes, what waits, and what users may do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from delayctl.topology.errors import NotPermitted, Refused


@dataclass(frozen=True, slots=True)
class Waiting:
    """The messages of a queue, and those of them that a restart would spare."""

    messages: int
    persistent: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What lint looks at on a broker; None or nothing where the user may not see it."""

    memory: int | None = None  # Of the node that has least: the limit at which its alarm goes off.
    nodes: int = 1
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    exchange_types: frozenset[str] | None = None
    permissions: tuple[Mapping[str, Any], ...] | None = None  # As the management API lists them.


def read_facts(get: Callable[[str], Any], vhost: str) -> Facts:
    """Ask the management API; `get` reads a path below /api/, `vhost` is as a path spells it."""
    nodes = _if_permitted(get, "nodes?columns=name,mem_limit") or []
    limits = [node["mem_limit"] for node in nodes if isinstance(node.get("mem_limit"), int)]
    permissions = _if_permitted(get, f"vhosts/{vhost}/permissions")
    types = (_if_permitted(get, "overview") or {}).get("exchange_types")
    columns = "name,messages,messages_persistent,type"
    return Facts(
        memory=min(limits, default=None),
        nodes=max(len(nodes), 1),
        waiting=_waiting(_if_permitted(get, f"queues/{vhost}?columns={columns}") or []),
        exchange_types=None if types is None else frozenset(item["name"] for item in types),
        permissions=None if permissions is None else tuple(permissions),
    )


def _waiting(queues: list[dict[str, Any]]) -> dict[str, Waiting]:
    """Quorum queues write everything to disk and count nothing as persistent."""
    return {
        queue["name"]: Waiting(queue["messages"], queue["messages_persistent"])
        for queue in queues
        if queue.get("type") != "quorum" and "messages" in queue and "messages_persistent" in queue
    }


def _if_permitted(get: Callable[[str], Any], path: str) -> Any:
    try:
        return get(path)
    except (NotPermitted, Refused):
        return None
