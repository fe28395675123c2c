"""What a topology file can say of an object on a broker, and what stands in the way where it can't."""

import re

from delayctl.topology.arguments import ALTERNATE_EXCHANGE, argument_name, is_number_argument, queue_arguments
from delayctl.topology.model import (
    EXCHANGE_TYPES,
    QUEUE_TYPES,
    Arguments,
    Binding,
    Exchange,
    Queue,
    QueueType,
    freeze_arguments,
)
from delayctl.topology.names import DOT_SEGMENTS, MAX_NAME_BYTES
from delayctl.topology.parse_routes import PATTERN_WORDS, X_MATCHES
from delayctl.topology.reader import MAX_INTEGER
from delayctl.topology.wording import quoted

_CONTROL = re.compile("[\x00-\x1f\x7f]")
_TYPE = argument_name("type")


def name_obstacle(name: str, *, may_be_predefined: bool = False) -> str | None:
    """Why a name can't stand in the file, if it can't."""
    if not name:
        return "it has no name"
    if name.startswith("amq.") and not may_be_predefined:
        return "names that begin with amq. are the broker's own"
    if _CONTROL.search(name):
        return "its name holds a control character"
    return _text_obstacle(name)


def object_obstacle(name: str, *, may_be_predefined: bool = False) -> str | None:
    """Why no object of this name can stand in the file, if none can."""
    if name in DOT_SEGMENTS:
        return "the broker's management API takes its name for a step in a path"
    return name_obstacle(name, may_be_predefined=may_be_predefined)


def exchange_type(exchange: Exchange) -> str | None:
    """The type as the file writes it; None where it knows no such type."""
    return exchange.type if exchange.type in EXCHANGE_TYPES else None


def queue_type(queue: Queue) -> QueueType | None:
    """The type as the file writes it; None where there is none, or none that it knows."""
    return next((known for known in QUEUE_TYPES if known == queue.settings.type), None)


def exchange_obstacle(exchange: Exchange) -> str | None:
    """Why an exchange can't be written as it is, if it can't."""
    if exchange_type(exchange) is None:
        return f"the file knows no exchanges of type {exchange.type}"
    if exchange.alternate is not None and object_obstacle(exchange.alternate, may_be_predefined=True):
        return f"its alternate exchange is {quoted(exchange.alternate)}"
    if ALTERNATE_EXCHANGE in dict(exchange.extra):
        return "its alternate exchange is not a name"
    return next((why for name, value in exchange.extra if (why := _argument_obstacle(name, value))), None)


def queue_obstacle(queue: Queue) -> str | None:
    """Why a queue can't be written as it is, if it can't."""
    if queue.settings.type is not None and queue_type(queue) is None:
        return f"the file knows no queues of type {queue.settings.type}"
    if queue.settings.type == "quorum" and (queue.auto_delete or not queue.durable):
        return "it is of type quorum, and yet not durable or deleted by itself"
    for name, value in written_arguments(queue):
        if not name.startswith("x-"):
            return f"its argument {quoted(name)} does not begin with x-"
        if name == _TYPE or (is_number_argument(name) and not _is_count(value)):
            return f"its argument {name} is {_described(value)}"
        if why := _argument_obstacle(name, value):
            return why
    return None


def written_arguments(queue: Queue) -> Arguments:
    """The arguments of a queue as the file lists them: all but the type."""
    arguments = queue_arguments(queue)
    if queue.settings.type is not None:
        arguments.pop(_TYPE)
    return freeze_arguments(arguments)


def route_obstacle(binding: Binding, source_type: str | None) -> str | None:
    """Why no route can say what this binding of an exchange of this type says, if none can."""
    if source_type == "fanout":
        return None
    if binding.arguments and source_type not in ("headers", None):
        return f"it has arguments, which a {source_type} exchange does not look at"
    if binding.key and (source_type == "headers" or binding.arguments):
        return f"it has the key {quoted(binding.key)} beside what it looks for in the headers"
    if why := _headers_obstacle(binding.arguments):
        return why
    if source_type == "direct" and not PATTERN_WORDS.isdisjoint(binding.key.split(".")):
        return f"{quoted(binding.key)} looks like a pattern, which a direct exchange does not know"
    return _text_obstacle(binding.key)


def _headers_obstacle(headers: Arguments) -> str | None:
    for name, value in headers:
        if name == "x-match" and value not in X_MATCHES:
            return f"its x-match is {_described(value)}"
        if why := _argument_obstacle(name, value, may_be_predefined=True):
            return why
    return None


def _argument_obstacle(name: str, value: object, *, may_be_predefined: bool = False) -> str | None:
    if name_obstacle(name, may_be_predefined=may_be_predefined):
        return f"the name of its argument {quoted(name)} can't stand in the file"
    if isinstance(value, str):
        return _text_obstacle(value, most=None)
    if isinstance(value, int) and -MAX_INTEGER <= value <= MAX_INTEGER:
        return None
    return f"its argument {name} is {_described(value)}"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INTEGER


def _text_obstacle(text: str, *, most: int | None = MAX_NAME_BYTES) -> str | None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return f"{quoted(text)} is not UTF-8"
    return f"{quoted(text)} is longer than {most} bytes" if most is not None and size > most else None


def _described(value: object) -> str:
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if value is None or isinstance(value, int | float):
        return f"{value}"
    return "a list or a table"
