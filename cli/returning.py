"""What becomes of messages of a queue that are looked at and given back: asked of the broker before it is done."""

from dataclasses import dataclass
from typing import Any

from delayctl.cli.host import Host
from delayctl.consumers.mover import MOST_RETURNS
from delayctl.topology.access import quoted
from delayctl.topology.errors import BrokerError
from delayctl.topology.version import keeps_places


@dataclass(frozen=True, slots=True)
class Returning:
    """How often a message may be given back before the broker gives it up, and whether it keeps its place."""

    most: int = MOST_RETURNS
    keeps_place: bool = True


def returning(host: Host, queue: str, type_in_file: str | None = None) -> Returning:
    """What the broker does with what is given back; where it can't be asked, what is known from the file."""
    try:
        assert host.management is not None
        columns = "columns=type,arguments,effective_policy_definition"
        found = host.management.get(f"queues/{host.management.vhost}/{quoted(queue)}?{columns}")
        version = host.management.version()
    except BrokerError:
        return Returning(keeps_place=type_in_file == "classic")
    if found.get("type") != "quorum":
        return Returning()
    return Returning(_half_of_the_limit(found), keeps_places(version))


def _half_of_the_limit(found: dict[str, Any]) -> int:
    policy = found.get("effective_policy_definition") or {}
    limits = (found.get("arguments", {}).get("x-delivery-limit"), policy.get("delivery-limit"))
    known = [limit for limit in limits if isinstance(limit, int) and limit >= 0]
    return min(known, default=2 * MOST_RETURNS) // 2
