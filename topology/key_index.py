"""Bindings found by the words of their keys, so that looking up one message does not look at all of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Self

from delayctl.topology.model import Binding, binding_order
from delayctl.topology.routing import Message, Network, topic_matches

FILL = "any"  # Stands for a word that a pattern leaves open.
OPEN_WORDS = ("*", "#")


def is_pattern(key: str) -> bool:
    """Say whether a topic exchange takes this key for more than one."""
    return ("*" in key or "#" in key) and any(word in OPEN_WORDS for word in key.split("."))


def sample_of(pattern: str) -> str:
    """A key that the pattern takes."""
    return ".".join(map(_word, pattern.split(".")))


def common_key(one: str, other: str) -> str | None:
    """A key that both patterns take, or None where there is none."""
    first, second = (text.split(".") if text else [] for text in (one, other))
    if _part_ways(first, second) or _part_ways(first[::-1], second[::-1]):
        return None
    # From the ends backwards: what is common to the rests behind every pair of words.
    rests: dict[tuple[int, int], list[str] | None] = {}
    for i in range(len(first), -1, -1):
        for j in range(len(second), -1, -1):
            rests[i, j] = _common_rest(first[i : i + 1], second[j : j + 1], rests, i, j)
    found = rests[0, 0]
    if found == [""]:
        # A single word that is empty can't be written, as the key "" has no words; with another beside it, it can.
        longer = (f"{FILL}.", f".{FILL}", ".")
        return next((key for key in longer if topic_matches(one, key) and topic_matches(other, key)), None)
    return None if found is None else ".".join(found)


def _part_ways(first: list[str], second: list[str]) -> bool:
    """Say whether two patterns differ in a word before either of them is open to any number of words."""
    for a, b in zip(first, second, strict=False):
        if a == "#" or b == "#":
            return False
        if a != b and "*" not in (a, b):
            return True
    return len(first) != len(second) and "#" not in first and "#" not in second


def _common_rest(
    a: list[str], b: list[str], rests: dict[tuple[int, int], list[str] | None], i: int, j: int
) -> list[str] | None:
    """What both rests take, given the next word of each and what is common behind them."""
    if not a and not b:
        return []
    skip_a, skip_b, both = rests.get((i + 1, j)), rests.get((i, j + 1)), rests.get((i + 1, j + 1))
    if a == ["#"] or b == ["#"]:
        if a == ["#"] and skip_a is not None:
            return skip_a
        if b == ["#"] and skip_b is not None:
            return skip_b
        eaten, rest = (b, skip_b) if a == ["#"] else (a, skip_a)
        return None if not eaten or rest is None else [_word(eaten[0]), *rest]
    if not a or not b or both is None or (a != b and "*" not in (a[0], b[0])):
        return None
    return [_word(b[0] if a[0] == "*" else a[0]), *both]


def _word(word: str) -> str:
    return FILL if word in OPEN_WORDS else word


@dataclass(slots=True)
class _Node:
    """Where the patterns that begin with the same words part."""

    onward: dict[str, "_Node"] = field(default_factory=dict)
    ends: list[Binding] = field(default_factory=list)


class BindingIndex:
    """The bindings of one exchange, `size` of them; `takes_all` where one looks at no key; `steps` counts the work that looking up has taken."""

    def __init__(self, exchange_type: str, bindings: Iterable[Binding]) -> None:
        self.steps = 0
        self.size = 0
        self.takes_all = False
        self._literal: dict[str, list[Binding]] = {}
        self._by_header: dict[tuple[str, object], list[Binding]] = {}
        self._always: list[Binding] = []
        self._patterns = _Node()
        every = tuple(bindings)
        self._shares: Mapping[tuple[str, object], int] = (
            Counter(place for b in every for place in _header_places(b)) if exchange_type == "headers" else {}
        )
        for binding in every:
            self.size += 1
            self.takes_all |= exchange_type == "fanout" or (exchange_type == "topic" and binding.key == "#")
            self._place(exchange_type, binding)

    def _place(self, exchange_type: str, binding: Binding) -> None:
        if exchange_type == "headers":
            self._place_by_header(binding)
        elif exchange_type not in ("topic", "direct"):
            self._always.append(binding)
        elif exchange_type == "topic" and is_pattern(binding.key):
            node = self._patterns
            for word in binding.key.split("."):
                node = node.onward.setdefault(word, _Node())
            node.ends.append(binding)
        else:
            self._literal.setdefault(binding.key, []).append(binding)

    def _place_by_header(self, binding: Binding) -> None:
        """Under each header that may be there; or where all must be there, under the one that fewest others look for."""
        places = _header_places(binding)
        if dict(binding.arguments).get("x-match") not in ("any", "any-with-x"):
            places = [min(places, key=lambda place: self._shares[place])] if places else [_ALWAYS]
        for place in places:
            self._by_header.setdefault(place, []).append(binding)

    def candidates(self, message: Message) -> tuple[Binding, ...]:
        """Every binding that takes the message, and few others."""
        found = dict.fromkeys(self._always)
        for key in message.keys:
            found.update(dict.fromkeys(self._literal.get(key, ())))
            if self._patterns.onward:
                found.update(dict.fromkeys(self._matching(key.split(".") if key else [])))
        if self._by_header:
            for place in (_ALWAYS, *((name, _hashable(value)) for name, value in message.headers.items())):
                found.update(dict.fromkeys(self._by_header.get(place, ())))
            for name in message.headers:
                found.update(dict.fromkeys(self._by_header.get((name, None), ())))
        self.steps += 1 + len(found)
        return tuple(found)

    def _matching(self, words: list[str]) -> Iterator[Binding]:
        seen: set[tuple[int, int]] = set()
        ahead = [(self._patterns, 0)]
        while ahead:
            node, at = ahead.pop()
            if (id(node), at) in seen:
                continue
            seen.add((id(node), at))
            self.steps += 1
            if at == len(words):
                yield from node.ends
            elif (exact := node.onward.get(words[at])) is not None and words[at] not in OPEN_WORDS:
                ahead.append((exact, at + 1))
            if at < len(words) and (one := node.onward.get("*")) is not None:
                ahead.append((one, at + 1))
            if (many := node.onward.get("#")) is not None:
                ahead.extend((many, later) for later in range(at, len(words) + 1))


_ALWAYS = ("", "")


def _header_places(binding: Binding) -> list[tuple[str, object]]:
    """The headers that a binding looks at."""
    wanted = dict(binding.arguments)
    how = wanted.pop("x-match", "all")
    with_x = how in ("all-with-x", "any-with-x")
    return [(name, _hashable(value)) for name, value in wanted.items() if with_x or not name.startswith("x-")]


def _hashable(value: object) -> object:
    return value if isinstance(value, str | int | bool | None) else str(value)


@dataclass(frozen=True)
class IndexedNetwork(Network):
    """A network that is asked for many messages; how a message is routed stays the same."""

    @classmethod
    def of(cls, network: Network) -> Self:
        """The same network, with its bindings indexed."""
        return cls(**{each.name: getattr(network, each.name) for each in fields(Network)})

    @cached_property
    def indexes(self) -> Mapping[str, BindingIndex]:
        """The bindings of each exchange, by their keys."""
        found: dict[str, list[Binding]] = {}
        for binding in self.bindings:
            found.setdefault(binding.source, []).append(binding)
        return {
            name: BindingIndex(exchange.type, bindings)
            for name, bindings in found.items()
            if (exchange := self.exchanges.get(name))
        }

    def bindings_for(self, exchange: str, message: Message) -> tuple[Binding, ...]:
        """The bindings of an exchange that may take the message."""
        index = self.indexes.get(exchange)
        return index.candidates(message) if index else ()

    def takes_all(self, exchange: str) -> bool:
        """Say whether an exchange leads on whatever the key is."""
        index = self.indexes.get(exchange)
        return index is not None and index.takes_all

    @property
    def steps(self) -> int:
        """The work that looking up has taken so far."""
        return sum(index.steps for index in self.indexes.values())


@dataclass(frozen=True)
class OrderedNetwork(IndexedNetwork):
    """An indexed network that gives bindings in the order in which they are shown, as one without an index does."""

    def bindings_for(self, exchange: str, message: Message) -> tuple[Binding, ...]:
        """The bindings of an exchange that may take the message, in order."""
        return tuple(sorted(super().bindings_for(exchange, message), key=binding_order))
