"""Which rows become which messages, in a real Spark; and what is foretold of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from delayctl.publishers.choice import Ways
from delayctl.spark.backfill_job import (
    SAME_KEY,
    BackfillJob,
    check_job,
    first_of_each_key,
    messages_of,
    outline,
)
from delayctl.spark.backfill_plan import look_ahead
from delayctl.spark.columns import BODY, DELAY, DUE, HEADERS, ID, KEY, LEVEL, REASON
from delayctl.spark.due_order import due_order
from delayctl.spark.estimate import Estimate, LevelForecast, More, Room, Unrouted
from delayctl.spark.origin import origin_from
from delayctl.spark.rows import Bad, Row, read_rows
from delayctl.spark.taken_keys import Routes
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.model import Level
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
WAYS = Ways("exit", [Level(name, Duration.parse(name), f"{name} in", f"{name} queue") for name in ("1m", "1h")])


def job(**options: Any) -> BackfillJob:
    """A job by order_id and pay_by, but for what is given."""
    usual = {"key": ("order_id",), "routing_key": "order.created", "due": "pay_by"}
    return BackfillJob(origin_from("parquet:orders", []), **(usual | options))


def rows(spark: SparkSession, *due: datetime | None) -> DataFrame:
    """Orders with these due times."""
    return spark.createDataFrame(list(enumerate(due)), "order_id bigint, pay_by timestamp")


def values(messages: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    """These columns of the messages, by id."""
    return [tuple(row[name] for name in names) for row in messages.orderBy(ID).collect()]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"key": ()}, "--key is missing"),
        ({"routing_key": None}, "exactly one of --routing-key and --routing-key-column is needed"),
        ({"routing_key_column": "country"}, "exactly one of --routing-key and --routing-key-column is needed"),
        ({"due": None}, "exactly one of --due-column, --delay-column and --level-column is needed"),
        ({"level": "level"}, "exactly one of --due-column, --delay-column and --level-column is needed"),
    ],
)
def test_a_job_says_everything_once(given: dict[str, Any], error: str) -> None:
    """And no more than once."""
    with pytest.raises(BadOption, match=error):
        check_job(job(**given))


def test_a_description_is_all_that_makes_a_job() -> None:
    """It is what a checkpoint is held against; it has no secret in it."""
    origin = origin_from("jdbc:mysql://a:secret@db/shop", ["password=secret", "dbtable=orders"])
    made = BackfillJob(origin, ("a", "b"), routing_key_column="country", delay="wait", target="amqp://host:5672 / exit")

    assert made.description() == {
        "target": "amqp://host:5672 / exit",
        "source": "jdbc:mysql://db/shop",
        "source_options": {"dbtable": "orders"},
        "key": ["a", "b"],
        "id_prefix": "",
        "routing_key": None,
        "routing_key_column": "country",
        "due": None,
        "delay": "wait",
        "level": None,
        "body": None,
        "headers": None,
        "where": None,
    }
    assert "secret" not in repr(made)


def test_all_columns_are_the_body(spark: SparkSession) -> None:
    """As JSON, with names that need backticks and times in UTC."""
    table = spark.createDataFrame([(1, NOW, "x")], "order_id int, pay_by timestamp, `odd ``name` string")

    messages, _ = messages_of(table, job())

    assert values(messages, ID, KEY, BODY, DUE) == [
        (
            "1",
            "order.created",
            '{"order_id":1,"pay_by":"2026-11-16T12:00:00.000Z","odd `name":"x"}',
            NOW.replace(tzinfo=None),
        )
    ]


def test_every_part_by_an_expression(spark: SparkSession) -> None:
    """Rows that are not asked for are not there."""
    table = spark.createDataFrame(
        [(1, "de", 1_794_830_400_000), (2, "fr", 0)], "number int, country string, due_ms bigint"
    )

    messages, columns = messages_of(
        table,
        job(
            key=("country", "number"),
            routing_key=None,
            routing_key_column="concat('reminder.', country)",
            due="timestamp_millis(due_ms)",
            body="upper(country)",
            headers="map('shop', country)",
            where="country = 'de'",
            id_prefix="r-",
        ),
    )

    assert values(messages, ID, KEY, BODY, HEADERS, DUE) == [
        ("r-de:1", "reminder.de", "DE", {"shop": "de"}, NOW.replace(tzinfo=None))
    ]
    assert columns.present == {ID, KEY, BODY, HEADERS, DUE, REASON}


@pytest.mark.parametrize(
    ("due", "type_name"), [("'2026-11-16T12:00:00Z'", "text"), ("date '2026-11-16' + interval 12 hours", "time"),
                           ("timestamp_ntz '2026-11-16 12:00:00'", "time without a zone")]
)  # fmt: skip
def test_due_times_of_other_types(spark: SparkSession, due: str, type_name: str) -> None:
    """Texts and times without a zone are in UTC."""
    messages, _ = messages_of(rows(spark, NOW), job(due=due))

    assert values(messages, DUE) == [(NOW.replace(tzinfo=None),)], type_name


def test_a_text_that_is_no_time_rejects_its_row_alone(spark: SparkSession) -> None:
    """Even where Spark is told to be strict (ANSI mode, its default)."""
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    table = spark.createDataFrame(
        [(1, "2026-11-16T12:00:00Z"), (2, "tomorrow"), (3, "")], "order_id int, pay_by string"
    )

    messages, columns = messages_of(table, job())
    (batch,) = first_of_each_key(messages, WAYS).orderBy(ID).toArrow().combine_chunks().to_batches()

    assert [type(row) for row in read_rows(batch, columns)] == [Row, Bad, Bad]
    assert [row.reason for row in read_rows(batch, columns) if isinstance(row, Bad)] == ["due_at is null"] * 2


def test_a_key_may_be_an_expression(spark: SparkSession) -> None:
    """A column of type double is none by itself."""
    table = spark.sql("SELECT 7D AS order_id, 'DE' AS country, timestamp '2026-11-16 12:00:00' AS pay_by")

    messages, _ = messages_of(table, job(key=("country", "cast(order_id as bigint)", "lower(country)")))

    assert values(messages, ID) == [("DE:7:de",)]
    with pytest.raises(BadOption, match="'abs\\(order_id\\)' is of type double"):
        messages_of(table, job(key=("abs(order_id)",)))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"key": ("id",)}, "the key column 'id' is not there"),
        ({"key": ("pay_by",)}, "the key column 'pay_by' is of type timestamp"),
        ({"due": "order_id"}, "the due column is of type bigint, not timestamp"),
        ({"body": "order_id"}, "the column body is of type bigint"),
        ({"headers": "order_id"}, "the column headers is of type bigint"),
        ({"due": None, "delay": "order_id"}, "the column delay is of type bigint"),
        ({"due": None, "level": "1"}, "the column level is of type int"),
    ],
)
def test_types_that_do_not_fit(spark: SparkSession, given: dict[str, Any], error: str) -> None:
    """They are found before anything is read."""
    with pytest.raises(BadOption, match=error):
        messages_of(rows(spark, NOW), job(**given))


def test_a_column_that_is_not_there(spark: SparkSession) -> None:
    """Spark says so, with a suggestion."""
    with pytest.raises(AnalysisException, match="pay_by"):
        messages_of(rows(spark, NOW), job(due="payby"))


def test_of_rows_with_the_same_key_the_first_due_is_sent(spark: SparkSession) -> None:
    """The others are rejected and not forgotten; rows without a key are not each other's like."""
    late, early = NOW + timedelta(hours=2), NOW + timedelta(hours=1)
    table = spark.createDataFrame(
        [(1, late, "b"), (1, early, "c"), (1, early, "a"), (2, late, "d"), (None, late, "e"), (None, late, "f")],
        "order_id int, pay_by timestamp, text string",
    )

    messages, _ = messages_of(table, job(body="text"))

    found = {row[BODY]: row[REASON] for row in first_of_each_key(messages, WAYS).collect()}
    assert found == {"a": None, "b": SAME_KEY, "c": SAME_KEY, "d": None, "e": None, "f": None}


