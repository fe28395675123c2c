"""Rendered text to Spec: every problem of a file is found in one go."""

from collections.abc import Mapping

from delayctl.topology.duration import Duration
from delayctl.topology.errors import InvalidTopology
from delayctl.topology.model import EXCHANGE_TYPES, OVERFLOWS, QUEUE_TYPES, Arguments, Kind, freeze_arguments
from delayctl.topology.names import MAX_NAME_BYTES, Names
from delayctl.topology.reader import Reader, describe, listed
from delayctl.topology.render import Rendered, render
from delayctl.topology.source import ListNode, MapNode, Node, ScalarNode, load
from delayctl.topology.spec import (
    DEFAULT_LEVELS,
    ROCKETMQ_FIRST_RETRY_LEVEL,
    ROCKETMQ_LEVELS,
    ROCKETMQ_MAX_RETRIES,
    ExchangeSpec,
    LevelSpec,
    QueueSpec,
    RetrySpec,
    RouteSpec,
    SettingsHome,
    Spec,
    Target,
    WaitSpec,
)
from delayctl.topology.wording import did_you_mean, misspelt, shorten

FILE_KEYS = ("version", "vhost", "prefix", "delay", "exchanges", "queues", "routes", "retry")
DELAY_KEYS = ("levels", "queue", "settings", "policy_priority")
WAIT_KEYS = ("type", "max_length", "max_bytes", "overflow", "profile")
LEVEL_KEYS = ("ttl", *WAIT_KEYS)
EXCHANGE_KEYS = ("type", "alternate", "existing")
QUEUE_KEYS = ("type", "arguments", "existing")
ROUTE_KEYS = ("from", "key", "delay", "to")
TARGET_KEYS = ("queue", "exchange")
RETRY_KEYS = ("levels", "max", "park")
UNLIMITED = "unlimited"
PROFILES = ("safe",)
SETTINGS_HOMES: tuple[SettingsHome, ...] = ("arguments", "policy")


def read_spec(text: str, values: Mapping[str, object], *, file: str) -> Spec:
    """Render and parse a file's text, or raise InvalidTopology with all that is wrong."""
    return parse(render(text, values, file=file))


def parse(rendered: Rendered) -> Spec:
    """Turn rendered text into a Spec, or raise InvalidTopology with all that is wrong."""
    reader = Reader(rendered)
    spec = _File(reader).read(load(rendered))
    if reader.problems:
        raise InvalidTopology(reader.problems)
    return spec


