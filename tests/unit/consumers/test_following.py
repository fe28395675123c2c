"""Following the stream of cancellations, over several connections."""

from delayctl.consumers.cancelled import Cancellation, encode
from delayctl.consumers.following import Following
from delayctl.consumers.message import Message
from delayctl.publishers.frames import Properties, encode_properties

FAR = 2_000


def line(offset: int, name: str, until_ms: int = FAR) -> Message:
    """A cancellation as the stream gives it, each published with an id of its own."""
    properties = Properties(message_id=f"{name}-{until_ms}-{offset}", headers={"x-stream-offset": offset})
    return carried(properties, name, until_ms)


def carried(properties: Properties, name: str, until_ms: int) -> Message:
    """A cancellation that comes with these properties."""
    body = encode(Cancellation(name, until_ms))
    return Message(body, "stream", False, "delay.exchange", "delay.cancel", bytes(12) + encode_properties(properties))


def order(name: str) -> Message:
    """A message that may be cancelled."""
    return Message(b"", "orders", False, "", "", bytes(12) + encode_properties(Properties(message_id=name)))


def follow(*lines: Message) -> Following:
    """The cancellations after these lines."""
    following = Following(lambda: 1_000)
    for each in lines:
        following.note(each)
    return following


def test_an_undone_cancellation_does_not_count_again_while_the_stream_is_read_anew() -> None:
    """A new connection begins at the beginning, and the word that takes it back comes last."""
    following = follow(line(0, "a"), line(1, "b"), line(2, "a", 0))

    following.note(line(0, "a"))

    assert [following.is_cancelled(order(name)) for name in "ab"] == [False, True]


def test_what_came_while_the_connection_was_gone_counts() -> None:
    """What is behind the latest that was read is new."""
    following = follow(line(0, "a"), line(1, "b"))

    for each in (line(0, "a"), line(1, "b"), line(2, "c"), line(3, "b", 0)):
        following.note(each)

    assert [following.is_cancelled(order(name)) for name in "abc"] == [True, False, True]


def test_a_stream_that_lost_its_beginning_is_the_same() -> None:
    """The broker cuts off what is too old or too much."""
    following = follow(line(5, "a"), line(6, "b"), line(7, "a", 0))

    following.note(line(6, "b"))
    following.note(line(8, "c"))

    assert [following.is_cancelled(order(name)) for name in "abc"] == [False, True, True]


def test_a_stream_that_was_made_anew_is_read_from_its_beginning() -> None:
    """It counts from 0 again: the same numbers are other messages."""
    following = follow(line(0, "a"), line(1, "b"), line(2, "c"))

    following.note(line(0, "x"))
    following.note(line(1, "y"))

    assert [following.is_cancelled(order(name)) for name in "xy"] == [True, True]


def test_what_has_no_offset_counts() -> None:
    """Nothing says that it was read before."""
    following = follow(carried(Properties(), "a", FAR), carried(Properties(), "a", 0), carried(Properties(), "b", FAR))

    assert [following.is_cancelled(order(name)) for name in "ab"] == [False, True]
