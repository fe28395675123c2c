"""Frames to deliveries."""

import struct

from delayctl.consumers.inbox import Inbox
from delayctl.publishers import frames
from delayctl.publishers.frames import FrameReader, Properties
from hypothesis import given
from hypothesis import strategies as st


def delivered(tag: int, queue: str, key: str, body: bytes, *, redelivered: bool = False) -> bytes:
    """The frames of a delivery, as a broker sends them in frames of 64 bytes."""
    place = frames.short_string(queue) + struct.pack(">Q?", tag, redelivered)
    method = frames.method_frame(1, (60, 60), place + frames.short_string("x") + frames.short_string(key))
    encoded = frames.encode_properties(Properties(message_id=f"id-{tag}"))
    return method + frames.content_frames(1, encoded, body, 64)


@given(st.lists(st.tuples(st.binary(max_size=200), st.booleans()), max_size=6), st.integers(1, 50))
def test_deliveries_come_out_whole_and_in_order(sent: list[tuple[bytes, bool]], cut: int) -> None:
    """Bodies of any size, none included, however the stream is cut."""
    stream = b"".join(
        delivered(tag, "a.queue", "a.key", body, redelivered=flag) for tag, (body, flag) in enumerate(sent, 1)
    )
    reader, inbox, found = FrameReader(), Inbox(), []

    for at in range(0, len(stream), cut):
        found += [done for frame in reader.feed(stream[at : at + cut]) if (done := inbox.take(frame))]

    assert [(each.tag, each.body, each.redelivered) for each in found] == [
        (tag, body, flag) for tag, (body, flag) in enumerate(sent, 1)
    ]
    assert {(each.queue, each.exchange, each.key) for each in found} <= {("a.queue", "x", "a.key")}
    assert [frames.decode_properties(each.header).message_id for each in found] == [
        f"id-{tag}" for tag in range(1, len(sent) + 1)
    ]
