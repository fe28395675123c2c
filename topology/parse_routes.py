"""The `routes` section: which messages wait, and where they go afterwards."""

from dataclasses import dataclass

from delayctl.topology.model import Arguments, Kind, freeze_arguments
from delayctl.topology.names import ANY, Names
from delayctl.topology.parse_levels import Levels
from delayctl.topology.parse_objects import Objects, plain_value
from delayctl.topology.reader import Reader, describe, is_nothing, listed
from delayctl.topology.source import ListNode, MapNode, Node, ScalarNode
from delayctl.topology.spec import ExchangeSpec, RouteSpec, Target
from delayctl.topology.wording import did_you_mean, quoted

ROUTE_KEYS = ("from", "key", "headers", "delay", "to", "replaces")
TARGET_KEYS = ("queue", "exchange")
PATTERN_WORDS = frozenset({"*", "#"})
X_MATCHES = ("all", "any", "all-with-x", "any-with-x")
KEYLESS_TYPES = ("fanout", "headers")


@dataclass(frozen=True, slots=True)
class Scope:
    """What routes and retries may mention."""

    names: Names
    levels: Levels
    objects: Objects


def read_routes(reader: Reader, node: Node | None, scope: Scope) -> tuple[RouteSpec, ...]:
    """Read all routes; one that stands twice counts once."""
    items = reader.items(node, "routes") if node and not is_nothing(node) else []
    read = [(item, route) for item in items if (route := _read_route(reader, item, scope))]
    _check_replaced(reader, read, scope)
    return tuple(dict.fromkeys(route for _, route in read))


def _check_replaced(reader: Reader, read: list[tuple[Node, RouteSpec]], scope: Scope) -> None:
    """A way can't both be replaced and be there."""
    direct = {way: route for _, route in read if route.level is None for way in _direct_ways(route, scope)}
    for node, route in read:
        twice = [way for way in _direct_ways(route, scope) if way in direct] if route.replaces and route.level else []
        if twice:
            _, key, _, target = twice[0]
            what = f"the way from {quoted(route.source or '')}{f' by {quoted(key)}' if key else ''} to {quoted(target.name)}"
            message = f"route replaces {what}, which the route in line {direct[twice[0]].line} makes"
            reader.problem(node, message, fix="remove the other route: the delayed one takes its place")


def _direct_ways(route: RouteSpec, scope: Scope) -> list[tuple[str | None, str, Arguments, Target]]:
    known = scope.objects.exchanges.get(route.source or "")
    is_keyless = bool(route.headers) or (known is not None and known.type in KEYLESS_TYPES)
    keys = ("",) if is_keyless else route.keys
    return [(route.source, key, route.headers, target) for key in keys for target in route.targets]


def _read_route(reader: Reader, node: Node, scope: Scope) -> RouteSpec | None:
    if not isinstance(node, MapNode):
        message = f"route must be a mapping, not {describe(node)}"
        reader.problem(node, message, fix="write {from: EXCHANGE, key: KEY, delay: LEVEL, to: QUEUE}")
        return None
    fields = reader.fields(node, "route", ROUTE_KEYS)
    if "from" not in fields and "delay" not in fields:
        fix = "add delay: LEVEL, or from: EXCHANGE, or both"
        reader.problem(node, "route has neither 'from' nor 'delay'", fix=fix)
    source = scope.objects.use(fields["from"], "exchange", "from") if "from" in fields else None
    keys = _read_keys(reader, fields["key"]) if "key" in fields else ()
    headers = _read_headers(reader, fields["headers"]) if "headers" in fields else ()
    level = _read_delay(reader, fields["delay"], scope.levels) if "delay" in fields else None
    targets = _read_targets(reader, fields["to"], scope.objects) if "to" in fields else ()
    replaces = _read_replaces(reader, fields)
    needs_key = _needs_key(fields, source, headers, scope.objects)
    if needs_key and "key" not in fields:
        known = scope.objects.exchanges.get(source) if source else None
        reader.problem(node, "route has no 'key'", fix=_how_to_add_key(fields, known))
    if "to" not in fields:
        reader.problem(node, "route has no 'to'", fix="add to: …")
    if source and level == ANY:
        # An exchange can't add the headers that say how long.
        message = f"route from exchange {quoted(source)} can't wait any delay: only who publishes to the delay can say how long"
        fix = "choose a level, or remove from: DelayPublisher and other clients publish to the ladder itself then"
        reader.problem(fields["delay"], message, fix=fix)
    if source and level and Target("exchange", source) in targets:
        message = f"route leads from exchange {quoted(source)} back to itself: the broker drops what circles"
        reader.problem(fields["to"], message, fix="send it to a queue, or to another exchange")
    if source:
        _check_fits(reader, node, fields, scope.objects.exchanges[source], keys)
    elif "headers" in fields and "from" not in fields:
        reader.problem(fields["headers"], "headers without 'from'", fix="name the headers exchange: from: EXCHANGE")
    if not targets or (needs_key and not keys):
        return None
    return RouteSpec(keys, targets, source, level, headers, reader.line_of(node), replaces)


