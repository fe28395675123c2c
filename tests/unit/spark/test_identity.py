"""The id of a row."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from delayctl.spark.identity import check_key, id_of
from delayctl.topology.errors import BadOption
from hypothesis import given
from hypothesis import strategies as st

TEXTS = st.text(st.characters(codec="utf-8"), max_size=300) | st.text(r"\:a", max_size=6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["4711"], "4711"),
        (["a:b\\c"], "a:b\\c"),
        (["a:b", "c\\"], "a\\:b:c\\\\"),
        ([4711, True], "4711:true"),
        ([-1], "-1"),
        ([Decimal("1E+3")], "1000"),
        ([Decimal("0.10")], "0.10"),
        ([date(2026, 3, 1)], "2026-03-01"),
        ([b"\x00\xff"], "00ff"),
        ([None], None),
        (["a", None], None),
        (["x" * 255], "x" * 255),
        (["ä" * 128], "290d9d82ff45cbf7e89de26126b1c6e996fe16bcd787e29b125f1abb85bfad69"),
    ],
)
def test_ids_of_rows(values: list[Any], expected: str | None) -> None:
    """One value is its own text; several are joined; what is null has no id; what is too long is hashed."""
    assert id_of(values) == expected


def test_a_prefix_stands_in_front_and_counts_for_the_length() -> None:
    """A prefix is part of the id, also of what is hashed."""
    long = id_of(["x" * 255], "p")

    assert id_of([1], "orders-") == "orders-1"
    assert long is not None
    assert len(long) == 64
    assert long != id_of(["x" * 256])


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=20, unique=True))
def test_different_keys_have_different_ids(keys: list[tuple[str, str]]) -> None:
    """However the values are cut into columns, no two rows share an id."""
    assert len({id_of(key) for key in keys}) == len(keys)


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        (
            None,
            "Error: the key column 'order' is not there\n  fix: name a column that identifies a row",
        ),
        (
            "double",
            "Error: the key column 'order' is of type double, whose values have no exact text\n"
            "  fix: use a column of whole numbers, text or dates, or make one of it: CAST(order AS bigint), where they are whole",
        ),
        (
            "interval second",
            "Error: the key column 'order' is of type interval second, whose values have no exact text\n"
            "  fix: use a column of whole numbers, text or dates, or make one of it: CAST(order AS string)",
        ),
        (
            "timestamp",
            "Error: the key column 'order' is of type timestamp, whose values have no exact text\n"
            "  fix: use a column of whole numbers, text or dates, or make one of it: unix_micros(order)",
        ),
    ],
)
def test_what_can_be_no_key(type_name: str | None, text: str) -> None:
    """A key is a column that is there, and whose values have one text each."""
    with pytest.raises(BadOption) as caught:
        check_key("order", {} if type_name is None else {"order": type_name})

    assert str(caught.value) == text


@pytest.mark.parametrize(
    "type_name", ["string", "varchar(20)", "char(3)", "int", "bigint", "decimal(10,2)", "date", "boolean", "binary"]
)
def test_what_can_be_a_key(type_name: str) -> None:
    """Whole numbers, texts, dates, decimals, booleans and bytes identify rows."""
    check_key("order", {"order": type_name})


@pytest.mark.parametrize("there", ["ORDER_ID", "order_idd"])
def test_a_key_that_is_nearly_there_is_named(there: str) -> None:
    """In other letters, or with a slip."""
    with pytest.raises(BadOption, match=f"'order_id' is not there \\(did you mean '{there}'\\?\\)"):
        check_key("order_id", {"id": "int", there: "int"})
