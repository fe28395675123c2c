"""The `exchanges` and `queues` sections, and the names that routes and retries use."""

from delayctl.topology.arguments import ALTERNATE_EXCHANGE, is_number_argument
from delayctl.topology.model import EXCHANGE_TYPES, QUEUE_TYPES, Arguments, Kind, freeze_arguments
from delayctl.topology.names import Names
from delayctl.topology.own_names import own_names
from delayctl.topology.parse_levels import Levels
from delayctl.topology.reader import MAX_INTEGER, Reader, describe
from delayctl.topology.source import Node, ScalarNode
from delayctl.topology.spec import ExchangeSpec, QueueSpec
from delayctl.topology.wording import Spelling, quoted, shorten

EXCHANGE_KEYS = ("type", "alternate", "existing", "durable", "auto_delete", "internal", "arguments")
QUEUE_KEYS = ("type", "arguments", "existing", "durable", "auto_delete")
# What can be said of an object only by declaring it.
_OF_DECLARATION = ("alternate", "arguments", "durable", "auto_delete", "internal")


class Objects:
    """The exchanges and queues of a file: those that are listed, and those that are just used."""

    def __init__(self, reader: Reader) -> None:
        self.exchanges: dict[str, ExchangeSpec] = {}
        self.queues: dict[str, QueueSpec] = {}
        self._reader = reader
        self._listed: dict[Kind, dict[str, Node]] = {"exchange": {}, "queue": {}}
        self._used: dict[Kind, dict[str, Node]] = {"exchange": {}, "queue": {}}
        self._spelling: dict[Kind, Spelling] = {}

    def read(self, exchanges: Node | None, queues: Node | None) -> None:
        """Read both sections."""
        for name, key, node in self._reader.entries(exchanges, "exchanges") if exchanges else ():
            exchange = _read_exchange(self._reader, name, key, node)
            # RabbitMQ's own exchanges (amq.topic …) can be used, but never declared.
            if self._reader.check_object(key, "exchange", name, may_be_predefined=exchange.existing):
                self.exchanges[name] = exchange
                self._listed["exchange"][name] = key
        for name, key, node in self._reader.entries(queues, "queues") if queues else ():
            queue = _read_queue(self._reader, name, key, node)
            if self._reader.check_object(key, "queue", name):
                self.queues[name] = queue
                self._listed["queue"][name] = key
        self._spelling = {kind: Spelling(names) for kind, names in self._listed.items()}

    def use(self, node: Node, kind: Kind, what: str) -> str | None:
        """A name that the file mentions as a value."""
        name = self._reader.text(node, what)
        return self.use_name(name, node, kind, what) if name is not None else None

    def use_name(self, name: str, node: Node, kind: Kind, what: str) -> str | None:
        """A name that the file mentions; one that isn't listed is declared with the defaults, unless it looks misspelt."""
        if name in self._listed[kind] or name in self._used[kind]:
            return name
        if not self._reader.check_object(node, what, name):
            return None
        if meant := self._spelling[kind].meant_by(name):
            message = f"{what} names the {kind} {quoted(name)}, which is not listed (did you mean {quoted(meant)}?)"
            fix = f"correct the name, or list it under {kind}s: if it is another one"
            self._reader.problem(node, message, fix=fix)
            return None
        self._used[kind][name] = node
        if kind == "exchange":
            self.exchanges[name] = ExchangeSpec(name, line=self._reader.line_of(node))
        else:
            self.queues[name] = QueueSpec(name, line=self._reader.line_of(node))
        return name

    def check_own_names(self, names: Names, levels: Levels, *, can_cancel: bool) -> None:
        """Refuse the names that delayctl's own objects have; called last, since a retry may add levels."""
        steps = levels.ladder.steps if levels.ladder else 0
        own = own_names(names, levels, steps=steps, has_delays=levels.are_wanted, can_cancel=can_cancel)
        for kind, reserved in own.items():
            for name in sorted(reserved & self._listed[kind].keys()):
                fix = "remove it: it is declared by itself; or set another prefix"
                self._reader.problem(self._listed[kind][name], f"{kind} '{name}' is delayctl's own name", fix=fix)
            for name in sorted(reserved & self._used[kind].keys()):
                fix = f"name another {kind}, or set another prefix"
                self._reader.problem(self._used[kind][name], f"{kind} '{name}' is delayctl's own name", fix=fix)