def _read_replaces(reader: Reader, fields: dict[str, Node]) -> bool:
    if "replaces" not in fields or not reader.boolean(fields["replaces"], "replaces"):
        return False
    if missing := [name for name in ("from", "delay") if name not in fields]:
        message = f"route replaces a direct way, but has no '{missing[0]}'"
        reader.problem(fields["replaces"], message, fix=f"add {missing[0]}: …, or remove replaces")
    return True


def _needs_key(fields: dict[str, Node], source: str | None, headers: Arguments, objects: Objects) -> bool:
    """Say whether something on the way looks at a key: the source, or the exit of the delay."""
    if "delay" in fields or "from" not in fields:
        return True
    # One problem is enough where the exchange itself is not known.
    return source is not None and not headers and objects.exchanges[source].type not in KEYLESS_TYPES


def _how_to_add_key(fields: dict[str, Node], source: ExchangeSpec | None) -> str:
    if source and source.type in KEYLESS_TYPES:
        return "add key: …, the keys that messages come out of the delay with"
    if "headers" in fields and source and source.type is None:
        return f"add key: …, or type: headers to exchange {quoted(source.name)} if it is of that type"
    return "add key: …"


def _read_keys(reader: Reader, node: Node) -> tuple[str, ...]:
    if not isinstance(node, ListNode):
        key = _read_key(reader, node)
        return () if key is None else (key,)
    if not node.items:
        reader.problem(node, "key is an empty list", fix="write at least one key")
    return tuple(dict.fromkeys(key for item in node.items if (key := _read_key(reader, item)) is not None))


def _read_key(reader: Reader, node: Node) -> str | None:
    if is_nothing(node):
        fix = 'write a key; one that begins with # or * needs quotes, and an empty one is ""'
        reader.problem(node, "key must be a text, not nothing", fix=fix)
        return None
    is_empty = isinstance(node, ScalarNode) and node.value == ""
    return "" if is_empty else reader.text(node, "key")


def _read_headers(reader: Reader, node: Node) -> Arguments:
    """What a headers exchange looks for; nothing at all takes every message."""
    headers: dict[str, object] = {}
    for name, key, value in reader.entries(node, "headers"):
        if name == "x-match":
            headers[name] = reader.choice(value, "x-match", X_MATCHES)
        elif reader.check_name(key, "header", name, may_be_predefined=True):
            headers[name] = plain_value(reader, value, f"header {quoted(name)}")
    return freeze_arguments(headers)


def _check_fits(
    reader: Reader, node: Node, fields: dict[str, Node], source: ExchangeSpec, keys: tuple[str, ...]
) -> None:
    """Hold what a route looks for against what its source looks at."""
    kind = source.type
    if kind == "headers" and "headers" not in fields:
        message = f"exchange {quoted(source.name)} is of type headers, and the route has no 'headers'"
        fix = "add headers: {NAME: VALUE}, or headers: {} to take every message"
        reader.problem(fields.get("key", node), message, fix=fix)
    if "headers" in fields and kind not in ("headers", None):
        message = f"exchange {quoted(source.name)} is of type {kind}, which does not look at headers"
        reader.problem(fields["headers"], message, fix="route by key, or from a headers exchange")
    for key in keys if kind == "direct" else ():
        if not PATTERN_WORDS.isdisjoint(key.split(".")):
            message = f"key {quoted(key)} is a pattern, but exchange {quoted(source.name)} is of type direct"
            reader.problem(fields["key"], message, fix="write the keys out, or use a topic exchange")


def _read_delay(reader: Reader, node: Node, levels: Levels) -> str | None:
    text = node.text if isinstance(node, ScalarNode) else ""
    if text in levels or levels.is_broken(text) or (text == ANY and levels.ladder):
        return text
    if not levels.are_wanted:
        message = f"route waits {describe(node)}, but the file says 'delay: none'"
        reader.problem(node, message, fix="remove delay from the route, or give the file levels: delay: {levels: [5m]}")
        return None
    if text == ANY:
        message = "route waits any delay, and the file has no ladder to wait at"
        reader.problem(node, message, fix="add any: true to delay, or use a level")
        return None
    if text.isdecimal():
        reader.duration(node, "delay")
        return None
    level = levels.named_by_duration(text)
    if level is None:
        names = [level.name for level in levels]
        message = f"delay must be a level, not {describe(node)}{did_you_mean(text, names)}"
        reader.problem(node, message, fix=_which_delay(names, has_ladder=levels.ladder is not None))
    return level


def _which_delay(names: list[str], *, has_ladder: bool) -> str:
    if not has_ladder:
        return f"use a level ({listed(names)}), or add one to delay.levels"
    return f"use a level ({listed(names)}), add one to delay.levels, or write {ANY}: publishers choose the delay then"


def _read_targets(reader: Reader, node: Node, objects: Objects) -> tuple[Target, ...]:
    if not isinstance(node, ListNode):
        target = _read_target(reader, node, objects)
        return (target,) if target else ()
    if not node.items:
        reader.problem(node, "to is an empty list", fix="name at least one queue")
    return tuple(dict.fromkeys(target for item in node.items if (target := _read_target(reader, item, objects))))


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
