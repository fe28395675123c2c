"""How much time and memory a template may take: every value is weighed, every turn of a loop is counted."""

import re
from collections.abc import Mapping

MAX_RENDERED = 8 * 1024 * 1024
MAX_TURNS = 100_000
MAX_VALUE = 2_000_000  # Of one value: its letters, and ITEM for each value within it.
MAX_WORK = 40_000_000  # Of all values that filters and operators go over.
MAX_WIDTH = 1_000
MAX_BITS = 4_096
ITEM = 10

_WIDE_FORMAT = re.compile(r"%[^a-zA-Z%]*(?:[0-9]{4}|\*)")


class TooLarge(ValueError):
    """A template takes more time or memory than any topology needs."""


class Budget:
    """What one rendering may still spend."""

    def __init__(self) -> None:
        self._turns = MAX_TURNS
        self._work = MAX_WORK
        self._letters = MAX_RENDERED

    def turn(self, turns: int, letters: int) -> None:
        """Pay for a turn of a loop, or a call of a macro at the price of several, and for the text that stands in it."""
        self._turns -= turns
        if self._turns < 0:
            raise TooLarge(f"the loops take more than {MAX_TURNS:,} turns")
        self.write(letters)

    def write(self, letters: int) -> None:
        """Pay for text that is written."""
        self._letters -= letters
        if self._letters < 0:
            raise TooLarge(f"the rendered text is longer than {MAX_RENDERED:,} characters")

    def work(self, weight: int) -> None:
        """Pay for going over a value."""
        self._work -= weight
        if self._work < 0:
            raise TooLarge("the expressions go over too many values")


def weigh(value: object) -> int:
    """Letters and items of a value and of all within it, or TooLarge."""
    if isinstance(value, str) and len(value) < MAX_VALUE:
        return 1 + len(value)
    weight, waiting = 1, [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            weight += len(inner)
        elif isinstance(inner, list | tuple | Mapping):
            weight += len(inner) * ITEM
            if weight <= MAX_VALUE:
                waiting += (*inner.keys(), *inner.values()) if isinstance(inner, Mapping) else inner
        if weight > MAX_VALUE:
            raise TooLarge("a value grows beyond all bounds")
    return weight


def weigh_growth(value: object, options: tuple[object, ...]) -> int:
    """The most that a text can weigh after replacing, joining or filling up, or TooLarge."""
    if any(isinstance(option, int) and option > MAX_WIDTH for option in options):
        raise TooLarge(f"a width is larger than {MAX_WIDTH:,}")
    weight = weigh(value)
    for option in options:
        weight *= weigh(option)
    if weight > MAX_RENDERED:
        raise TooLarge("a text grows beyond all bounds")
    return weight


def check_operation(operator: str, left: object, right: object) -> None:
    """Refuse a calculation whose result would not fit."""
    if operator == "%" and isinstance(left, str):
        check_format(left)
    elif isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * abs(right) if operator == "**" else left.bit_length() + right.bit_length()
        if bits > MAX_BITS:
            raise TooLarge("a number grows beyond all bounds")
    elif operator == "*":
        value, count = (right, left) if isinstance(left, int) else (left, right)
        if isinstance(count, int) and isinstance(value, str | list | tuple) and len(value) * count > MAX_VALUE // ITEM:
            raise TooLarge("a repetition grows beyond all bounds")


def check_format(text: str) -> None:
    """Refuse a format with a huge width, such as `%99999d`."""
    if _WIDE_FORMAT.search(text):
        raise TooLarge(f"a format asks for a width of {MAX_WIDTH:,} or more")