@pytest.mark.parametrize("bad", ["'1m' AS wait, CAST(NULL AS string) AS text", "CAST(NULL AS string) AS wait, 'a' AS text",
                                 "'soon' AS wait, 'a' AS text", "'' AS wait, 'a' AS text"])  # fmt: skip
@pytest.mark.parametrize("how", ["delay", "level"])
def test_a_row_that_cannot_be_sent_keeps_no_other_from_being_sent(spark: SparkSession, how: str, bad: str) -> None:
    """Of rows with the same key bad ones come last, whatever is wrong with them."""
    table = spark.sql(f"SELECT 1 AS order_id, '1h' AS wait, 'good' AS text UNION ALL SELECT 1, {bad}")

    messages, _ = messages_of(table, job(due=None, body="text", **{how: "wait"}))

    found = {row[BODY]: row[REASON] for row in first_of_each_key(messages, WAYS).collect()}
    assert found["good"] is None
    assert sorted(found.values(), key=str) == [None, SAME_KEY]


def test_a_row_without_a_due_time_keeps_no_other_from_being_sent(spark: SparkSession) -> None:
    """It is the other that is sent."""
    table = spark.createDataFrame([(1, None, "bad"), (1, NOW, "good")], "order_id int, pay_by timestamp, text string")

    messages, _ = messages_of(table, job(body="text"))

    found = {row[BODY]: row[REASON] for row in first_of_each_key(messages, WAYS).collect()}
    assert found == {"good": None, "bad": SAME_KEY}


