"""How many wait, what that takes, and what a given room carries."""

from dataclasses import replace
from fractions import Fraction

import pytest
from delayctl.topology.capacity import Available, Capacity, Need, holds, messages_in, round_up, waiting
from delayctl.topology.duration import Duration
from delayctl.topology.footprint import Footprint
from delayctl.topology.rate import Rate
from hypothesis import given
from hypothesis import strategies as st

KILOBYTE = Footprint(1_000, holds_bodies=False, disk=400, source="the founders")
HALF_HOUR = Duration.parse("30m")
NEED = Need("30m", "classic", KILOBYTE, HALF_HOUR, Rate.parse("1000/s"))


def test_half_an_hour_at_a_thousand_a_second() -> None:
    """The founders' sum: 1,800,000 wait, and with a tenth more 2,000,000 may."""
    assert (NEED.waiting, NEED.advised, NEED.room) == (1_800_000, 2_000_000, 2_000_000)
    assert (NEED.memory, NEED.disk) == (2_000_000_000, 800_000_000)


def test_five_million_carry_half_an_hour_of_2777_a_second() -> None:
    """The founders' other sum."""
    need = replace(NEED, rate=None, max_length=5_000_000)

    assert need.carries == Rate.parse("2777/s")
    assert need.memory == 5_000_000_000


def test_five_of_ten_gigabytes_are_five_million() -> None:
    """At a kilobyte a message."""
    assert Capacity((NEED,), Available(5_000_000_000)).most_messages(NEED) == 5_000_000


def test_what_does_not_divide_is_rounded_to_the_safe_side() -> None:
    """One message in 7 seconds, each for 10: two wait at times; room for two carries no more than one in five."""
    assert waiting(Rate(Fraction(1, 7)), Duration(10_000)) == 2
    assert holds(2, Duration(10_000)) == Rate.parse("12/m")


@given(
    st.fractions(min_value=Fraction(1, 86_400), max_value=10**6, max_denominator=10**6),
    st.integers(min_value=1, max_value=10**10),
)
def test_the_advised_length_carries_the_rate(per_second: Fraction, ms: int) -> None:
    """Whatever the rate and the delay, what is advised has room for them."""
    need = replace(NEED, rate=Rate(per_second), delay=Duration(ms))

    assert need.advised is not None
    assert need.waiting is not None
    assert need.advised > need.waiting >= per_second * ms / 1000
    assert round_up(Fraction(need.waiting)) <= need.waiting * 1.21 + 10


def test_bodies_count_in_memory_where_they_are_kept_there() -> None:
    """On disk they always do."""
    lean = replace(NEED, body=400)
    old = replace(lean, footprint=replace(KILOBYTE, holds_bodies=True))

    assert (lean.memory_each, lean.disk_each) == (1_000, 800)
    assert (old.memory_each, old.disk_each) == (1_400, 800)


def test_the_tighter_limit_counts() -> None:
    """max_bytes is as good as max_length where bodies have a known size."""
    need = replace(NEED, max_length=1_000_000, max_bytes=40_000_000)

    assert need.limit == 1_000_000
    assert replace(need, body=400).limit == 100_000


def test_more_come_than_may_wait() -> None:
    """It is said what happens then, and what to set."""
    early = Capacity((replace(NEED, max_length=1_000_000),))
    refused = Capacity((replace(NEED, max_length=1_000_000, rejects=True),))

    assert [(each.what, each.fix) for each in early.shortfalls] == [
        (
            "30m: 1,800,000 would wait, and there is room for 1,000,000: the oldest leave early",
            "set max_length: 2000000",
        )
    ]
    assert "the rest is refused" in refused.shortfalls[0].what
    assert not early.fits


@pytest.mark.parametrize(
    ("available", "fits"),
    [
        (Available(2_000_000_000), True),
        (Available(1_999_999_999), False),
        (Available(disk=800_000_000), True),
        (Available(disk=799_999_999), False),
        (Available(), True),
    ],
)
def test_full_queues_are_held_against_what_there_is(available: Available, fits: bool) -> None:
    """Memory and disk, to the byte; what is not known does not count."""
    assert Capacity((NEED,), available).fits is fits


def test_queues_share_a_log_and_it_has_an_end() -> None:
    """As long as it is not full each message is in it; then it takes no more, however many wait."""
    quorum = replace(NEED, body=100, footprint=replace(KILOBYTE, log=900, log_most=3_000_000_000))
    few = replace(quorum, max_length=1_000)
    both = Capacity((quorum, quorum), Available(6_999_999_999, source="--memory"))

    assert Capacity((few, few)).memory == 2 * 1_000 * (1_000 + 900 + 100)
    assert both.memory == 2 * 2_000_000_000 + 3_000_000_000
    assert [each.fix for each in both.shortfalls] == [
        "let no more than 3,999,999 wait in all levels together, or add memory"
    ]


@pytest.mark.parametrize(
    ("memory", "messages"), [(2_000_000, 1_000), (6_000_000_000, 3_000_000), (8_000_000_000, 5_000_000)]
)
def test_what_memory_has_room_for_with_a_log(memory: int, messages: int) -> None:
    """Messages pay for the log until it is full."""
    quorum = replace(NEED, footprint=replace(KILOBYTE, log=1_000, log_most=3_000_000_000))

    assert messages_in(memory, quorum) == messages
    assert Capacity((replace(quorum, rate=None, max_length=messages),)).memory <= memory


@pytest.mark.parametrize(
    ("available", "said"),
    [
        (Available(999, source="--memory"), "one takes 1,000 B of memory, and there is 999 B (--memory)"),
        (Available(10**6, 399, "rabbit@a"), "one takes 400 B of disk, and there is 399 B (rabbit@a)"),
    ],
)
def test_room_for_no_message_is_a_shortfall(available: Available, said: str) -> None:
    """Also where nothing says how many are to wait."""
    [shortfall] = Capacity((replace(NEED, rate=None),), available).shortfalls

    assert shortfall.what == f"there is room for no message: {said}"
    assert shortfall.fix == f"add {'disk' if available.disk else 'memory'}"


def test_what_waits_nowhere_needs_no_room() -> None:
    """A file without levels fits into nothing."""
    assert Capacity((), Available(0, 0)).fits
