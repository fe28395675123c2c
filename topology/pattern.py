"""Names to the shortest readable pattern that takes these names and no others."""

import re
from collections.abc import Collection, Iterable, Sequence

MAX_PATTERN_BYTES = 1024  # Of a permission on RabbitMQ 4.3; 3.10 takes about 32,000.
NOTHING = "^$"
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")


def exact_pattern(names: Collection[str]) -> str:
    """A pattern for exactly these names; what they have in common is written once."""
    if not names:
        return NOTHING
    by_word = f"^{_alternatives([name.split('.') for name in names], joint=_escaped('.'))}$"
    # Where whole words are too long, single letters may not be: orders.0001, orders.0002 …
    return by_word if fits(by_word) else min(by_word, f"^{_alternatives(names, joint='')}$", key=len)


def fits(pattern: str) -> bool:
    """Say whether every broker takes a permission of this length."""
    return len(pattern.encode()) <= MAX_PATTERN_BYTES


def _escaped(text: str) -> str:
    """A text that stands for itself; only what PCRE gives a meaning is escaped."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def _alternatives(sequences: Iterable[Sequence[str]], *, joint: str) -> str:
    """All sequences as one expression: equal beginnings are shared, and so are beginnings with equal ends."""
    ends_by_head: dict[str, list[Sequence[str]]] = {}
    for sequence in sorted(map(tuple, sequences)):
        ends_by_head.setdefault(sequence[0], []).append(sequence[1:])
    heads_by_end: dict[str, list[str]] = {}
    for head, ends in ends_by_head.items():
        heads_by_end.setdefault(_rest(ends, joint), []).append(_escaped(head))
    return _group([_group(heads) + end for end, heads in heads_by_end.items()])


def _rest(ends: Sequence[Sequence[str]], joint: str) -> str:
    """What follows a beginning; it is optional where one of the names stops there."""
    longer = [end for end in ends if end]
    if not longer:
        return ""
    following = joint + _alternatives(longer, joint=joint)
    return following if len(longer) == len(ends) else f"({following})?"


def _group(options: Sequence[str]) -> str:
    return options[0] if len(options) == 1 else f"({'|'.join(options)})"
