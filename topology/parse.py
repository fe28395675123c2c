"""Rendered text to Spec: every problem of a file is found in one go."""

from collections.abc import Mapping

from delayctl.topology.errors import InvalidTopology
from delayctl.topology.names import ANY, Names
from delayctl.topology.parse_grants import GRANT_KEYS, read_grants
from delayctl.topology.parse_ladder import LADDER_KEYS, read_ladder
from delayctl.topology.parse_levels import LEVEL_KEYS, WAIT_KEYS, Levels, read_levels, read_wait
from delayctl.topology.parse_lint import LINT_KEYS, SILENCE_KEYS, read_lint
from delayctl.topology.parse_objects import EXCHANGE_KEYS, QUEUE_KEYS, Objects
from delayctl.topology.parse_retry import RETRY_KEYS, read_retries
from delayctl.topology.parse_routes import ROUTE_KEYS, TARGET_KEYS, Scope, read_routes
from delayctl.topology.reader import Reader, describe, is_nothing
from delayctl.topology.render import Rendered, render
from delayctl.topology.source import MapNode, Node, ScalarNode, load
from delayctl.topology.spec import DEFAULT_PRIORITY, LadderSpec, RetrySpec, SettingsHome, Spec, WaitSpec
from delayctl.topology.wording import did_you_mean

__all__ = [
    "DELAY_KEYS",
    "EXCHANGE_KEYS",
    "FILE_KEYS",
    "GRANT_KEYS",
    "LADDER_KEYS",
    "LEVEL_KEYS",
    "LINT_KEYS",
    "QUEUE_KEYS",
    "RETRY_KEYS",
    "ROUTE_KEYS",
    "SILENCE_KEYS",
    "TARGET_KEYS",
    "WAIT_KEYS",
    "parse",
    "read_spec",
]

FILE_KEYS = ("version", "vhost", "prefix", "delay", "exchanges", "queues", "routes", "retry", "permissions", "lint")
DELAY_KEYS = ("levels", "any", "queue", "settings", "policy_priority", "cancel")
SETTINGS_HOMES: tuple[SettingsHome, ...] = ("arguments", "policy")
NO_DELAY = "none"
MAX_PREFIX_BYTES = 100


def read_spec(text: str, values: Mapping[str, object], *, file: str) -> Spec:
    """Render and parse a file's text, or raise InvalidTopology with all that is wrong."""
    return parse(render(text, values, file=file))


def parse(rendered: Rendered) -> Spec:
    """Turn rendered text into a Spec, or raise InvalidTopology with all that is wrong."""
    reader = Reader(rendered)
    root = load(rendered)
    if not isinstance(root, MapNode):
        message = "the file is empty" if is_nothing(root) else f"the file must be a mapping, not {describe(root)}"
        reader.problem(root, message, fix="begin with 'version: 1', or start from 'delayctl init'")
        raise InvalidTopology(reader.problems)
    spec = _read_file(reader, root)
    if reader.problems:
        raise InvalidTopology(reader.problems)
    return spec


def _read_file(reader: Reader, root: MapNode) -> Spec:
    """One pass over a file; later sections look up what earlier ones declared."""
    fields = reader.fields(root, "the file", FILE_KEYS)
    _check_version(reader, root, fields.get("version"))
    vhost = reader.host(fields["vhost"], "vhost") if "vhost" in fields else None
    names = Names(_read_prefix(reader, fields.get("prefix")))
    delay, levels = _read_delay(reader, names, fields.get("delay"))
    objects = Objects(reader)
    objects.read(fields.get("exchanges"), fields.get("queues"))
    scope = Scope(names, levels, objects)
    routes = read_routes(reader, fields.get("routes"), scope)
    retries = _read_retries(reader, fields.get("retry"), scope)
    can_cancel = bool("cancel" in delay and reader.boolean(delay["cancel"], "cancel"))
    objects.check_own_names(names, levels, can_cancel=can_cancel)
    silences, memory = read_lint(reader, fields.get("lint"))
    return Spec(
        vhost=vhost,
        prefix=names.prefix,
        settings=_read_settings(reader, delay.get("settings")),
        policy_priority=_read_priority(reader, delay.get("policy_priority")),
        levels=tuple(levels),
        ladder=levels.ladder,
        cancel=can_cancel,
        exchanges=tuple(objects.exchanges[name] for name in sorted(objects.exchanges)),
        queues=tuple(objects.queues[name] for name in sorted(objects.queues)),
        routes=routes,
        retries=retries,
        grants=read_grants(reader, fields.get("permissions"), scope),
        silences=silences,
        memory=memory,
    )


def _read_delay(reader: Reader, names: Names, node: Node | None) -> tuple[dict[str, Node], Levels]:
    """Read `delay`: its fields, and the levels; `none` means to do without delays of delayctl's own."""
    if isinstance(node, ScalarNode) and node.text == NO_DELAY:
        return {}, Levels(WaitSpec(), are_wanted=False)
    if isinstance(node, ScalarNode) and node.text == ANY:
        levels = Levels(WaitSpec())
        levels.ladder = LadderSpec(line=reader.line_of(node))
        return {}, levels
    if isinstance(node, ScalarNode) and not is_nothing(node):
        words = [NO_DELAY, ANY]
        message = f"delay must be a mapping, {NO_DELAY} or {ANY}, not {describe(node)}{did_you_mean(node.text, words)}"
        fix = "write 'levels: [1m, 5m, 15m]' below it, delay: any to take any delay, or delay: none to have no levels"
        reader.problem(node, message, fix=fix)
        node = None
    fields = reader.fields(node, "delay", DELAY_KEYS) if node else {}
    default_wait = read_wait(reader, fields["queue"], "delay.queue") if "queue" in fields else WaitSpec()
    ladder = read_ladder(reader, fields["any"], default_wait) if "any" in fields else None
    return fields, read_levels(reader, names, fields.get("levels"), default_wait, ladder=ladder)


def _read_retries(reader: Reader, node: Node | None, scope: Scope) -> tuple[RetrySpec, ...]:
    if scope.levels.are_wanted or not isinstance(node, MapNode) or not node.pairs:
        return read_retries(reader, node, scope)
    message = "retry needs the exit of the delays, by which messages come back and are parked, but the file says 'delay: none'"
    reader.problem(node, message, fix="remove retry, or give the file levels: delay: {levels: [5m]}")
    return ()


def _check_version(reader: Reader, root: Node, node: Node | None) -> None:
    if node is None:
        reader.problem(root, "the file has no version", fix="begin with 'version: 1'")
    elif not (isinstance(node, ScalarNode) and node.value == 1 and node.text == "1"):
        has_quotes = isinstance(node, ScalarNode) and not node.is_plain
        fix = "write version: 1" + (", without quotes" if has_quotes else "")
        reader.problem(node, f"version {describe(node)} is not known", fix=fix)


def _read_prefix(reader: Reader, node: Node | None) -> str:
    prefix = (reader.name(node, "prefix") if node else None) or ""
    if node and len(prefix.encode("utf-8", "surrogatepass")) > MAX_PREFIX_BYTES:
        fix = "choose a shorter one: names hold 255 bytes in all"
        reader.problem(node, f"prefix is longer than {MAX_PREFIX_BYTES} bytes", fix=fix)
    return prefix


def _read_settings(reader: Reader, node: Node | None) -> SettingsHome:
    return (reader.choice(node, "settings", SETTINGS_HOMES) if node else None) or "arguments"


def _read_priority(reader: Reader, node: Node | None) -> int:
    value = reader.integer(node, "policy_priority", least=-1000, most=1000) if node else None
    return DEFAULT_PRIORITY if value is None else value
