"""Reads typed values out of nodes and notes every problem on the way, instead of stopping at the first."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, cast

from delayctl.topology.duration import MAX_TTL_MS, Duration
from delayctl.topology.errors import InvalidTopology, Location, Problem
from delayctl.topology.names import DOT_SEGMENTS, MAX_NAME_BYTES
from delayctl.topology.rate import Rate
from delayctl.topology.render import Rendered
from delayctl.topology.source import ListNode, MapNode, Node, ScalarNode
from delayctl.topology.wording import did_you_mean, near, quoted, shorten

MAX_PROBLEMS = 100
MAX_INTEGER = 2**63 - 1  # AMQP's longest integer.
HOW_TO_WRITE = "write it as 500ms, 10s, 1m30s, 2h or 1d"

_CONTROL = re.compile("[\x00-\x1f\x7f]")
_LONGEST = Duration(MAX_TTL_MS)

Choice = TypeVar("Choice", bound=str)
Entry = tuple[str, Node, Node]  # Name, key and value.


class Reader:
    """Collects problems; every read gives a usable value or None, and a problem with it."""

    def __init__(self, rendered: Rendered) -> None:
        self._rendered = rendered
        self._problems: dict[Problem, None] = {}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that was found so far, each once."""
        return tuple(self._problems)

    def problem(self, node: Node, message: str, *, fix: str) -> None:
        """Note what is wrong at this node."""
        self._problems[Problem(message, self._rendered.location(node.line), fix)] = None
        if len(self._problems) >= MAX_PROBLEMS:
            last = max(problem.location.line or 0 for problem in self._problems)
            there = Location(self._rendered.file, last)
            more = Problem(f"these are {MAX_PROBLEMS} problems, the rest is not read", there, "correct these first")
            raise InvalidTopology([*self._problems, more])

    def line_of(self, node: Node) -> int:
        """The line of the file that wrote this node."""
        return self._rendered.line(node.line)

    def fields(self, node: Node, what: str, allowed: Sequence[str]) -> dict[str, Node]:
        """The fields of a mapping that has a fixed set of keys."""
        if isinstance(node, MapNode):
            known = {key.text: value for key, value in node.pairs if isinstance(key, ScalarNode)}
            if len(known) == len(node.pairs) and known.keys() <= set(allowed):
                return known
        # Something is wrong with it: look at its keys one by one.
        known = {}
        for name, key, value in self.entries(node, what):
            if name in allowed:
                known[name] = value
            else:
                message = f"{what} has no key {quoted(name)}{did_you_mean(name, allowed)}"
                self.problem(key, message, fix=f"use one of: {', '.join(allowed)}")
        return known

    def entries(self, node: Node, what: str) -> Iterator[Entry]:
        """The entries of a mapping with names of the user's own."""
        if is_nothing(node):
            return
        if not isinstance(node, MapNode):
            message = f"{what} must be a mapping, not {describe(node)}"
            self.problem(node, message, fix="write 'name: value' lines below it")
            return
        seen: dict[str, Node] = {}
        for key, value in node.pairs:
            if not isinstance(key, ScalarNode):
                self.problem(key, f"{what} has a key that is {describe(key)}", fix="use plain text as key")
            elif key.text in seen:
                message = f"{what} has {quoted(key.text)} twice, first at line {self.line_of(seen[key.text])}"
                self.problem(key, message, fix="remove or rename one of them")
            else:
                seen[key.text] = key
                yield key.text, key, value

    def items(self, node: Node, what: str) -> list[Node]:
        """The items of a list."""
        if isinstance(node, ListNode):
            return node.items
        self.problem(node, f"{what} must be a list, not {describe(node)}", fix="begin each of them with '- '")
        return []

    def text(self, node: Node, what: str) -> str | None:
        """A text that AMQP can carry as a name or a key."""
        if not (isinstance(node, ScalarNode) and isinstance(node.value, str) and node.value):
            self.problem(node, f"{what} must be a text, not {describe(node)}", fix=_as_text(node))
            return None
        return node.value if self._fits(node, what, node.value) else None

    def host(self, node: Node, what: str) -> str | None:
        """The name of a virtual host."""
        text = self.label(node, what)
        return text if text is not None and self._is_no_step(node, what, text) else None

    def label(self, node: Node, what: str) -> str | None:
        """A text without control characters."""
        text = self.text(node, what)
        return text if text is not None and self._is_clean(node, what, text) else None

    def name(self, node: Node, what: str) -> str | None:
        """A name that AMQP can carry and that is not reserved."""
        text = self.text(node, what)
        return text if text is not None and self.check_name(node, what, text) else None

    def check_name(self, node: Node, what: str, text: str, *, may_be_predefined: bool = False) -> bool:
        """Note what is wrong with a name; say whether it can be used."""
        if not text:
            self.problem(node, f"{what} has no name", fix="write a name before the ':'")
        elif text.startswith("amq.") and not may_be_predefined:
            message = f"{what} {quoted(text)} begins with 'amq.', which is reserved by RabbitMQ"
            fix = "choose another name; to use an exchange of RabbitMQ's own, list it with existing: true"
            self.problem(node, message, fix=fix)
        else:
            return self._is_clean(node, what, text) and self._fits(node, what, text)
        return False

    def check_object(self, node: Node, what: str, text: str, *, may_be_predefined: bool = False) -> bool:
        """The same as `check_name`, of what the management API is asked about by its name."""
        is_fine = self.check_name(node, what, text, may_be_predefined=may_be_predefined)
        return self._is_no_step(node, what, text) and is_fine

    def _is_no_step(self, node: Node, what: str, text: str) -> bool:
        if text in DOT_SEGMENTS:
            message = f"{what} {quoted(text)} is a name that the broker's management API takes for a step in a path"
            self.problem(node, message, fix="choose another name")
        return text not in DOT_SEGMENTS

    def _is_clean(self, node: Node, what: str, text: str) -> bool:
        control = _CONTROL.search(text)
        if control:
            self.problem(node, f"{what} {quoted(text)} holds a control character", fix="remove it")
        return control is None

    def _fits(self, node: Node, what: str, text: str) -> bool:
        if 4 * len(text) <= MAX_NAME_BYTES:  # No character takes more than four bytes.
            return True
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_NAME_BYTES:
            self.problem(
                node, f"{what} {quoted(text)} is longer than {MAX_NAME_BYTES} bytes", fix="choose a shorter one"
            )
        return size <= MAX_NAME_BYTES

    def integer(self, node: Node, what: str, *, least: int, most: int = MAX_INTEGER, other: str = "") -> int | None:
        """A whole number within bounds; `other` is a word that is allowed as well."""
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        is_too_large = isinstance(value, int | float) and value > most
        bounds = f"from {least} to {most}" if most < MAX_INTEGER or is_too_large else f"of {least} or more"
        instead = f", or {other}" if other else ""
        message = f"{what} must be a whole number {bounds}{instead}, not {describe(node)}"
        self.problem(node, message, fix=f"write a whole number {bounds}, without unit or quotes{instead}")
        return None

    def boolean(self, node: Node, what: str) -> bool | None:
        """True or false."""
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return node.value
        self.problem(node, f"{what} must be true or false, not {describe(node)}", fix="write true or false")
        return None

    def choice(self, node: Node, what: str, options: Sequence[Choice]) -> Choice | None:
        """One of a few words."""
        text = node.text if isinstance(node, ScalarNode) else ""
        if text in options:
            return cast(Choice, text)
        words = f"one of {', '.join(options)}" if len(options) > 1 else options[0]
        message = f"{what} must be {words}, not {describe(node)}{did_you_mean(text, options)}"
        self.problem(node, message, fix=f"write {near(text, options) or ' or '.join(options)}")
        return None

    def duration(self, node: Node, what: str) -> Duration | None:
        """A duration between 1 ms and the longest that the broker takes."""
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            return self.parse_duration(node, what, node.value)
        is_count = isinstance(node, ScalarNode) and node.text.isdecimal() and node.value
        example = (
            f"{shorten(node.text)}s or {shorten(node.text)}m"
            if is_count and isinstance(node, ScalarNode)
            else "90s or 1m30s"
        )
        self.problem(
            node, f"{what} must be a duration, not {describe(node)}", fix=f"write it with its unit, such as {example}"
        )
        return None

    def rate(self, node: Node, what: str) -> Rate | None:
        """So many a second, a minute, an hour or a day."""
        try:
            return Rate.parse(node.text if isinstance(node, ScalarNode) else "")
        except ValueError:
            self.problem(
                node, f"{what} must be a rate, not {describe(node)}", fix="write it as 200/s, 5000/m or 1000000/d"
            )
            return None

    def parse_duration(self, node: Node, what: str, text: str, *, fix: str = HOW_TO_WRITE) -> Duration | None:
        """A duration that stands within a longer text."""
        try:
            duration = Duration.parse(text)
        except ValueError as error:
            self.problem(node, f"{what} {error}", fix=fix)
            return None
        if 1 <= duration.ms <= MAX_TTL_MS:
            return duration
        message = f"{what} {quoted(text)} is not between 1ms and {_LONGEST}"
        self.problem(node, message, fix="choose a delay in between: RabbitMQ takes no other")
        return None


def is_nothing(node: Node) -> bool:
    """Say whether a key was written without a value."""
    return isinstance(node, ScalarNode) and node.value is None


def describe(node: Node) -> str:
    """A value as a message repeats it."""
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    if node.value is None:
        return "nothing"
    return quoted(node.text) if isinstance(node.value, str) else shorten(node.text)


def listed(names: Iterable[str]) -> str:
    """Names for a fix, a handful at most."""
    ordered = list(names)
    return (
        ", ".join(shorten(name, MAX_NAME_BYTES) for name in ordered[:8]) + (", …" if len(ordered) > 8 else "")
        if ordered
        else "none yet"
    )


def _as_text(node: Node) -> str:
    if isinstance(node, ScalarNode) and node.text:
        return f'put it in quotes: "{shorten(node.text)}"'
    return "write a text; one that begins with # or * needs quotes" if is_nothing(node) else "write one text"
