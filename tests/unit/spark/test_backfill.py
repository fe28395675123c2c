"""How a backfill ends when somebody wants it to, or something goes wrong; and so from Spark's tasks to a simulated broker."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from delayctl.publishers.known import brokers_at, known_ways
from delayctl.spark.account import Account
from delayctl.spark.backfill import run_backfill, see_through
from delayctl.spark.backfill_job import BackfillJob
from delayctl.spark.checkpoint import Checkpoint
from delayctl.spark.columns import Columns
from delayctl.spark.folder import Folder, FolderUnreadable, Part
from delayctl.spark.journal import LATER, REJECTS, SCHEMAS
from delayctl.spark.origin import Origin
from delayctl.spark.outcome import Outcome
from delayctl.spark.session import Interrupts
from delayctl.spark.task import Assignment
from delayctl.testing import SimulatedBroker
from delayctl.topology.errors import DelayctlError
from delayctl.topology.parse import read_spec
from pyspark.sql import SparkSession

from testbed.wait import until

SPEC = read_spec(
    "version: 1\ndelay: {levels: [1h]}\nroutes: [{key: k, delay: 1h, to: work}]\n", {}, file="topology.yaml"
)
JOB = BackfillJob(Origin("parquet", "orders"), ("order_id",), "k", level="level")
COLUMNS = Columns(frozenset({"message_id", "body", "routing_key", "level", "reject_reason"}))
ROWS = 3_000


class Meddler:
    """Watches a backfill, and does something each time that it hears of confirmed messages."""

    def __init__(self, meddle: Callable[[], None]) -> None:
        self._meddle = meddle
        self.heard: list[str] = []

    def phase(self, what: str) -> None:
        """Something has begun."""
        self.heard.append(what)

    def progress(self, confirmed: int, total: int) -> None:
        """Some are confirmed, or none."""
        if 0 < confirmed < total:
            self._meddle()

    def notice(self, what: str) -> None:
        """Nothing to do."""

    def stopping(self) -> None:
        """It was asked to stop."""
        self.heard.append("stopping")


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    """A broker in this process, which Spark's workers reach by its socket."""
    with SimulatedBroker(SPEC) as running:
        yield running


def slow_run(
    spark: SparkSession,
    broker: SimulatedBroker,
    folder: Path,
    meddle: Callable[[], None],
    interrupts: Interrupts | None = None,
) -> Outcome:
    """The first run of a job that takes long enough to be meddled with."""
    brokers = brokers_at(broker.url)
    _, ways = known_ways(SPEC, {}, "", brokers)
    checkpoint = Checkpoint(str(folder))
    messages = spark.range(ROWS).selectExpr(
        "CAST(id AS string) AS message_id", "'b' AS body", "'k' AS routing_key", "'1h' AS level",
        "CAST(NULL AS string) AS reject_reason",
    )  # fmt: skip
    return run_backfill(
        messages,
        Assignment(tuple(brokers), ways, COLUMNS, rate=400.0),
        checkpoint,
        checkpoint.begin(JOB),
        partitions=2,
        keeps_later=True,
        to_send=ROWS,
        watcher=Meddler(meddle),
        interrupts=interrupts or Interrupts(),
    )


def sheet(folder: Path, run: int) -> dict[str, object]:
    """What the folder says of a run."""
    found: dict[str, object] = json.loads((folder / "runs" / f"{run:04}.json").read_text())
    return found


class Tasks:
    """Tasks that have answered when they were waited for so often; without Spark."""

    def __init__(self, waits: int = 0, *, leaves_rows: bool = False, confirmed: int = 3, rows: int = 3) -> None:
        self._waits = waits
        account = {"rows": rows, "confirmed": confirmed}
        self.results = [{"account": account, "reasons": [], "leaves_rows": leaves_rows}]
        self.errors: tuple[tuple[str, str | None], ...] = ()

    @property
    def are_there(self) -> bool:
        """Whether they have answered."""
        return self._waits <= 0

    def wait(self, seconds: float) -> None:
        """A moment passes."""
        assert seconds < 1
        self._waits -= 1


def seen_through(checkpoint: Checkpoint, tasks: Tasks, *, times: int = 0) -> Outcome:
    """How a run ends that was interrupted so many times before anybody watched it."""
    interrupts = Interrupts()
    for _ in range(times):
        interrupts(signal.SIGINT, None)
    run, watcher = checkpoint.begin(JOB), Meddler(lambda: None)
    return see_through(tasks, checkpoint, run, to_send=3, watcher=watcher, interrupts=interrupts)


def test_ctrl_c_before_anything_is_seen_asks_the_tasks_for_an_end(tmp_path: Path) -> None:
    """From when a run has begun it is brought to an end, and its sheet says how."""
    ended = seen_through(Checkpoint(str(tmp_path)), Tasks(2, leaves_rows=True, confirmed=1, rows=1), times=1)

    assert (ended.state, ended.account, sheet(tmp_path, 1)["state"]) == ("stopped", Account(1, 1), "stopped")
    assert (tmp_path / "runs" / "0001.stop").exists()


def test_a_stop_that_finds_nothing_left_to_do_is_none(tmp_path: Path) -> None:
    """All tasks have sent everything: the run has gone through."""
    ended = seen_through(Checkpoint(str(tmp_path)), Tasks(2), times=1)

    assert (ended.state, ended.is_stopped, sheet(tmp_path, 1)["state"]) == ("done", False, "done")


