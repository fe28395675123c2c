"""Small turns of phrase that messages share."""

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping
from functools import cached_property

STDIN = "<stdin>"  # What a topology is called that comes from there; a file of this name is ./<stdin>.
MAX_QUOTED = 40
_MAX_INDEXED = 200_000  # Letters in all names; looking for slips among more costs more than it helps.
_SHORTEST_WORD = 4  # In a shorter word one other letter makes another word: `eu` is not `us` misspelt.
_CONSONANT_Y = re.compile("([^aeiou])y$")
_DIGITS = re.compile(r"\d+")
_NO_TEXT = re.compile("[\ud800-\udfff]")
_FIRST_BYTE = 0xDC00  # What Python makes of bytes that are no UTF-8: 0xff is the half of a character U+DCFF.
_BYTES = range(0xDC80, 0xDD00)


def shorten(text: str, most: int = MAX_QUOTED) -> str:
    """A value as a message repeats it: cut to a length that can be read, and with nothing in it that moves a cursor."""
    return printable(text if len(text) <= most else text[: most - 1] + "…")


def printable(text: str) -> str:
    """A text with nothing in it that moves a cursor: names on a broker may hold any letters."""
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    said = escaped(char)
    return said if said != char else char.encode("unicode_escape").decode("ascii")


def escaped(text: str) -> str:
    """A text in which bytes that are none (`surrogateescape`), and halves of characters, are written as a backslash and their number."""
    return _NO_TEXT.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code - _FIRST_BYTE:02x}" if code in _BYTES else f"\\u{code:04x}"


def escaped_within(value: object) -> object:
    """A value for JSON that every reader takes: its texts escaped, and bytes as such a text."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, bytes | bytearray):
        return escaped(as_text(bytes(value)))
    if isinstance(value, Mapping):
        return {escaped_within(name): escaped_within(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [escaped_within(each) for each in value]
    return value


def as_text(value: bytes) -> str:
    """What came as bytes, as the text that it is; bytes that are none are kept, as everywhere in delayctl."""
    return value.decode("utf-8", "surrogateescape")


def quoted(text: str) -> str:
    """A value as a message repeats it, in quotes."""
    return f"'{shorten(text)}'"


def argument(file: str) -> str:
    """A file as it is typed into a shell, behind a command."""
    return "-" if file == STDIN else shlex.quote(file)


def plural(count: int, noun: str) -> str:
    """A count with its noun: `1 message`, `2 messages`, `3 policies`."""
    if count == 1:
        return f"{count:,} {noun}"
    many = _CONSONANT_Y.sub(r"\1ies", noun) if _CONSONANT_Y.search(noun) else f"{noun}s"
    return f"{count:,} {many}"


def near(name: str, known: Iterable[str]) -> str | None:
    """The known name that this one most looks like, if any does."""
    names = list(known)
    # Swapped letters weigh too much in short words: `fro` is `for`.
    same_letters = (other for other in names if sorted(other) == sorted(name[:255]))
    return next(same_letters, None) or next(iter(difflib.get_close_matches(name[:255], names, n=1, cutoff=0.75)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion to put behind a message, or nothing."""
    suggestion = near(name, known)
    return f" (did you mean {quoted(suggestion)}?)" if suggestion else ""


class Spelling:
    """Dotted names, indexed by every slip of a finger, so that asking for one does not look at all of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)

    def meant_by(self, name: str) -> str | None:
        """The known name that differs from this one by one slip in one word, if there is one.

        `order.exchange` looks like `orders.exchange` misspelt; `orders.2.queue` is just a neighbour of `orders.1.queue`.
        """
        if not self._names:
            return None
        candidates = {other for slip in _slips(name) for other in self._by_slip.get(slip, ())}
        return min((other for other in candidates if _is_misspelt(name, other)), default=None)

    @cached_property
    def _by_slip(self) -> dict[str, list[str]]:
        index: dict[str, list[str]] = {}
        if sum(map(len, self._names)) <= _MAX_INDEXED:
            for name in self._names:
                for slip in _slips(name):
                    index.setdefault(slip, []).append(name)
        return index


def _slips(name: str) -> set[str]:
    """The name itself and with each letter left out: what two names one slip apart have in common."""
    return {name, *(name[:i] + name[i + 1 :] for i in range(len(name)))}


def _is_misspelt(name: str, other: str) -> bool:
    words, others = name.split("."), other.split(".")
    different = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    return len(words) == len(others) and len(different) == 1 and _is_slip(*different[0])


def _is_slip(word: str, other: str) -> bool:
    """One letter too many, too few or another, or two swapped; other digits make another name."""
    if max(len(word), len(other)) < _SHORTEST_WORD or _DIGITS.sub("", word) == _DIGITS.sub("", other):
        return False
    start = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    left, right = word[start:], other[start:]
    swapped = left[:2] == right[1::-1] and left[2:] == right[2:]
    return left[1:] == right[1:] or left[1:] == right or left == right[1:] or swapped
