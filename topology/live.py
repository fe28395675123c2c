"""What is on the broker now, as a value; read from the management API's definitions."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from delayctl.topology.arguments import split_arguments, split_exchange_arguments
from delayctl.topology.model import Binding, Exchange, Kind, Policy, Queue, Settings, freeze_arguments
from delayctl.topology.record import Record

_NO_SETTINGS = Settings()


@dataclass(frozen=True, slots=True)
class Backlog:
    """What would be lost with a queue: messages waiting, unacknowledged or about to be dead-lettered."""

    messages: int
    consumers: int = 0


@dataclass(frozen=True)
class Live:
    """One virtual host. `backlog` holds the queues that were asked for, and no others."""

    version: str = ""
    exchanges: Mapping[str, Exchange] = field(default_factory=dict)
    queues: Mapping[str, Queue] = field(default_factory=dict)
    bindings: frozenset[Binding] = frozenset()
    policies: tuple[Policy, ...] = ()
    operator_policies: tuple[Policy, ...] = ()
    record: Record | None = None
    neighbours: Mapping[str, Record] = field(default_factory=dict)  # What was applied with other prefixes.
    backlog: Mapping[str, Backlog] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()  # Those that run, as far as it matters and the user may know.
    exchange_types: frozenset[str] | None = None  # None where nobody asked.

    def bindings_at(self, kind: Kind, name: str) -> tuple[Binding, ...]:
        """The bindings that begin or end at an object."""
        return tuple(self._bindings_by_end.get((kind, name), ()))

    @cached_property
    def _bindings_by_end(self) -> dict[tuple[Kind, str], set[Binding]]:
        ends: dict[tuple[Kind, str], set[Binding]] = defaultdict(set)
        for binding in self.bindings:
            ends["exchange", binding.source].add(binding)
            ends[binding.kind, binding.destination].add(binding)
        return ends


def is_to_hidden_queue(binding: Binding, live: Live) -> bool:
    """Say whether a binding leads to an exclusive queue: those are in no definitions, and nobody else may bind them."""
    return binding.kind == "queue" and binding.destination not in live.queues


def live_from_definitions(
    definitions: Mapping[str, Any], *, record: Record | None = None, neighbours: Mapping[str, Record] | None = None
) -> Live:
    """Read one virtual host's definitions as the management API exports them."""
    return Live(
        version=str(definitions.get("rabbit_version") or definitions.get("rabbitmq_version") or ""),
        exchanges={item["name"]: exchange_from_json(item) for item in definitions.get("exchanges", ())},
        queues={item["name"]: queue_from_json(item) for item in definitions.get("queues", ())},
        bindings=frozenset(map(binding_from_api, definitions.get("bindings", ()))),
        policies=tuple(_policy(item["name"], item) for item in definitions.get("policies", ())),
        operator_policies=tuple(
            _policy(item["name"], item["value"])
            for item in definitions.get("parameters", ())
            if item.get("component") == "operator_policy"
        ),
        record=record,
        neighbours=neighbours or {},
    )


def exchange_from_json(item: Mapping[str, Any]) -> Exchange:
    """Read an exchange of the definitions."""
    alternate, extra = split_exchange_arguments(item["arguments"])
    return Exchange(
        item["name"], item["type"], alternate, item["durable"], item["auto_delete"], item.get("internal", False), extra
    )


def queue_from_json(item: Mapping[str, Any]) -> Queue:
    """Read a queue of the definitions."""
    settings, extra = split_arguments(item["arguments"]) if item["arguments"] else (_NO_SETTINGS, ())
    return Queue(item["name"], settings, item["durable"], item["auto_delete"], extra)


def binding_from_api(item: Mapping[str, Any]) -> Binding:
    """Read a binding of the definitions, or of a list of bindings."""
    arguments = freeze_arguments(item["arguments"]) if item["arguments"] else ()
    return Binding(item["source"], item["destination_type"], item["destination"], item["routing_key"], arguments)


def _policy(name: str, item: Mapping[str, Any]) -> Policy:
    return Policy(
        name,
        item["pattern"],
        item.get("apply-to", "all"),
        item.get("priority", 0),
        freeze_arguments(item["definition"]),
    )
