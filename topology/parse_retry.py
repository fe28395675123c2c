"""The `retry` section: how long failed messages wait each time, and where they end."""

from delayctl.topology.names import MAX_NAME_BYTES
from delayctl.topology.parse_levels import Levels, level_texts
from delayctl.topology.parse_routes import PATTERN_WORDS, Scope
from delayctl.topology.reader import Entry, Reader, describe, is_nothing, listed
from delayctl.topology.source import MapNode, Node, ScalarNode
from delayctl.topology.spec import ROCKETMQ_FIRST_RETRY_LEVEL, ROCKETMQ_MAX_RETRIES, LevelSpec, RetrySpec
from delayctl.topology.wording import quoted, shorten

RETRY_KEYS = ("levels", "max", "park")
MAX_RETRIES = 1000


def read_retries(reader: Reader, node: Node | None, scope: Scope) -> tuple[RetrySpec, ...]:
    """Read all retries; levels that they need and that are not there yet are added."""
    entries = reader.entries(node, "retry") if node else ()
    return tuple(retry for entry in entries if (retry := _read_retry(reader, entry, scope)))


def _read_retry(reader: Reader, entry: Entry, scope: Scope) -> RetrySpec | None:
    name, key, node = entry
    what = f"retry of {quoted(name)}"
    if not isinstance(node, MapNode) and not is_nothing(node):
        fix = "write {levels: rocketmq, max: 16, park: QUEUE}"
        reader.problem(node, f"{what} must be a mapping, not {describe(node)}", fix=fix)
        return None
    fields = reader.fields(node, what, RETRY_KEYS)
    queue = scope.objects.use_name(name, key, "queue", "retry")
    if queue:
        _check_key(reader, key, scope.names.retry_key(queue), what)
    most = ROCKETMQ_MAX_RETRIES
    if "max" in fields:
        most = reader.integer(fields["max"], f"max of {what}", least=1, most=MAX_RETRIES) or 1
    waits = _read_waits(reader, fields.get("levels", ScalarNode(key.line, "rocketmq", "rocketmq")), most, scope.levels)
    park = scope.objects.use(fields["park"], "queue", "park") if "park" in fields else None
    if "park" not in fields:
        fix = f"add park: {shorten(name)}.dlq, the queue for what fails every time"
        reader.problem(key, f"{what} has no 'park'", fix=fix)
    elif park and park == queue:
        reader.problem(fields["park"], f"{what} parks in the same queue", fix="name another queue")
    return RetrySpec(queue, waits, park, reader.line_of(key)) if queue and park and waits else None


def _check_key(reader: Reader, node: Node, key: str, what: str) -> None:
    """The way back to a queue is a routing key with its name in it, for that queue alone."""
    if len(key.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        message = f"{what} needs a routing key of more than {MAX_NAME_BYTES} bytes"
        reader.problem(node, message, fix="choose a shorter name for the queue, or a shorter prefix")
    if not PATTERN_WORDS.isdisjoint(key.split(".")):
        message = f"{what} needs a routing key that would be a pattern"
        reader.problem(node, message, fix="choose a name without '*' and '#' for the queue")


def _read_waits(reader: Reader, node: Node, count: int, levels: Levels) -> tuple[str, ...]:
    """The level of each retry; beyond the last level, the last one again."""
    texts = level_texts(reader, node, levels, "a list or a RocketMQ level string")
    # A RocketMQ level string is counted as RocketMQ counts, from its third level; a list begins at its first.
    if isinstance(node, ScalarNode):
        texts = texts[ROCKETMQ_FIRST_RETRY_LEVEL - 1 :] or texts[-1:]
    waits = [level for item, text in texts[:count] if (level := _level_for(reader, item, text, levels))]
    return tuple((waits + waits[-1:] * (count - len(waits)))[:count])


def _level_for(reader: Reader, node: Node, text: str, levels: Levels) -> str | None:
    """The level of this name, or the one that waits this long, or a new one with the defaults."""
    if text in levels or levels.is_broken(text):
        return text
    fix = f"use a level ({listed(level.name for level in levels)}), or a duration such as 5m"
    ttl = reader.parse_duration(node, "level", text, fix=fix)
    if ttl is None:
        return None
    level = levels.waiting(ttl)
    if level is None:
        levels.add(LevelSpec(text, ttl, levels.default_wait, reader.line_of(node)))
    return level or text