@pytest.mark.parametrize(
    ("how", "waits"), [("delay", ("2m", "10m")), ("delay", ("59s", "1m")), ("level", ("1m", "1h"))]
)
def test_the_first_due_is_the_one_that_waits_least(spark: SparkSession, how: str, waits: tuple[str, str]) -> None:
    """Not the one that comes first in the alphabet."""
    table = spark.createDataFrame([(1, wait) for wait in waits], "order_id int, wait string")

    messages, _ = messages_of(table, job(due=None, body="wait", **{how: "wait"}))

    found = {row[BODY]: row[REASON] for row in first_of_each_key(messages, WAYS).collect()}
    assert found == {waits[0]: None, waits[1]: SAME_KEY}


def test_delays_are_ordered_by_what_they_are_read_as(spark: SparkSession) -> None:
    """The column of Spark and Duration agree on what a delay is, and how long it is."""
    texts = [
        "1d2h3m4s5ms",
        "90s",
        "1m30s",
        "5ms",
        "0s",
        "12",
        "",
        "s",
        "1m1m",
        "1s1m",
        " 1s",
        "1s\n",
        "1S",
        "-1s",
        "٣s",
    ]
    table = spark.createDataFrame([(text,) for text in texts], "delay string")

    found = [row[0] for row in table.select(due_order(table, WAYS)).collect()]

    assert found == [length(text) for text in texts]


def length(text: str) -> float | None:
    """How long a delay is in milliseconds; None where it is none."""
    try:
        return Duration.parse(text).ms
    except ValueError:
        return None


def foretold(messages: DataFrame) -> Estimate:
    """What is foretold of them at NOW, with the levels 1m and 1h."""
    rooms = [Room("1m", 1, 10), Room("1h", 2, 5)]
    return look_ahead(first_of_each_key(messages, WAYS), 9, WAYS, rooms, rounding="up", now_ms=NOW_MS, rate=None)


def test_what_is_foretold_by_due_time(spark: SparkSession) -> None:
    """Each row is counted once; bad ones with the reason that a task would give."""
    waits = [-86_400, -1, 30, 30, 59.9, 61, 3000, 3599, 3599.9, 3600.5, 40_000_000]
    due = [NOW + timedelta(seconds=wait) for wait in waits]
    twice = rows(spark, NOW + timedelta(seconds=7200))
    messages, _ = messages_of(rows(spark, *due, None).union(twice), outline(job()))

    assert foretold(messages) == Estimate(
        to_send=9,
        overdue=2,
        beyond=2,
        rejected={"due_at is null": 1, SAME_KEY: 1},
        confirmed_before=9,
        levels=(LevelForecast(Room("1m", 1, 10), 3, 4), LevelForecast(Room("1h", 2, 5), 4, 6)),
        hours={NOW_MS: 5, NOW_MS + 3_600_000: 4},
        takes_ms=0,
    )