def _read_exchange(reader: Reader, name: str, key: Node, node: Node) -> ExchangeSpec:
    what = f"exchange {quoted(name)}"
    fields = reader.fields(node, what, EXCHANGE_KEYS)
    existing = _existing(reader, fields, what)
    kind = reader.choice(fields["type"], f"type of {what}", EXCHANGE_TYPES) if "type" in fields else None
    alternate = _read_alternate(reader, fields["alternate"], f"alternate of {what}") if "alternate" in fields else None
    return ExchangeSpec(
        name,
        kind or (None if existing else "topic"),
        alternate,
        existing,
        durable=_flag(reader, fields, "durable", what, default=True),
        auto_delete=_flag(reader, fields, "auto_delete", what),
        internal=_flag(reader, fields, "internal", what),
        arguments=_exchange_arguments(reader, fields["arguments"], what) if "arguments" in fields else (),
        line=reader.line_of(key),
    )


def _read_alternate(reader: Reader, node: Node, what: str) -> str | None:
    name = reader.text(node, what)
    # It is named and no more, so that it may be one of RabbitMQ's own.
    return name if name is not None and reader.check_object(node, what, name, may_be_predefined=True) else None


def _read_queue(reader: Reader, name: str, key: Node, node: Node) -> QueueSpec:
    what = f"queue {quoted(name)}"
    fields = reader.fields(node, what, QUEUE_KEYS)
    existing = _existing(reader, fields, what)
    kind = reader.choice(fields["type"], f"type of {what}", QUEUE_TYPES) if "type" in fields else None
    queue = QueueSpec(
        name,
        kind,
        existing,
        _arguments(reader, fields["arguments"], what) if "arguments" in fields else (),
        durable=_flag(reader, fields, "durable", what, default=True),
        auto_delete=_flag(reader, fields, "auto_delete", what),
        line=reader.line_of(key),
    )
    for field, is_set in (("durable", not queue.durable), ("auto_delete", queue.auto_delete)):
        if kind == "quorum" and is_set:
            message = f"{what} is of type quorum, which is always durable and never deleted by itself"
            reader.problem(fields[field], message, fix=f"remove {field}, or write type: classic")
    return queue


def _existing(reader: Reader, fields: dict[str, Node], what: str) -> bool:
    existing = _flag(reader, fields, "existing", what)
    for foreign in _OF_DECLARATION if existing else ():
        if foreign in fields:
            message = f"{what} is existing, so '{foreign}' is not ours to set"
            reader.problem(fields[foreign], message, fix=f"remove {foreign}, or existing")
    return existing


def _flag(reader: Reader, fields: dict[str, Node], name: str, what: str, *, default: bool = False) -> bool:
    value = reader.boolean(fields[name], f"{name} of {what}") if name in fields else None
    return default if value is None else value


def _exchange_arguments(reader: Reader, node: Node, what: str) -> Arguments:
    arguments: dict[str, object] = {}
    for name, key, value in reader.entries(node, f"arguments of {what}"):
        if name == ALTERNATE_EXCHANGE:
            fix = f"write alternate: {_plain_text(value) or 'NAME'} beside arguments instead"
            reader.problem(key, f"arguments of {what} set {name}", fix=fix)
        elif reader.check_name(key, f"argument of {what}", name):
            arguments[name] = plain_value(reader, value, f"argument {quoted(name)} of {what}")
    return freeze_arguments(arguments)


def _arguments(reader: Reader, node: Node, what: str) -> Arguments:
    arguments: dict[str, object] = {}
    for name, key, value in reader.entries(node, f"arguments of {what}"):
        if name == "x-queue-type":
            fix = f"write type: {_plain_text(value) or 'classic or quorum'} beside arguments instead"
            reader.problem(key, f"arguments of {what} set x-queue-type", fix=fix)
        elif not name.startswith("x-"):
            message = f"argument {quoted(name)} of {what} does not begin with x-"
            reader.problem(key, message, fix=f"write x-{shorten(name)}")
        elif reader.check_name(key, f"argument of {what}", name):
            arguments[name] = _argument(reader, name, value, what)
    return freeze_arguments(arguments)


def _argument(reader: Reader, name: str, node: Node, what: str) -> str | int | None:
    if is_number_argument(name):
        return reader.integer(node, f"argument {name} of {what}", least=0)
    return plain_value(reader, node, f"argument {quoted(name)} of {what}")


def plain_value(reader: Reader, node: Node, what: str) -> str | int | None:
    """A value that AMQP's tables hold and that a line of YAML can write."""
    value = node.value if isinstance(node, ScalarNode) else None
    if isinstance(value, str) or (isinstance(value, int) and -MAX_INTEGER <= value <= MAX_INTEGER):
        return value
    message = f"{what} must be a text, a whole number, true or false, not {describe(node)}"
    reader.problem(node, message, fix="write one plain value; a number has 64 bits at most")
    return None


def _plain_text(node: Node) -> str:
    return shorten(node.text) if isinstance(node, ScalarNode) else ""
