"""Runs a backfill: lets every task publish its share, watches, and sums up."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import pyarrow as pa
from delayctl.publishers.clock import epoch_ms
from delayctl.spark.account import Account, total
from delayctl.spark.checkpoint import Checkpoint, check_shared
from delayctl.spark.columns import DELAY, DUE, ID, LEVEL, REASON
from delayctl.spark.folder import Folder
from delayctl.spark.journal import LATER, LEDGER, REJECTS, Fenced, Journal, Place
from delayctl.spark.outcome import Outcome
from delayctl.spark.task import MOST_REASONS, Assignment, publish_rows
from delayctl.spark.troubles import told
from delayctl.topology.errors import DelayctlError
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row

_LOOK_EVERY_S = 0.5
_ANSWER = "partition int, result string, error string, fix string"
_ANSWER_SCHEMA = pa.schema(
    [("partition", pa.int32()), ("result", pa.string()), ("error", pa.string()), ("fix", pa.string())]
)


class Watcher(Protocol):
    """Who hears how a backfill gets on."""

    def phase(self, what: str) -> None:
        """Something has begun that takes its time."""

    def progress(self, confirmed: int, total: int) -> None:
        """So many are confirmed of so many."""

    def stopping(self) -> None:
        """It was asked to stop, and does so as soon as it can."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What runs on executors, once for every partition."""

    assignment: Assignment
    checkpoint: str
    run: int
    keeps_later: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        place = Place(self.run, context.partitionId(), context.taskAttemptId())
        answer: dict[str, Any] = {"partition": place.partition}
        try:
            result = publish_rows(batches, self.assignment, self._journal(place))
            answer["result"] = json.dumps({"account": asdict(result.account), "reasons": result.reasons})
        except Fenced:
            raise  # Whoever waits for this attempt must not take it for an answer.
        except DelayctlError as error:
            answer.update(error=error.what, fix=error.fix)
        yield pa.RecordBatch.from_pylist([answer], _ANSWER_SCHEMA)

    def _journal(self, place: Place) -> Journal:
        folder = Folder(self.checkpoint)
        check_shared(folder, self.run)
        tables = (LEDGER, REJECTS, LATER) if self.keeps_later else (LEDGER, REJECTS)
        return Journal(dict.fromkeys(tables, folder), place, is_fenced=True)


def unconfirmed(messages: DataFrame, ledger: DataFrame | None) -> DataFrame:
    """The messages that are not in the ledger."""
    if ledger is None:
        return messages
    is_sent = (messages[ID] == ledger[ID]) & messages[REASON].isNull()  # What is rejected today was rejected then, too.
    return messages.join(ledger, is_sent, "left_anti")


def run_backfill(
    messages: DataFrame,
    assignment: Assignment,
    checkpoint: Checkpoint,
    run: int,
    *,
    partitions: int,
    keeps_later: bool,
    to_send: int,
    watcher: Watcher,
) -> Outcome:
    """Publish the messages, in the order in which they are due, and come back when all is answered.

    Every partition is published at the same time, in its own order, at its share of the rate: the whole is in order as
    closely as the partitions are alike. Ctrl-C lets the tasks finish what they have begun; once more, and they are killed.
    """
    started = epoch_ms()
    share = None if assignment.rate is None else assignment.rate / partitions
    task = _Task(replace(assignment, rate=share), checkpoint.uri, run, keeps_later)
    order = [name for name in (DUE, DELAY, LEVEL) if name in messages.columns]
    spread = messages.repartition(partitions, ID).sortWithinPartitions(*order, ID)
    answering = spread.mapInArrow(task, _ANSWER, barrier=True)
    # Where an executor dies, Spark begins all tasks that run side by side anew, unless they are the last stage of a job.
    answers = _Answers(answering.repartition(1))
    is_stopped = _watch(answers, checkpoint, run, to_send, watcher)
    found = answers.summary(run, checkpoint.confirmed(run), is_stopped, epoch_ms() - started)
    checkpoint.end(found)
    return found


def _watch(answers: "_Answers", checkpoint: Checkpoint, run: int, to_send: int, watcher: Watcher) -> bool:
    """Wait for the answers; says whether somebody asked for an end."""
    is_stopped = False
    while not answers.are_there:
        try:
            answers.wait(_LOOK_EVERY_S)
            watcher.progress(checkpoint.confirmed(run), to_send)
        except KeyboardInterrupt as stop:
            if is_stopped:
                raise DelayctlError(
                    "killed: what was on its way is perhaps confirmed and not in the ledger",
                    fix="run the same command again; such messages come twice, with the same message_id",
                ) from stop
            is_stopped = True
            checkpoint.stop(run)
            watcher.stopping()
    return is_stopped


class _Answers:
    """What the tasks answer, gathered by a thread, so that somebody can watch meanwhile."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self._rows: list[Row] = []
        self._error: Exception | None = None
        # Not the thread's own end: Python takes a thread for ended whose `join` is interrupted.
        self._done = threading.Event()
        threading.Thread(target=self._gather, name="delayctl backfill", daemon=True).start()

    def _gather(self) -> None:
        try:
            self._rows = self._frame.collect()
        except Exception as error:  # Told by `summary`: the one who waits must hear of it, whatever it is.
            self._error = error
        finally:
            self._done.set()

    @property
    def are_there(self) -> bool:
        """Whether every task has answered, or Spark has given up."""
        return self._done.is_set()

    def wait(self, seconds: float) -> None:
        """Wait for them, so long at most."""
        self._done.wait(seconds)

    def summary(self, run: int, in_ledger: int, is_stopped: bool, took_ms: int) -> Outcome:
        """What they say together; where Spark has given up, they say nothing."""
        found = [json.loads(answer["result"]) for answer in self._rows if answer["result"] is not None]
        reasons: Counter[str] = Counter()
        for result in found:
            reasons.update(dict(result["reasons"]))
        account = total(Account(**result["account"]) for result in found)
        most = tuple(reasons.most_common(MOST_REASONS))
        return Outcome(run, account, in_ledger, most, is_stopped, took_ms, self._errors())

    def _errors(self) -> tuple[tuple[str, str | None], ...]:
        if self._error is not None:
            trouble = told(self._error)
            return ((trouble.what, trouble.fix),)
        return tuple(sorted({(row["error"], row["fix"]) for row in self._rows if row["error"] is not None}))
