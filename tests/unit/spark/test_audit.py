"""delayctl audit on ledgers and records made by hand: each message is what it was made to be."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from delayctl.spark.audit import Audit, Bar, Broken, Lateness, LevelTally, Lying, Records, Rules, Shown, Tally, Timeline
from delayctl.spark.audit_inputs import Seen, read_ledger, read_records
from delayctl.spark.audit_job import audit
from delayctl.spark.audit_judge import judged
from delayctl.spark.folder import Folder, Part
from delayctl.spark.journal import REJECTS, REJECTS_SCHEMA
from delayctl.topology.errors import DelayctlError
from pyspark.sql import SparkSession

from tests.support.audited import MINUTE, START, as_table, came, sent, write_ledger, write_record

HOUR = 60 * MINUTE
RULES = Rules(moment=START + HOUR)


@pytest.fixture
def audited(spark: SparkSession, tmp_path: Path) -> Any:
    """Audits rows of a ledger and deliveries."""

    def run(
        rows: list[dict[str, Any]], deliveries: list[dict[str, Any]], rules: Rules = RULES, **options: Any
    ) -> Audit:
        ledger = write_ledger(tmp_path / "checkpoint", rows)
        return audit(spark, ledger, [write_record(tmp_path / "records", deliveries)], rules, **options)

    return run


def test_every_class_at_once(audited: Any) -> None:
    """Messages of each kind over several levels: all counts, percentiles, bars and stretches are exact."""
    rows = [
        sent("in time"),
        sent("lost"),
        sent("only just expected", due=HOUR - 1_000),
        sent("waits", due=2 * HOUR),
        sent("twice"),
        sent("early"),
        sent("late"),
        sent("overdue", level=None, due=-HOUR, expected=0),
        sent("drained"),
        sent("in time"),
        sent("lost later", level="5m", due=20 * MINUTE),
        sent("night", level="night", due=2 * HOUR),
    ]
    deliveries = [
        came("in time"),
        came("twice", MINUTE + 20),
        came("twice", MINUTE + 900),
        came("early", 30_000),
        came("late", 3 * MINUTE),
        came("overdue", 40, level=None),
        came("nobody knows it"),
        came("late", 4 * MINUTE, attempt=1),
        came("twice", MINUTE + 30, redelivered=True),
        came("drained", 9 * MINUTE, drained=True),
        came(None),
    ]

    found = audited(rows, deliveries)

    some_late, hour_late = [2 * MINUTE] * 4, [HOUR, HOUR, HOUR, HOUR + 40]  # Three digits, but for the latest.
    of_1m = {"duplicated": 1, "extra_copies": 2, "given_again": 1, "early": 1, "late": 1, "before_due": 1}
    assert found == Audit(
        RULES,
        ledger_rows=12,
        total=Tally(
            messages=11, delivered=5, untaken=1, lost=2, waiting=3, measured=5, **of_1m,
            after_due=Lateness(20, *hour_late), after_expected=Lateness(20, *some_late),
        ),
        levels=(
            LevelTally(
                None,
                Tally(
                    messages=1, delivered=1, measured=1,
                    after_due=Lateness(HOUR, *hour_late), after_expected=Lateness(*[40] * 5),
                ),
            ),
            LevelTally(
                "1m",
                Tally(
                    messages=8, delivered=4, untaken=1, lost=1, waiting=2, measured=4, **of_1m,
                    after_due=Lateness(10, *some_late), after_expected=Lateness(10, *some_late),
                ),
            ),
            LevelTally("5m", Tally(messages=1, lost=1)),
            LevelTally("night", Tally(messages=1, waiting=1)),
        ),
        unknown=1,
        records=Records(
            files=1, deliveries=10, retries=1, drained=1, without_id=1, first=START + 40, last=START + 4 * MINUTE
        ),
        lost_after_last_record=1,
        bars=found.bars,
        timeline=found.timeline,
    )  # fmt: skip
    assert [(bar.level, bar.count) for bar in found.bars] == [(None, 1), ("1m", 1), ("1m", 1), ("1m", 1), ("1m", 1)]
    assert found.bars[1] == Bar("1m", float("-inf"), 0.0, 1)
    assert found.bars[2].start <= 10 < found.bars[2].end
    assert found.timeline.width == 10_000
    assert (sum(found.timeline.expected), sum(found.timeline.delivered), sum(found.timeline.lost)) == (7, 5, 2)
    assert (found.timeline.lost[6], found.timeline.lost[120]) == (1, 1)
    assert not found.is_clean


def test_nothing_wrong(audited: Any) -> None:
    """All came, in time and once."""
    found = audited([sent("a"), sent("b")], [came("a"), came("b")])

    assert found.is_clean
    assert (found.total.delivered, found.total.late, found.unknown) == (2, 0, 0)
    assert found.timeline == Timeline(START + MINUTE, 1, (2, *[0] * 10), (*[0] * 10, 2), (0,) * 11)


def test_shown_and_written(audited: Any, tmp_path: Path) -> None:
    """The first of each kind in the order they were expected; each kind in a folder, which is not overwritten."""
    rows = [sent(f"lost {number}", due=MINUTE + number) for number in (3, 1, 2)]
    deliveries = [came("twice"), came("twice"), came("early", 1), came("unknown")]
    tables = tmp_path / "tables"

    found = audited(
        [*rows, sent("twice"), sent("early")], deliveries, show=("lost", "duplicated"), limit=2, write=str(tables)
    )

    due = START + MINUTE
    assert found.shown == (
        Shown("lost", "lost 1", "1m", due + 1, due + 1, None, 0),
        Shown("lost", "lost 2", "1m", due + 2, due + 2, None, 0),
        Shown("duplicated", "twice", "1m", due, due, due + 10, 2),
    )
    assert {each.name: sorted(pq.read_table(each)["message_id"].to_pylist()) for each in tables.iterdir()} == {
        "lost": ["lost 1", "lost 2", "lost 3"],
        "untaken": [],
        "duplicated": ["twice"],
        "early": ["early"],
        "late": [],
        "unknown": ["unknown"],
    }
    with pytest.raises(DelayctlError, match="the table is there already"):
        audited([sent("a")], [came("a")], write=str(tables))


@dataclass(frozen=True)
class Case:
    """What was sent and what came of one message, and all that is true of it then."""

    rows: list[dict[str, Any]]
    deliveries: list[dict[str, Any]]
    judgement: set[str]
    lateness: int | None = None
    figures: dict[str, Any] = field(default_factory=dict)


def tried(message_id: str, *attempts: int) -> list[dict[str, Any]]:
    """Deliveries of one message, five seconds apart."""
    return [came(message_id, MINUTE + 10 + 5_000 * attempt, attempt=attempt) for attempt in attempts]


_IN = {"sent", "delivered", "measured"}
_UP: dict[str, Any] = {"due": MINUTE, "expected": 5 * MINUTE}
_DOWN: dict[str, Any] = {"due": 5 * MINUTE, "expected": MINUTE}
CASES = {
    "in time": Case([sent("in time")], [came("in time")], _IN, 10),
    "early by no more than clocks differ": Case([sent("e")], [came("e", MINUTE - 100)], _IN, -100),
    "early": Case([sent("f")], [came("f", MINUTE - 101)], _IN | {"early", "before_due"}, -101),
    "as late as it may be": Case([sent("g")], [came("g", MINUTE + 1_000)], _IN, 1_000),
    "late": Case([sent("h")], [came("h", MINUTE + 1_001)], _IN | {"late"}, 1_001),
    "rounded up": Case([sent("i", **_UP)], [came("i", 5 * MINUTE + 7)], _IN, 7, {"after_due": 4 * MINUTE + 7}),
    "rounded down": Case([sent("j", **_DOWN)], [came("j", MINUTE + 7)], _IN | {"before_due"}, 7),
    "lost since this moment": Case([sent("k", due=HOUR - MINUTE)], [], {"sent", "lost"}),
    "a moment before it is lost": Case([sent("l", due=HOUR - MINUTE + 1)], [], {"sent", "waiting"}),
    "retried": Case([sent("m")], tried("m", 2, 0, 1), _IN, 10, {"extra": 0, "deliveries": 3, "copies": 1}),
    "recorded from its second attempt on": Case([sent("n")], tried("n", 2, 1), _IN | {"late"}, 5_010, {"extra": 0}),
    "twice": Case([sent("o")], tried("o", 0, 0), _IN | {"duplicated"}, 10, {"extra": 1, "given_again": 0}),
    "twice and retried": Case([sent("p")], tried("p", 0, 0, 1, 1), _IN | {"duplicated"}, 10, {"extra": 1}),
    "given again by the broker": Case(
        [sent("q")], [came("q"), came("q", redelivered=True)], _IN | {"duplicated"}, 10, {"extra": 1, "given_again": 1}
    ),
    "given out in vain, then handled once": Case(
        [sent("r")], [came("r", redelivered=True)], _IN, 10, {"extra": 0, "given_again": 0}
    ),
    "in two queues": Case(
        [sent("s")], [came("s", MINUTE + 30), came("s", MINUTE + 20, queue="other.queue")], _IN, 20, {"extra": 0}
    ),
    "twice in the ledger": Case(
        [sent("t", level="5m", due=5 * MINUTE), sent("t")], [came("t")], _IN, 10, {"level": "1m", "rows": 2}
    ),
    "sent by a task that was killed, and again": Case(
        [sent("y", due=20 * MINUTE)],
        [came("y"), came("y", 20 * MINUTE)],
        _IN | {"duplicated", "before_due"},
        -19 * MINUTE + 10,
    ),
    "confirmed twice, and early": Case(
        [sent("z"), sent("z")], [came("z", 5), came("z")], _IN | {"duplicated", "early", "before_due"}, 5 - MINUTE
    ),
    "expedited": Case(
        [sent("ex")], [came("ex", 5, expedited=True)], {"sent", "delivered", "expedited"}, None, {"after_due": None}
    ),
    "expedited, and retried in its time": Case(
        [sent("er")],
        [came("er", 5, expedited=True), came("er", 5_000, attempt=1)],
        {"sent", "delivered", "expedited"},
        None,
        {"extra": 0, "deliveries": 2},
    ),
    "drained": Case([sent("u")], [came("u", 20 * MINUTE, drained=True)], {"sent", "untaken"}),
    "drained too early": Case([sent("v")], [came("v", 1, drained=True)], {"sent", "untaken", "early", "before_due"}),
    "consumed and drained": Case([sent("w")], [came("w"), came("w", HOUR, queue="dlq", drained=True)], _IN, 10),
    "unknown": Case([], [came("x")], {"unknown"}),
    "drained, and unknown": Case([], [came("xd", drained=True)], set()),
}


@pytest.fixture(scope="module")
def judgements(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """All cases in one ledger and one record, judged together; by message id."""
    folder = tmp_path_factory.mktemp("cases")
    ledger = write_ledger(folder / "checkpoint", [row for case in CASES.values() for row in case.rows])
    record = write_record(folder / "records", [each for case in CASES.values() for each in case.deliveries])
    found = judged(read_ledger(spark, ledger), read_records(spark, [record]).deliveries(), RULES).collect()
    return {row["message_id"]: row.asDict() for row in found}


@pytest.mark.parametrize("name", CASES)
def test_a_message_is(name: str, judgements: dict[str, dict[str, Any]]) -> None:
    """What it was made to be, and nothing else."""
    case = CASES[name]
    (message_id,) = {each["message_id"] for each in (*case.rows, *case.deliveries)}

    found = judgements[message_id]

    assert {flag.removeprefix("is_") for flag, value in found.items() if value is True} - {"drained"} == case.judgement
    assert found["after_expected"] == case.lateness
    assert {figure: found[figure] for figure in case.figures} == case.figures


def test_what_lies_in_a_queue_is_not_delivered(audited: Any) -> None:
    """What no consumer recorded is untaken, however long it has been there; what one did is delivered, and told as well."""
    rows = [sent("done"), sent("given up"), sent("unrouted"), sent("not expected yet", due=2 * HOUR), sent("lost")]
    seen = [
        Seen("given up", "dlq", 1, START + HOUR),
        Seen("unrouted", "delay.unrouted.queue", 0, START + HOUR),
        Seen("not expected yet", "delay.unrouted.queue", 0, START + HOUR),
        Seen("of somebody else", "delay.unrouted.queue", 0, START + HOUR),
        Seen(None, "dlq", 0, START + HOUR),
    ]

    found = audited(rows, [came("done"), came("given up")], seen=seen)

    total = found.total
    assert (total.delivered, total.untaken, total.lost, total.waiting, total.early) == (2, 2, 1, 0, 1)
    assert found.lying == (Lying("delay.unrouted.queue", 2, 2), Lying("dlq", 1, 0))
    assert (found.unknown, found.records.deliveries, found.records.last) == (0, 2, START + MINUTE + 10)
    assert not found.is_clean


def test_queues_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Where nobody recorded anything, what lies in a queue is all that is known."""
    ledger = write_ledger(tmp_path / "checkpoint", [sent("a"), sent("b")])

    found = audit(spark, ledger, [], RULES, seen=[Seen("a", "orders.queue", 0, START + HOUR)])

    assert (found.total.untaken, found.total.lost, found.records) == (1, 1, Records())
    assert not found.is_clean


