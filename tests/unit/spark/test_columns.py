"""Which columns make a message, and what is said where they do not."""

from typing import Any

import pytest
from delayctl.spark.columns import Columns, check_columns
from delayctl.topology.errors import BadOption

WHOLE = {"message_id": "string", "body": "string", "routing_key": "string", "delay": "string"}


def without(*names: str, **types: str) -> dict[str, str]:
    """The columns of a message, some left out and others put in."""
    return {name: type_name for name, type_name in {**WHOLE, **types}.items() if name not in names}


@pytest.mark.parametrize(
    ("types", "options", "expected"),
    [
        (WHOLE, {}, Columns(frozenset(WHOLE))),
        (
            without("delay", due_at="timestamp", headers="map<string,string>"),
            {},
            Columns(frozenset({"message_id", "body", "routing_key", "due_at", "headers"})),
        ),
        (
            without("message_id", "routing_key", order="bigint", delay="interval day to second"),
            {"key": ("order",), "routing_key": "order.created"},
            Columns(frozenset({"body", "delay"}), ("order",), "", (), "order.created"),
        ),
        (
            without("body", "message_id", "delay", order="bigint", total="double"),
            {"payload": "json", "key": ("order",), "level": "1m"},
            Columns(frozenset({"routing_key"}), ("order",), "", ("order", "total"), None, None, "1m"),
        ),
        (
            {"body": "binary", "routing_key": "string", "exchange": "string"},
            {"random_ids": True},
            Columns(frozenset({"body", "routing_key", "exchange"})),
        ),
        (
            without(body="struct<a:int>", order="int"),
            {"payload": "json"},
            Columns(frozenset({"message_id", "routing_key", "delay"}), json=("order", "body")),
        ),
    ],
)
def test_what_is_taken_from_columns(types: dict[str, str], options: dict[str, Any], expected: Columns) -> None:
    """Columns, options and keys go together in many ways."""
    assert check_columns(types, **options) == expected


