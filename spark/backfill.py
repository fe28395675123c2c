"""Runs a backfill: lets every task publish its share, watches, and sums up."""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import pyarrow as pa
from delayctl.publishers.clock import epoch_ms
from delayctl.spark.account import Account, total
from delayctl.spark.checkpoint import Checkpoint, check_shared
from delayctl.spark.columns import ID, REASON
from delayctl.spark.due_order import due_order
from delayctl.spark.folder import Folder, FolderUnreadable
from delayctl.spark.journal import LATER, LEDGER, REJECTS, Fenced, Journal, Place
from delayctl.spark.outcome import Outcome
from delayctl.spark.session import Interrupts
from delayctl.spark.task import MOST_REASONS, Assignment, publish_rows
from delayctl.spark.troubles import noting, told
from delayctl.topology.errors import DelayctlError
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row

_LOOK_EVERY_S = 0.5
_KILLED_AT = 2  # The first Ctrl-C asks for an end, the second does not wait for it.
_KILLED = (
    "killed: what was on its way is perhaps confirmed and not in the ledger",
    "run the same command again; such messages come twice, with the same message_id",
)
_ANSWER = "partition int, result string, error string, fix string"
_ANSWER_SCHEMA = pa.schema(
    [("partition", pa.int32()), ("result", pa.string()), ("error", pa.string()), ("fix", pa.string())]
)


class Watcher(Protocol):
    """Who hears how a backfill gets on."""

    def phase(self, what: str) -> None:
        """Something has begun that takes its time."""

    def notice(self, what: str) -> None:
        """Something is worth a sentence."""

    def progress(self, confirmed: int, total: int) -> None:
        """So many are confirmed of so many."""

    def stopping(self) -> None:
        """It was asked to stop, and does so as soon as it can."""


class Answers(Protocol):
    """What the tasks answer, when they are done."""

    @property
    def are_there(self) -> bool:
        """Whether every task has answered, or Spark has given up."""

    def wait(self, seconds: float) -> None:
        """Wait for them, so long at most."""

    @property
    def results(self) -> Sequence[Mapping[str, Any]]:
        """What became of the rows, task by task; nothing where Spark has given up."""

    @property
    def errors(self) -> tuple[tuple[str, str | None], ...]:
        """What went wrong, and what to do about it."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What runs on executors, once for every partition."""

    assignment: Assignment
    checkpoint: str
    run: int
    token: str
    keeps_later: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        place = Place(self.run, context.partitionId(), context.taskAttemptId())
        answer: dict[str, Any] = {"partition": place.partition}
        try:
            result = publish_rows(batches, self.assignment, self._journal(place))
            answer["result"] = json.dumps(asdict(result))
        except Fenced:
            raise  # Whoever waits for this attempt must not take it for an answer.
        except DelayctlError as error:
            answer.update(error=error.what, fix=error.fix)
        yield pa.RecordBatch.from_pylist([answer], _ANSWER_SCHEMA)

    def _journal(self, place: Place) -> Journal:
        folder = Folder(self.checkpoint)
        check_shared(folder, self.run)
        tables = (LEDGER, REJECTS, LATER) if self.keeps_later else (LEDGER, REJECTS)
        return Journal(dict.fromkeys(tables, folder), place, is_fenced=True, token=self.token)


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
    interrupts: Interrupts,
) -> Outcome:
    """Publish the messages, in the order in which they are due, and come back when all is answered.

    Every partition is published at the same time, in its own order, at its share of the rate: the whole is in order as
    closely as the partitions are alike. Ctrl-C lets the tasks finish what they have begun; once more, and they are killed.
    """
    share = None if assignment.rate is None else assignment.rate / partitions
    task = _Task(replace(assignment, rate=share), checkpoint.uri, run, checkpoint.token, keeps_later)
    spread = messages.repartition(partitions, ID).sortWithinPartitions(due_order(messages, assignment.ways), ID)
    answering = spread.mapInArrow(task, _ANSWER, barrier=True)
    # Where an executor dies, Spark begins all tasks that run side by side anew, unless they are the last stage of a job.
    answers = _Answers(answering.repartition(1))
    return see_through(answers, checkpoint, run, to_send=to_send, watcher=watcher, interrupts=interrupts)


def see_through(
    answers: Answers, checkpoint: Checkpoint, run: int, *, to_send: int, watcher: Watcher, interrupts: Interrupts
) -> Outcome:
    """Wait for the answers, and write down how the run ended; whatever goes wrong meanwhile is part of that."""
    started = epoch_ms()
    troubles: list[tuple[str, str | None]] = []
    with noting(troubles):
        _watch(answers, checkpoint, run, to_send=to_send, watcher=watcher, interrupts=interrupts)
    found = _outcome(answers, checkpoint, run, epoch_ms() - started, troubles)
    unwritten: list[tuple[str, str | None]] = []
    with noting(unwritten):
        checkpoint.end(found)
    return replace(found, errors=(*found.errors, *unwritten))


def _watch(
    answers: Answers, checkpoint: Checkpoint, run: int, *, to_send: int, watcher: Watcher, interrupts: Interrupts
) -> None:
    """Wait for the answers, unless Ctrl-C comes twice."""
    is_passed_on = False
    while not answers.are_there and interrupts.count < _KILLED_AT:
        with suppress(FolderUnreadable):  # A look that fails changes nothing, and the next comes soon.
            if interrupts.count and not is_passed_on:
                checkpoint.stop(run)
                is_passed_on = True
                watcher.stopping()
            watcher.progress(checkpoint.confirmed(run), to_send)
        answers.wait(_LOOK_EVERY_S)


def _outcome(
    answers: Answers, checkpoint: Checkpoint, run: int, took_ms: int, troubles: list[tuple[str, str | None]]
) -> Outcome:
    """What tasks and ledger say together; where nobody waited for the tasks, they say nothing."""
    is_killed = not answers.are_there  # Asked once: they may come all the same.
    results, errors = ([], (_KILLED,)) if is_killed else (answers.results, answers.errors)
    account, in_ledger = Account(), 0
    with noting(troubles):
        account = total(Account(**result["account"]) for result in results)
    with noting(troubles):
        in_ledger = checkpoint.confirmed(run)
    reasons: Counter[str] = Counter()
    for result in results:
        reasons.update(dict(result["reasons"]))
    return Outcome(
        run,
        account,
        max(in_ledger, account.confirmed),
        tuple(reasons.most_common(MOST_REASONS)),
        is_killed or any(result["leaves_rows"] for result in results),
        took_ms,
        (*errors, *troubles),
    )


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
        except Exception as error:  # Told by `errors`: the one who waits must hear of it, whatever it is.
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

    @property
    def results(self) -> list[dict[str, Any]]:
        """What became of the rows, task by task, as far as they have answered."""
        return [json.loads(answer["result"]) for answer in self._rows if answer["result"] is not None]

    @property
    def errors(self) -> tuple[tuple[str, str | None], ...]:
        """What went wrong, and what to do about it."""
        if self._error is not None:
            trouble = told(self._error)
            return ((trouble.what, trouble.fix),)
        return tuple(sorted({(row["error"], row["fix"]) for row in self._rows if row["error"] is not None}))
