"""YAML text to plain nodes that know their line.

Plain scalars follow YAML 1.2: `true`, `false`, `null`, decimal numbers; `on`, `yes` or `1:30` stay text.
Built from events, not by recursion, so that deep nesting can't hurt; aliases are followed as far as a budget lasts.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from delayctl.topology.errors import DelayctlError, InvalidTopology, Problem
from delayctl.topology.lines import LINE_BREAK
from delayctl.topology.render import Rendered
from delayctl.topology.source_errors import explain
from delayctl.topology.wording import shorten

MAX_DEPTH = 40
MAX_ALIASED = 200_000  # Values that aliases may stand for, in all.
_INTEGER = re.compile(r"[-+]?[0-9]+(?:_[0-9]+)*")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_NULLS = ("", "~", "null", "Null", "NULL")
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(_NULLS),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_LONGEST_NUMBER = 20
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_YAML_TAGS = "tag:yaml.org,2002:"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True, eq=False)
class ScalarNode:
    """One value, and how it was written."""

    line: int
    value: str | int | float | bool | None
    text: str
    is_plain: bool = True  # Written without quotes.


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


def load(rendered: Rendered) -> Node:
    """Read the one YAML document of a rendered file, or raise InvalidTopology."""
    if forbidden := _FORBIDDEN.search(rendered.text):
        line = len(LINE_BREAK.findall(rendered.text, 0, forbidden.start())) + 1
        message = f"not YAML: character U+{ord(forbidden[0]):04X} is not allowed"
        raise InvalidTopology([Problem(message, rendered.location(line), "remove it")])
    try:
        return _Builder(rendered).build()
    except yaml.MarkedYAMLError as error:
        raise InvalidTopology([explain(error, rendered)]) from error


def plain(node: Node, depth: int = 0) -> object:
    """A node as plain Python values; a number that would not be printed as it was written stays text."""
    if depth > MAX_DEPTH:
        raise DelayctlError(
            f"values are nested deeper than {MAX_DEPTH} levels", fix="write them without aliases of aliases"
        )
    if isinstance(node, MapNode):
        return {key.text: plain(value, depth + 1) for key, value in node.pairs if isinstance(key, ScalarNode)}
    if isinstance(node, ListNode):
        return [plain(item, depth + 1) for item in node.items]
    if isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value if str(node.value) == node.text.replace("_", "") else node.text
    return node.value


class _Builder:
    """Puts nodes together, event by event."""

    def __init__(self, rendered: Rendered) -> None:
        self._rendered = rendered
        self._may_merge = "<<" in rendered.text
        self._children: list[Node] = []  # Of the innermost collection that is open; of the document, its one root.
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}  # Each with the number of nodes it stands for.
        self._count = 0  # Nodes so far, those that aliases stand for counted again.
        self._aliased = 0

    def build(self) -> Node:
        """The root of the document."""
        loader = _LOADER(self._rendered.text)
        next_event, scalar_event = loader.get_event, yaml.ScalarEvent
        try:
            while True:
                event = next_event()
                kind = type(event)
                # In the order of how often they come: most of a file are scalars, so these cost no further call.
                if kind is scalar_event:
                    text = event.value
                    is_plain = not event.style
                    value = resolve_plain(text) if is_plain else text
                    node = ScalarNode(event.start_mark.line + 1, value, text, is_plain)
                    self._children.append(node)
                    self._count += 1
                    if event.tag is not None or event.anchor is not None:
                        self._label(event, node)
                elif kind is yaml.MappingStartEvent:
                    self._enter(event, MapNode(event.start_mark.line + 1))
                elif kind is yaml.SequenceStartEvent:
                    self._enter(event, ListNode(event.start_mark.line + 1))
                elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                    self._leave()
                elif kind is yaml.AliasEvent:
                    self._alias(event)
                elif kind is yaml.DocumentStartEvent:
                    self._document(event)
                elif kind is yaml.StreamEndEvent:
                    break
        finally:
            loader.dispose()
        return self._children[0] if self._children else ScalarNode(1, None, "")

    def _document(self, event: Any) -> None:
        if self._children:
            fix = "keep one document in a file: remove the '---'"
            raise self._invalid(event.start_mark.line + 1, "a second document begins", fix)

    def _label(self, event: Any, node: Node) -> None:
        """Remember a node's anchor; refuse a tag."""
        if event.tag is not None and event.tag != "!":
            fix = "remove it, or put the value in quotes if the ! belongs to it"
            raise self._invalid(
                node.line, f"the tag {shorten(event.tag.replace(_YAML_TAGS, '!!'))} is not allowed", fix
            )
        if event.anchor:
            self._anchors[event.anchor] = node, 1

    def _enter(self, event: Any, node: MapNode | ListNode) -> None:
        self._children.append(node)
        self._count += 1
        if event.tag is not None or event.anchor is not None:
            self._label(event, node)
        self._open.append(_Open(node, event.anchor, self._count, self._children))
        self._children = []
        if len(self._open) > MAX_DEPTH:
            message = f"nested deeper than {MAX_DEPTH} levels"
            raise self._invalid(node.line, message, "a topology needs five: remove brackets or dashes")

    def _leave(self) -> None:
        closed = self._open.pop()
        node, children = closed.node, self._children
        self._children = closed.siblings
        if isinstance(node, ListNode):
            node.items = children
        else:
            one_by_one = iter(children)
            node.pairs = list(zip(one_by_one, one_by_one, strict=True))
            if self._may_merge and any(_is_merge(key) for key, _ in node.pairs):
                self._merge(node)
        if closed.anchor and self._anchors[closed.anchor][0] is node:
            self._anchors[closed.anchor] = node, self._count - closed.since + 1

    def _alias(self, event: Any) -> None:
        line, anchor = event.start_mark.line + 1, event.anchor
        if anchor not in self._anchors:
            fix = f"write &{anchor} at the value it stands for, or put the text in quotes"
            raise self._invalid(line, f"the alias *{anchor} names no anchor before it", fix)
        node, weight = self._anchors[anchor]
        if any(node is opened.node for opened in self._open):
            raise self._invalid(line, f"the alias *{anchor} stands within its own anchor", "write the value out")
        self._count += weight
        self._aliased += weight
        if self._aliased > MAX_ALIASED:
            message = f"the aliases up to *{anchor} stand for more than {MAX_ALIASED:,} values"
            raise self._invalid(line, message, "use fewer aliases, or a template loop")
        self._children.append(node)

    def _merge(self, node: MapNode) -> None:
        """Work in merge keys (`<<: *defaults`): a mapping's own keys win, then the first that is merged."""
        pairs = [pair for pair in node.pairs if not _is_merge(pair[0])]
        names = {key.text for key, _ in pairs if isinstance(key, ScalarNode)}
        for key, value in node.pairs:
            if not _is_merge(key):
                continue
            for source in value.items if isinstance(value, ListNode) else [value]:
                if not isinstance(source, MapNode):
                    raise self._invalid(
                        key.line, "'<<' needs a mapping to merge", "write <<: *name of an anchored mapping"
                    )
                added = [pair for pair in source.pairs if isinstance(pair[0], ScalarNode) and pair[0].text not in names]
                names.update(key.text for key, _ in added if isinstance(key, ScalarNode))
                pairs += added
        node.pairs = pairs

    def _invalid(self, line: int, message: str, fix: str) -> InvalidTopology:
        return InvalidTopology([Problem(message, self._rendered.location(line), fix)])


@dataclass(slots=True)
class _Open:
    """A collection that is still being read."""

    node: ListNode | MapNode
    anchor: str | None
    since: int
    siblings: list[Node]  # Itself and what stands before it in the same collection.


def _is_merge(key: Node) -> bool:
    return isinstance(key, ScalarNode) and key.text == "<<" and key.is_plain


def resolve_plain(text: str) -> str | int | float | bool | None:
    """What a scalar without quotes means."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    # Most texts are names: look at one letter before asking two patterns.
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        # Too large for anything we count; the text is kept for the message.
        return int(text) if len(text) <= _LONGEST_NUMBER else float("inf")
    if len(text) <= _LONGEST_NUMBER and _FLOAT.fullmatch(text):
        return float(text)
    return text