@pytest.mark.parametrize(
    ("types", "options", "text"),
    [
        (
            without("body"),
            {},
            "Error: there is no column body\n  fix: name the body column so, or send all columns: option payload=json",
        ),
        (
            without("routing_key", routingkey="string"),
            {},
            "Error: there is no column routing_key (is it 'routingkey'?)\n"
            "  fix: add it, or give one for all: option routing_key",
        ),
        (
            without("message_id"),
            {},
            "Error: there is no column message_id\n  fix: name the columns that identify a row (option key), "
            "or give each attempt new ids: ids=random",
        ),
        (
            without("message_id"),
            {"key": ("order",)},
            "Error: the key column 'order' is not there\n  fix: name a column that identifies a row",
        ),
        (
            without("delay"),
            {},
            "Error: nothing says how long messages wait\n"
            "  fix: add one of the columns delay, due_at and level, or option delay or level for all rows",
        ),
        (
            without(due_at="timestamp"),
            {},
            "Error: there is more than one of: delay, due_at\n  fix: keep one of them",
        ),
        (
            WHOLE,
            {"level": "1m"},
            "Error: there is more than one of: delay, option level\n  fix: keep one of them",
        ),
        (
            without(body="int"),
            {},
            "Error: the column body is of type int, not string or binary\n"
            "  fix: use a string or binary column; option payload=json takes all columns instead",
        ),
        (
            without(delay="int"),
            {},
            "Error: the column delay is of type int, not string or interval day to second\n"
            "  fix: write delays as '15m' or as an interval: INTERVAL 15 MINUTES",
        ),
        (
            without("delay", due_at="timestamp_ntz"),
            {},
            "Error: the column due_at is of type timestamp_ntz, not timestamp\n"
            "  fix: make it a timestamp: to_timestamp(due_at), or timestamp_millis(due_at)",
        ),
        (
            without(headers="string"),
            {},
            "Error: the column headers is of type string, not map<string,string>\n"
            "  fix: cast it: CAST(headers AS map<string,string>)",
        ),
        (
            without(headers="map<string,struct<date:string,on:date>>"),
            {},
            "Error: the column headers is of type map<string,struct<date:string,on:date>>, and a header can't be of type date\n"
            "  fix: make text of it: transform_values(headers, (name, value) -> CAST(value AS string))",
        ),
        (
            without("body", v="array<variant>"),
            {"payload": "json"},
            "Error: the column 'v' is of type array<variant>, and a JSON body can't have variant in it\n"
            "  fix: make text of it: to_json(v) AS v",
        ),
        (
            without("body", v="interval year to month"),
            {"payload": "json"},
            "Error: the column 'v' is of type interval year to month, and a JSON body can't have interval year to month in it\n"
            "  fix: make text of it: CAST(v AS string) AS v",
        ),
        (
            without(order="int"),
            {"key": ("order",)},
            "Error: there is more than one of: message_id, option key\n  fix: keep one of them: a message has one id",
        ),
        (
            without("message_id", order="int"),
            {"key": ("order",), "random_ids": True},
            "Error: there is more than one of: option key, option ids=random\n"
            "  fix: keep one of them: a message has one id",
        ),
        (
            WHOLE,
            {"id_prefix": "o-"},
            "Error: option id_prefix stands in front of ids that are made of a key, and these come from message_id\n"
            "  fix: give option key, or leave id_prefix out",
        ),
        (
            WHOLE,
            {"routing_key": "order.created"},
            "Error: there is more than one of: routing_key, option routing_key\n"
            "  fix: keep one of them; where some rows have none: coalesce(routing_key, 'order.created') AS routing_key",
        ),
        (
            without("delay", exchange="string"),
            {"delay": "15m"},
            "Error: option delay is for all rows, and a row that has an exchange does not wait\n"
            "  fix: leave one of them out, or add a column delay, due_at or level that is null where exchange is not",
        ),
        (
            without(routing_key="int"),
            {},
            "Error: the column routing_key is of type int, not string\n  fix: cast it: CAST(routing_key AS string)",
        ),
        (
            without(header="map<string,string>"),
            {},
            "Error: nobody knows the column 'header' (did you mean 'headers'?)\n"
            "  fix: drop it, rename it, or send all columns: option payload=json",
        ),
    ],
)
def test_what_is_wrong_with_columns(types: dict[str, str], options: dict[str, Any], text: str) -> None:
    """Every error names the column and says how to mend it."""
    with pytest.raises(BadOption) as caught:
        check_columns(types, **options)

    assert str(caught.value) == text


@pytest.mark.parametrize("span", ["second", "minute", "hour", "day", "day to second", "hour to minute"])
def test_every_interval_that_has_a_length_is_a_delay(span: str) -> None:
    """INTERVAL 15 MINUTES has another type than INTERVAL 1 DAY."""
    assert check_columns(without(delay=f"interval {span}")) == Columns(frozenset(WHOLE))


@pytest.mark.parametrize("type_name", ["interval year", "interval year to month", "interval"])
def test_an_interval_of_months_is_none(type_name: str) -> None:
    """Nobody knows how long a month is."""
    with pytest.raises(BadOption, match=f"the column delay is of type {type_name}, not string or "):
        check_columns(without(delay=type_name))


@pytest.mark.parametrize(
    "type_name",
    [
        "string",
        "decimal(9,2)",
        "timestamp_ntz",
        "array<int>",
        "struct<interval:int,variant:string>",
        "map<string,boolean>",
    ],
)
def test_what_a_header_and_a_json_body_can_have(type_name: str) -> None:
    """What fields are called does not matter."""
    types = without("body", headers=f"map<string,{type_name}>", v=type_name)

    assert check_columns(types, payload="json").json == ("v",)


def test_a_json_body_has_days_and_seconds() -> None:
    """These have a length, and a text."""
    types = without("body", d="date", i="interval day to second", t="time(6)", h="interval hour")

    assert check_columns(types, payload="json").json == ("d", "i", "t", "h")
