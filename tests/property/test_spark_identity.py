"""The id of a row is the same whether Python makes it or Spark."""

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from delayctl.spark.identity import id_column, id_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {"t": "string", "n": "bigint", "d": "decimal(38,18)", "day": "date", "b": "boolean", "x": "binary"}
KEYS = [["t"], ["n"], ["d"], ["day"], ["b"], ["x"], ["t", "n"], ["x", "t", "b", "day", "d"]]

TEXTS = st.text(st.characters(codec="utf-8"), max_size=300) | st.text("\\:a", max_size=6)
DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal((number < 0, digits(number), -18)))
ROWS = st.tuples(
    st.none() | TEXTS,
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | DECIMALS,
    st.none() | st.dates(),
    st.none() | st.booleans(),
    st.none() | st.binary(max_size=150),
)
ODD: list[tuple[Any, ...]] = [
    ("a:b\\c", 0, Decimal("0"), date(1, 1, 1), True, b""),
    ("\\:\\:", -(2**63), Decimal("-0.000000000000000001"), date(9999, 12, 31), False, bytes(range(128))),
    ("ä" * 127 + "x", 2**63 - 1, Decimal("12345678901234567890.123456789012345678"), date(1969, 12, 31), None, b"\0"),
    ("ä" * 128, 1, Decimal("1000"), date(2026, 11, 16), True, b"x" * 200),
    ("", 1, None, None, None, None),
    (None, None, Decimal("0.1"), None, None, None),
    ("\u0000\u2028😀 ", 7, Decimal("100"), date(1582, 10, 4), True, b":\\"),
    ("e\u0301 \u00e9", 8, Decimal("-7.50"), date(1582, 10, 15), False, "ü".encode()),
]


def digits(number: int) -> tuple[int, ...]:
    """The digits of a number, without its sign."""
    return tuple(map(int, str(abs(number))))


@given(st.lists(ROWS, min_size=30, max_size=60))
@example(ODD)
@settings(max_examples=6)  # Each is a query, and has many rows.
def test_spark_and_python_make_the_same_ids(spark: "SparkSession", rows: list[tuple[Any, ...]]) -> None:
    """For any values of any type that can be a key, alone and together."""
    frame = spark.createDataFrame(rows, ", ".join(f"{name} {type_name}" for name, type_name in TYPES.items()))
    ids = [id_column(key, TYPES, "p:").alias(f"id {key}") for key in KEYS]

    found = frame.select("*", *ids).coalesce(1).collect()

    assert [[row[f"id {key}"] for key in KEYS] for row in found] == [
        [id_of([row[name] for name in key], "p:") for key in KEYS] for row in found
    ]


def test_a_column_with_an_odd_name_can_be_a_key(spark: "SparkSession") -> None:
    """Dots and backticks in names are part of the name."""
    frame = spark.createDataFrame([(1, 2)], "`a.b` int, `c``d` int")

    found = frame.select(id_column(["a.b", "c`d"], {"a.b": "int", "c`d": "int"}).alias("id")).collect()

    assert [row["id"] for row in found] == ["1:2"]
