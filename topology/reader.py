"""Reads typed values out of nodes and notes every problem on the way, instead of stopping at the first."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, cast

from delayctl.topology.duration import MAX_TTL_MS, Duration
from delayctl.topology.errors import InvalidTopology, Problem
from delayctl.topology.names import MAX_NAME_BYTES
from delayctl.topology.render import Rendered
from delayctl.topology.source import ListNode, MapNode, Node, ScalarNode
from delayctl.topology.wording import did_you_mean, shorten

MAX_PROBLEMS = 100
MAX_INTEGER = 2**63 - 1  # AMQP's longest integer.

Choice = TypeVar("Choice", bound=str)


class Reader:
    """Collects problems; every read gives a usable value or None, and a problem with it."""

    def __init__(self, rendered: Rendered) -> None:
        self.problems: list[Problem] = []
        self._rendered = rendered
        self._merged: dict[int, list[tuple[Node, Node]]] = {}

    def problem(self, node: Node, message: str, *, fix: str) -> None:
        """Note what is wrong at this node."""
        problem = Problem(message, self._rendered.location(node.line), fix)
        if problem not in self.problems:
            self.problems.append(problem)
        if len(self.problems) >= MAX_PROBLEMS:
            raise InvalidTopology(self.problems)

    def fields(self, node: Node, what: str, allowed: Sequence[str]) -> dict[str, Node]:
        """The fields of a mapping that has a fixed set of keys."""
        known: dict[str, Node] = {}
        for name, key, value in self.entries(node, what):
            if name in allowed:
                known[name] = value
            else:
                message = f"{what} has no key '{shorten(name)}'{did_you_mean(name, allowed)}"
                self.problem(key, message, fix=f"use one of: {', '.join(allowed)}")
        return known

    def entries(self, node: Node, what: str) -> Iterator[tuple[str, Node, Node]]:
        """Name, key and value of each entry of a mapping with names of the user's own."""
        if isinstance(node, ScalarNode) and node.value is None:
            return
        if not isinstance(node, MapNode):
            self.problem(
                node, f"{what} must be a mapping, not {describe(node)}", fix="write 'name: value' lines below it"
            )
            return
        seen: dict[str, Node] = {}
        for key, value in self._pairs(node):
            if not isinstance(key, ScalarNode):
                self.problem(key, f"{what} has a key that is {describe(key)}", fix="use plain text as key")
                continue
            if key.text in seen:
                first = self._rendered.location(seen[key.text].line)
                self.problem(
                    key, f"{what} has '{shorten(key.text)}' twice, first at {first}", fix="remove or rename one of them"
                )
                continue
            seen[key.text] = key
            yield key.text, key, value

    def _pairs(self, node: MapNode) -> list[tuple[Node, Node]]:
        """The pairs of a mapping with merge keys (`<<: *defaults`) worked in; own keys win."""
        if id(node) in self._merged:
            return self._merged[id(node)]
        own = [(key, value) for key, value in node.pairs if not _is_merge(key)]
        names = {key.text for key, _ in own if isinstance(key, ScalarNode)}
        self._merged[id(node)] = own
        for key, value in node.pairs:
            if not _is_merge(key):
                continue
            for source in value.items if isinstance(value, ListNode) else [value]:
                if not isinstance(source, MapNode):
                    self.problem(key, "'<<' needs a mapping to merge", fix="write <<: *name of an anchored mapping")
                    continue
                added = [
                    pair
                    for pair in self._pairs(source)
                    if isinstance(pair[0], ScalarNode) and pair[0].text not in names
                ]
                names |= {key.text for key, _ in added if isinstance(key, ScalarNode)}
                own.extend(added)
        return own

    def items(self, node: Node, what: str) -> list[Node]:
        """The items of a list."""
        if isinstance(node, ListNode):
            return node.items
        self.problem(node, f"{what} must be a list, not {describe(node)}", fix="write [a, b] or '- a' lines")
        return []

    def text(self, node: Node, what: str) -> str | None:
        """A non-empty text."""
        if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.value:
            return node.value
        fix = (
            f'put it in quotes: "{shorten(node.text)}"'
            if isinstance(node, ScalarNode) and node.text
            else "write a text"
        )
        self.problem(node, f"{what} must be a text, not {describe(node)}", fix=fix)
        return None

    def name(self, node: Node, what: str) -> str | None:
        """A name that AMQP can carry and that is not reserved."""
        text = self.text(node, what)
        return text if text is not None and self.check_name(node, what, text) else None

    def check_name(self, node: Node, what: str, text: str) -> bool:
        """Note what is wrong with a name; say whether it can be used."""
        if len(text.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
            self.problem(
                node, f"{what} '{shorten(text)}' is longer than {MAX_NAME_BYTES} bytes", fix="choose a shorter name"
            )
        elif text.startswith("amq."):
            self.problem(
                node,
                f"{what} '{shorten(text)}' begins with 'amq.', which is reserved by RabbitMQ",
                fix="choose another name",
            )
        elif any(ord(char) < 32 or ord(char) == 127 for char in text):
            self.problem(node, f"{what} {shorten(text)!r} holds a control character", fix="remove it")
        else:
            return True
        return False

    def integer(self, node: Node, what: str, *, least: int, most: int = MAX_INTEGER) -> int | None:
        """A whole number within bounds."""
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        bounds = f"{least} or more" if most == MAX_INTEGER else f"between {least} and {most}"
        message = f"{what} must be a whole number {bounds}, not {describe(node)}"
        self.problem(
            node, message, fix=f"write a number {bounds}" if number else "write digits, without unit or quotes"
        )
        return None

    def boolean(self, node: Node, what: str) -> bool | None:
        """True or false."""
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return node.value
        self.problem(node, f"{what} must be true or false, not {describe(node)}", fix="write true or false")
        return None

    def choice(self, node: Node, what: str, options: Sequence[Choice]) -> Choice | None:
        """One of a few words."""
        text = node.text if isinstance(node, ScalarNode) else None
        if text in options:
            return cast(Choice, text)
        suggestion = did_you_mean(text, options) if text else ""
        self.problem(
            node,
            f"{what} must be one of {', '.join(options)}, not {describe(node)}{suggestion}",
            fix=f"write {options[0]}",
        )
        return None

    def duration(self, node: Node, what: str) -> Duration | None:
        """A duration between 1 ms and the longest that the broker takes."""
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            return self.parse_duration(node, what, node.value)
        unit = f"{node.text}s" if isinstance(node, ScalarNode) and isinstance(node.value, int) else "90s"
        self.problem(
            node,
            f"{what} must be a duration, not {describe(node)}",
            fix=f"write it with its unit, such as {unit} or 1m30s",
        )
        return None

    def parse_duration(self, node: Node, what: str, text: str) -> Duration | None:
        """A duration that stands within a longer text."""
        try:
            duration = Duration.parse(text)
        except ValueError as error:
            self.problem(node, f"{what}: {error}", fix="write it as 500ms, 10s, 1m30s, 2h or 1d")
            return None
        if 1 <= duration.ms <= MAX_TTL_MS:
            return duration
        longest = Duration(MAX_TTL_MS)
        self.problem(
            node,
            f"{what}: {shorten(text)} is not between 1ms and {longest}",
            fix=f"RabbitMQ waits 1ms to {longest}; choose a delay in between",
        )
        return None


def describe(node: Node) -> str:
    """A value as a message repeats it."""
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    return (
        "nothing"
        if node.value is None
        else repr(shorten(node.text))
        if isinstance(node.value, str)
        else shorten(node.text)
    )


def listed(names: Iterable[str]) -> str:
    """Names for a fix, a handful at most."""
    ordered = sorted(names)
    return ", ".join(ordered[:8]) + (", …" if len(ordered) > 8 else "") if ordered else "none yet"


def _is_merge(key: Node) -> bool:
    return isinstance(key, ScalarNode) and key.text == "<<"
