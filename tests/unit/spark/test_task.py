"""One task against a simulated broker: what is sent, tried again, given up, put aside and written down."""

import gc
import threading
from collections.abc import Callable, Iterator
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
from delayctl.spark.journal import LATER, LEDGER, REJECTS, Fenced, Journal, Place
from delayctl.spark.pace import Pace
from delayctl.spark.task import Assignment, Blocks, Result, publish_rows
from delayctl.testing import SimulatedBroker
from delayctl.topology.errors import Unreachable
from delayctl.topology.parse import read_spec
from delayctl.topology.spec import Spec

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


def assigned(broker: SimulatedBroker, columns: Columns = COLUMNS, *, spec: Spec = SPEC, **options: Any) -> Assignment:
    """What a task on this broker is told."""
    brokers = brokers_at(broker.url)
    _, ways = known_ways(spec, {}, "", brokers)
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


def test_headers_that_amqp_has_no_names_for_are_a_bad_row(broker: SimulatedBroker, tmp_path: Path) -> None:
    """A map within the map of headers may have numbers for keys; its row is refused, and no other."""
    kind = pa.map_(pa.string(), pa.map_(pa.int32(), pa.string()))
    rows = batch("1", "2", headers=pa.array([[("h", [(1, "x")])], None], kind))

    result = publish_rows([rows], assigned(broker, Columns(COLUMNS.present | {"headers"})), journal(tmp_path))

    assert result.account == Account(rows=2, confirmed=1, rejected=1)
    assert table(tmp_path, REJECTS, "message_id", "reason") == [("1", "the message can't be sent: 1 is no text")]


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


class PassingTime:
    """A time that passes when somebody sleeps, and at once."""

    def __init__(self, on_sleep: Callable[[], object] = bool) -> None:
        self._on_sleep = on_sleep
        self.slept_s = 0.0

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.slept_s += seconds
        self._on_sleep()

    def monotonic(self) -> float:
        """So much has passed."""
        return self.slept_s


