"""`df.writeStream.format("delayctl")`: held back by a full queue, given bad rows and bad options."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.arrived import await_arrivals, take_all
from tests.support.order_stream import OrderStream
from tests.support.rabbit import Rabbit


@pytest.fixture
def shop(rabbit: Rabbit, topology: TopologyFile, tmp_path: Path) -> OrderStream:
    """A virtual host with the topology, and a folder from which orders stream."""
    return OrderStream(rabbit, topology, tmp_path)


def test_a_full_queue_holds_the_query_back_until_there_is_room(shop: OrderStream, spark: SparkSession) -> None:
    """The batch waits, and those behind it; when messages leave the queue it goes on, and none is lost."""
    shop.add("0.json", range(50), "1h")
    shop.add("1.json", range(50, 60), "1h")
    query = shop.start(spark)
    seen: list[str] = []

    shop.rabbit.await_ready("delay.1h.queue", 20, deadline=60)
    assert query.isActive

    def all_came() -> bool:
        seen.extend(each.message_id for each in take_all(shop.rabbit, "delay.1h.queue"))
        return len(set(seen)) == 60

    until(all_came, 60, what="all rows", every=0.1)
    query.awaitTermination(60)
    assert query.exception() is None
    assert sorted(map(int, seen)) == list(range(60))


def test_a_queue_that_stays_full_ends_the_query(shop: OrderStream, spark: SparkSession) -> None:
    """After the wait that was allowed, with what to do; begun again when there is room it goes on where it was."""
    shop.add("0.json", range(30), "1h")

    with pytest.raises(StreamingQueryException) as caught:
        shop.start(spark, full_wait="0s").awaitTermination(60)
    assert "Error: 10 rows of 30 refused, the others are sent: " in str(caught.value)

    first = {each.message_id for each in take_all(shop.rabbit, "delay.1h.queue")}
    query = shop.start(spark)
    shop.rabbit.await_ready("delay.1h.queue", 20, deadline=60)
    rest = {each.message_id for each in await_arrivals(shop.rabbit, "delay.1h.queue", 30)}
    query.awaitTermination(60)
    assert first < rest == {str(number) for number in range(30)}


def test_bad_rows_are_kept_and_the_query_goes_on(shop: OrderStream, spark: SparkSession) -> None:
    """Those of every batch stand in the folder, each once."""
    rejects = shop.folder / "kept"
    for number, delay in enumerate(("200ms", "soon", None)):
        shop.add(f"{number}.json", range(number * 10, number * 10 + 10), delay)

    shop.start(spark, rejects=str(rejects)).awaitTermination(60)

    assert len(await_arrivals(shop.rabbit, "target", 10)) == 10
    kept = spark.read.parquet(str(rejects / "rejects")).collect()
    assert sorted((int(row.message_id), row.reason) for row in kept) == [
        *((number, "'soon' is not a delay") for number in range(10, 20)),
        *((number, "delay is null") for number in range(20, 30)),
    ]


def test_bad_rows_that_are_kept_nowhere_end_the_query(shop: OrderStream, spark: SparkSession) -> None:
    """With how many, why, and what to do."""
    shop.add("0.json", range(5), "soon")

    with pytest.raises(StreamingQueryException) as caught:
        shop.start(spark).awaitTermination(60)

    assert (
        "Error: 5 rows of 5 refused, the others are sent: 'soon' is not a delay (5)\n"
        "  fix: correct them and write them alone, or have such rows kept: option rejects=FOLDER"
    ) in str(caught.value)


def test_what_can_not_work_ends_the_query_before_a_row_is_sent(shop: OrderStream, spark: SparkSession) -> None:
    """A wrong option is told as it is for a batch."""
    shop.add("0.json", range(5))

    with pytest.raises(StreamingQueryException) as caught:
        shop.start(spark, key="customer").awaitTermination(60)

    assert "Error: the key column 'customer' is not there\n  fix: name a column that identifies a row" in str(
        caught.value
    )
    assert take_all(shop.rabbit, "target") == []
