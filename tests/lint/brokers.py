"""The brokers that the rules of D4xx look at: the same for the failing and the passing file of a rule."""

from dataclasses import dataclass, field

from delayctl.topology.facts import Facts, Waiting
from delayctl.topology.live import Live
from delayctl.topology.model import EXCHANGE_TYPES, ROUTED_TYPES, Policy, freeze_arguments


@dataclass(frozen=True)
class Looked:
    """What lint gets to see of a broker."""

    live: Live
    facts: Facts = field(default_factory=Facts)


def policy(name: str, pattern: str, **definition: object) -> Policy:
    """A policy for queues; underscores in names become dashes."""
    spelled = {key.replace("_", "-"): value for key, value in definition.items()}
    return Policy(name, pattern, "queues", 0, freeze_arguments(spelled))


def permission(user: str, configure: str, write: str, read: str) -> dict[str, str]:
    """A user's rights as the management API lists them."""
    return {"user": user, "vhost": "/", "configure": configure, "write": write, "read": read}


BROKERS = {
    "D401": Looked(Live("3.10.8", policies=(policy("short", "^delay\\.", message_ttl=1000),))),
    "D402": Looked(Live("3.10.8"), Facts(waiting={"delay.5m.queue": Waiting(5, 2), "delay.15m.queue": Waiting(7, 7)})),
    "D403": Looked(Live("3.9.29")),
    "D404": Looked(
        Live("3.10.8"),
        Facts(permissions=(permission("orders-service", "", "^orders", ""), permission("admin", ".*", ".*", ".*"))),
    ),
    "D405": Looked(Live("3.10.8"), Facts(nodes=3, exchange_types=frozenset(EXCHANGE_TYPES))),
    "D406": Looked(Live("3.10.8"), Facts(nodes=1, exchange_types=frozenset(ROUTED_TYPES))),
    "D407": Looked(Live("3.10.8")),
}