def test_bytes_are_counted_where_a_level_minds(spark: SparkSession) -> None:
    """Those of bodies, as bytes and not as characters; else no body is read."""
    messages, _ = messages_of(rows(spark, *[NOW + timedelta(seconds=3000)] * 10), job(body="repeat('é', 50)"))
    rooms = [Room("1m", 0), Room("1h", 0, 100, waiting_bytes=5, max_bytes=900)]

    found = look_ahead(first_of_each_key(messages, WAYS), 0, WAYS, rooms, rounding="up", now_ms=NOW_MS, rate=None)

    assert found.overflowing == (LevelForecast(rooms[1], 10, 10, 1_005),)


def test_of_many_reasons_the_most_frequent_are_told(spark: SparkSession) -> None:
    """However many texts are no delay, few come to the driver; what differs in its length alone has one reason."""
    table = spark.sql(
        "SELECT id AS order_id, if(id < 30, '5x', if(id < 90, id || 'y', id || 's')) AS wait FROM range(200)"
    )
    messages, _ = messages_of(table, outline(job(due=None, delay="wait")))

    found = look_ahead(
        first_of_each_key(messages, WAYS), 0, WAYS, [Room("1m")], rounding="refuse", now_ms=NOW_MS, rate=None
    )

    assert found.rejected["'5x' is not a delay"] == 30
    assert (len(found.rejected), found.more) == (21, More(41, 41))
    assert found.rejected["no level waits exactly this long"] == 110


def test_what_waits_exactly_as_long_as_a_level_has_a_way(spark: SparkSession) -> None:
    """Also where others wait nearly as long."""
    table = spark.sql("SELECT id AS order_id, if(id < 3, '1h', '59m59s900ms') AS wait FROM range(5)")
    messages, _ = messages_of(table, outline(job(due=None, delay="wait")))

    found = look_ahead(
        first_of_each_key(messages, WAYS), 0, WAYS, [Room("1h")], rounding="refuse", now_ms=NOW_MS, rate=None
    )

    assert (found.to_send, found.rejected) == (3, {"no level waits exactly this long": 2})


def test_keys_that_no_route_takes_are_counted(spark: SparkSession) -> None:
    """Of the rows that can be sent, with one of the keys."""
    table = spark.sql(
        "SELECT id AS order_id, if(id % 4 = 0, 'typo.' || id, 'order.created') AS k, '1m' AS wait FROM range(20)"
    )
    messages, _ = messages_of(table, outline(job(due=None, delay="wait", routing_key=None, routing_key_column="k")))

    found = look_ahead(
        first_of_each_key(messages, WAYS), 0, WAYS, [Room("1m")], rounding="up", now_ms=NOW_MS, rate=None,
        routes=Routes(("order.#",), "parked"),
    )  # fmt: skip

    assert (found.to_send, found.unrouted) == (20, Unrouted(5, "typo.0"))


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ({"level": "if(order_id = 0, '1m', '1h')"}, (3, [1, 2], {})),
        ({"level": "if(order_id = 0, '1w', '1h')"}, (2, [0, 2], {"there is no level '1w'": 1})),
        ({"delay": "concat(order_id, 'm')"}, (3, [1, 1], {})),
        ({"delay": "make_dt_interval(0, 0, int(order_id), 0.5)"}, (3, [1, 2], {})),
        ({"delay": "if(order_id = 0, INTERVAL '1' MINUTE, INTERVAL '3' MINUTE)"}, (3, [1, 2], {})),
        ({"delay": "INTERVAL '1' HOUR"}, (3, [0, 3], {})),
        ({"delay": "INTERVAL '20' SECOND"}, (3, [3, 0], {})),
        ({"delay": "INTERVAL '0' DAY"}, (3, [0, 0], {})),
        ({"delay": "INTERVAL '00:59' HOUR TO MINUTE"}, (3, [0, 3], {})),
        ({"delay": "if(order_id = 0, null, '1m')"}, (2, [2, 0], {"delay is null": 1})),
    ],
)
def test_what_is_foretold_by_level_and_delay(
    spark: SparkSession, given: dict[str, str], counts: tuple[int, list[int], dict[str, int]]
) -> None:
    """Rows to send, rows per level, and what is rejected."""
    messages, _ = messages_of(rows(spark, NOW, NOW, NOW), outline(job(due=None, **given)))

    found = foretold(messages)

    assert (found.to_send, [level.rows for level in found.levels], found.rejected) == counts
    assert set(messages.columns) & {DELAY, LEVEL}
