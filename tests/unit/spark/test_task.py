"""One task against a simulated broker: what is sent, tried again, given up, put aside and written down."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delayctl.publishers.errors import ConnectionLost
from delayctl.publishers.known import brokers_at, known_ways
from delayctl.publishers.publisher import DelayPublisher
from delayctl.spark import task
from delayctl.spark.account import Account
from delayctl.spark.columns import Columns
from delayctl.spark.folder import Folder
from delayctl.spark.journal import LATER, LEDGER, REJECTS, Journal, Place
from delayctl.spark.task import Assignment, Blocks, Result, publish_rows
from delayctl.testing import SimulatedBroker
from delayctl.topology.errors import Unreachable
from delayctl.topology.parse import read_spec

from testbed.wait import until

TOPOLOGY = """
version: 1
delay:
  levels: {1m: {}, 15m: {}, 1h: {max_length: 3, overflow: reject-publish}}
exchanges: {orders: {type: topic}}
routes: [{key: k, delay: 1m, to: work}]
"""
SPEC = read_spec(TOPOLOGY, {}, file="topology.yaml")
COLUMNS = Columns(frozenset({"message_id", "body", "routing_key", "delay"}))
FIRST = Place(1, 0, 0)


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    """A broker in this process."""
    with SimulatedBroker(SPEC) as running:
        yield running


def batch(*ids: str, **columns: Any) -> pa.RecordBatch:
    """Rows with these ids, alike but for them."""
    count = len(ids)
    parts = {"message_id": list(ids), "body": ["b"] * count, "routing_key": ["k"] * count, "delay": ["1m"] * count}
    return pa.record_batch({**parts, **columns})


def assigned(broker: SimulatedBroker, columns: Columns = COLUMNS, **options: Any) -> Assignment:
    """What a task on this broker is told."""
    brokers = brokers_at(broker.url)
    _, ways = known_ways(SPEC, {}, "", brokers)
    return Assignment(tuple(brokers), ways, columns, **options)


def journal(path: Path, place: Place = FIRST, *tables: str) -> Journal:
    """A journal that keeps these tables, or all."""
    return Journal(dict.fromkeys(tables or (LEDGER, REJECTS, LATER), Folder(str(path))), place)


def table(path: Path, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table, in the order in which they were written."""
    rows = [row for file in sorted((path / name).glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return [tuple(row[column] for column in columns) for row in rows]


def ids_at(broker: SimulatedBroker, level: str) -> list[str]:
    """The ids of the messages that wait at a level."""
    return [str(message.message_id) for message in broker.waiting(level)]


def test_rows_become_messages_and_lines_of_the_ledger(broker: SimulatedBroker, tmp_path: Path) -> None:
    """Block by block; what is confirmed stands in the ledger with when it is due and when it is expected."""
    ids = [str(number) for number in range(7)]

    result = publish_rows(iter([batch(*ids[:4]), batch(*ids[4:])]), assigned(broker, window=3), journal(tmp_path))

    assert result == Result(Account(rows=7, confirmed=7))
    assert ids_at(broker, "1m") == ids
    assert [path.name for path in sorted((tmp_path / LEDGER).iterdir())] == [
        "0001-00000-0-000000-3.parquet",
        "0001-00000-0-000001-3.parquet",
        "0001-00000-0-000002-1.parquet",
    ]
    assert table(tmp_path, LEDGER, "message_id", "routing_key", "exchange", "level", "run", "partition") == [
        (each, "k", "delay.1m.exchange", "1m", 1, 0) for each in ids
    ]
    for due, sent, confirmed, expected in table(tmp_path, LEDGER, "due_at", "sent_at", "confirmed_at", "expected_at"):
        assert (due, (expected - sent).total_seconds()) == (expected, 60)
        assert sent <= confirmed


def test_overdue_rows_are_there_at_once(broker: SimulatedBroker, tmp_path: Path) -> None:
    """What is due already goes to the exit and waits nowhere; the ledger has no level for it."""
    result = publish_rows([batch("1", delay=["0s"])], assigned(broker), journal(tmp_path))

    assert result == Result(Account(rows=1, confirmed=1))
    assert [message.message_id for message in broker.messages("work")] == ["1"]
    assert table(tmp_path, LEDGER, "level", "exchange") == [(None, "delay.exchange")]


def test_bad_rows_are_put_aside_with_their_reasons(broker: SimulatedBroker, tmp_path: Path) -> None:
    """Each is counted, told apart by its reason, and kept as it was; the others are sent."""
    rows = batch("1", "2", "3", "4", body=["b", None, "b", "b"], delay=["1m", "1m", "soon", "2h"])

    result = publish_rows([rows], assigned(broker), journal(tmp_path))

    reasons = ["body is null", "'soon' is not a delay", "due later than the longest level (1h) waits"]
    assert result == Result(Account(rows=4, confirmed=1, rejected=3), tuple((reason, 1) for reason in reasons))
    assert ids_at(broker, "1m") == ["1"]
    assert table(tmp_path, REJECTS, "message_id", "reason", "row") == [
        ("2", reasons[0], '{"message_id":"2","body":null,"routing_key":"k","delay":"1m"}'),
        ("3", reasons[1], '{"message_id":"3","body":"b","routing_key":"k","delay":"soon"}'),
        ("4", reasons[2], '{"message_id":"4","body":"b","routing_key":"k","delay":"2h"}'),
    ]


def test_what_amqp_has_no_room_for_is_a_bad_row(broker: SimulatedBroker, tmp_path: Path) -> None:
    """A routing key of 256 bytes is refused before it is sent, and harms no other row."""
    result = publish_rows([batch("1", "2", routing_key=["x" * 256, "k"])], assigned(broker), journal(tmp_path))

    assert result.account == Account(rows=2, confirmed=1, rejected=1)
    ((reason,),) = table(tmp_path, REJECTS, "reason")
    assert reason.startswith("the message can't be sent: ")


DUE = Columns(frozenset({"message_id", "body", "routing_key", "due_at"}))


def due(*times_ms: int) -> dict[str, Any]:
    """A column of due times."""
    return {"due_at": pa.array(list(times_ms), pa.timestamp("ms", "UTC"))}


def test_rows_due_beyond_the_longest_level_are_put_aside_for_later(broker: SimulatedBroker, tmp_path: Path) -> None:
    """Where a table is kept for them; they are no rejects."""
    far = 4_000_000_000_000
    rows = batch("1", "2", **due(0, far)).drop_columns(["delay"])

    result = publish_rows([rows], assigned(broker, DUE), journal(tmp_path))

    assert result == Result(Account(rows=2, confirmed=1, later=1))
    assert table(tmp_path, LATER, "message_id", "row") == [
        ("2", '{"message_id":"2","body":"b","routing_key":"k","due_at":"2096-10-02T07:06:40.000Z"}')
    ]


def test_rows_due_beyond_the_longest_level_are_rejected_where_no_table_is_kept(
    broker: SimulatedBroker, tmp_path: Path
) -> None:
    """They are refused, and counted."""
    rows = batch("1", **due(4_000_000_000_000)).drop_columns(["delay"])

    result = publish_rows([rows], assigned(broker, DUE), journal(tmp_path, FIRST, REJECTS))

    assert result.account == Account(rows=1, rejected=1)


def test_tables_are_written_while_nothing_but_bad_rows_come(broker: SimulatedBroker, tmp_path: Path) -> None:
    """Rows that are put aside do not pile up in memory."""
    rows = batch(*map(str, range(10)), body=[None] * 10)

    publish_rows([rows], assigned(broker, window=4), journal(tmp_path))

    assert [path.name for path in sorted((tmp_path / REJECTS).iterdir())] == [
        "0001-00000-0-000000-4.parquet",
        "0001-00000-0-000001-4.parquet",
        "0001-00000-0-000002-2.parquet",
    ]


def test_large_messages_make_small_blocks(
    broker: SimulatedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block is written down when it has many bytes, however few messages these are."""
    monkeypatch.setattr(task, "_MOST_BYTES", 1000)

    publish_rows([batch("1", "2", "3", body=["x" * 1000] * 3)], assigned(broker), journal(tmp_path))

    assert len(list((tmp_path / LEDGER).iterdir())) == 3


def test_what_an_earlier_attempt_has_confirmed_is_skipped(broker: SimulatedBroker, tmp_path: Path) -> None:
    """A retried task sends what is missing and nothing twice."""
    publish_rows([batch("1", "2")], assigned(broker), journal(tmp_path))

    result = publish_rows([batch("1", "2", "3")], assigned(broker), journal(tmp_path, Place(1, 0, 1)))

    assert result == Result(Account(rows=3, confirmed=1, skipped=2))
    assert ids_at(broker, "1m") == ["1", "2", "3"]


def test_messages_that_no_queue_takes_are_returned(broker: SimulatedBroker, tmp_path: Path) -> None:
    """They are counted and kept, and the task goes on."""
    columns = Columns(frozenset({"message_id", "body", "routing_key", "exchange"}))
    rows = batch("1", "2", exchange=["orders", "orders"], routing_key=["nobody", "k"]).drop_columns(["delay"])

    result = publish_rows([rows], assigned(broker, columns), journal(tmp_path))

    assert result.account == Account(rows=2, returned=2)
    assert [row[0] for row in table(tmp_path, REJECTS, "message_id")] == ["1", "2"]


def test_an_exchange_that_is_gone_is_told_as_such(broker: SimulatedBroker, tmp_path: Path) -> None:
    """A row may name an exchange that nobody has declared."""
    columns = Columns(frozenset({"message_id", "body", "routing_key", "exchange"}))
    rows = batch("1", exchange=["missing"]).drop_columns(["delay"])

    result = publish_rows([rows], assigned(broker, columns), journal(tmp_path))

    assert result.account == Account(rows=1, returned=1)


def test_what_is_refused_is_tried_again_until_there_is_room(broker: SimulatedBroker, tmp_path: Path) -> None:
    """A queue that is full for a moment costs a moment, and no message."""
    broker.refuse_publishes(2)

    result = publish_rows([batch("1", "2", "3")], assigned(broker), journal(tmp_path))

    assert result == Result(Account(rows=3, confirmed=3))
    assert sorted(ids_at(broker, "1m")) == ["1", "2", "3"]
    assert sorted(table(tmp_path, LEDGER, "message_id")) == [("1",), ("2",), ("3",)]


def test_what_stays_refused_is_given_up(broker: SimulatedBroker, tmp_path: Path) -> None:
    """After the time that was allowed; what had room is there, and the rest is kept."""
    rows = batch("1", "2", "3", "4", "5", delay=["1h"] * 5)

    result = publish_rows([rows], assigned(broker, full_wait_s=0), journal(tmp_path))

    assert result.account == Account(rows=5, confirmed=3, nacked=2)
    assert ids_at(broker, "1h") == ["1", "2", "3"]
    assert [row[0] for row in table(tmp_path, REJECTS, "message_id")] == ["4", "5"]
    assert table(tmp_path, LEDGER, "message_id") == [("1",), ("2",), ("3",)]


def test_nobody_to_connect_to_is_an_error(tmp_path: Path) -> None:
    """A task without a broker says so; nothing is written."""
    with SimulatedBroker(SPEC) as broker:
        told = assigned(broker)

    with pytest.raises(Unreachable):
        publish_rows([batch("1")], told, journal(tmp_path))

    assert list(tmp_path.iterdir()) == []


@contextmanager
def blocks(broker: SimulatedBroker, path: Path, **options: Any) -> Iterator[tuple[Blocks, DelayPublisher]]:
    """Blocks with a publisher that gives up at once."""
    told = assigned(broker, **options)
    publisher = DelayPublisher(told.brokers, topology=told.ways, give_up_after_s=0)
    try:
        yield Blocks(told, journal(path), publisher, frozenset()), publisher
    finally:
        task._close(publisher)


def test_when_the_broker_goes_the_ledger_has_what_was_confirmed(broker: SimulatedBroker, tmp_path: Path) -> None:
    """The task fails; what the broker had confirmed by then is written down, and nothing else."""

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch("1", "2", "3")
        until(lambda: publisher.unanswered == 0, 10)
        away.__enter__()
        yield batch("4", "5")

    away = broker.away()
    with blocks(broker, tmp_path, window=2) as (given, publisher):
        with pytest.raises(ConnectionLost):
            task._publish(rows(), given)
        away.__exit__(None, None, None)

    assert table(tmp_path, LEDGER, "message_id") == [("1",), ("2",), ("3",)]
    assert ids_at(broker, "1m") == ["1", "2", "3"]


def test_a_source_that_fails_leaves_the_ledger_right(broker: SimulatedBroker, tmp_path: Path) -> None:
    """What was sent and confirmed before rows could not be read any more is written down."""

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch("1", "2")
        until(lambda: publisher.unanswered == 0, 10)
        raise OSError("the lake is dry")

    with blocks(broker, tmp_path) as (given, publisher), pytest.raises(OSError, match="the lake is dry"):
        task._publish(rows(), given)

    assert table(tmp_path, LEDGER, "message_id") == [("1",), ("2",)]


def test_a_connection_that_breaks_is_made_again(broker: SimulatedBroker, tmp_path: Path) -> None:
    """What was not confirmed is sent again, with the same ids; none is lost."""

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch(*map(str, range(50)))
        broker.drop_connections()
        yield batch(*map(str, range(50, 100)))

    result = publish_rows(rows(), assigned(broker, window=20), journal(tmp_path))

    assert result == Result(Account(rows=100, confirmed=100))
    assert set(ids_at(broker, "1m")) == set(map(str, range(100)))


def test_no_connection_and_no_thread_is_left_behind(broker: SimulatedBroker, tmp_path: Path) -> None:
    """Whether it ends well or not."""

    def fail() -> Iterator[pa.RecordBatch]:
        yield batch("1")
        raise OSError("the lake is dry")

    before = set(threading.enumerate())

    publish_rows([batch("1")], assigned(broker), journal(tmp_path))
    with pytest.raises(OSError, match="the lake is dry"):
        publish_rows(fail(), assigned(broker), journal(tmp_path, Place(2, 0, 0)))

    until(lambda: not [each for each in set(threading.enumerate()) - before if "publisher" in each.name], 10)


def test_at_most_two_blocks_are_not_in_the_ledger(broker: SimulatedBroker, tmp_path: Path) -> None:
    """The bound on what a killed task can make come twice: whenever a row is read, all but two blocks are written."""
    unwritten: list[int] = []

    def rows() -> Iterator[pa.RecordBatch]:
        for number in range(40):
            unwritten.append(number - len(table(tmp_path, LEDGER, "message_id")))
            yield batch(str(number))

    publish_rows(rows(), assigned(broker, window=5), journal(tmp_path))

    assert max(unwritten) == 10


def test_the_garbage_collector_is_as_before_when_a_task_is_over(broker: SimulatedBroker, tmp_path: Path) -> None:
    """It is slowed down for the task alone: the process serves others afterwards."""
    during: list[int] = []

    def rows() -> Iterator[pa.RecordBatch]:
        during.append(gc.get_threshold()[0])
        yield batch("1")

    before = gc.get_threshold()

    publish_rows(rows(), assigned(broker), journal(tmp_path))

    assert during[0] > before[0]
    assert gc.get_threshold() == before
