"""Names that lead to others."""

from itertools import pairwise

import pytest
from delayctl.topology.onward import ends_first, leading_to


def test_what_is_led_to_has_a_lower_number() -> None:
    """However long the way there, and by how many."""
    assert ends_first([("a", "b"), ("b", "c"), ("a", "c"), ("x", "c")]) == {"c": 0, "b": 1, "x": 1, "a": 2}


@pytest.mark.parametrize("circle", [[("a", "b"), ("b", "a")], [("a", "a")]])
def test_circles_have_no_numbers(circle: list[tuple[str, str]]) -> None:
    """Nor has what leads into one; all else has."""
    assert ends_first([*circle, ("into", "a"), ("x", "y")]) == {"y": 0, "x": 1}


def test_a_thousand_in_a_row() -> None:
    """No file is too deep."""
    names = [str(number) for number in range(5_000)]
    row = list(pairwise(names))

    assert ends_first(row)["0"] == 4_999
    assert leading_to(["4999"], row) == frozenset(names)


def test_leading_to() -> None:
    """By others, in circles, or not at all."""
    onward = [("a", "b"), ("b", "end"), ("b", "a"), ("end", "further"), ("x", "y")]

    assert leading_to(["end"], onward) == {"end", "a", "b"}
    assert leading_to([], onward) == frozenset()
