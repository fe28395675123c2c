"""A topology as RabbitMQ's definitions: what the management API imports, and a broker loads when it boots."""

from typing import Any

from delayctl.topology.arguments import exchange_arguments, queue_arguments
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Topology, thaw
from delayctl.topology.names import Names
from delayctl.topology.record import record_of, to_json


def definitions_of(topology: Topology, vhost: str) -> dict[str, Any]:
    """The definitions of a topology, for a whole broker and for `POST /api/definitions/<vhost>` alike.

    They hold the record too, so that delayctl knows what it may remove; an import into one virtual host leaves it out.
    """
    return {
        "vhosts": [{"name": vhost}],
        "global_parameters": [{"name": Names(topology.prefix).record(vhost), "value": to_json(record_of(topology))}],
        "policies": [_policy(policy, vhost) for policy in topology.policies],
        "exchanges": [_exchange(exchange, vhost) for exchange in topology.exchanges],
        "queues": [_queue(queue, vhost) for queue in topology.queues],
        "bindings": [_binding(binding, vhost) for binding in topology.bindings],
    }


def _policy(policy: Policy, vhost: str) -> dict[str, Any]:
    return {
        "vhost": vhost,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "priority": policy.priority,
        "definition": {name: thaw(value) for name, value in policy.definition},
    }


def _exchange(exchange: Exchange, vhost: str) -> dict[str, Any]:
    return {
        "vhost": vhost,
        "name": exchange.name,
        "type": exchange.type,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": exchange_arguments(exchange),
    }


def _queue(queue: Queue, vhost: str) -> dict[str, Any]:
    return {
        "vhost": vhost,
        "name": queue.name,
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "arguments": queue_arguments(queue),
    }


def _binding(binding: Binding, vhost: str) -> dict[str, Any]:
    return {
        "vhost": vhost,
        "source": binding.source,
        "destination": binding.destination,
        "destination_type": binding.kind,
        "routing_key": binding.key,
        "arguments": {name: thaw(value) for name, value in binding.arguments},
    }
