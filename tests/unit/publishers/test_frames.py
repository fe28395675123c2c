"""Frames: what goes out comes in again, however the stream is cut."""

from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pika.data
import pika.frame
import pika.spec
import pytest
from delayctl.publishers import frames
from delayctl.publishers.frames import FrameReader, NotEncodable, Properties
from hypothesis import given
from hypothesis import strategies as st

_moments = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9999, 12, 31)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)
_texts = st.text(st.characters(exclude_categories=["Cs"]))
_short = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
_decimals = st.builds(
    lambda number, places: Decimal(number).scaleb(-places), st.integers(-(2**31), 2**31 - 1), st.integers(0, 20)
)
_plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    _texts,
    st.binary(),
    _moments,
    _decimals,
)
_values = st.recursive(
    _plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_short, inner, max_size=4), max_leaves=12
)
_tables = st.dictionaries(_short, _values, max_size=6)
_properties = st.builds(
    Properties,
    content_type=st.none() | _short,
    content_encoding=st.none() | _short,
    headers=st.none() | _tables,
    delivery_mode=st.none() | st.integers(0, 255),
    priority=st.none() | st.integers(0, 255),
    correlation_id=st.none() | _short,
    reply_to=st.none() | _short,
    expiration=st.none() | _short,
    message_id=st.none() | _short,
    timestamp=st.none() | _moments | st.integers(2**40, 2**64 - 1),
    type=st.none() | _short,
    user_id=st.none() | _short,
    app_id=st.none() | _short,
)


@given(_tables)
def test_a_table_comes_back_as_it_was(table: dict[str, Any]) -> None:
    """Every type that a header may have survives."""
    encoded = frames.encode_table(table)

    assert frames.decode_table(encoded) == (table, len(encoded))


@given(st.dictionaries(_short, st.one_of(st.booleans(), st.integers(-(2**31), 2**31 - 1), _texts, _moments)))
def test_pika_reads_a_table_as_we_do(table: dict[str, Any]) -> None:
    """Another client understands what we write."""
    decoded, _ = pika.data.decode_table(frames.encode_table(table), 0)

    assert decoded == table


@given(_properties)
def test_properties_come_back_as_they_were(properties: Properties) -> None:
    """Nothing that is set is lost, nothing that is not set appears."""
    payload = bytes(12) + frames.encode_properties(properties)

    assert frames.decode_properties(payload) == properties


@given(st.binary(max_size=40), _short, _short)
def test_pika_reads_a_message_as_we_write_it(body: bytes, key: str, message_id: str) -> None:
    """Method, header and bodies are what any AMQP peer expects."""
    encoded = frames.encode_properties(Properties(message_id=message_id, headers={"n": 1}))
    stream = frames.publish_method(1, "an.exchange", key) + frames.content_frames(1, encoded, body, 4096)

    used, method = _by_pika(stream)
    assert method.method.exchange == "an.exchange"
    assert (method.method.routing_key, method.method.mandatory) == (key, True)
    stream = stream[used:]
    used, header = _by_pika(stream)
    assert (header.body_size, header.properties.message_id) == (len(body), message_id)
    assert (header.properties.headers, header.properties.delivery_mode) == ({"n": 1}, 2)
    rest = stream[used:]
    assert (_by_pika(rest)[1].fragment if body else b"") == body


def _by_pika(stream: bytes) -> tuple[int, Any]:
    return pika.frame.decode_frame(stream)


@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 3, 8]), st.integers(0, 65535), st.binary(max_size=50)), max_size=8),
    st.lists(st.integers(1, 30), min_size=1),
)
def test_the_stream_may_be_cut_anywhere(sent: list[tuple[int, int, bytes]], cuts: list[int]) -> None:
    """Frames come out whole and in order, wherever the network cuts."""
    stream = b"".join(
        frames.FRAME_HEAD.pack(kind, channel, len(payload)) + payload + frames.FRAME_END
        for kind, channel, payload in sent
    )
    reader, received, turn = FrameReader(), [], 0

    while stream:
        size = cuts[turn % len(cuts)]
        received += reader.feed(stream[:size])
        stream, turn = stream[size:], turn + 1

    assert received == sent


def test_a_large_body_is_cut_into_frames_that_the_broker_takes() -> None:
    """No frame is larger than agreed."""
    body = bytes(range(256)) * 100

    stream = frames.content_frames(1, b"\x00\x00", body, 4096)

    received = FrameReader().feed(stream)
    assert b"".join(payload for kind, _, payload in received if kind == frames.BODY) == body
    assert max(len(payload) + frames.FRAME_OVERHEAD for _, _, payload in received) == 4096


def test_what_is_not_amqp_is_noticed() -> None:
    """A stream out of step ends the connection instead of being believed."""
    with pytest.raises(ValueError, match="not AMQP"):
        FrameReader().feed(frames.FRAME_HEAD.pack(1, 0, 2) + b"abX")


def test_bytes_that_are_no_text_survive() -> None:
    """A header of another client in Latin-1 can be sent on as it came."""
    encoded = b"\x00\x00\x00\x09\x01kS\x00\x00\x00\x02\xe4\xff"

    table, _ = frames.decode_table(encoded)

    assert frames.encode_table(table) == encoded


class Shade(IntEnum):
    """A number with a name."""

    DARK = 3


def test_enumerations_are_numbers() -> None:
    """A subclass of a number or text is taken as such."""
    assert frames.decode_table(frames.encode_table({"shade": Shade.DARK}))[0] == {"shade": 3}


@pytest.mark.parametrize(
    "value", [2**63, Decimal("1e5"), Decimal("NaN"), Decimal(2**40), object(), {1}, datetime(1950, 1, 1), "\ud800"]
)
def test_a_value_without_a_place_is_refused(value: Any) -> None:
    """Never sent as something else."""
    with pytest.raises(NotEncodable):
        frames.encode_table({"h": value})


@pytest.mark.parametrize("name", [1, b"x", None])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    """Tables within tables too: a map of Spark may have any keys."""
    with pytest.raises(NotEncodable, match="is no text"):
        frames.encode_table({"h": {name: "x"}})


@pytest.mark.parametrize(
    "properties",
    [Properties(priority=256), Properties(message_id="x" * 256), Properties(timestamp=-1), Properties(type="ä" * 128)],
)
def test_properties_out_of_range_are_refused(properties: Properties) -> None:
    """At the door, not by the broker, which would close the connection."""
    with pytest.raises(NotEncodable):
        frames.encode_properties(properties)


def test_headers_larger_than_a_frame_are_refused() -> None:
    """The broker would hang up on all messages of the connection for one of them."""
    encoded = frames.encode_properties(Properties(headers={"h": "x" * 5000}))

    with pytest.raises(NotEncodable, match="more than one frame"):
        frames.content_frames(1, encoded, b"", 4096)


def test_acknowledgements_are_what_pika_writes() -> None:
    """The frame that is packed in one go is the frame of the specification."""
    expected = pika.frame.Method(1, pika.spec.Basic.Ack(delivery_tag=77, multiple=True)).marshal()

    assert frames.ack_frame(1, 77, multiple=True) == expected
