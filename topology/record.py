"""What was applied, remembered on the broker itself, so that any machine can plan a removal."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from delayctl.topology.model import (
    Binding,
    Exchange,
    Policy,
    Queue,
    Resource,
    Topology,
    freeze_arguments,
    sorted_bindings,
    thaw,
)

VERSION = 1


@dataclass(frozen=True, slots=True)
class Record:
    """The objects that delayctl made.

    `restore` holds bindings of others that a replacement must put back at once, `replaced` those that a delayed route took
    the place of: they come back when the route goes.
    """

    exchanges: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    bindings: frozenset[Binding] = frozenset()
    policies: frozenset[str] = frozenset()
    restore: frozenset[Binding] = frozenset()
    replaced: frozenset[Binding] = frozenset()

    def __contains__(self, resource: Resource) -> bool:
        match resource:
            case Exchange():
                return resource.name in self.exchanges
            case Queue():
                return resource.name in self.queues
            case Policy():
                return resource.name in self.policies
            case Binding():
                return resource in self.bindings

    def __len__(self) -> int:
        return len(self.exchanges) + len(self.queues) + len(self.bindings) + len(self.policies)

    def union(self, other: "Record", *, restore: Iterable[Binding] = ()) -> "Record":
        """All that either of the two made."""
        return Record(
            self.exchanges | other.exchanges,
            self.queues | other.queues,
            self.bindings | other.bindings,
            self.policies | other.policies,
            self.restore | other.restore | frozenset(restore),
            self.replaced | other.replaced,
        )

    def with_resources(self, resources: Iterable[Resource]) -> "Record":
        """This record and a few objects more."""
        return self.union(record_of(resources))


def record_of(resources: Iterable[Resource] | Topology) -> Record:
    """The record that remembers these objects."""
    exchanges, queues, bindings, policies = set(), set(), set(), set()
    for resource in resources:
        match resource:
            case Exchange():
                exchanges.add(resource.name)
            case Queue():
                queues.add(resource.name)
            case Policy():
                policies.add(resource.name)
            case Binding():
                bindings.add(resource)
    return Record(frozenset(exchanges), frozenset(queues), frozenset(bindings), frozenset(policies))


def to_json(record: Record) -> dict[str, Any]:
    """Spell a record for the broker."""
    return {
        "version": VERSION,
        "exchanges": sorted(record.exchanges),
        "queues": sorted(record.queues),
        "policies": sorted(record.policies),
        "bindings": [binding_to_json(binding) for binding in sorted_bindings(record.bindings)],
        "restore": [binding_to_json(binding) for binding in sorted_bindings(record.restore)],
        # Most topologies have none, and records of earlier releases never have.
        **({"replaced": list(map(binding_to_json, sorted_bindings(record.replaced)))} if record.replaced else {}),
    }


def from_json(value: dict[str, Any]) -> Record:
    """Read a record; raises KeyError, TypeError or ValueError where it is damaged."""
    if value["version"] != VERSION:
        raise ValueError(f"record of version {value['version']}")
    return Record(
        exchanges=frozenset(map(_text, value["exchanges"])),
        queues=frozenset(map(_text, value["queues"])),
        policies=frozenset(map(_text, value["policies"])),
        bindings=frozenset(map(binding_from_json, value["bindings"])),
        restore=frozenset(map(binding_from_json, value["restore"])),
        replaced=frozenset(map(binding_from_json, value.get("replaced", ()))),
    )


def binding_to_json(binding: Binding) -> list[Any]:
    """A binding as a short list, since a record may hold thousands."""
    arguments = {name: thaw(value) for name, value in binding.arguments}
    return [binding.source, binding.kind, binding.destination, binding.key, *([arguments] if arguments else [])]


def binding_from_json(value: list[Any]) -> Binding:
    """Read what `binding_to_json` wrote."""
    source, kind, destination, key, *arguments = value
    if kind not in ("queue", "exchange"):
        raise ValueError(f"binding to a {kind}")
    frozen = freeze_arguments(dict(arguments[0])) if arguments else ()
    return Binding(_text(source), kind, _text(destination), _text(key), frozen)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a name")
    return value
