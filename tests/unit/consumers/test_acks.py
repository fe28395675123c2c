"""Acknowledgements: in whatever order work is finished, each is said once, and none that is not done."""

import struct

import pytest
from delayctl.consumers.acks import GATHER_S, Acks
from delayctl.publishers.frames import FrameReader
from hypothesis import given, settings
from hypothesis import strategies as st


def acknowledged(data: bytes, open_tags: set[int]) -> set[int]:
    """What the broker makes of the frames, as it removes from what is open."""
    found: set[int] = set()
    for _, _, payload in FrameReader().feed(data):
        tag, multiple = struct.unpack_from(">Q?", payload, 4)
        named = {each for each in open_tags - found if each == tag or (multiple and each < tag)}
        assert tag in named, "the broker closes the channel over an unknown tag"
        found |= named
    return found


@settings(max_examples=300)
@given(
    order=st.permutations(range(1, 31)),
    sizes=st.lists(st.integers(1, 6), min_size=1),
    plenty=st.integers(1, 10),
    flags=st.lists(st.booleans(), min_size=1),
    given_back=st.sets(st.integers(1, 30)),
)
def test_each_is_said_once_and_only_when_done(
    order: list[int], sizes: list[int], plenty: int, flags: list[bool], given_back: set[int]
) -> None:
    """Batches of any size in any order, some of them answered in another way."""
    acks, unsaid, finished, turn = Acks(plenty), set(order), set(), 0
    while order:
        batch, order = order[: sizes[turn % len(sizes)]], order[sizes[turn % len(sizes)] :]
        finished |= set(batch) - given_back
        acks.add(set(batch) - given_back, now=turn / 1000)
        said = acknowledged(acks.take(turn / 1000, all_of_them=flags[turn % len(flags)]), unsaid)
        assert said <= finished
        unsaid -= said
        for tag in set(batch) & given_back:
            acks.settle(tag)
            unsaid.discard(tag)
        turn += 1

    unsaid -= acknowledged(acks.take(turn / 1000, all_of_them=True), unsaid)

    assert unsaid == set()
    assert acks.take(turn / 1000, all_of_them=True) == b""


def test_a_thousand_in_order_take_one_frame() -> None:
    """What is complete up to a point is said with one number."""
    acks = Acks(10)
    acks.add(range(1, 1001), now=0)

    assert len(FrameReader().feed(acks.take(0))) == 1


def test_little_is_gathered_for_a_moment() -> None:
    """Until there is plenty, or the first of it has waited long enough."""
    acks = Acks(3)
    acks.add([1], now=10.0)
    at_once, is_wanted, patience = acks.take(10.0), acks.wanted, acks.patience_s(10.001)
    acks.add([2], now=10.004)
    in_time = acknowledged(acks.take(10.0 + GATHER_S), {1, 2, 3})
    acks.add([3, 4, 5], now=11.0)
    plenty = acknowledged(acks.take(11.0), {3, 4, 5, 6})

    assert (at_once, is_wanted) == (b"", 2)
    assert patience == pytest.approx(GATHER_S - 0.001)
    assert (in_time, plenty) == ({1, 2}, {3, 4, 5})
    assert (acks.wanted, acks.patience_s(11.0)) == (1, None)


def test_a_slow_delivery_does_not_hold_up_what_is_done_behind_it() -> None:
    """No longer than anything else is gathered; what is slow is said by itself in the end."""
    acks = Acks(10)
    acks.add([2, 3], now=0.0)
    behind = acknowledged(acks.take(GATHER_S), {1, 2, 3})
    acks.add([1], now=1.0)

    assert (behind, acknowledged(acks.take(1.0 + GATHER_S), {1})) == ({2, 3}, {1})


def test_what_is_all_given_back_costs_no_memory() -> None:
    """Nothing has to be said of it, and nothing is kept."""
    acks = Acks(10)
    for tag in range(1, 1001):
        acks.settle(tag)
        acks.take(0.0)

    assert sum(len(held) for held in (acks._late, acks._done, acks._settled)) == 0


def test_one_slow_delivery_costs_no_memory() -> None:
    """A million others behind it leave no trace."""
    acks = Acks(10)
    for start in range(2, 50_002, 50):
        acks.add(range(start, start + 50), now=0)
        acks.take(0, all_of_them=True)

    assert sum(len(held) for held in (acks._late, acks._done, acks._settled)) == 1
    acks.add([1], now=0)
    assert acknowledged(acks.take(GATHER_S), {1}) == {1}
