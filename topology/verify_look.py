"""Looks at a broker as somebody may who can change nothing: the tag `management` is enough."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from delayctl.topology.effective import effective
from delayctl.topology.errors import NotPermitted
from delayctl.topology.figures import Figures, figures_from_api
from delayctl.topology.live import Live, live_from_definitions
from delayctl.topology.management import Management
from delayctl.topology.model import Policy, Queue, freeze_arguments
from delayctl.topology.verify_ways import Seen

_EXCHANGES = "columns=name,type,durable,auto_delete,internal,arguments,policy"
_QUEUES = (
    "columns=name,durable,auto_delete,arguments,policy,operator_policy,effective_policy_definition,"
    "state,consumers,messages_ready,messages_unacknowledged,messages_dlx,message_bytes"
)


def look(management: Management, prefix: str) -> Seen:
    """Read a virtual host; the figures may be some seconds old."""
    vhost = management.vhost
    exchanges = [item for item in management.get(f"exchanges/{vhost}?{_EXCHANGES}") if _is_made(item["name"])]
    queues = management.get(f"queues/{vhost}?{_QUEUES}")
    policies = _policies(management)
    definitions = {
        "rabbit_version": management.version(),
        "exchanges": exchanges,
        "queues": queues,
        "bindings": [item for item in management.get(f"bindings/{vhost}") if item["source"]],
        **(policies or {}),
    }
    live = live_from_definitions(definitions)
    return Seen(
        live if policies else replace(live, queues=_in_force(live, queues)),
        {item["name"]: figures_from_api(item, {}, {}) for item in queues},
        {item["name"]: names for item in queues if (names := _policy_names(item))},
        frozenset() if policies else frozenset(item["name"] for item in exchanges if _is_of_others(item, prefix)),
    )


def read_figures(management: Management) -> Mapping[str, Figures]:
    """How the queues are doing."""
    queues = management.get(f"queues/{management.vhost}?{_QUEUES}")
    return {item["name"]: figures_from_api(item, {}, {}) for item in queues}


def _is_made(exchange: str) -> bool:
    """Say whether somebody has declared it."""
    return bool(exchange) and not exchange.startswith("amq.")


def _is_of_others(exchange: Mapping[str, Any], prefix: str) -> bool:
    """Say whether a policy applies to an exchange that is not delayctl's own, which leads from delay to delay alone."""
    policy = exchange.get("policy")
    return bool(policy) and not str(policy).startswith(f"{prefix}delay.")


def _policies(management: Management) -> dict[str, Any] | None:
    """The policies, as definitions have them; None where the user may not read them."""
    try:
        users = management.get(f"policies/{management.vhost}")
        operators = management.get(f"operator-policies/{management.vhost}")
    except NotPermitted:
        return None
    parameters = [{"component": "operator_policy", "name": item["name"], "value": item} for item in operators]
    return {"policies": users, "parameters": parameters}


def _in_force(live: Live, listed: list[Any]) -> dict[str, Queue]:
    """The queues with what is in force in the place of what they were declared with, as the broker says it of each."""
    definitions = {item["name"]: item.get("effective_policy_definition") or {} for item in listed}
    return {name: _under(queue, definitions.get(name, {})) for name, queue in live.queues.items()}


def _under(queue: Queue, definition: Any) -> Queue:
    if not definition:  # A broker without anything to say answers [] where {} is meant.
        return queue
    applied = Policy("", "", "queues", 0, freeze_arguments(definition))
    return replace(queue, settings=effective(queue, (applied,), ()).settings)


def _policy_names(item: Mapping[str, Any]) -> str:
    return " and ".join(name for name in (item.get("policy"), item.get("operator_policy")) if name)
