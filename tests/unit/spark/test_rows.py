"""Rows of Arrow batches as messages; bad ones say why."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from delayctl.spark.columns import Columns
from delayctl.spark.rows import Bad, Row, read_rows, row_json, to_json

WHOLE: dict[str, Any] = {"message_id": ["1"], "body": ["b"], "routing_key": ["k"], "delay": ["1m"]}
MOMENT = datetime(2026, 11, 16, 12, 0, 0, 123999, UTC)
MOMENT_MS = 1_794_830_400_123


def read(content: dict[str, Any], **options: Any) -> list[Row | Bad]:
    """The rows of a batch with these columns."""
    batch = pa.record_batch(content)
    json_columns = options.get("json", ())
    present = frozenset(batch.schema.names) - set(json_columns) - set(options.get("key", ()))
    return list(read_rows(batch, Columns(present, **options)))


def row(**parts: Any) -> Row:
    """A message as `WHOLE` makes it, but for some parts."""
    return Row(**{**Row("1", "k", b"b", "1m", None, None, None, None)._asdict(), **parts})


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ({"body": ["ä"]}, row(body="ä".encode())),
        ({"body": [b"\xff\x00"]}, row(body=b"\xff\x00")),
        ({"body": [""]}, row(body=b"")),
        ({"routing_key": [""]}, row(key="")),
        ({"delay": pa.array([timedelta(minutes=1, microseconds=1999)], pa.duration("us"))}, row(delay=60_001)),
        ({"delay": pa.array([timedelta(seconds=-1)], pa.duration("us"))}, row(delay=-1000)),
        (
            {"headers": pa.array([[("a", "x"), ("b", None)]], pa.map_(pa.string(), pa.string()))},
            row(headers={"a": "x", "b": None}),
        ),
        ({"headers": pa.array([None], pa.map_(pa.string(), pa.string()))}, row()),
        ({"headers": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}, row(headers={"a": 1})),
        ({"exchange": pa.array([None], pa.string())}, row()),
        ({"exchange": ["orders"], "delay": pa.array([None], pa.string())}, row(exchange="orders", delay=None)),
    ],
)
def test_parts_of_a_message(column: dict[str, Any], expected: Row) -> None:
    """Every kind of column becomes its part of the message."""
    assert read({**WHOLE, **column}) == [expected]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_due_time_is_cut_to_milliseconds_whatever_the_zone_of_the_session(zone: str) -> None:
    """Microseconds are dropped, never rounded up, and a time zone changes nothing."""
    due = pa.array([MOMENT, datetime(1969, 12, 31, tzinfo=UTC)], pa.timestamp("us", zone))
    batch = {"message_id": ["1", "2"], "body": ["b", "b"], "routing_key": ["k", "k"], "due_at": due}

    assert read(batch) == [row(delay=None, due_ms=MOMENT_MS), row(message_id="2", delay=None, due_ms=-86_400_000)]


def test_a_level_by_column_and_by_option() -> None:
    """A level is said per row, or once for all."""
    by_column = {**{name: WHOLE[name] for name in ("message_id", "body", "routing_key")}, "level": ["5m"]}
    by_option = {name: WHOLE[name] for name in ("message_id", "body")}

    assert read(by_column) == [row(delay=None, level="5m")]
    assert read(by_option, level="5m", routing_key="k") == [row(delay=None, level="5m")]


def test_ids_from_key_columns() -> None:
    """The id is made of the key, and a row whose key is null has none."""
    batch = {"body": ["b", "b"], "order": [7, None], "line": ["a:b", "c"]}

    assert read(batch, key=("order", "line"), id_prefix="o-", routing_key="k", delay="1m") == [
        row(message_id="o-7:a\\:b"),
        Bad(None, "its message id, or a part of its key, is null or empty"),
    ]


def test_without_ids_chance_decides() -> None:
    """No id is no fault where none was asked for."""
    assert read({"body": ["b"], "routing_key": ["k"], "delay": ["1m"]}) == [row(message_id=None)]


NOTHING = pa.array([None], pa.string())


@pytest.mark.parametrize(
    ("column", "bad"),
    [
        ({"message_id": NOTHING}, Bad(None, "its message id, or a part of its key, is null or empty")),
        ({"message_id": [""]}, Bad("", "its message id, or a part of its key, is null or empty")),
        ({"routing_key": NOTHING}, Bad("1", "routing_key is null")),
        ({"body": NOTHING}, Bad("1", "body is null")),
        ({"delay": NOTHING}, Bad("1", "delay is null")),
        ({"exchange": ["orders"]}, Bad("1", "it has both delay and exchange")),
        ({"exchange": NOTHING, "delay": NOTHING}, Bad("1", "delay is null")),
        ({"reject_reason": ["too old"]}, Bad("1", "too old")),
    ],
)
def test_bad_rows_say_why(column: dict[str, Any], bad: Bad) -> None:
    """What is missing is named, and the id where there is one."""
    assert read({**WHOLE, **column}) == [bad]


def test_bad_rows_leave_their_neighbours_alone() -> None:
    """Rows come in order, good and bad."""
    batch = {"message_id": ["1", "2", "3"], "body": ["b", None, "b"], "routing_key": ["k"] * 3, "delay": ["1m"] * 3}

    assert read(batch) == [row(), Bad("2", "body is null"), row(message_id="3")]


def not_utf8(*texts: bytes) -> pa.Array:
    """A column of texts that Spark would not refuse, and Python does."""
    return pa.Array.from_buffers(pa.string(), len(texts), pa.array(texts, pa.binary()).buffers())


def test_a_text_that_is_not_utf8_is_one_bad_row() -> None:
    """Spark lets any bytes be a string; such a row is put aside, the others are sent."""
    count = 7
    keys = not_utf8(b"k", b"k", b"k\xff", b"k", b"k", b"k", b"k")
    batch = pa.record_batch(
        {
            "message_id": [str(n) for n in range(count)],
            "body": ["b"] * count,
            "routing_key": keys,
            "delay": ["1m"] * count,
        }
    )

    found = list(read_rows(batch, Columns(frozenset(batch.schema.names))))

    assert found == [Bad(None, "a text in it is not UTF-8") if n == 2 else row(message_id=str(n)) for n in range(count)]
    assert json.loads(row_json(batch, 2)) == {"message_id": "2", "body": "b", "routing_key": "k\ufffd", "delay": "1m"}


def test_a_date_that_python_has_no_year_for_is_one_bad_row() -> None:
    """Years from 10,000 on exist in Spark alone."""
    days = pa.array([0, 4_000_000], pa.int32()).cast(pa.date32())
    batch = pa.record_batch({"day": days, "message_id": ["1", "2"]})
    columns = Columns(frozenset({"message_id"}), json=("day",), routing_key="k", delay="1m")

    good, bad = read_rows(batch, columns)

    assert good == row(body=b'{"day":"1970-01-01"}')
    assert isinstance(bad, Bad)
    assert bad.reason.startswith("it can't be read: ")
    assert "12921" in row_json(batch, 1)


def test_all_columns_as_json() -> None:
    """Numbers are numbers, nested values stay nested, all else is text in one form."""
    struct = pa.struct([("at", pa.timestamp("us", "UTC")), ("tags", pa.list_(pa.string()))])
    batch = {
        "message_id": ["1"],
        "n": [7],
        "total": pa.array([Decimal("19.90")], pa.decimal128(10, 2)),
        "ok": [True],
        "ratio": [0.5],
        "day": [date(2026, 3, 1)],
        "at": pa.array([MOMENT], pa.timestamp("us", "Europe/Berlin")),
        "local": pa.array([datetime(2026, 3, 1, 12)], pa.timestamp("us")),
        "raw": [b"\xff\x00"],
        "note": pa.array(['ä"\n'], pa.string()),
        "none": pa.array([None], pa.string()),
        "nested": pa.array([{"at": MOMENT, "tags": ["a", None]}], struct),
        "counts": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        "body": ["mine"],
    }
    names = tuple(name for name in batch if name != "message_id")

    (found,) = read(batch, json=names, routing_key="k", delay="1m")

    assert json.loads(found.body) == {  # type: ignore[union-attr]
        "n": 7,
        "total": "19.90",
        "ok": True,
        "ratio": 0.5,
        "day": "2026-03-01",
        "at": "2026-11-16T12:00:00.123Z",
        "local": "2026-03-01T12:00:00.000",
        "raw": "/wA=",
        "note": 'ä"\n',
        "none": None,
        "nested": {"at": "2026-11-16T12:00:00.123Z", "tags": ["a", None]},
        "counts": {"a": 1},
        "body": "mine",
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), '"nan"'),
        ([float("-inf"), 1.0], '["-inf",1.0]'),
        ({1: "a"}, '{"1":"a"}'),
        ({date(2026, 3, 1): {Decimal("1.5"): None}}, '{"2026-03-01":{"1.5":null}}'),
        (Decimal("NaN"), '"NaN"'),
        (timedelta(minutes=1), '"0:01:00"'),
    ],
)
def test_what_json_has_no_form_for_is_text(value: object, text: str) -> None:
    """What comes out can be read by every JSON parser, strict ones too."""
    assert to_json(value) == text
    json.loads(text, parse_constant=pytest.fail)


ZONES = ["GMT+8", "PST", "Z", "Asia/Tokyo", "+08:00", "UTC"]


@pytest.mark.parametrize("zone", ZONES)
def test_times_are_in_utc_whatever_spark_calls_the_zone_of_its_session(zone: str) -> None:
    """Java knows zones that Python does not; times within lists, structs and maps are no exception."""
    time = pa.timestamp("us", zone)
    inside = {
        "list": pa.array([[MOMENT, None]], pa.list_(time)),
        "struct": pa.array([{"at": [MOMENT]}], pa.struct([("at", pa.list_(time))])),
        "map": pa.array([[("at", MOMENT)]], pa.map_(pa.string(), time)),
    }
    content = {"message_id": ["1"], "at": pa.array([MOMENT], time), **inside}

    (found,) = read(content, json=("at", *inside), routing_key="k", delay="1m")

    moment = "2026-11-16T12:00:00.123Z"
    assert isinstance(found, Row)
    assert json.loads(found.body) == {
        "at": moment, "list": [moment, None], "struct": {"at": [moment]}, "map": {"at": moment},
    }  # fmt: skip
    assert json.loads(row_json(pa.record_batch(content), 0))["struct"] == {"at": [moment]}
