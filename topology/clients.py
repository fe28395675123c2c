"""The clients of a virtual host as far as delays are concerned: who is blocked, who does not listen, who takes what waits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_BLOCKED_STATES = frozenset({"blocked", "blocking"})


@dataclass(frozen=True, slots=True)
class Client:
    """A connection, as its owner and as the broker know it."""

    name: str  # The broker's: both addresses.
    user: str = ""
    own_name: str = ""  # What the client calls itself, if it does.

    def __str__(self) -> str:
        called = f" ({self.own_name})" if self.own_name else ""
        return f"{self.name}{called}" + (f" of user {self.user}" if self.user else "")


@dataclass(frozen=True)
class Clients:
    """What a doctor wants to know of the clients."""

    blocked: tuple[Client, ...] = ()  # The broker takes nothing from them for now.
    unconfirmed: tuple[Client, ...] = ()  # They publish, and never hear what became of it.
    takers: Mapping[str, tuple[Client, ...]] = field(default_factory=dict)  # Consumers by queue.


def clients_from_api(
    connections: Iterable[Mapping[str, Any]],
    channels: Iterable[Mapping[str, Any]],
    consumed: Mapping[str, Mapping[str, Any]],
) -> Clients:
    """Read the management API's lists of connections and channels, and the queues that somebody consumes from."""
    known = {item["name"]: _client(item) for item in connections}
    blocked = [known[item["name"]] for item in connections if item.get("state") in _BLOCKED_STATES]
    deaf = {_connection_of(channel) for channel in channels if _is_deaf(channel)}
    takers = {queue: _takers(item, known) for queue, item in consumed.items()}
    return Clients(_in_order(blocked), _in_order(known.get(name, Client(name)) for name in deaf), takers)


def _client(item: Mapping[str, Any]) -> Client:
    return Client(item["name"], item.get("user") or "", item.get("user_provided_name") or "")


def _is_deaf(channel: Mapping[str, Any]) -> bool:
    """Say whether a channel publishes without confirms and outside of transactions."""
    published = (channel.get("message_stats") or {}).get("publish") or 0
    return published > 0 and channel.get("confirm") is False and not channel.get("transactional")


def _connection_of(channel: Mapping[str, Any]) -> str:
    return str((channel.get("connection_details") or {}).get("name") or channel.get("name"))


def _takers(queue: Mapping[str, Any], known: Mapping[str, Client]) -> tuple[Client, ...]:
    details = (item.get("channel_details") or {} for item in queue.get("consumer_details") or ())
    names = {str(found["connection_name"]) for found in details if found.get("connection_name")}
    return _in_order(known.get(name, Client(name)) for name in names)


def _in_order(clients: Iterable[Client]) -> tuple[Client, ...]:
    return tuple(sorted(clients, key=lambda client: client.name))
