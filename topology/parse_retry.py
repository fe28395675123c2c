"""The `retry` section: how long failed messages wait each time, and where they end."""

from typing import Literal

from delayctl.topology.arguments import argument_name
from delayctl.topology.names import MAX_NAME_BYTES
from delayctl.topology.parse_levels import Levels, level_texts
from delayctl.topology.parse_routes import PATTERN_WORDS, Scope
from delayctl.topology.reader import Entry, Reader, describe, is_nothing, listed
from delayctl.topology.source import MapNode, Node, ScalarNode
from delayctl.topology.spec import (
    LONGEST_BROKER_WAIT,
    ROCKETMQ_FIRST_RETRY_LEVEL,
    ROCKETMQ_MAX_RETRIES,
    BrokerWaits,
    LevelSpec,
    QueueSpec,
    RetrySpec,
    all_steps,
    parking_circle,
)
from delayctl.topology.wording import quoted, shorten

RETRY_KEYS = ("by", "levels", "step", "longest", "max", "park")
MAX_RETRIES = 1000
By = Literal["levels", "broker"]
WAYS: tuple[By, ...] = ("levels", "broker")
_NOT_FOR: dict[By, tuple[str, ...]] = {"levels": ("step", "longest"), "broker": ("levels",)}
# What a queue is told so that it makes its messages wait by itself.
SET_BY_RETRY = frozenset(
    argument_name(field)
    for field in (
        "retry_type",
        "retry_min",
        "retry_max",
        "delivery_limit",
        "dead_letter_exchange",
        "dead_letter_key",
        "dead_letter_strategy",
        "overflow",
    )
)


def read_retries(reader: Reader, node: Node | None, scope: Scope) -> tuple[RetrySpec, ...]:
    """Read all retries; levels that they need and that are not there yet are added."""
    entries = reader.entries(node, "retry") if node else ()
    read = [(entry, retry) for entry in entries if (retry := _read_retry(reader, entry, scope))]
    _check_circles(reader, read)
    return tuple(retry for _, retry in read)


def _check_circles(reader: Reader, read: list[tuple[Entry, RetrySpec]]) -> None:
    """What fails in every queue of a circle would go round in it at full speed, for ever."""
    parks: dict[str, str] = {}
    for (name, _, node), retry in read:
        parks[retry.queue] = retry.park
        if retry.park != retry.queue and (circle := parking_circle(retry.queue, parks)):
            message = f"retry of {quoted(name)} parks in a circle: {' → '.join(map(shorten, circle))}"
            reader.problem(_park_node(node), message, fix="park in a queue without a retry, such as failed.dlq")


def _park_node(retry: Node) -> Node:
    """Where a retry says where it parks."""
    pairs = retry.pairs if isinstance(retry, MapNode) else ()
    return next((value for key, value in pairs if isinstance(key, ScalarNode) and key.text == "park"), retry)


def _read_retry(reader: Reader, entry: Entry, scope: Scope) -> RetrySpec | None:
    name, key, node = entry
    what = f"retry of {quoted(name)}"
    if not isinstance(node, MapNode) and not is_nothing(node):
        fix = "write {levels: rocketmq, max: 16, park: QUEUE}"
        reader.problem(node, f"{what} must be a mapping, not {describe(node)}", fix=fix)
        return None
    fields = reader.fields(node, what, RETRY_KEYS)
    queue = scope.objects.use_name(name, key, "queue", "retry")
    by = _read_way(reader, fields, what)
    _check_fields(reader, fields, by, what)
    most = ROCKETMQ_MAX_RETRIES
    if "max" in fields:
        most = reader.integer(fields["max"], f"max of {what}", least=1, most=MAX_RETRIES) or 1
    waits: tuple[str, ...] = ()
    by_broker = None
    if by == "broker":
        if queue:
            _check_queue(reader, key, scope.objects.queues[queue], what)
        by_broker = _read_broker_waits(reader, key, fields, most, what)
    else:
        if queue:
            _check_key(reader, key, scope.names.retry_key(queue), what)
        levels = fields.get("levels", ScalarNode(key.line, "rocketmq", "rocketmq"))
        waits = _read_waits(reader, levels, most, scope.levels)
    park = _read_park(reader, entry, fields.get("park"), queue, scope)
    is_whole = queue and park and (waits or by_broker)
    return RetrySpec(queue, waits, park, by_broker, reader.line_of(key)) if is_whole and queue and park else None


def _read_way(reader: Reader, fields: dict[str, Node], what: str) -> By:
    if "by" not in fields:
        return "levels"
    # Of a word that is none the other fields tell what was meant.
    return reader.choice(fields["by"], f"by of {what}", WAYS) or ("broker" if "step" in fields else "levels")


def _check_fields(reader: Reader, fields: dict[str, Node], by: By, what: str) -> None:
    other = "broker" if by == "levels" else "levels"
    for field in _NOT_FOR[by]:
        if field in fields:
            fix = f"remove {field}, or write by: {other}"
            reader.problem(fields[field], f"{what} waits by {by}, where '{field}' says nothing", fix=fix)


def _read_park(reader: Reader, entry: Entry, node: Node | None, queue: str | None, scope: Scope) -> str | None:
    name, key, _ = entry
    what = f"retry of {quoted(name)}"
    if node is None:
        fix = f"add park: {shorten(name)}.dlq, the queue for what fails every time"
        reader.problem(key, f"{what} has no 'park'", fix=fix)
        return None
    park = scope.objects.use(node, "queue", "park")
    if park and park == queue:
        reader.problem(node, f"{what} parks in the same queue", fix="name another queue")
    if park:
        _check_key(reader, node, scope.names.park_key(park), f"parking in {quoted(park)}")
    return park


def _check_queue(reader: Reader, node: Node, queue: QueueSpec, what: str) -> None:
    """The broker makes messages wait in quorum queues alone, and has to be told so when they are declared."""
    if queue.existing:
        message = f"{what} needs arguments that are not ours to set: the queue is marked existing"
        reader.problem(node, message, fix="remove existing: true, or let its retries wait in levels: by: levels")
    elif queue.type != "quorum":
        fix = f"list it under queues: as {shorten(queue.name)}: {{type: quorum}}, or write by: levels"
        reader.problem(node, f"{what} waits by broker, which only a queue of type quorum can", fix=fix)
    for name, _ in queue.arguments:
        if name in SET_BY_RETRY:
            message = f"{what} sets {name} by itself, and the queue's arguments set it too"
            reader.problem(node, message, fix=f"remove {name} from the arguments of {shorten(queue.name)}")


def _read_broker_waits(reader: Reader, key: Node, fields: dict[str, Node], most: int, what: str) -> BrokerWaits | None:
    if "step" not in fields:
        fix = "add step: 10s: the first retry waits one step, the next two, and so on"
        reader.problem(key, f"{what} waits by broker and has no 'step'", fix=fix)
    step, longest = (
        reader.duration(fields[field], f"{field} of {what}") if field in fields else None
        for field in ("step", "longest")
    )
    for field, wait in (("step", step), ("longest", longest)):
        if wait and wait > LONGEST_BROKER_WAIT:
            message = f"{field} of {what} is longer than {LONGEST_BROKER_WAIT}, which the broker can't wait"
            reader.problem(fields[field], message, fix=f"write {LONGEST_BROKER_WAIT} at most, or by: levels")
    if step and longest and longest < step:
        message = f"longest of {what} ({longest}) is shorter than its step ({step})"
        reader.problem(fields["longest"], message, fix="write a longer one, or leave it out")
    return BrokerWaits(step, longest or all_steps(step, most), most) if step else None


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