def test_a_queue_that_stays_full_is_waited_for_once(
    broker: SimulatedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many blocks there are: none begins to wait anew before the queue has taken something."""
    passing = PassingTime()
    monkeypatch.setattr(task, "time", passing)
    rows = batch(*map(str, range(23)), delay=["1h", "1m"] * 11 + ["1h"])

    result = publish_rows([rows], assigned(broker, window=2, full_wait_s=60), journal(tmp_path))

    assert result.account == Account(rows=23, confirmed=14, nacked=9)
    assert 60 < passing.slept_s < 70


MANY_QUEUES = """
version: 1
delay:
  levels: {1m: {}, 1h: {max_length: 80, overflow: reject-publish, shards: 2}}
  any: {unit: 1s, steps: 12, max_length: 20, overflow: reject-publish}
queues: {full: {arguments: {x-max-length: 2, x-overflow: reject-publish}}, work: {}}
routes: [{key: k, delay: 1m, to: work}, {key: full, delay: 1m, to: full}]
"""


@pytest.mark.parametrize(
    "columns",
    [
        {"delay": ["10s"] * 21 + ["30m", "10s"] * 10},
        {"delay": ["0s"] * 41, "routing_key": ["full", *["full", "k"] * 20]},
        {"delay": ["1h"] * 41},
    ],
    ids=["a step of the ladder", "a queue behind the exit", "a shard"],
)
def test_a_queue_that_stays_full_is_waited_for_once_whatever_others_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: dict[str, list[str]]
) -> None:
    """Also where they share an exchange with it."""
    passing = PassingTime()
    monkeypatch.setattr(task, "time", passing)
    spec = read_spec(MANY_QUEUES, {}, file="topology.yaml")

    with SimulatedBroker(spec) as broker:
        for _ in range(40):
            broker.publish("x", exchange="", key="delay.1h.1.queue")
        told = assigned(broker, spec=spec, window=2, full_wait_s=60)
        account = publish_rows([batch(*map(str, range(41)), **columns)], told, journal(tmp_path)).account

    assert (account.rows, account.confirmed + account.nacked) == (41, 41)
    assert min(account.confirmed, account.nacked) > 10
    assert 60 < passing.slept_s < 70


def stop(path: Path) -> None:
    """Ask the first run to come to an end."""
    Folder(str(path)).write_json("runs/0001.stop", {})


def fenced(path: Path) -> Journal:
    """The journal of a run that can be stopped."""
    return Journal(dict.fromkeys((LEDGER, REJECTS, LATER), Folder(str(path))), FIRST, is_fenced=True)


def test_a_slow_task_hears_a_stop_and_writes_down_what_is_confirmed_while_it_rests(
    broker: SimulatedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At one message in eight minutes, both would wait for minutes; what was next is left to the next run."""
    written: list[int] = []

    def look() -> None:
        until(lambda: len(broker.waiting("1m")) == 1, 10)
        written.append(len(table(tmp_path, LEDGER, "message_id")))
        if written[-1]:  # The broker has it before the task has heard so.
            stop(tmp_path)

    passing = PassingTime(look)
    monkeypatch.setattr(task, "time", passing)

    result = publish_rows([batch("1", "2", "3")], assigned(broker, rate=1 / 480), fenced(tmp_path))

    assert result == Result(Account(rows=1, confirmed=1), leaves_rows=True)
    assert (written[-1], ids_at(broker, "1m")) == (1, ["1"])
    assert passing.slept_s < 60


def test_a_stop_that_came_before_the_task_began_is_heard(broker: SimulatedBroker, tmp_path: Path) -> None:
    """Spark may have sorted for minutes; not a block is sent."""
    stop(tmp_path)

    result = publish_rows([batch("1", "2")], assigned(broker), fenced(tmp_path))

    assert result == Result(Account(), leaves_rows=True)
    assert ids_at(broker, "1m") == []


def test_a_task_of_a_run_that_is_over_sends_nothing(broker: SimulatedBroker, tmp_path: Path) -> None:
    """Spark begins it again and again, and each attempt would send a block."""
    Folder(str(tmp_path)).write_json("runs/0002.json", {})

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch("1")
        until(lambda: ids_at(broker, "1m") == ["1"], 10)

    with pytest.raises(Fenced):
        publish_rows(rows(), assigned(broker), fenced(tmp_path))

    assert ids_at(broker, "1m") == []


def test_a_stop_that_comes_when_all_is_sent_leaves_nothing(broker: SimulatedBroker, tmp_path: Path) -> None:
    """Such a run has gone through."""

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch("1", "2")
        stop(tmp_path)

    result = publish_rows(rows(), assigned(broker), fenced(tmp_path))

    assert result == Result(Account(rows=2, confirmed=2), leaves_rows=False)


def test_a_stop_is_heard_while_a_queue_is_full(
    broker: SimulatedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no room is left to the next run, as if it had not been read."""
    passing = PassingTime(lambda: stop(tmp_path))
    monkeypatch.setattr(task, "time", passing)
    rows = batch(*map(str, range(9)), delay=["1h"] * 9)

    result = publish_rows([rows], assigned(broker, window=2), fenced(tmp_path))

    assert result == Result(Account(rows=3, confirmed=3), leaves_rows=True)
    assert table(tmp_path, REJECTS, "message_id") == []
    assert passing.slept_s < 1


def test_what_is_sent_again_keeps_to_the_rate(
    broker: SimulatedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that was refused is one more message."""
    steps: list[int] = []
    monkeypatch.setattr(Pace, "step", lambda _pace: steps.append(1))
    broker.refuse_publishes(2)

    result = publish_rows([batch("1", "2", "3")], assigned(broker, rate=1000.0), journal(tmp_path))

    assert (result, len(steps)) == (Result(Account(rows=3, confirmed=3)), 5)


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
