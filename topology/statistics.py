"""Reads the figures that the management API keeps: queues, their last hour, the nodes, and who is connected."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from delayctl.topology.access import quoted
from delayctl.topology.clients import Clients, clients_from_api
from delayctl.topology.errors import NotPermitted, Refused
from delayctl.topology.figures import Node, Statistics, figures_from_api, node_from_api
from delayctl.topology.management import Management

_COLUMNS = "columns=name,state,consumers,messages_ready,messages_unacknowledged,messages_dlx,message_bytes,head_message_timestamp"
_PLACES = ",node,leader,members,online"
_HISTORY = "columns=message_stats.publish_details.samples,messages_details.samples"
# A broker keeps samples of five seconds for ten minutes, and of a minute for an hour.
_FINE, _COARSE = (
    f"{_HISTORY}&msg_rates_age={age}&msg_rates_incr={grain}&lengths_age={age}&lengths_incr={grain}"
    for age, grain in ((600, 5), (3600, 60))
)
_CONNECTION = "columns=name,state,user,user_provided_name"
_CHANNEL = "columns=name,confirm,transactional,connection_details.name,message_stats.publish"
_CONSUMERS = "columns=consumer_details"
_AT_ONCE = 8


def read_statistics(management: Management, with_history: Iterable[str] = ()) -> Statistics:
    """Read the figures of all queues, and the last hour of some. They may be some seconds old."""
    listed = {item["name"]: item for item in management.get(f"queues/{management.vhost}?{_COLUMNS}{_PLACES}")}
    watched = [name for name in with_history if name in listed]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        fine = _histories(pool, management, watched, _FINE)
        coarse = _histories(pool, management, watched, _COARSE)
    queues = {name: figures_from_api(item, fine.get(name, {}), coarse.get(name, {})) for name, item in listed.items()}
    return Statistics(queues, _nodes(management))


def _histories(pool: ThreadPoolExecutor, management: Management, queues: list[str], query: str) -> dict[str, Any]:
    return dict(zip(queues, pool.map(lambda name: _history(management, name, query), queues), strict=True))


def _history(management: Management, queue: str, query: str) -> Any:
    try:
        # A broker without anything to say answers [] where {} is meant.
        return management.get(f"queues/{management.vhost}/{quoted(queue)}?{query}") or {}
    except Refused as error:
        if error.code != 404:  # A queue that was deleted a moment ago has no history.
            raise
        return {}


def _nodes(management: Management) -> tuple[Node, ...] | None:
    try:
        return tuple(sorted(map(node_from_api, management.get("nodes")), key=lambda node: node.name))
    except NotPermitted:
        return None


def read_clients(management: Management, consumed: Iterable[str]) -> Clients:
    """Read who is connected; of the queues that are named, who consumes from them."""
    inside = f"vhosts/{management.vhost}"
    connections = management.get(f"{inside}/connections?{_CONNECTION}")
    channels = management.get(f"{inside}/channels?{_CHANNEL}")
    queues = {name: management.get(f"queues/{management.vhost}/{quoted(name)}?{_CONSUMERS}") for name in consumed}
    return clients_from_api(connections, channels, queues)


def are_off(management: Management) -> bool:
    """Say whether the broker was told to keep no figures at all."""
    return bool(management.get("overview").get("disable_stats"))
