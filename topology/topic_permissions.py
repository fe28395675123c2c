"""Topic permissions: a second gate at topic exchanges, which looks at the routing key.

As run on RabbitMQ 3.10 and 4.3: where a user has one for an exchange, what it publishes there must have a key that `write`
takes, and what it binds there a key that `read` takes. Where a user has none, every key will do.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from delayctl.topology.key_index import is_pattern, sample_of
from delayctl.topology.model import Topology
from delayctl.topology.names import Names
from delayctl.topology.permissions import allows, needs_of
from delayctl.topology.routing import PREDEFINED
from delayctl.topology.spec import GrantSpec, Role, Spec

_ANY_KEY = "any.key"  # For an exchange of which the file knows no keys.


@dataclass(frozen=True, slots=True)
class TopicLack:
    """Keys that a user needs at an exchange and that its topic permission there refuses.

    `is_certain` is False where some keys of a pattern may well be taken, or where the pattern can't be read here.
    """

    user: str
    role: Role
    verb: Literal["write", "read"]
    exchange: str
    keys: tuple[str, ...]
    pattern: str
    is_certain: bool = True


def refused_topics(
    spec: Spec, topology: Topology, found: Iterable[Mapping[str, Any]], *, vhost: str
) -> tuple[TopicLack, ...]:
    """What topic permissions keep the users under `permissions:` from, in the order of the file.

    `found` is what `GET /api/vhosts/<vhost>/topic-permissions` answers: mappings with user, exchange, write and read.
    """
    by_user_and_exchange = {(entry["user"], entry["exchange"]): entry for entry in found}
    return tuple(
        lack
        for grant in spec.grants
        for exchange in sorted(_exchanges(grant, spec, topology))
        if (entry := by_user_and_exchange.get((grant.user, exchange))) and _is_topic(exchange, topology)
        for lack in _refused(grant, spec, topology, entry, vhost)
    )


def _exchanges(grant: GrantSpec, spec: Spec, topology: Topology) -> frozenset[str]:
    """Where the user publishes or, as an operator, binds."""
    if grant.role == "operator":
        return frozenset(binding.source for binding in topology.bindings)
    return needs_of(grant, spec, topology).write


def _is_topic(exchange: str, topology: Topology) -> bool:
    """Say whether the exchange is of type topic, or may be."""
    declared = {e.name: e.type for e in topology.exchanges}
    referred = {reference.name: reference.type for reference in topology.existing if reference.kind == "exchange"}
    types = {**PREDEFINED, **referred, **declared}
    return exchange in types and types[exchange] in ("topic", None)


def _refused(
    grant: GrantSpec, spec: Spec, topology: Topology, entry: Mapping[str, Any], vhost: str
) -> Iterator[TopicLack]:
    verb: Literal["write", "read"] = "read" if grant.role == "operator" else "write"
    exchange, pattern = str(entry["exchange"]), str(entry[verb])
    in_full = pattern.replace("{username}", grant.user).replace("{vhost}", vhost)
    keys = {binding.key for binding in topology.bindings if binding.source == exchange}
    if verb == "read":
        exact, open_keys = keys, set[str]()  # A binding's key is compared as it is written.
    elif grant.role == "consumer":
        exact, open_keys = _parking_keys(grant, spec), set[str]()
    elif grant.role == "verifier":
        exact, open_keys = {Names(spec.prefix).verify_key("run", 0)}, set[str]()  # One canary's key is as good as any.
    else:
        keys -= _keys_of_consumers(spec)
        open_keys = {key for key in keys if is_pattern(key)} or ({_ANY_KEY} if not keys else set())
        exact = keys - open_keys
    refused = tuple(sorted(key for key in exact if allows(in_full, key) is False))
    doubtful = {key for key in open_keys if not allows(in_full, sample_of(key))}
    doubtful |= {key for key in exact if allows(in_full, key) is None}
    if refused:
        yield TopicLack(grant.user, grant.role, verb, exchange, refused, pattern)
    if doubtful:
        shown = tuple(sorted(doubtful - {_ANY_KEY}))
        yield TopicLack(grant.user, grant.role, verb, exchange, shown, pattern, is_certain=False)


def _parking_keys(grant: GrantSpec, spec: Spec) -> set[str]:
    """What a consumer publishes to a topic exchange: what it parks, to the exit."""
    retries = (retry for retry in spec.retries if not grant.only or retry.queue in grant.only)
    return {Names(spec.prefix).park_key(retry.park) for retry in retries}


def _keys_of_consumers(spec: Spec) -> set[str]:
    names = Names(spec.prefix)
    return {key for retry in spec.retries for key in (names.retry_key(retry.queue), names.park_key(retry.park))}
