"""Arrow batches as messages to be sent, row by row; a bad row says why it is one."""

import json
import math
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from delayctl.spark.columns import BODY, DELAY, DUE, EXCHANGE, HEADERS, ID, KEY, LEVEL, REASON, Columns
from delayctl.spark.identity import id_of

_MICROS_PER_MS = 1000
# A text that is not UTF-8, a year above 9999, a map with a key twice.
_UNREADABLE = (ValueError, OverflowError, KeyError, pa.ArrowException)


class Row(NamedTuple):
    """A message to be sent. At most one of the four waits is given; none where the row says none."""

    message_id: str | None  # None: chance decides.
    key: str
    body: bytes
    delay: str | int | None  # As text, or in milliseconds.
    due_ms: int | None
    level: str | None
    exchange: str | None
    headers: dict[str, Any] | None


class Bad(NamedTuple):
    """A row that is no message."""

    message_id: str | None
    reason: str


def read_rows(batch: pa.RecordBatch, columns: Columns) -> Iterator[Row | Bad]:
    """The rows of a batch, in order."""
    try:
        parts = _parts(batch, columns)
    except _UNREADABLE as error:
        yield from _one_by_one(batch, columns, error)
        return
    if REASON not in columns.present and EXCHANGE not in columns.present and _is_complete(parts):
        yield from map(Row._make, zip(*parts, strict=False))  # What is the same for every row has no end.
        return
    reasons = _texts(batch, REASON, columns)
    has_ids, waits = bool(columns.key) or ID in columns.present, _waits(columns)
    for known, values in zip(reasons, zip(*parts, strict=False), strict=False):
        reason = known or _trouble(values, has_ids, waits)
        yield Bad(values[0], reason) if reason else Row._make(values)


def row_json(batch: pa.RecordBatch, index: int) -> str:
    """A row of a batch as JSON, for tables of what was put aside."""
    row = batch.slice(index, 1)
    return to_json({name: _first(column) for name, column in zip(row.schema.names, row.columns, strict=True)})


def to_json(value: object) -> str:
    """A value of Spark as JSON: times in UTC, bytes as base64, decimals and numbers that are none as text."""
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):  # A key that is no text, or a number that JSON has no sign for.
        return json.dumps(_spelled_out(value), default=_plain, ensure_ascii=False, separators=(",", ":"))


def _parts(batch: pa.RecordBatch, columns: Columns) -> tuple[Iterable[Any], ...]:
    """The parts of all messages, in the order of Row's."""
    return (
        _ids(batch, columns),
        _texts(batch, KEY, columns, columns.routing_key),
        _bodies(batch, columns),
        _delays(batch, columns),
        _due_times(batch, columns),
        _texts(batch, LEVEL, columns, columns.level),
        _texts(batch, EXCHANGE, columns),
        _headers(batch, columns),
    )


def _is_complete(parts: tuple[Iterable[Any], ...]) -> bool:
    """Whether no row lacks anything, so that none has to be looked at: all columns but that of headers are full."""
    *needed, _ = parts
    return not any(isinstance(part, list) and (None in part or "" in part) for part in needed)


def _one_by_one(batch: pa.RecordBatch, columns: Columns, error: Exception) -> Iterator[Row | Bad]:
    """The rows of a batch of which one at least can't be read."""
    if batch.num_rows == 1:
        reason = "a text in it is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"it can't be read: {error}"
        yield Bad(None, reason)
        return
    middle = batch.num_rows // 2
    for half in (batch.slice(0, middle), batch.slice(middle)):
        yield from read_rows(half, columns)


def _trouble(values: Sequence[Any], has_ids: bool, waits: str) -> str | None:
    message_id, key, body, delay, due_ms, level, exchange, _ = values
    if has_ids and not message_id:
        return "its message id, or a part of its key, is null or empty"
    if key is None:
        return "routing_key is null"
    if body is None:
        return "body is null"
    is_waiting = delay is not None or due_ms is not None or level is not None
    if not is_waiting and exchange is None:
        return f"{waits} is null"
    if is_waiting and exchange is not None:
        return f"it has both {waits} and exchange"
    return None


def _waits(columns: Columns) -> str:
    return next((name for name in (DELAY, DUE, LEVEL) if name in columns.present), None) or (
        "level" if columns.level is not None else "delay" if columns.delay is not None else "exchange"
    )


def _ids(batch: pa.RecordBatch, columns: Columns) -> Iterable[str | None]:
    if columns.key:
        values = [_values(batch.column(name)) for name in columns.key]
        return [id_of(key, columns.id_prefix) for key in zip(*values, strict=True)]
    return _texts(batch, ID, columns)


def _texts(batch: pa.RecordBatch, name: str, columns: Columns, default: str | None = None) -> Iterable[Any]:
    return _values(batch.column(name)) if name in columns.present else repeat(default)


def _bodies(batch: pa.RecordBatch, columns: Columns) -> Iterable[bytes | None]:
    if columns.json:
        return [to_json(row).encode() for row in _plain_rows(batch.select(list(columns.json)))]
    return _values(batch.column(BODY).cast(pa.binary()))


def _delays(batch: pa.RecordBatch, columns: Columns) -> Iterable[str | int | None]:
    if DELAY not in columns.present:
        return repeat(columns.delay)
    column = batch.column(DELAY)
    if pa.types.is_duration(column.type):
        column = column.cast(pa.duration("ms"), safe=False).cast(pa.int64())
    return _values(column)


def _due_times(batch: pa.RecordBatch, columns: Columns) -> Iterable[int | None]:
    if DUE not in columns.present:
        return repeat(None)
    micros = batch.column(DUE).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return _values(pc.divide(micros, _MICROS_PER_MS))


def _headers(batch: pa.RecordBatch, columns: Columns) -> Iterable[dict[str, Any] | None]:
    if HEADERS not in columns.present:
        return repeat(None)
    return _values(batch.column(HEADERS))


def _plain_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*map(_values, batch.columns), strict=True)]


def _values(column: pa.Array) -> list[Any]:
    if (kind := _in_utc(column.type)) != column.type:
        column = column.cast(kind)  # Java knows zones by names that Python does not.
    if pa.types.is_nested(column.type):
        return list(column.to_pylist(maps_as_pydicts="strict"))
    return list(column.to_pylist())  # Twenty times as fast.


def _in_utc(kind: pa.DataType) -> pa.DataType:
    """The same type with times, however deep inside, in UTC."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_utc(field.type)) for field in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(_in_utc(kind.key_type), _in_utc(kind.item_type))
    return pa.list_(_in_utc(kind.value_type)) if pa.types.is_list(kind) else kind


def _first(column: pa.Array) -> Any:
    """The only value of a column, as near to it as can be told."""
    try:
        return _values(column)[0]
    except _UNREADABLE:
        if pa.types.is_string(column.type):
            return column.cast(pa.binary())[0].as_py().decode(errors="replace")
        return str(column)


def _spelled_out(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else to_json(key).strip('"'): _spelled_out(each) for key, each in value.items()
        }
    if isinstance(value, list):
        return [_spelled_out(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: object) -> str:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)