class TestRecords:
    """What may be in a folder of records."""

    def test_broken_lines(self, audited: Any, tmp_path: Path) -> None:
        """They are counted by file, and the rest is used, also in folders and Parquet; empty lines are nothing."""
        records = tmp_path / "records"
        write_record(records, [came("b")], name="good.ndjson")
        half = '{"message_id": "a", "queue": "q", "received_at": 17633'
        lines = [half, "", "nonsense", "[]", '{"message_id": "a"}', '{"message_id": "a", "received_at": "soon"}']
        (records / "bad one.ndjson").write_text("\n".join(lines), encoding="utf-8")

        write_record(records / "host", [came("c")], name="deep.jsonl")
        pq.write_table(
            as_table([came("d", drained=False), {**came("e"), "received_at": None}]), records / "host/d.parquet"
        )

        found = audited([sent(name) for name in "abcd"], [came("a")])

        assert (found.total.delivered, found.records.files, found.records.broken) == (4, 5, 6)
        assert found.records.broken_files == (
            Broken(str(records / "bad one.ndjson"), 5),
            Broken(str(records / "host/d.parquet"), 1),
        )


class TestTrouble:
    """What can be wrong is said with a fix."""

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> str:
        """A good one."""
        return write_ledger(tmp_path / "checkpoint", [sent("a")])

    @pytest.fixture
    def record(self, tmp_path: Path) -> str:
        """A good one."""
        return write_record(tmp_path / "records", [came("a")])

    def test_no_ledger(self, spark: SparkSession, record: str, tmp_path: Path) -> None:
        """The folder is not there."""
        with pytest.raises(DelayctlError, match="there is no ledger"):
            audit(spark, str(tmp_path / "none"), [record], RULES)

    def test_an_empty_ledger(self, spark: SparkSession, record: str, tmp_path: Path) -> None:
        """A checkpoint of a backfill that confirmed nothing."""
        (tmp_path / "new" / "ledger").mkdir(parents=True)

        with pytest.raises(DelayctlError, match="the ledger is empty"):
            audit(spark, str(tmp_path / "new"), [record], RULES)

    def test_a_run_that_only_refused(self, spark: SparkSession, record: str, tmp_path: Path) -> None:
        """A checkpoint has runs and rejects, and no ledger: nothing is wrong with it but that."""
        folder = Folder(str(tmp_path / "refused"))
        folder.write_json("runs/0001.json", {"state": "done"})
        folder.write_part(REJECTS, Part(1, 0, 0, 0, 1), [{"message_id": "a"}], REJECTS_SCHEMA)

        with pytest.raises(DelayctlError, match="the ledger is empty: nothing was confirmed"):
            audit(spark, str(tmp_path / "refused"), [record], RULES)

    def test_names_with_brackets(self, spark: SparkSession, tmp_path: Path) -> None:
        """They are names, and no patterns; a pattern is one all the same."""
        ledger = write_ledger(tmp_path / "run[1]", [sent("a")])
        record = write_record(tmp_path / "records {2}", [came("a")])

        assert audit(spark, ledger, [record], RULES).is_clean
        assert audit(spark, str(tmp_path / "run*"), [str(tmp_path / "rec*")], RULES).is_clean

    def test_no_ledger_at_all(self, spark: SparkSession, record: str, tmp_path: Path) -> None:
        """Parquet files of another kind."""
        pq.write_table(as_table([came("a")]), tmp_path / "other.parquet")

        with pytest.raises(DelayctlError, match="not a ledger: due_at, expected_at missing"):
            audit(spark, str(tmp_path / "other.parquet"), [record], RULES)

    def test_a_ledger_of_text(self, spark: SparkSession, record: str, tmp_path: Path) -> None:
        """A time that is none."""
        rows = [{"message_id": "a", "level": "1m", "due_at": "soon", "expected_at": "later"}]
        pq.write_table(as_table(rows), tmp_path / "other.parquet")

        with pytest.raises(DelayctlError, match="column 'due_at' is of type string, not a time"):
            audit(spark, str(tmp_path / "other.parquet"), [record], RULES)

    def test_no_record(self, spark: SparkSession, ledger: str, tmp_path: Path) -> None:
        """The folder is not there."""
        with pytest.raises(DelayctlError, match="there is no record"):
            audit(spark, ledger, [str(tmp_path / "none")], RULES)

    def test_an_empty_record(self, spark: SparkSession, ledger: str, tmp_path: Path) -> None:
        """An empty file is no proof that everything was lost."""
        with pytest.raises(DelayctlError, match="the record is empty"):
            audit(spark, ledger, [write_record(tmp_path / "empty", [])], RULES)

    def test_nothing_but_nonsense(self, spark: SparkSession, ledger: str, tmp_path: Path) -> None:
        """The broken lines are counted in the error."""
        (tmp_path / "bad.ndjson").write_text("x\ny\n", encoding="utf-8")

        with pytest.raises(DelayctlError, match="the record is empty: 2 broken lines"):
            audit(spark, ledger, [str(tmp_path / "bad.ndjson")], RULES)

    def test_the_ledger_for_a_record(self, spark: SparkSession, ledger: str) -> None:
        """Mixed up."""
        with pytest.raises(DelayctlError, match="no records: they have no received_at"):
            audit(spark, ledger, [ledger], RULES)
