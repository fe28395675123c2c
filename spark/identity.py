"""The message id of a row: made from its key columns, so that the same row has the same id in every attempt.

Twice, for rows in Python and for columns in Spark; a test holds one against the other.
"""

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal

from delayctl.topology.errors import BadOption
from delayctl.topology.wording import quoted
from pyspark.sql import Column
from pyspark.sql import functions as f

LONGEST = 255  # Bytes; AMQP has no room for more.
_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "boolean", "date", "binary")


def is_exact(type_name: str) -> bool:
    """Whether a column's values have one text each, and may be part of a key."""
    return type_name in _TYPES or type_name.startswith(("decimal", "char", "varchar"))


def check_key(name: str, type_name: str | None) -> None:
    """Make sure that a column can be (part of) a key."""
    if type_name is None:
        raise BadOption(f"the key column {quoted(name)} is not there", fix="name a column that identifies a row")
    if not is_exact(type_name):
        raise BadOption(
            f"the key column {quoted(name)} is of type {type_name}, whose values have no exact text",
            fix="use a column of whole numbers, text or dates, or cast it",
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
    texts = [_as_text(name, types[name]) for name in names]
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


def _as_text(name: str, type_name: str) -> Column:
    column = f.col(f"`{name.replace('`', '``')}`")
    return f.lower(f.hex(column)) if type_name == "binary" else column.cast("string")