def test_a_run_that_is_killed_at_once_may_have_sent_something(tmp_path: Path) -> None:
    """It says so, though nothing is in the ledger."""
    ended = seen_through(Checkpoint(str(tmp_path)), Tasks(2), times=2)

    assert (ended.is_stopped, ended.in_ledger, ended.account) == (True, 0, Account())
    assert [what.partition(":")[0] for what, _ in ended.errors] == ["killed"]


class Troubled(Checkpoint):
    """A checkpoint on a disk that fails: looks so many times, and writing what is named."""

    def __init__(self, folder: Path, *, bad_looks: int = 0, bad: str = "") -> None:
        super().__init__(str(folder))
        self._bad_looks, self._bad = bad_looks, bad

    def confirmed(self, run: int | None = None) -> int:
        """How many, if it can be read."""
        self._bad_looks -= 1
        if self._bad_looks >= 0:
            raise FolderUnreadable("the ledger can't be read: Input/output error")
        return 2 if run else 0

    def stop(self, run: int) -> None:
        """Ask for an end, if it can be written."""
        self._write("stop")
        super().stop(run)

    def end(self, outcome: Outcome) -> None:
        """Write it down, if it can be written."""
        self._write("end")
        super().end(outcome)

    def _write(self, what: str) -> None:
        if what == self._bad:
            raise DelayctlError(f"{what} can't be written", fix="make room")


def test_a_look_that_fails_harms_nothing(tmp_path: Path) -> None:
    """The run goes on, and so do the looks."""
    ended = seen_through(Troubled(tmp_path, bad_looks=2), Tasks(4))

    assert (ended.state, ended.errors, ended.in_ledger, sheet(tmp_path, 1)["state"]) == ("done", (), 3, "done")


def test_a_ledger_that_can_t_be_read_at_the_end_is_part_of_the_outcome(tmp_path: Path) -> None:
    """What the tasks said is told all the same."""
    ended = seen_through(Troubled(tmp_path, bad_looks=9), Tasks(1))

    assert (ended.state, ended.in_ledger, sheet(tmp_path, 1)["state"]) == ("failed", 3, "failed")
    assert ended.errors == (("the ledger can't be read: Input/output error", None),)


@pytest.mark.parametrize(("bad", "state"), [("stop", "failed"), ("end", "running")])
def test_what_can_t_be_written_is_part_of_the_outcome(tmp_path: Path, bad: str, state: str) -> None:
    """A full disk does not keep the command from saying what was sent."""
    ended = seen_through(Troubled(tmp_path, bad=bad), Tasks(2), times=1)

    assert (ended.state, ended.in_ledger >= 2, sheet(tmp_path, 1)["state"]) == ("failed", True, state)
    assert ended.errors[-1] == (f"{bad} can't be written", "make room")


def test_an_account_that_does_not_add_up_is_part_of_the_outcome(tmp_path: Path) -> None:
    """The sheet does not say for ever that the run is going on."""
    ended = seen_through(Checkpoint(str(tmp_path)), Tasks(rows=4))

    assert (ended.state, sheet(tmp_path, 1)["state"]) == ("failed", "failed")
    assert ended.errors[0][0].startswith("the account does not add up: 4 rows")


def test_a_run_that_a_file_asks_to_stop_is_stopped(
    spark: SparkSession, broker: SimulatedBroker, tmp_path: Path
) -> None:
    """It has not gone through: its sheet says so, and what earlier runs put aside stays."""
    Checkpoint(str(tmp_path)).begin(JOB)
    for table in (REJECTS, LATER):
        Folder(str(tmp_path)).write_part(table, Part(1, 0, 0, 0, 1), [{"message_id": "x"}], SCHEMAS[table])

    ended = slow_run(spark, broker, tmp_path, (tmp_path / "runs" / "0002.stop").touch)

    assert (ended.run, ended.state, ended.errors, sheet(tmp_path, 2)["state"]) == (2, "stopped", (), "stopped")
    assert 0 < ended.account.confirmed == ended.in_ledger < ROWS
    assert [Folder(str(tmp_path)).parts(table) for table in (REJECTS, LATER)] == [[Part(1, 0, 0, 0, 1)]] * 2


def test_a_run_that_is_killed_says_how_far_it_came(
    spark: SparkSession, broker: SimulatedBroker, tmp_path: Path
) -> None:
    """Ctrl-C twice: something is confirmed and in the ledger, and the sheet does not say for ever that it runs."""
    interrupts = Interrupts()

    def twice() -> None:  # At once: tasks that had time to hear the first would come to an end by themselves.
        interrupts(signal.SIGINT, None)
        interrupts(signal.SIGINT, None)

    ended = slow_run(spark, broker, tmp_path, twice, interrupts)
    until(lambda: not spark.sparkContext.statusTracker().getActiveJobsIds(), 60)

    killed = "killed: what was on its way is perhaps confirmed and not in the ledger"
    assert [what for what, _ in ended.errors] == [killed]
    assert (ended.state, ended.is_stopped, sheet(tmp_path, 1)["state"]) == ("failed", True, "failed")
    assert 0 < ended.in_ledger < ROWS
