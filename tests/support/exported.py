"""Exports read back: every format as the objects that it would make."""

import json
from collections import Counter
from typing import Any

import hcl2
import yaml
from delayctl.topology.arguments import exchange_arguments, queue_arguments
from delayctl.topology.model import Topology, thaw

Objects = Counter[str]


def objects_of(topology: Topology) -> Objects:
    """What the topology is made of, in one spelling for all formats."""
    return Counter(
        [
            *(
                _text("exchange", e.name, e.type, e.durable, e.auto_delete, exchange_arguments(e))
                for e in topology.exchanges
            ),
            *(_text("queue", q.name, q.durable, q.auto_delete, queue_arguments(q)) for q in topology.queues),
            *(
                _text("binding", b.source, b.kind, b.destination, b.key, {n: thaw(v) for n, v in b.arguments})
                for b in topology.bindings
            ),
            *(
                _text("policy", p.name, p.pattern, p.apply_to, p.priority, {n: thaw(v) for n, v in p.definition})
                for p in topology.policies
            ),
        ]
    )


def from_definitions(definitions: dict[str, Any]) -> Objects:
    """What RabbitMQ would import."""
    return Counter(
        [
            *(
                _text("exchange", e["name"], e["type"], e["durable"], e["auto_delete"], e["arguments"])
                for e in definitions["exchanges"]
            ),
            *(_text("queue", q["name"], q["durable"], q["auto_delete"], q["arguments"]) for q in definitions["queues"]),
            *(
                _text("binding", b["source"], b["destination_type"], b["destination"], b["routing_key"], b["arguments"])
                for b in definitions["bindings"]
            ),
            *(
                _text("policy", p["name"], p["pattern"], p["apply-to"], p["priority"], p["definition"])
                for p in definitions["policies"]
            ),
        ]
    )


def from_kubernetes(text: str) -> Objects:
    """What the topology operator would make."""
    found: list[str] = []
    for document in filter(None, yaml.safe_load_all(text)):
        spec = document["spec"]
        arguments = spec.get("arguments", {})
        match document["kind"]:
            case "Exchange":
                found += [_text("exchange", spec["name"], spec["type"], spec["durable"], spec["autoDelete"], arguments)]
            case "Queue":
                arguments = arguments | ({"x-queue-type": spec["type"]} if "type" in spec else {})
                found += [_text("queue", spec["name"], spec["durable"], spec["autoDelete"], arguments)]
            case "Binding":
                ends = (spec["source"], spec["destinationType"], spec["destination"], spec["routingKey"])
                found += [_text("binding", *ends, arguments)]
            case "Policy":
                rest = (spec["pattern"], spec["applyTo"], spec["priority"], spec["definition"])
                found += [_text("policy", spec["name"], *rest)]
    return Counter(found)


def from_terraform(text: str) -> Objects:
    """What Terraform would make, references followed."""
    found: list[str] = []
    all_of_them = resources(text)
    for address, body in all_of_them.items():
        settings = body.get("settings", body.get("policy", [{}]))[0]
        match address.partition(".")[0]:
            case "rabbitmq_exchange":
                lifetime = (settings["durable"], settings["auto_delete"])
                arguments = plain(settings.get("arguments", {}))
                found += [_text("exchange", plain(body["name"]), plain(settings["type"]), *lifetime, arguments)]
            case "rabbitmq_queue":
                lifetime = (settings["durable"], settings["auto_delete"])
                found += [_text("queue", plain(body["name"]), *lifetime, _encoded(settings))]
            case "rabbitmq_binding":
                source, destination = (_named(body[end], all_of_them) for end in ("source", "destination"))
                ends = (source, plain(body["destination_type"]), destination, plain(body["routing_key"]))
                found += [_text("binding", *ends, _encoded(body))]
            case "rabbitmq_policy":
                rest = (settings["pattern"], settings["apply_to"], settings["priority"], settings["definition"])
                found += [_text("policy", plain(body["name"]), *map(plain, rest))]
    return Counter(found)


def resources(text: str) -> dict[str, dict[str, Any]]:
    """Terraform's resources by address, as a parser reads them."""
    found: dict[str, dict[str, Any]] = {}
    for resource in hcl2.loads(text).get("resource", []):
        for kind, labelled in resource.items():
            for label, body in labelled.items():
                address = f"{plain(kind)}.{plain(label)}"
                assert address not in found, address
                found[address] = body
    return found


def references(body: dict[str, Any]) -> set[str]:
    """The addresses that a resource has to wait for."""
    named = [body.get(end, "") for end in ("source", "destination")]
    return {
        ".".join(reference[2:-1].split(".")[:2])
        for reference in (*body.get("depends_on", ()), *named)
        if reference.startswith("${")
    }


def plain(value: Any) -> Any:
    """A value of the parser, which leaves quotes and escapes as they are."""
    if isinstance(value, dict):
        return {plain(name): plain(inner) for name, inner in value.items() if name != "__is_block__"}
    return json.loads(value) if isinstance(value, str) and value.startswith('"') else value


def _named(value: str, all_of_them: dict[str, dict[str, Any]]) -> Any:
    if not value.startswith("${"):
        return plain(value)
    return plain(all_of_them[value.removeprefix("${").removesuffix(".name}")]["name"])


def _encoded(body: dict[str, Any]) -> Any:
    text = body.get("arguments_json")
    if text is None:
        return plain(body.get("arguments", {}))
    inner = text.removeprefix("${jsonencode(").removesuffix(")}")
    return plain(hcl2.loads(f"value = {inner}\n")["value"])


def _text(*parts: Any) -> str:
    return json.dumps(parts, sort_keys=True)
