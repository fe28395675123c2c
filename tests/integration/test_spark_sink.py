"""`df.write.format("delayctl")` on a real Spark and a real broker."""

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from delayctl.spark.source import DelaySource
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.conftest import TopologyFile
from tests.support.arrived import Arrival, await_arrivals, take_all
from tests.support.rabbit import Rabbit

TOPOLOGY = """
version: 1
delay:
  levels: {200ms: {}, 1s: {}, 1h: {max_length: 5, overflow: reject-publish}}
exchanges: {orders: {type: topic}}
queues: {target: {}}
routes:
  - {key: order.created, delay: 200ms, to: target}
  - {from: orders, key: order.paid, to: target}
"""
ORDERS = "cast(id as string) as message_id", "concat('order ', id) as body", "'order.created' as routing_key"


@pytest.fixture
def shop(rabbit: Rabbit, topology: TopologyFile, spark: SparkSession) -> "Shop":
    """A virtual host with the topology, and a Spark that knows how to write there."""
    ran = rabbit.delayctl("apply", topology.write(TOPOLOGY), "--yes")
    assert ran.code == 0, ran.err
    spark.dataSource.register(DelaySource)
    return Shop(rabbit, str(topology.path), spark)


class Shop:
    """Writes DataFrames as messages."""

    def __init__(self, rabbit: Rabbit, file: str, spark: SparkSession) -> None:
        self.rabbit, self.file, self.spark = rabbit, file, spark

    def orders(self, count: int, *columns: str, partitions: int = 2) -> DataFrame:
        """So many orders, with columns of the test's own."""
        return self.spark.range(0, count, 1, partitions).selectExpr(*ORDERS, *columns)

    def write(self, frame: DataFrame, *, mode: str = "append", **options: str) -> None:
        """Write a DataFrame."""
        given = {"topology": self.file, "url": self.rabbit.url, **options}
        frame.write.format("delayctl").options(**given).mode(mode).save()

    def refusal(self, frame: DataFrame, **options: Any) -> str:
        """What is said when a DataFrame can't be written."""
        with pytest.raises(PySparkException) as caught:
            self.write(frame, **options)
        return str(caught.value)

    def jobs(self, group: str) -> list[int]:
        """The jobs that Spark has run for a group."""
        return list(self.spark.sparkContext.statusTracker().getJobIdsForGroup(group))


def test_thousands_of_rows_over_several_levels_arrive_once_each(shop: Shop) -> None:
    """From four partitions, into two levels and straight to the exit; ids are made from the key."""
    waits = "case id % 3 when 0 then '200ms' when 1 then '1s' else '0s' end as delay"
    rows = shop.spark.range(0, 3000, 1, 4).selectExpr("id as order_id", "'x' as body", waits)

    shop.write(rows, key="order_id", id_prefix="order-", routing_key="order.created")

    arrived = await_arrivals(shop.rabbit, "target", 3000)
    assert sorted(each.message_id for each in arrived) == sorted(f"order-{number}" for number in range(3000))
    levels = {number % 3: each.headers.get("delay-level") for each in arrived if (number := int(each.message_id[6:]))}
    assert levels == {0: "200ms", 1: "1s", 2: None}


