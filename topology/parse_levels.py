"""The `delay` section: levels, and how their queues keep what waits."""

from collections.abc import Iterator
from dataclasses import replace

from delayctl.topology.duration import Duration
from delayctl.topology.model import OVERFLOWS, QUEUE_TYPES
from delayctl.topology.names import ANY, Names
from delayctl.topology.reader import HOW_TO_WRITE, Entry, Reader, describe
from delayctl.topology.source import ListNode, MapNode, Node, ScalarNode
from delayctl.topology.spec import DEFAULT_LEVELS, MOST_SHARDS, ROCKETMQ_LEVELS, LadderSpec, LevelSpec, WaitSpec
from delayctl.topology.wording import near, quoted, shorten

WAIT_KEYS = ("type", "max_length", "max_bytes", "overflow", "lazy", "profile", "shards", "expected_rate")
LEVEL_KEYS = ("ttl", *WAIT_KEYS)
PROFILES = ("safe",)
UNLIMITED = "unlimited"
ROCKETMQ = "rocketmq"
MAX_LEVEL_BYTES = 50


class Levels:
    """The levels of a file, by name and by how long they wait."""

    def __init__(self, default_wait: WaitSpec, *, are_wanted: bool = True) -> None:
        self.default_wait = default_wait
        self.are_wanted = are_wanted  # A file that says `delay: none` has no levels, and gets none.
        self.ladder: LadderSpec | None = None
        self._by_name: dict[str, LevelSpec] = {}
        self._by_ttl: dict[Duration, str] = {}
        self._broken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[LevelSpec]:
        """From the shortest to the longest."""
        return iter(sorted(self._by_name.values(), key=lambda level: (level.ttl, level.name)))

    def add(self, level: LevelSpec) -> None:
        """Take in a level."""
        self._by_name[level.name] = level
        self._by_ttl.setdefault(level.ttl, level.name)

    def add_broken(self, name: str) -> None:
        """Remember a level that has a problem already, so that those who use it need not report it again."""
        self._broken.add(name)

    def is_broken(self, name: str) -> bool:
        """Say whether the level is there, with a problem."""
        return name in self._broken

    def waiting(self, ttl: Duration) -> str | None:
        """The first level that waits this long."""
        return self._by_ttl.get(ttl)

    def named_by_duration(self, text: str) -> str | None:
        """The first level that waits as long as this text says."""
        try:
            return self.waiting(Duration.parse(text))
        except ValueError:
            return None


def read_levels(
    reader: Reader, names: Names, node: Node | None, default_wait: WaitSpec, *, ladder: LadderSpec | None = None
) -> Levels:
    """Read `levels` in any of its forms: a list, a mapping, a RocketMQ level string or `rocketmq`.

    Beside a ladder there are those that are written down, elsewhere a few by default.
    """
    levels = Levels(default_wait)
    levels.ladder = ladder
    if node is None and ladder:
        return levels
    if node is None:
        for name in DEFAULT_LEVELS:
            levels.add(LevelSpec(name, Duration.parse(name), default_wait))
    elif isinstance(node, MapNode):
        for entry in reader.entries(node, "levels"):
            _read_level(reader, names, levels, entry)
        if not node.pairs:
            reader.problem(node, "levels is empty", fix=f"write levels: [{', '.join(DEFAULT_LEVELS)}]")
    else:
        for item, text in level_texts(reader, node, levels, "a list, a mapping or a RocketMQ level string"):
            _read_duration(reader, levels, item, text)
    return levels


def level_texts(reader: Reader, node: Node, levels: Levels, expected: str) -> list[tuple[Node, str]]:
    """The texts of a list, of a RocketMQ level string, or of the preset `rocketmq`; each with its place."""
    texts: list[tuple[Node, str]] = []
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        texts = [(node, text) for text in (ROCKETMQ_LEVELS if node.value == ROCKETMQ else node.value).split()]
    elif isinstance(node, ListNode):
        texts = [(item, text) for item in node.items if (text := _level_text(reader, item, levels)) is not None]
    else:
        message = f"levels must be {expected}, not {describe(node)}"
        reader.problem(node, message, fix=f"write levels: [{', '.join(DEFAULT_LEVELS)}], or levels: rocketmq")
        return []
    if not texts and not (isinstance(node, ListNode) and node.items):
        reader.problem(node, "levels is empty", fix=f"write levels: [{', '.join(DEFAULT_LEVELS)}]")
    return texts


def _level_text(reader: Reader, node: Node, levels: Levels) -> str | None:
    if isinstance(node, MapNode):
        message = "level must be a duration, not a mapping"
        reader.problem(node, message, fix="write levels without dashes to give settings, as in 5m: {max_length: 1000}")
        return None
    if isinstance(node, ScalarNode) and (node.text in levels or (isinstance(node.value, str) and node.value)):
        return node.text
    reader.duration(node, "level")
    return None


