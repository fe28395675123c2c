"""The `routes` section: which messages wait, and where they go afterwards."""

from dataclasses import dataclass

from delayctl.topology.model import Kind
from delayctl.topology.names import Names
from delayctl.topology.parse_levels import Levels
from delayctl.topology.parse_objects import Objects
from delayctl.topology.reader import Reader, describe, is_nothing, listed
from delayctl.topology.source import ListNode, MapNode, Node, ScalarNode
from delayctl.topology.spec import RouteSpec, Target
from delayctl.topology.wording import did_you_mean, quoted

ROUTE_KEYS = ("from", "key", "delay", "to")
TARGET_KEYS = ("queue", "exchange")
PATTERN_WORDS = frozenset({"*", "#"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What routes and retries may mention."""

    names: Names
    levels: Levels
    objects: Objects


def read_routes(reader: Reader, node: Node | None, scope: Scope) -> tuple[RouteSpec, ...]:
    """Read all routes; one that stands twice counts once."""
    items = reader.items(node, "routes") if node and not is_nothing(node) else []
    return tuple(dict.fromkeys(route for item in items if (route := _read_route(reader, item, scope))))


def _read_route(reader: Reader, node: Node, scope: Scope) -> RouteSpec | None:
    if not isinstance(node, MapNode):
        message = f"route must be a mapping, not {describe(node)}"
        reader.problem(node, message, fix="write {from: EXCHANGE, key: KEY, delay: LEVEL, to: QUEUE}")
        return None
    fields = reader.fields(node, "route", ROUTE_KEYS)
    for needed in ("key", "to"):
        if needed not in fields:
            reader.problem(node, f"route has no '{needed}'", fix=f"add {needed}: …")
    if "from" not in fields and "delay" not in fields:
        fix = "add delay: LEVEL, or from: EXCHANGE, or both"
        reader.problem(node, "route has neither 'from' nor 'delay'", fix=fix)
    source = scope.objects.use(fields["from"], "exchange", "from") if "from" in fields else None
    keys = _read_keys(reader, fields["key"]) if "key" in fields else ()
    level = _read_delay(reader, fields["delay"], scope.levels) if "delay" in fields else None
    targets = _read_targets(reader, fields["to"], scope.objects) if "to" in fields else ()
    if source and level and Target("exchange", source) in targets:
        message = f"route leads from exchange {quoted(source)} back to itself: the broker drops what circles"
        reader.problem(fields["to"], message, fix="send it to a queue, or to another exchange")
    if source and "key" in fields:
        _check_keys_fit(reader, fields["key"], source, scope.objects.exchanges[source].type, keys)
    return RouteSpec(keys, targets, source, level) if keys and targets else None


def _read_keys(reader: Reader, node: Node) -> tuple[str, ...]:
    items = node.items if isinstance(node, ListNode) else [node]
    if not items:
        reader.problem(node, "key is an empty list", fix="write at least one key")
    return tuple(dict.fromkeys(key for item in items if (key := reader.text(item, "key")) is not None))


def _check_keys_fit(reader: Reader, node: Node, source: str, kind: str | None, keys: tuple[str, ...]) -> None:
    if kind == "headers":
        message = f"exchange {quoted(source)} is of type headers, which routes without keys"
        reader.problem(node, message, fix="route from a direct, topic or fanout exchange")
    for key in keys if kind == "direct" else ():
        if not PATTERN_WORDS.isdisjoint(key.split(".")):
            message = f"key {quoted(key)} is a pattern, but exchange {quoted(source)} is of type direct"
            reader.problem(node, message, fix="write the keys out, or use a topic exchange")


def _read_delay(reader: Reader, node: Node, levels: Levels) -> str | None:
    text = node.text if isinstance(node, ScalarNode) else ""
    if text in levels or levels.is_broken(text):
        return text
    if text.isdecimal():
        reader.duration(node, "delay")
        return None
    level = levels.named_by_duration(text)
    if level is None:
        names = [level.name for level in levels]
        message = f"delay must be a level, not {describe(node)}{did_you_mean(text, names)}"
        reader.problem(node, message, fix=f"use a level ({listed(names)}), or add one to delay.levels")
    return level


def _read_targets(reader: Reader, node: Node, objects: Objects) -> tuple[Target, ...]:
    items = node.items if isinstance(node, ListNode) else [node]
    if not items:
        reader.problem(node, "to is an empty list", fix="name at least one queue")
    return tuple(dict.fromkeys(target for item in items if (target := _read_target(reader, item, objects))))


def _read_target(reader: Reader, node: Node, objects: Objects) -> Target | None:
    if not isinstance(node, MapNode):
        queue = objects.use(node, "queue", "to")
        return Target("queue", queue) if queue else None
    fields = reader.fields(node, "to", TARGET_KEYS)
    if len(fields) != 1:
        if len(fields) < len(node.pairs):
            return None
        fix = "write to: NAME, or to: {exchange: NAME}; several as a list"
        reader.problem(node, "to must name one queue or one exchange", fix=fix)
        return None
    kind: Kind = "queue" if "queue" in fields else "exchange"
    name = objects.use(fields[kind], kind, f"to.{kind}")
    return Target(kind, name) if name else None
