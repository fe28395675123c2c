"""Plain values as YAML that people like to read: one line where it fits, a block where it does not."""

import json
import re
from collections.abc import Mapping, Sequence

from delayctl.topology.source import resolve_plain

WIDTH = 110
_PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./-]*")
_TEMPLATE = re.compile(r"\{(?=[{%#])")  # Where Jinja2 would see an expression, a tag or a comment begin.

Plain = str | int | bool | Sequence["Plain"] | Mapping[str, "Plain"]


def entry(name: str, value: Plain, indent: int = 0) -> list[str]:
    """The lines of `name: value`, as short as they can be."""
    line = f"{' ' * indent}{scalar(name)}: {flow(value)}"
    if len(line) <= WIDTH or not _has_parts(value):
        return [line]
    return block(name, value, indent)


def block(name: str, value: Plain, indent: int = 0) -> list[str]:
    """The lines of `name:` with each part of the value on lines of its own."""
    inner = indent + 2
    lines = [f"{' ' * indent}{scalar(name)}:"]
    if isinstance(value, Mapping):
        return lines + [line for key, part in value.items() for line in entry(key, part, inner)]
    assert isinstance(value, Sequence)
    return lines + [line for part in value for line in _item(part, inner)]


def _item(value: Plain, indent: int) -> list[str]:
    line = f"{' ' * indent}- {flow(value)}"
    if len(line) <= WIDTH or not isinstance(value, Mapping):
        return [line]
    first, *rest = [line for key, part in value.items() for line in entry(key, part, indent + 2)]
    return [f"{' ' * indent}- {first.lstrip(' ')}", *rest]


def flow(value: Plain) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def scalar(value: str | int | bool) -> str:
    """One value, in quotes where it would be read as something else without them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and isinstance(resolve_plain(value), str):
        return value
    escaped = "".join(map(_printable, json.dumps(value, ensure_ascii=False)))
    return _TEMPLATE.sub(r"\\x7b", escaped)


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _has_parts(value: Plain) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str) and bool(value)
