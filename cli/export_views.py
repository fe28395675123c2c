"""What the templates of an export say, worked out beforehand: labels, references, order. Pure."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from delayctl.cli.export_quoting import dns_name, hcl_label, hcl_value
from delayctl.topology.arguments import argument_name, exchange_arguments, queue_arguments
from delayctl.topology.definitions import definitions_of
from delayctl.topology.model import Binding, Exchange, Kind, Policy, Queue, Topology, sorted_bindings, thaw
from delayctl.topology.names import Names
from delayctl.topology.wording import quoted

Format = Literal["definitions", "terraform", "kubernetes", "compose"]
FORMATS: tuple[Format, ...] = ("definitions", "terraform", "kubernetes", "compose")
WAYS_OUT = "terraform_data.ways_out"
_QUEUE_TYPE = argument_name("type")
_PREDEFINED = "amq."  # What every virtual host has from the start.


def beyond(topology: Topology, form: Format, vhost: str) -> Iterator[str]:
    """What the file asks for and this format can't say."""
    if form in ("terraform", "kubernetes"):
        for exchange in topology.exchanges:
            if exchange.internal:
                yield f"exchange {quoted(exchange.name)} is internal"
    if form == "terraform":
        yield from _beyond_terraform(topology, vhost)


def _beyond_terraform(topology: Topology, vhost: str) -> Iterator[str]:
    for exchange in topology.exchanges:
        if any(not isinstance(value, str) for _, value in exchange.extra):
            yield f"exchange {quoted(exchange.name)} has arguments that are no texts"
    # The provider finds what it made by names that it joins with / and @.
    for binding in topology.bindings:
        if any("/" in part for part in (binding.source, binding.destination, binding.key)):
            yield f"the binding from {quoted(binding.source)} to {quoted(binding.destination)} has a / in a name or key"
    if topology.policies and "@" in vhost + topology.prefix:
        yield "policies have an @ in their name or virtual host"


@dataclass(frozen=True)
class _Terraform:
    """Names of resources, and what each has to wait for."""

    topology: Topology

    @cached_property
    def ours(self) -> frozenset[tuple[Kind, str]]:
        exchanges: set[tuple[Kind, str]] = {("exchange", exchange.name) for exchange in self.topology.exchanges}
        return frozenset(exchanges | {("queue", queue.name) for queue in self.topology.queues})

    @cached_property
    def policies(self) -> dict[str, str]:
        """The address of the policy that each delay queue has to find when it is made."""
        names = Names(self.topology.prefix)
        levels = self.topology.waits if self.topology.policies else ()
        return {level.queue: f"rabbitmq_policy.{hcl_label(names.policy(level.name))}" for level in levels}

    @cached_property
    def bindings_from(self) -> dict[str, list[str]]:
        """The addresses of the bindings of each exchange."""
        found: dict[str, list[str]] = defaultdict(list)
        for binding in self.topology.bindings:
            found[binding.source].append(_binding_address(binding))
        return found

    def reference(self, kind: Kind, name: str) -> str:
        """The name of an object: of one of ours through its resource, so that Terraform makes that first."""
        return f"rabbitmq_{kind}.{hcl_label(name)}.name" if (kind, name) in self.ours else hcl_value(name)

    def exchange(self, exchange: Exchange) -> dict[str, Any]:
        is_exit = exchange.name == self.topology.exit
        return {
            "label": hcl_label(exchange.name),
            "object": exchange,
            "arguments": exchange_arguments(exchange),
            "after": self.bindings_from.get(exchange.alternate or "", []) if is_exit else [],
        }

    def queue(self, queue: Queue) -> dict[str, Any]:
        exit_first = [f"rabbitmq_exchange.{hcl_label(self.topology.exit)}"]
        return {
            "label": hcl_label(queue.name),
            "object": queue,
            "arguments": queue_arguments(queue),
            "after": [
                *(exit_first if queue.name in self.topology.delay_queues else []),
                *([self.policies[queue.name]] if queue.name in self.policies else []),
            ],
        }

    def binding(self, binding: Binding) -> dict[str, Any]:
        return {
            "label": _binding_label(binding),
            "object": binding,
            "source": self.reference("exchange", binding.source),
            "destination": self.reference(binding.kind, binding.destination),
            "arguments": {name: thaw(value) for name, value in binding.arguments},
            # Older releases of the provider know nothing but texts here.
            "only_texts": all(isinstance(value, str) for _, value in binding.arguments),
            "after": self._before_binding(binding),
        }

    def _before_binding(self, binding: Binding) -> list[str]:
        """Exits before entrances: nothing may begin to wait before it has a way out, nor climb down a ladder without gates."""
        behind = self.bindings_from.get(binding.destination, []) if binding.kind == "exchange" else []
        if binding.source in self.topology.entrances:
            return [WAYS_OUT, *behind]
        if self.topology.ladder and binding.source == self.topology.ladder.entrance:
            return [address for rung in self.topology.rungs for address in self.bindings_from[rung.gate]]
        if binding.kind == "exchange" and binding.destination in self.topology.entrances:
            return behind
        return []


