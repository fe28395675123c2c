"""What the broker noted on a message each time it took it out of a queue (x-death). Pure; anybody can write such a header, too."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delayctl.topology.model import Topology
from delayctl.topology.names import Names

_EXPIRED, _TRIED_TOO_OFTEN = "expired", "delivery_limit"


@dataclass(frozen=True, slots=True)
class Delays:
    """The queues that messages wait in: what the broker takes out of them is on its way, and not given up."""

    prefix: str
    queues: frozenset[str]
    known: frozenset[str]  # All queues of the file, these included.

    @classmethod
    def of(cls, topology: Topology) -> "Delays":
        """Those of a topology."""
        return cls(topology.prefix, topology.delay_queues, frozenset(queue.name for queue in topology.queues))

    def has(self, queue: str) -> bool:
        """Say whether messages wait in this queue, or did: also in what stands in for a delay queue or was one."""
        names = Names(self.prefix)
        is_ours = names.level_of(queue) is not None and queue != names.unrouted_queue()
        return queue in self.queues or (is_ours and queue not in self.known)

    def were_over(self, death: Mapping[str, Any]) -> bool:
        """Say whether a death is the end of a wait."""
        queue = death.get("queue")
        if not isinstance(queue, str):
            return False
        return queue in self.queues or (death.get("reason") == _EXPIRED and self.has(queue))


def deaths_of(headers: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Every queue that the broker took the message out of, the latest first."""
    deaths = headers.get("x-death")
    return tuple(death for death in deaths if isinstance(death, dict)) if isinstance(deaths, list) else ()


def latest_death(headers: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the broker noted when it last dead-lettered the message; nothing where it never did."""
    return next(iter(deaths_of(headers)), {})


def death_at_home(headers: Mapping[str, Any], delays: Delays) -> Mapping[str, Any]:
    """What the broker noted when it last took the message from a queue with consumers; nothing where it never did."""
    named = (death for death in deaths_of(headers) if isinstance(death.get("queue"), str))
    return next((death for death in named if not delays.were_over(death)), {})


def way_in(death: Mapping[str, Any]) -> tuple[str, str] | None:
    """The exchange and the key by which the message had come to the queue that it was taken from."""
    keys = death.get("routing-keys")
    if not isinstance(keys, list) or not keys:
        return None
    return str(death.get("exchange", "")), str(keys[0])


def told_by(death: Mapping[str, Any]) -> str | None:
    """A death in words."""
    if not death:
        return None
    why = "tried too often" if death.get("reason") == _TRIED_TOO_OFTEN else death.get("reason")
    return f"{why} in {death.get('queue')}"
