"""The message id of a row: made from its key columns, so that the same row has the same id in every attempt.

Twice, for rows in Python and for columns in Spark; a test holds one against the other.
"""

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal

from delayctl.topology.errors import BadOption
from delayctl.topology.wording import did_you_mean, quoted
from pyspark.sql import Column
from pyspark.sql import functions as f

LONGEST = 255  # Bytes; AMQP has no room for more.
_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "boolean", "date", "binary")

_WAYS: Mapping[str, str] = {
    **dict.fromkeys(("float", "double"), "CAST({} AS bigint), where they are whole"),
    "timestamp": "unix_micros({})",
}


def is_exact(type_name: str) -> bool:
    """Whether a column's values have one text each, and may be part of a key."""
    return type_name in _TYPES or type_name.startswith(("decimal", "char", "varchar"))


def check_key(name: str, types: Mapping[str, str]) -> None:
    """Make sure that one of these columns can be (part of) a key."""
    if name not in types:
        alike = next((each for each in types if each.lower() == name.lower()), None)
        near = did_you_mean(name, types) if alike is None else f" (did you mean {quoted(alike)}?)"
        raise BadOption(f"the key column {quoted(name)} is not there{near}", fix="name a column that identifies a row")
    check_key_type(name, types[name])


def check_key_type(name: str, type_name: str) -> None:
    """Make sure that values of a type can be (part of) a key."""
    if not is_exact(type_name):
        way = _WAYS.get(type_name, "CAST({} AS string)").format(name)
        raise BadOption(
            f"the key column {quoted(name)} is of type {type_name}, whose values have no exact text",
            fix=f"use a column of whole numbers, text or dates, or make one of it: {way}",
        )


def id_of(values: Sequence[object], prefix: str = "") -> str | None:
    """The id of a row with these key values; None where one of them is null."""
    texts = [_text(value) for value in values]
    if len(texts) == 1:
        (only,) = texts
        return None if only is None else _fitting(prefix + only)
    escaped = [text.replace("\\", "\\\\").replace(":", "\\:") for text in texts if text is not None]
    return _fitting(prefix + ":".join(escaped)) if len(escaped) == len(texts) else None


def id_column(names: Sequence[str], types: Mapping[str, str], prefix: str = "") -> Column:
    """The same as a column of Spark."""
    return id_of_texts([as_text(f.col(f"`{name.replace('`', '``')}`"), types[name]) for name in names], prefix)


def id_of_texts(texts: Sequence[Column], prefix: str = "") -> Column:
    """The same of columns that are texts already, one for each part of the key."""
    if len(texts) > 1:
        texts = [f.regexp_replace(text, r"([\\:])", r"\\$1") for text in texts]
    joined = texts[0]
    for text in texts[1:]:
        joined = f.concat(joined, f.lit(":"), text)  # Null where any of them is.
    whole = f.concat(f.lit(prefix), joined)
    return f.when(f.octet_length(whole) > LONGEST, f.sha2(whole.cast("binary"), 256)).otherwise(whole)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _fitting(text: str) -> str:
    encoded = text.encode()
    return text if len(encoded) <= LONGEST else hashlib.sha256(encoded).hexdigest()


def as_text(column: Column, type_name: str) -> Column:
    """A part of a key as text."""
    return f.lower(f.hex(column)) if type_name == "binary" else column.cast("string")