def _fix_for(text: str) -> str:
    if near(text.lower(), [ROCKETMQ]):
        return "write levels: rocketmq, or durations such as 5m"
    if text.endswith(","):
        return "separate the levels by spaces, or write a list: [1m, 5m]"
    if text[0].isalpha():
        return f"{HOW_TO_WRITE}; a name goes into a mapping, as in levels: {{{shorten(text)}: {{ttl: 5m}}}}"
    return HOW_TO_WRITE


def _read_duration(reader: Reader, levels: Levels, node: Node, text: str) -> None:
    ttl = reader.parse_duration(node, "level", text, fix=_fix_for(text))
    if text in levels:
        reader.problem(node, f"level {quoted(text)} stands twice", fix="remove one of them")
    elif ttl:
        levels.add(LevelSpec(text, ttl, levels.default_wait, reader.line_of(node)))
    else:
        levels.add_broken(text)


def _read_level(reader: Reader, names: Names, levels: Levels, entry: Entry) -> None:
    name, key, node = entry
    fields = reader.fields(node, f"level {quoted(name)}", LEVEL_KEYS)
    wait = wait_from(reader, node, fields, f"level {quoted(name)}", levels.default_wait)
    ttl = _ttl(reader, name, key, fields.get("ttl"))
    if _name_fits(reader, names, name, key) and ttl:
        levels.add(LevelSpec(name, ttl, wait, reader.line_of(key)))
    else:
        levels.add_broken(name)


def _name_fits(reader: Reader, names: Names, name: str, key: Node) -> bool:
    if names.reserved(name):
        taken = names.entrance(name) if name == ANY else names.delay_queue(name)
        message = f"level '{name}' would collide with {taken} of delayctl's own"
        reader.problem(key, message, fix="choose another name")
    elif not name or not all(char.isalnum() or char in "-_" for char in name):
        message = f"level name {quoted(name)} is not made of letters, digits, '-' and '_'"
        reader.problem(key, message, fix="choose a short plain name, such as 5m or slow")
    elif len(name.encode()) > MAX_LEVEL_BYTES:
        message = f"level name {quoted(name)} is longer than {MAX_LEVEL_BYTES} bytes"
        reader.problem(key, message, fix="choose a short plain name, such as 5m or slow")
    else:
        return True
    return False


def _ttl(reader: Reader, name: str, key: Node, node: Node | None) -> Duration | None:
    if node is not None:
        return reader.duration(node, f"ttl of level {quoted(name)}")
    try:
        Duration.parse(name)
    except ValueError:
        fix = "add ttl: 5m, or name the level by its duration"
        reader.problem(key, f"level {quoted(name)} has no ttl", fix=fix)
        return None
    return reader.parse_duration(key, "level", name)


def read_wait(reader: Reader, node: Node, what: str) -> WaitSpec:
    """Read how delay queues keep what waits in them."""
    return wait_from(reader, node, reader.fields(node, what, WAIT_KEYS), what, WaitSpec())


def wait_from(reader: Reader, node: Node, fields: dict[str, Node], what: str, base: WaitSpec) -> WaitSpec:
    """Read the settings of a wait from fields that may hold others as well; what is left out is as in `base`."""
    if "profile" in fields and reader.choice(fields["profile"], f"profile of {what}", PROFILES):
        base = replace(base, type="quorum", overflow="reject-publish", at_least_once=True)
    kind = reader.choice(fields["type"], f"type of {what}", QUEUE_TYPES) if "type" in fields else None
    overflow = reader.choice(fields["overflow"], f"overflow of {what}", OVERFLOWS) if "overflow" in fields else None
    wait = WaitSpec(
        type=kind or base.type,
        max_length=_limit(reader, fields.get("max_length"), f"max_length of {what}", base.max_length),
        max_bytes=_limit(reader, fields.get("max_bytes"), f"max_bytes of {what}", base.max_bytes),
        overflow=overflow or base.overflow,
        at_least_once=base.at_least_once,
        lazy=_lazy(reader, fields.get("lazy"), f"lazy of {what}", base.lazy),
        shards=_shards(reader, fields.get("shards"), f"shards of {what}", base.shards),
        expected_rate=reader.rate(fields["expected_rate"], f"expected_rate of {what}")
        if "expected_rate" in fields
        else base.expected_rate,
    )
    for field, needed in (("type", "quorum"), ("overflow", "reject-publish")):
        if wait.at_least_once and getattr(wait, field) != needed:
            message = f"{what} is of profile safe, which needs {field} {needed}"
            reader.problem(fields.get(field, node), message, fix=f"remove {field}, or the profile")
    return wait


def _lazy(reader: Reader, node: Node | None, what: str, default: bool) -> bool:
    chosen = None if node is None else reader.boolean(node, what)
    return default if chosen is None else chosen


def _shards(reader: Reader, node: Node | None, what: str, default: int) -> int:
    chosen = None if node is None else reader.integer(node, what, least=1, most=MOST_SHARDS)
    return default if chosen is None else chosen


def _limit(reader: Reader, node: Node | None, what: str, default: int | None) -> int | None:
    if node is None:
        return default
    if isinstance(node, ScalarNode) and node.value == UNLIMITED:
        return None
    value = reader.integer(node, what, least=1, other=UNLIMITED)
    return default if value is None else value
