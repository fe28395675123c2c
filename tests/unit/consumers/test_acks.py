"""Acknowledgements: in whatever order work is finished, each is said once, and none that is not done."""

import struct

from delayctl.consumers.acks import Acks
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
    most=st.integers(1, 10),
    flags=st.lists(st.booleans(), min_size=1),
    given_back=st.sets(st.integers(1, 30)),
)
def test_each_is_said_once_and_only_when_done(
    order: list[int], sizes: list[int], most: int, flags: list[bool], given_back: set[int]
) -> None:
    """Batches of any size in any order, some of them answered in another way."""
    acks, unsaid, finished, turn = Acks(most), set(order), set(), 0
    while order:
        batch, order = order[: sizes[turn % len(sizes)]], order[sizes[turn % len(sizes)] :]
        finished |= set(batch) - given_back
        acks.add(set(batch) - given_back)
        said = acknowledged(acks.take(all_of_them=flags[turn % len(flags)]), unsaid)
        assert said <= finished
        unsaid -= said
        for tag in set(batch) & given_back:
            acks.settle(tag)
            unsaid.discard(tag)
        turn += 1

    unsaid -= acknowledged(acks.take(all_of_them=True), unsaid)

    assert unsaid == set()
    assert acks.take(all_of_them=True) == b""


def test_a_thousand_in_order_take_one_frame() -> None:
    """What is complete up to a point is said with one number."""
    acks = Acks(10)
    acks.add(range(1, 1001))

    assert len(FrameReader().feed(acks.take(all_of_them=False))) == 1


def test_one_slow_delivery_costs_no_memory() -> None:
    """A million others behind it leave no trace."""
    acks = Acks(10)
    for start in range(2, 50_002, 50):
        acks.add(range(start, start + 50))
        acks.take(all_of_them=True)

    assert sum(len(held) for held in (acks._late, acks._done, acks._settled)) == 1
    acks.add([1])
    assert acknowledged(acks.take(all_of_them=False), {1}) == {1}