class _File:
    """One pass over a file; later sections look up what earlier ones declared."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.names = Names()
        self.default_wait = WaitSpec()
        self.levels: dict[str, LevelSpec] = {}
        self.exchanges: dict[str, ExchangeSpec] = {}
        self.queues: dict[str, QueueSpec] = {}
        self.listed: dict[Kind, frozenset[str]] = {}

    def read(self, root: Node) -> Spec:
        if isinstance(root, ScalarNode) and root.value is None:
            self.reader.problem(root, "the file is empty", fix="start from 'delayctl init'")
        fields = self.reader.fields(root, "the file", FILE_KEYS)
        self._version(root, fields.get("version"))
        self.names = Names(self._prefix(fields.get("prefix")))
        delay = self.reader.fields(fields["delay"], "delay", DELAY_KEYS) if "delay" in fields else {}
        if "queue" in delay:
            self.default_wait = self._wait(delay["queue"], "delay.queue", WAIT_KEYS, WaitSpec())
        self._levels(delay.get("levels"))
        self._exchanges(fields.get("exchanges"))
        self._queues(fields.get("queues"))
        self.listed = {"exchange": frozenset(self.exchanges), "queue": frozenset(self.queues)}
        routes = self._routes(fields.get("routes"))
        retries = self._retries(fields.get("retry"))
        return Spec(
            vhost=self.reader.text(fields["vhost"], "vhost") if "vhost" in fields else None,
            prefix=self.names.prefix,
            settings=self._settings(delay.get("settings")),
            policy_priority=self._priority(delay.get("policy_priority")),
            levels=tuple(sorted(self.levels.values(), key=lambda level: (level.ttl, level.name))),
            exchanges=tuple(self.exchanges[name] for name in sorted(self.exchanges)),
            queues=tuple(self.queues[name] for name in sorted(self.queues)),
            routes=tuple(routes),
            retries=tuple(retries),
        )

    def _version(self, root: Node, node: Node | None) -> None:
        if node is None:
            if isinstance(root, MapNode):
                self.reader.problem(root, "the file has no version", fix="begin with 'version: 1'")
        elif not (isinstance(node, ScalarNode) and node.value == 1 and node.text == "1"):
            self.reader.problem(node, f"version {describe(node)} is not known", fix="write 'version: 1'")

    def _prefix(self, node: Node | None) -> str:
        if node is None:
            return ""
        prefix = self.reader.name(node, "prefix") or ""
        if len(prefix.encode("utf-8", "surrogatepass")) > 100:
            self.reader.problem(
                node, "prefix is longer than 100 bytes", fix="choose a shorter one: names hold 255 bytes in all"
            )
        return prefix

    def _settings(self, node: Node | None) -> SettingsHome:
        return (self.reader.choice(node, "settings", SETTINGS_HOMES) if node else None) or "arguments"

    def _priority(self, node: Node | None) -> int:
        value = self.reader.integer(node, "policy_priority", least=-1000, most=1000) if node else None
        return 10 if value is None else value

    # -- delay levels ---------------------------------------------------------------------------------------------

    def _levels(self, node: Node | None) -> None:
        if node is None:
            for name in DEFAULT_LEVELS:
                self.levels[name] = LevelSpec(name, Duration.parse(name), self.default_wait)
        elif isinstance(node, MapNode):
            for name, key, value in self.reader.entries(node, "levels"):
                self._level_with_overrides(name, key, value)
        else:
            for item, duration in self._level_texts(node):
                self._level(item, duration)
        if node is not None and not self.levels and not self.reader.problems:
            self.reader.problem(node, "levels is empty", fix=f"write levels: [{', '.join(DEFAULT_LEVELS)}]")

    def _level_texts(self, node: Node) -> list[tuple[Node, str]]:
        """The durations of a list, of a RocketMQ level string, or of the preset `rocketmq`."""
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            text = ROCKETMQ_LEVELS if node.value == "rocketmq" else node.value
            return [(node, part) for part in text.split()]
        if not isinstance(node, ListNode):
            message = f"levels must be a list, a mapping or a RocketMQ level string, not {describe(node)}"
            self.reader.problem(node, message, fix="write levels: [1m, 5m, 15m], or levels: rocketmq")
            return []
        return [(item, written) for item in node.items if (written := self._duration_text(item)) is not None]

    def _duration_text(self, node: Node) -> str | None:
        return node.text if self.reader.duration(node, "level") and isinstance(node, ScalarNode) else None

    def _level(self, node: Node, text: str) -> None:
        ttl = self.reader.parse_duration(node, "level", text)
        if text in self.levels:
            self.reader.problem(node, f"level '{shorten(text)}' stands twice", fix="remove one of them")
        elif ttl:
            self.levels[text] = LevelSpec(text, ttl, self.default_wait)

    def _level_with_overrides(self, name: str, key: Node, node: Node) -> None:
        fields = self.reader.fields(node, f"level '{shorten(name)}'", LEVEL_KEYS)
        if not self._level_name_fits(name, key):
            return
        if "ttl" in fields:
            ttl = self.reader.duration(fields["ttl"], f"ttl of level '{shorten(name)}'")
        else:
            ttl = self._duration_of_name(name, key)
        wait = self._wait(node, f"level '{shorten(name)}'", LEVEL_KEYS, self.default_wait)
        if ttl:
            self.levels[name] = LevelSpec(name, ttl, wait)

    def _level_name_fits(self, name: str, key: Node) -> bool:
        if self.names.reserved(name):
            self.reader.problem(
                key,
                f"level '{name}' would collide with {self.names.prefix}delay.{name}.queue of delayctl's own",
                fix="choose another name",
            )
            return False
        if not name or not all(char.isalnum() or char in "-_" for char in name) or len(name) > 50:
            self.reader.problem(
                key,
                f"level name '{shorten(name)}' is not made of letters, digits, '-' and '_'",
                fix="choose a short plain name, such as 5m or slow",
            )
            return False
        return True

    def _duration_of_name(self, name: str, key: Node) -> Duration | None:
        try:
            Duration.parse(name)
        except ValueError:
            self.reader.problem(
                key, f"level '{shorten(name)}' has no ttl", fix="add ttl: 5m, or name the level by its duration"
            )
            return None
        return self.reader.parse_duration(key, "level", name)

    def _wait(self, node: Node, what: str, allowed: tuple[str, ...], base: WaitSpec) -> WaitSpec:
        fields = self.reader.fields(node, what, allowed)
        if "profile" in fields and self.reader.choice(fields["profile"], f"profile of {what}", PROFILES):
            base = WaitSpec("quorum", base.max_length, base.max_bytes, "reject-publish", at_least_once=True)
        kind = self.reader.choice(fields["type"], f"type of {what}", QUEUE_TYPES) if "type" in fields else None
        overflow = (
            self.reader.choice(fields["overflow"], f"overflow of {what}", OVERFLOWS) if "overflow" in fields else None
        )
        wait = WaitSpec(
            type=kind or base.type,
            max_length=self._limit(fields.get("max_length"), f"max_length of {what}", base.max_length),
            max_bytes=self._limit(fields.get("max_bytes"), f"max_bytes of {what}", base.max_bytes),
            overflow=overflow or base.overflow,
            at_least_once=base.at_least_once,
        )
        if wait.at_least_once and (wait.type, wait.overflow) != ("quorum", "reject-publish"):
            message = f"{what} is of profile safe, which needs type quorum and overflow reject-publish"
            self.reader.problem(
                fields.get("overflow") or fields.get("type") or node, message, fix="remove the override, or the profile"
            )
        return wait

    def _limit(self, node: Node | None, what: str, default: int | None) -> int | None:
        if node is None:
            return default
        if isinstance(node, ScalarNode) and node.value == UNLIMITED:
            return None
        value = self.reader.integer(node, what, least=1)
        return default if value is None else value

    # -- business objects -----------------------------------------------------------------------------------------

    def _exchanges(self, node: Node | None) -> None:
        for name, key, value in self.reader.entries(node, "exchanges") if node else ():
            what = f"exchange '{shorten(name)}'"
            fields = self.reader.fields(value, what, EXCHANGE_KEYS)
            existing = "existing" in fields and bool(self.reader.boolean(fields["existing"], f"existing of {what}"))
            kind = self.reader.choice(fields["type"], f"type of {what}", EXCHANGE_TYPES) if "type" in fields else None
            alternate = self.reader.name(fields["alternate"], f"alternate of {what}") if "alternate" in fields else None
            if existing and alternate:
                self.reader.problem(
                    fields["alternate"],
                    f"{what} is existing, so its alternate is not ours to set",
                    fix="remove alternate, or existing",
                )
            if self._name_is_free(name, key, "exchange"):
                self.exchanges[name] = ExchangeSpec(name, kind or (None if existing else "topic"), alternate, existing)

    def _queues(self, node: Node | None) -> None:
        for name, key, value in self.reader.entries(node, "queues") if node else ():
            what = f"queue '{shorten(name)}'"
            fields = self.reader.fields(value, what, QUEUE_KEYS)
            existing = "existing" in fields and bool(self.reader.boolean(fields["existing"], f"existing of {what}"))
            kind = self.reader.choice(fields["type"], f"type of {what}", QUEUE_TYPES) if "type" in fields else None
            arguments = self._arguments(fields["arguments"], what) if "arguments" in fields else ()
            if existing and arguments:
                self.reader.problem(
                    fields["arguments"],
                    f"{what} is existing, so its arguments are not ours to set",
                    fix="remove arguments, or existing",
                )
            if self._name_is_free(name, key, "queue"):
                self.queues[name] = QueueSpec(name, kind, existing, arguments)

    def _arguments(self, node: Node, what: str) -> Arguments:
        arguments: dict[str, object] = {}
        for name, key, value in self.reader.entries(node, f"arguments of {what}"):
            if not isinstance(value, ScalarNode) or value.value is None or isinstance(value.value, float):
                self.reader.problem(
                    value,
                    f"argument {shorten(name)} of {what} must be a text, a whole number, true or false, not {describe(value)}",
                    fix="write a plain value",
                )
            elif name == "x-queue-type":
                self.reader.problem(
                    key,
                    f"arguments of {what} set x-queue-type",
                    fix=f"write type: {shorten(value.text)} beside arguments instead",
                )
            elif not name.startswith("x-"):
                self.reader.problem(
                    key, f"argument {shorten(name)} of {what} does not begin with x-", fix=f"write x-{shorten(name)}"
                )
            else:
                arguments[name] = value.value
        return freeze_arguments(arguments)

    def _name_is_free(self, name: str, key: Node, kind: Kind) -> bool:
        if not self.reader.check_name(key, kind, name):
            return False
        own = {self.names.unrouted_queue(), self.names.lock(), *map(self.names.delay_queue, self.levels)} if kind == "queue" else {
            self.names.exit(), self.names.unrouted_exchange(), *map(self.names.entrance, self.levels)
        }  # fmt: skip
        if name in own:
            self.reader.problem(
                key,
                f"{kind} '{name}' is delayctl's own name",
                fix="remove it: it is declared by itself, or set a prefix",
            )
        return name not in own

    # -- routes ---------------------------------------------------------------------------------------------------

    def _routes(self, node: Node | None) -> list[RouteSpec]:
        items = self.reader.items(node, "routes") if node and not _is_nothing(node) else []
        routes = [route for item in items if (route := self._route(item))]
        return list(dict.fromkeys(routes))

    def _route(self, node: Node) -> RouteSpec | None:
        before = len(self.reader.problems)
        fields = self.reader.fields(node, "route", ROUTE_KEYS)
        for needed in ("key", "to"):
            if needed not in fields:
                self.reader.problem(node, f"route has no '{needed}'", fix=f"add {needed}: …")
        source = self._use(fields["from"], "exchange", "from") if "from" in fields else None
        keys = self._keys(fields["key"]) if "key" in fields else ()
        level = self._level_named(fields["delay"]) if "delay" in fields else None
        targets = self._targets(fields["to"]) if "to" in fields else ()
        if "from" not in fields and "delay" not in fields:
            self.reader.problem(
                node, "route has neither 'from' nor 'delay'", fix="add delay: LEVEL, or from: EXCHANGE, or both"
            )
        if source:
            self._check_keys_fit(fields.get("key", node), source, keys)
        return RouteSpec(keys, targets, source, level) if len(self.reader.problems) == before else None

    def _keys(self, node: Node) -> tuple[str, ...]:
        keys = []
        for item in node.items if isinstance(node, ListNode) else [node]:
            key = self.reader.text(item, "key")
            if key is not None and len(key.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
                self.reader.problem(
                    item, f"key '{shorten(key)}' is longer than {MAX_NAME_BYTES} bytes", fix="choose a shorter key"
                )
            elif key is not None:
                keys.append(key)
        if isinstance(node, ListNode) and not node.items:
            self.reader.problem(node, "key is an empty list", fix="write at least one key")
        return tuple(dict.fromkeys(keys))

    def _check_keys_fit(self, node: Node, source: str, keys: tuple[str, ...]) -> None:
        kind = self.exchanges[source].type
        if kind == "headers":
            self.reader.problem(
                node,
                f"exchange '{source}' is of type headers, which routes without keys",
                fix="route from a direct, topic or fanout exchange",
            )
        for key in keys:
            if kind == "direct" and any(word in ("*", "#") for word in key.split(".")):
                self.reader.problem(
                    node,
                    f"key '{shorten(key)}' is a pattern, but exchange '{source}' is of type direct",
                    fix="write the keys out, or use a topic exchange",
                )

    def _level_named(self, node: Node) -> str | None:
        text = node.text if isinstance(node, ScalarNode) else ""
        if text in self.levels:
            return text
        duration = self.reader.duration(node, "delay") if not text or text[0].isdigit() else None
        same = [level.name for level in self.levels.values() if level.ttl == duration]
        if not same and (duration or (text and not text[0].isdigit())):
            message = f"delay {describe(node)} is no level{did_you_mean(text, self.levels)}"
            self.reader.problem(
                node, message, fix=f"use a level ({listed(self.levels)}), or add {shorten(text)} to delay.levels"
            )
        return same[0] if same else None

    def _targets(self, node: Node) -> tuple[Target, ...]:
        targets = [
            target for item in (node.items if isinstance(node, ListNode) else [node]) if (target := self._target(item))
        ]
        if isinstance(node, ListNode) and not node.items:
            self.reader.problem(node, "to is an empty list", fix="name at least one queue")
        return tuple(dict.fromkeys(targets))

    def _target(self, node: Node) -> Target | None:
        if not isinstance(node, MapNode):
            name = self._use(node, "queue", "to")
            return Target("queue", name) if name else None
        fields = self.reader.fields(node, "to", TARGET_KEYS)
        if len(fields) != 1:
            self.reader.problem(
                node,
                "to must name one queue or one exchange",
                fix="write to: NAME, or to: {exchange: NAME}; several as a list",
            )
            return None
        kind: Kind = "queue" if "queue" in fields else "exchange"
        name = self._use(fields[kind], kind, f"to.{kind}")
        return Target(kind, name) if name else None

    def _use(self, node: Node, kind: Kind, what: str) -> str | None:
        """A name that a route mentions; one that isn't listed is declared with the defaults, unless it looks misspelt."""
        name = self.reader.name(node, what)
        if name is None or name in (self.exchanges if kind == "exchange" else self.queues):
            return name
        if meant := misspelt(name, self.listed[kind]):
            message = f"{what} names the {kind} '{shorten(name)}', which is not listed (did you mean '{meant}'?)"
            self.reader.problem(node, message, fix=f"correct the name, or list it under {kind}s: if it is another one")
            return None
        if not self._name_is_free(name, node, kind):
            return None
        if kind == "exchange":
            self.exchanges[name] = ExchangeSpec(name)
        else:
            self.queues[name] = QueueSpec(name)
        return name

    # -- retry ----------------------------------------------------------------------------------------------------

    def _retries(self, node: Node | None) -> list[RetrySpec]:
        entries = self.reader.entries(node, "retry") if node else ()
        return [retry for name, key, value in entries if (retry := self._retry(name, key, value))]

    def _retry(self, name: str, key: Node, node: Node) -> RetrySpec | None:
        what = f"retry of '{shorten(name)}'"
        fields = self.reader.fields(node, what, RETRY_KEYS)
        queue = self._use(key, "queue", "retry")
        most = (
            self.reader.integer(fields["max"], f"max of {what}", least=1, most=1000)
            if "max" in fields
            else ROCKETMQ_MAX_RETRIES
        )
        park = self._use(fields["park"], "queue", "park") if "park" in fields else None
        levels = fields.get("levels", ScalarNode(node.line, "rocketmq", "rocketmq"))
        waits = self._waits(levels, most or 1)
        if "park" not in fields:
            self.reader.problem(
                node, f"{what} has no 'park'", fix=f"add park: {shorten(name)}.dlq, the queue for what fails every time"
            )
        if queue and park == queue:
            self.reader.problem(fields["park"], f"{what} parks in the same queue", fix="name another queue")
        return RetrySpec(queue, waits, park) if queue and park and most and waits else None

    def _waits(self, node: Node, count: int) -> tuple[str, ...]:
        """The level of each retry; beyond the last level, the last one again."""
        texts = self._level_texts(node)
        durations = [
            (item, text, ttl) for item, text in texts if (ttl := self.reader.parse_duration(item, "level", text))
        ]
        # A RocketMQ level string is counted as RocketMQ counts, from its third level; a list begins at its first.
        if isinstance(node, ScalarNode):
            durations = durations[ROCKETMQ_FIRST_RETRY_LEVEL - 1 :] or durations[-1:]
        if not durations:
            return ()
        return tuple(self._level_waiting(*durations[min(attempt, len(durations) - 1)]) for attempt in range(count))

    def _level_waiting(self, node: Node, text: str, ttl: Duration) -> str:
        """The level that waits this long; a new one with the defaults where there is none."""
        for level in self.levels.values():
            if level.ttl == ttl:
                return level.name
        self.levels[text] = LevelSpec(text, ttl, self.default_wait)
        return text


def _is_nothing(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value is None