def test_every_kind_of_column(shop: Shop) -> None:
    """Bytes, intervals, headers, due times and an exchange of the row's own come out as they went in."""
    created, paid = "'order.created' as routing_key", "'order.paid' as routing_key"
    headers = "map('tenant', 'eu', 'none', null) as headers"
    overdue = "timestamp'2020-01-02 03:04:05.678901 America/New_York' as due_at"
    binary = shop.spark.range(1).selectExpr("'bytes' as message_id", "X'ff00' as body", created, headers, overdue)
    straight = shop.spark.range(1).selectExpr("'straight' as message_id", "'ä' as body", paid, "'orders' as exchange")
    interval = shop.spark.range(1).selectExpr("'i' as message_id", "'' as body", created, "INTERVAL 1 SECOND as delay")
    everything = shop.spark.range(1).selectExpr("7 as n", "'200ms' as level", "named_struct('a', array(1, null)) as s")

    shop.write(binary)
    shop.write(straight)
    before_ms = int(time.time() * 1000)
    shop.write(interval)
    shop.write(everything, payload="json", key="n", routing_key="order.created")

    found = {each.message_id: each for each in await_arrivals(shop.rabbit, "target", 4)}
    due_ms = found["i"].headers.pop("delay-due") - before_ms
    del found["7"].headers["delay-due"]
    assert found == {
        "bytes": Arrival(
            "bytes", b"\xff\x00", "order.created", {"tenant": "eu", "none": None, "delay-due": 1_577_952_245_678}
        ),
        "straight": Arrival("straight", "ä".encode(), "order.paid", {}),
        "i": Arrival("i", b"", "order.created", {"delay-level": "1s"}),
        "7": Arrival("7", b'{"n":7,"s":{"a":[1,null]}}', "order.created", {"delay-level": "200ms"}),
    }
    assert 1000 <= due_ms < 30_000


def test_overdue_rows_come_out_at_once_with_the_time_they_were_due(shop: Shop) -> None:
    """What was due in 2020 is in its queue when the write is over."""
    shop.write(shop.orders(2, "timestamp'2020-01-02 03:04:05.678 UTC' as due_at"))

    arrived = take_all(shop.rabbit, "target")

    assert sorted(each.message_id for each in arrived) == ["0", "1"]
    assert {tuple(each.headers.items()) for each in arrived} == {(("delay-due", 1_577_934_245_678),)}


def test_rows_due_beyond_the_longest_level_are_kept_for_a_later_run(shop: Shop, tmp_path: Path) -> None:
    """With when they are due and all that they were; what is due in time is sent."""
    far = "if(id < 4, timestamp'2020-01-01 00:00:00 UTC', timestamp'2999-01-01 00:00:00 UTC') as due_at"

    shop.write(shop.orders(6, far), beyond="later", later=str(tmp_path / "aside"), rejects=str(tmp_path / "aside"))

    assert len(take_all(shop.rabbit, "target")) == 4
    later = shop.spark.read.parquet(str(tmp_path / "aside/later")).orderBy("message_id").collect()
    assert [(row.message_id, str(row.due_at), row.row) for row in later] == [
        (
            str(number),
            "2999-01-01 00:00:00",
            f'{{"message_id":"{number}","body":"order {number}","routing_key":"order.created",'
            '"due_at":"2999-01-01T00:00:00.000Z"}',
        )
        for number in (4, 5)
    ]


def test_rows_due_beyond_the_longest_level_are_refused_otherwise(shop: Shop) -> None:
    """The write fails, and says how many and why."""
    text = shop.refusal(shop.orders(1, "INTERVAL 2 HOURS as delay"))

    assert (
        "Error: 1 row of 1 refused, the others are sent: due later than the longest level (1h) waits (1)\n"
        "  fix: correct them and write them alone, or have such rows kept: option rejects=FOLDER"
    ) in text


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        (
            ("'1s' as delai",),
            {},
            "Error: nothing says how long messages wait\n"
            "  fix: add one of the columns delay, due_at and level, or option delay or level for all rows",
        ),
        (
            ("id as delay",),
            {},
            "Error: the column delay is of type bigint, not string or interval day to second\n"
            "  fix: write delays as '15m' or as an interval: INTERVAL 15 MINUTES",
        ),
        (
            (),
            {"level": "2h"},
            "Error: there is no level '2h'\n  fix: use one of: 200ms, 1s, 1h",
        ),
        (("'1s' as delay",), {"mode": "overwrite"}, 'Error: messages can\'t be overwritten\n  fix: use mode("append")'),
        (("'1s' as delay",), {"windw": "1"}, "Error: there is no option 'windw' (did you mean 'window'?)\n"),
        (("'1s' as delay",), {"topology": "/none.yaml"}, "Error: the file can't be read: No such file or directory\n"),
        (("'1s' as delay",), {"rejects": "gopher://x"}, "Error: the folder 'gopher://x' can't be used: "),
    ],
    ids=["missing column", "wrong type", "unknown level", "overwrite", "unknown option", "no file", "no folder"],
)
def test_what_can_not_work_is_said_before_any_job_runs(
    shop: Shop, columns: tuple[str, ...], options: dict[str, str], text: str, request: pytest.FixtureRequest
) -> None:
    """In plain words, at the end of what Spark says; no row is read."""
    group = request.node.name
    shop.spark.sparkContext.setJobGroup(group, "")

    said = shop.refusal(shop.orders(10, *columns), **options)

    assert text in said
    assert shop.jobs(group) == []