def terraform_values(topology: Topology) -> dict[str, Any]:
    """All that the Terraform template needs."""
    made = _Terraform(topology)
    return {
        "policies": [_labelled_policy(policy, hcl_label(policy.name)) for policy in topology.policies],
        "exchanges": [made.exchange(exchange) for exchange in topology.exchanges],
        "queues": [made.queue(queue) for queue in topology.queues],
        "bindings": [made.binding(binding) for binding in topology.bindings],
        "ways_out": made.bindings_from.get(topology.exit, []),
        "has_levels": bool(topology.waits),
    }


def _binding_label(binding: Binding) -> str:
    return hcl_label(f"{binding.source}.to.{binding.destination}", *_rest_of(binding))


def _binding_address(binding: Binding) -> str:
    return f"rabbitmq_binding.{_binding_label(binding)}"


def _rest_of(binding: Binding) -> tuple[str, ...]:
    """What tells a binding from others between the same two."""
    return binding.kind, binding.source, binding.destination, binding.key, repr(binding.arguments)


def kubernetes_values(topology: Topology, vhost: str) -> dict[str, Any]:
    """All that the Kubernetes template needs; names tell virtual hosts apart, since they may share a namespace."""

    def named(text: str, *also: str) -> str:
        return dns_name(text, *also) if vhost == "/" else dns_name(f"{vhost}.{text}", vhost, text, *also)

    return {
        "policies": [_labelled_policy(policy, named(policy.name)) for policy in topology.policies],
        "exchanges": [
            {"label": named(exchange.name), "object": exchange, "arguments": exchange_arguments(exchange)}
            for exchange in topology.exchanges
        ],
        "queues": [
            {
                "label": named(queue.name),
                "object": queue,
                "arguments": {name: value for name, value in queue_arguments(queue).items() if name != _QUEUE_TYPE},
            }
            for queue in topology.queues
        ],
        "bindings": [
            {
                "label": named(f"{binding.source}.{binding.destination}", *_rest_of(binding)),
                "object": binding,
                "arguments": {name: thaw(value) for name, value in binding.arguments},
            }
            for binding in topology.bindings
        ],
    }


def _labelled_policy(policy: Policy, label: str) -> dict[str, Any]:
    definition = {name: thaw(value) for name, value in policy.definition}
    return {"label": label, "object": policy, "definition": definition}


def compose_values(topology: Topology, vhost: str) -> dict[str, Any]:
    """All that the compose template needs; on a new broker there is nothing that existed before, nor bindings to it."""
    elsewhere = {(one.kind, one.name) for one in topology.existing if not one.name.startswith(_PREDEFINED)}
    kept = tuple(
        binding for binding in topology.bindings if not any(binding.touches(kind, name) for kind, name in elsewhere)
    )
    left_out = sorted_bindings(set(topology.bindings) - set(kept))
    return {"definitions": definitions_of(replace(topology, bindings=kept), vhost), "left_out": left_out}
