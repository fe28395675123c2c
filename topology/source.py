"""YAML text to plain nodes that know their line.

Plain scalars follow YAML 1.2: `true`, `false`, `null`, decimal numbers; `on`, `yes` or `1:30` stay text.
Built from events, not by recursion, so neither deep nesting nor aliases of aliases can hurt.
"""

import re
from dataclasses import dataclass, field

import yaml
from delayctl.topology.errors import DelayctlError, InvalidTopology, Problem
from delayctl.topology.render import Rendered

MAX_DEPTH = 40
_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_CONSTANTS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
_LONGEST_NUMBER = 20


@dataclass(slots=True, eq=False)
class ScalarNode:
    """One value, and how it was written."""

    line: int
    value: str | int | float | bool | None
    text: str


@dataclass(slots=True, eq=False)
class ListNode:
    """A sequence."""

    line: int
    items: list["Node"] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class MapNode:
    """A mapping as pairs, so that a key written twice is still seen."""

    line: int
    pairs: list[tuple["Node", "Node"]] = field(default_factory=list)


Node = ScalarNode | ListNode | MapNode

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(rendered: Rendered) -> Node:
    """Read the one YAML document of a rendered file, or raise InvalidTopology."""
    try:
        return _build(rendered)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        message = " ".join(part for part in (error.context, error.problem) if part)
        raise _invalid(rendered, line, f"not YAML: {message}", _hint(error, rendered, line)) from error
    except yaml.reader.ReaderError as error:
        line = rendered.text[: error.position].count("\n") + 1
        raise _invalid(
            rendered, line, f"not YAML: character U+{error.character:04X} is not allowed", "remove it"
        ) from error


def plain(node: Node, budget: int = 10_000) -> object:
    """A node as plain Python values; raises DelayctlError where aliases make it grow beyond all bounds."""
    steps = [budget]

    def convert(node: Node) -> object:
        steps[0] -= 1
        if steps[0] < 0:
            raise DelayctlError("a value grows beyond all bounds", fix="write it without aliases of aliases")
        if isinstance(node, MapNode):
            return {key.text: convert(value) for key, value in node.pairs if isinstance(key, ScalarNode)}
        if isinstance(node, ListNode):
            return [convert(item) for item in node.items]
        return node.value

    return convert(node)


def _build(rendered: Rendered) -> Node:
    root: Node | None = None
    stack: list[_Open] = []
    anchors: dict[str, Node] = {}
    for event in yaml.parse(rendered.text, Loader=_LOADER):
        line = event.start_mark.line + 1
        match event:
            case yaml.DocumentStartEvent() if root is not None:
                raise _invalid(
                    rendered, line, "a second document begins", "keep one document in a file: remove the '---'"
                )
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                stack.pop()
                continue
            case yaml.AliasEvent():
                node = _aliased(rendered, line, event.anchor or "", anchors, stack)
            case yaml.ScalarEvent() | yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                if event.tag is not None and event.tag != "!":
                    raise _invalid(
                        rendered, line, f"the tag {event.tag} is not allowed", "remove it: write the plain value"
                    )
                node = _node(event, line)
            case _:
                continue
        if stack:
            stack[-1].add(node)
        else:
            root = node
        if getattr(event, "anchor", None) and not isinstance(event, yaml.AliasEvent):
            anchors[event.anchor] = node
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            stack.append(_Open(node))
            if len(stack) > MAX_DEPTH:
                raise _invalid(
                    rendered,
                    line,
                    f"nested deeper than {MAX_DEPTH} levels",
                    "a topology needs five: remove the brackets",
                )
    return root if root is not None else ScalarNode(1, None, "")


class _Open:
    """A collection that is still being read."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._key: Node | None = None

    def add(self, node: Node) -> None:
        if isinstance(self.node, ListNode):
            self.node.items.append(node)
        elif isinstance(self.node, MapNode):
            if self._key is None:
                self._key = node
            else:
                self.node.pairs.append((self._key, node))
                self._key = None


def _aliased(rendered: Rendered, line: int, anchor: str, anchors: dict[str, Node], stack: list[_Open]) -> Node:
    node = anchors.get(anchor)
    if node is None:
        raise _invalid(
            rendered,
            line,
            f"the alias *{anchor} names no anchor before it",
            f"write &{anchor} at the value it stands for",
        )
    if any(node is opened.node for opened in stack):
        raise _invalid(rendered, line, f"the alias *{anchor} contains itself", "write the value out")
    return node


def _node(event: yaml.ScalarEvent | yaml.CollectionStartEvent, line: int) -> Node:
    if isinstance(event, yaml.MappingStartEvent):
        return MapNode(line)
    if isinstance(event, yaml.SequenceStartEvent):
        return ListNode(line)
    assert isinstance(event, yaml.ScalarEvent)
    plain = event.style in (None, "")
    return ScalarNode(line, _resolve(event.value) if plain else event.value, event.value)


def _resolve(text: str) -> str | int | float | bool | None:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) <= _LONGEST_NUMBER:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    elif _INTEGER.fullmatch(text):
        return float("inf")  # Too large for anything we count; the text is kept for the message.
    return text


def _hint(error: yaml.MarkedYAMLError, rendered: Rendered, line: int) -> str:
    lines = rendered.text.split("\n")
    around = lines[max(0, line - 2) : line]
    if "\\t" in (error.problem or "") or any(text.lstrip(" ").startswith("\t") for text in around):
        return "indent with spaces: YAML allows no tabs"
    if "mapping values are not allowed" in (error.problem or ""):
        return "check the indentation, or put the value with ': ' in quotes"
    return "check quotes, brackets and indentation at and above this line"


def _invalid(rendered: Rendered, line: int, message: str, fix: str) -> InvalidTopology:
    return InvalidTopology([Problem(message, rendered.location(line), fix)])
