"""What becomes of messages of a queue that are looked at and given back: asked of the broker before it is done."""

from dataclasses import dataclass
from typing import Any

from delayctl.cli.host import Host
from delayctl.consumers.mover import MOST_RETURNS
from delayctl.topology.access import quoted
from delayctl.topology.errors import BrokerError
from delayctl.topology.version import has_default_delivery_limit, keeps_places


@dataclass(frozen=True, slots=True)
class Returning:
    """How often a message may be given back before the broker gives it up, and whether it keeps its place."""

    most: int | None = MOST_RETURNS  # None: the broker never gives it up.
    keeps_place: bool | None = True  # None where nobody says what kind of queue it is.


def returning(host: Host, queue: str, type_in_file: str | None = None) -> Returning:
    """What the broker does with what is given back; where it can't be asked, what is known from the file."""
    try:
        assert host.management is not None
        columns = "columns=type,arguments,effective_policy_definition"
        found = host.management.get(f"queues/{host.management.vhost}/{quoted(queue)}?{columns}")
        version = host.management.version()
    except BrokerError:
        return Returning(keeps_place=None if type_in_file is None else type_in_file == "classic")
    if found.get("type") != "quorum":
        return Returning(None)
    return Returning(most_returns(found, version), keeps_places(version))


def most_returns(found: dict[str, Any], version: str) -> int | None:
    """Half of the delivery limit of a quorum queue, once at least; None where it has none."""
    limit = _limit(found)
    if limit is None:
        return MOST_RETURNS if has_default_delivery_limit(version) else None
    return None if limit < 0 else max(1, limit // 2)


def _limit(found: dict[str, Any]) -> int | None:
    """The limit that somebody has set: a negative one is none, and outweighs another, as for the broker."""
    policy = found.get("effective_policy_definition") or {}
    said = ((found.get("arguments") or {}).get("x-delivery-limit"), policy.get("delivery-limit"))
    limits = [limit for limit in said if type(limit) is int]
    return (max if min(limits, default=0) < 0 else min)(limits, default=None)
