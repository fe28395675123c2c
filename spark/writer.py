"""What Spark calls: `write` in every task, `commit` and `abort` on the driver."""

import logging
import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from delayctl.publishers.clock import epoch_ms
from delayctl.spark.account import Account, total
from delayctl.spark.choose import Chooser
from delayctl.spark.columns import DUE, check_columns
from delayctl.spark.folder import Folder
from delayctl.spark.journal import LATER, REJECTS, Journal, Place
from delayctl.spark.options import Options
from delayctl.spark.places import absolute, shown
from delayctl.spark.put_aside import Written, keep_only, remove
from delayctl.spark.task import Assignment, Result, publish_rows
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.wording import plural
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

_LOG = logging.getLogger("delayctl.spark")
_MOST_SHOWN = 5
_CHANCE = 10_000


class RowsRefused(DelayctlError):
    """Some rows were not delivered, and no folder was named to keep them."""


@dataclass
class Committed(WriterCommitMessage):
    """What a task tells the driver."""

    run: int
    result: Result
    written: tuple[Written, ...] = ()  # Where it put rows aside.


Messages = Sequence[WriterCommitMessage | None]  # None: a task that failed.


@dataclass(frozen=True, slots=True)
class Writing:
    """What a writer needs, on the driver and on executors alike."""

    assignment: Assignment
    run: int
    folders: Mapping[str, str]  # Where tables of what is put aside are kept.

    @classmethod
    def of(cls, options: Options, types: Mapping[str, str]) -> "Writing":
        """The writing of a DataFrame with these columns; raises DelayctlError where they are no messages."""
        columns = check_columns(types, **_arguments(options))
        if options.later and DUE not in columns.present:
            raise BadOption(
                "beyond=later needs the column due_at: a row that says how long it waits would be as far beyond in every later write",
                fix="give a due time: created_at + INTERVAL 4 HOUR AS due_at, or leave out beyond and later",
            )
        Chooser(options.ways, options.rounding).check(delay=columns.delay, level=columns.level)
        assignment = Assignment(
            options.brokers, options.ways, columns, options.rounding, options.window, options.full_wait.ms / 1000
        )
        folders = {table: absolute(uri) for table, uri in ((REJECTS, options.rejects), (LATER, options.later)) if uri}
        _opened(folders)  # Better to fail here than on every executor.
        # Two writes that begin in the same millisecond must not take each other's rows for their own.
        return cls(assignment, epoch_ms() * _CHANCE + secrets.randbelow(_CHANCE), folders)

    def write(self, batches: Iterator[pa.RecordBatch]) -> Committed:
        """Publish the rows of a task."""
        context = TaskContext.get()
        place = Place(self.run, context.taskAttemptId() if context else 0, 0)
        folders = _opened(self.folders)
        journal = Journal(folders, place)
        try:
            result = publish_rows(batches, self.assignment, journal)
        except Exception:
            remove(folders, journal.written)  # The next attempt meets the same rows.
            raise
        return Committed(self.run, result, tuple(journal.written))

    def conclude(self, messages: Messages) -> Account:
        """Sum up what the tasks say; raises where it does not add up, or rows were refused and are kept nowhere."""
        found = _told(messages)
        account = total(message.result.account for message in found)
        if len(found) < len(messages):
            raise DelayctlError(
                f"{plural(len(messages) - len(found), 'task')} said nothing of what became of the rows",
                fix="write them again: messages keep their ids",
            )
        if account.refused and REJECTS not in self.folders:
            raise RowsRefused(
                f"{plural(account.refused, 'row')} of {account.rows:,} refused, the others are sent: {_reasons(found)}",
                fix="correct them and write them alone, or have such rows kept: option rejects=FOLDER",
            )
        kept = [written for message in found for written in message.written]
        self._check_shared(kept)
        self._keep(kept, found)
        return account

    def _check_shared(self, kept: Collection[Written]) -> None:
        """Make sure that what executors put aside is where the driver, and whoever looks there, finds it."""
        folders = _opened(self.folders)
        there = {(table, part) for table in {table for table, _ in kept} for part in folders[table].parts(table)}
        if lost := sorted({table for table, part in kept if (table, part) not in there}):
            raise DelayctlError(
                f"executors do not see the folder of the driver: {shown(self.folders[lost[0]])}",
                fix="write the rows again, with a folder that the driver and all executors share: s3://bucket/orders, NFS, …",
            )

    def give_up(self, messages: Messages) -> Account:
        """Remove what was put aside; says what is sent all the same."""
        found = _told(messages)
        self._keep([], found)
        return sum((message.result.account for message in found), Account())

    def _keep(self, kept: Collection[Written], found: Sequence[Committed]) -> None:
        # A stream's writer is made anew to conclude, with another number than its tasks have.
        runs = {self.run, *(message.run for message in found)}
        keep_only(_opened(self.folders), runs, set(kept))


class BatchWriter(DataSourceArrowWriter):
    """The writer of a batch."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Committed:
        """Publish the rows of a task."""
        return self._writing.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Sum up."""
        _report("", self._writing.conclude(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Say what is sent all the same."""
        _LOG.warning("the write failed; what its tasks have sent stays sent: %s", self._writing.give_up(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """The writer of a stream; a batch that is played again yields the same message ids."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Committed:
        """Publish the rows of a task."""
        return self._writing.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Sum up."""
        _report(f"batch {batchId}: ", self._writing.conclude(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Say what is sent all the same."""
        account = self._writing.give_up(messages)
        _LOG.warning("batch %d failed; what its tasks have sent stays sent: %s", batchId, account)


def _report(label: str, account: Account) -> None:
    """Say what became of the rows; aloud, where not all were sent."""
    _LOG.log(logging.WARNING if account.refused or account.later else logging.INFO, "%s%s", label, account)


def _opened(folders: Mapping[str, str]) -> dict[str, Folder]:
    return {table: Folder(uri) for table, uri in folders.items()}


def _told(messages: Messages) -> list[Committed]:
    return [message for message in messages if isinstance(message, Committed)]


def _reasons(found: Sequence[Committed]) -> str:
    reasons: Counter[str] = Counter()
    for message in found:
        reasons.update(dict(message.result.reasons))
    return "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(_MOST_SHOWN))


def _arguments(options: Options) -> dict[str, Any]:
    return dict(options.columns)
