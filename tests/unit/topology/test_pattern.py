"""A pattern takes the names that it was made of, and no others."""

import re

from delayctl.topology.pattern import MAX_PATTERN_BYTES, exact_pattern, fits
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.frozensets(st.text(st.sampled_from("ab.|\\$^é-"), min_size=1, max_size=6), min_size=1, max_size=8)


def takes(pattern: str, name: str) -> bool:
    """Say whether a broker would let this name pass."""
    return re.search(pattern.encode(), name.encode()) is not None


@given(NAMES, st.text(st.sampled_from("ab.|\\$^é-"), max_size=7))
def test_it_is_exact(names: frozenset[str], other: str) -> None:
    """Every name passes, and any other name does not."""
    pattern = exact_pattern(names)

    assert all(takes(pattern, name) for name in names)
    assert takes(pattern, other) == (other in names)


def test_what_names_share_is_written_once() -> None:
    """So that a person can read it."""
    names = ["delay.exchange", *(f"delay.{level}.{kind}" for level in ("1m", "5m") for kind in ("exchange", "queue"))]

    assert exact_pattern(names) == r"^delay\.((1m|5m)\.(exchange|queue)|exchange)$"


def test_a_name_that_begins_another() -> None:
    """The longer one is optional."""
    assert exact_pattern(["orders", "orders.late"]) == r"^orders(\.late)?$"


def test_no_names_are_no_rights() -> None:
    """`^$` takes no object: the default exchange is called amq.default."""
    assert exact_pattern([]) == "^$"


@given(st.integers(1, 1000))
def test_numbered_names_fit(count: int) -> None:
    """Letters are shared where words are not enough; RabbitMQ 4.3 takes no more than 1,024 bytes."""
    names = [f"orders.{number:04}.queue" for number in range(count)]
    pattern = exact_pattern(names)

    assert fits(pattern)
    assert [number for number in range(1100) if takes(pattern, f"orders.{number:04}.queue")] == list(range(count))


def test_names_without_anything_in_common_may_not_fit() -> None:
    """It is still exact, and known to be too long."""
    names = [chr(ord("a") + i % 26) * 40 + str(i * i) for i in range(100)]

    assert not fits(exact_pattern(names))
    assert MAX_PATTERN_BYTES == 1024
    assert all(takes(exact_pattern(names), name) for name in names)