def test_a_broker_that_is_not_there_is_named(shop: Shop) -> None:
    """Without the password."""
    said = shop.refusal(shop.orders(1, "'1s' as delay"), url="amqp://etl:geheim@127.0.0.1:1/")

    assert "Error: nothing listens at amqp://127.0.0.1:1\n  fix: " in said
    assert "geheim" not in said


def test_a_wrong_password_is_told_without_it(shop: Shop) -> None:
    """Nor is the right one."""
    parts = urlsplit(shop.rabbit.url)
    url = parts._replace(netloc=f"{parts.username}:geheim@{parts.hostname}:{parts.port}").geturl()

    said = shop.refusal(shop.orders(1, "'1s' as delay"), url=url)

    assert "AuthenticationFailed: Error: " in said
    assert "geheim" not in said


def test_a_queue_that_stays_full_fails_the_write(shop: Shop) -> None:
    """After the wait that was allowed; what had room waits on the broker."""
    said = shop.refusal(shop.orders(8, "'1h' as level"), full_wait="0s")

    assert "Error: 3 rows of 8 refused, the others are sent: " in said
    shop.rabbit.await_ready("delay.1h.queue", 5)


BAD = "if(id % 100 = 7, null, '200ms') as delay"


def test_one_percent_of_bad_rows_is_kept_with_reasons(shop: Shop, tmp_path: Path) -> None:
    """The write succeeds; good rows arrive, and bad ones stand in a table, each once."""
    rejects = str(tmp_path / "rejects folder")

    shop.write(shop.orders(1000, BAD, partitions=3), rejects=rejects)

    arrived = await_arrivals(shop.rabbit, "target", 990)
    kept = shop.spark.read.parquet(f"{rejects}/rejects").collect()
    assert {(row.message_id, row.reason) for row in kept} == {(str(n), "delay is null") for n in range(7, 1000, 100)}
    assert len(kept) == 10
    assert sorted(int(each.message_id) for each in arrived) == [n for n in range(1000) if n % 100 != 7]


def test_one_percent_of_bad_rows_fails_a_write_that_keeps_none(shop: Shop) -> None:
    """Loudly, with counts and reasons; good rows are sent all the same."""
    said = shop.refusal(shop.orders(1000, BAD, partitions=3))

    assert (
        "RowsRefused: Error: 10 rows of 1,000 refused, the others are sent: delay is null (10)\n"
        "  fix: correct them and write them alone, or have such rows kept: option rejects=FOLDER"
    ) in said
    assert len(await_arrivals(shop.rabbit, "target", 990)) == 990


def test_a_write_that_fails_half_way_keeps_no_rejects(shop: Shop, tmp_path: Path) -> None:
    """It is done again, and would put the same rows aside twice."""
    dry = "if(id = 99, raise_error('the lake is dry'), if(id = 3, 'soon', '1s')) as delay"

    said = shop.refusal(shop.orders(100, dry, partitions=1), rejects=str(tmp_path), window="10")

    assert "the lake is dry" in said
    assert list(tmp_path.rglob("*.parquet")) == []
