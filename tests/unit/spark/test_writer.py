"""What the driver makes of what tasks tell it."""

from pathlib import Path

import pytest
from delayctl.publishers.choice import Ways
from delayctl.spark.account import Account, DoesNotAddUp
from delayctl.spark.columns import Columns
from delayctl.spark.folder import Folder, Part
from delayctl.spark.journal import REJECTS, REJECTS_SCHEMA
from delayctl.spark.options import Options
from delayctl.spark.task import Assignment, Result
from delayctl.spark.writer import Committed, RowsRefused, Writing
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError

RUN = 7
WAYS = Ways("exit", ())
ASSIGNMENT = Assignment((), WAYS, Columns(frozenset()))
GOOD = Committed(RUN, Result(Account(rows=3, confirmed=3)))
BAD = Committed(RUN, Result(Account(rows=2, rejected=1, nacked=1), (("body is null", 1), ("the queue is full", 1))))


def writing(rejects: Path | None = None) -> Writing:
    """A write, with a folder for rejects or without."""
    return Writing(ASSIGNMENT, RUN, {REJECTS: str(rejects)} if rejects else {})


def put_aside(folder: Path, *parts: Part) -> None:
    """Parts of the table of rejects, as tasks write them."""
    for part in parts:
        Folder(str(folder)).write_part(
            REJECTS, part, [{"message_id": "1", "reason": "bad", "row": "{}"}], REJECTS_SCHEMA
        )


def test_accounts_of_all_tasks_are_summed_up() -> None:
    """The driver has the account of the whole write."""
    assert writing().conclude([GOOD, GOOD]) == Account(rows=6, confirmed=6)


def test_later_needs_a_due_time(tmp_path: Path) -> None:
    """What only says how long it waits would be put aside for ever."""
    place, types = str(tmp_path), {"message_id": "string", "body": "string", "routing_key": "string", "delay": "string"}
    options = Options((), WAYS, "up", 1, Duration(1), rejects=place, later=place)

    with pytest.raises(BadOption, match="beyond=later needs the column due_at"):
        Writing.of(options, types)


def test_rows_that_were_refused_and_are_kept_nowhere_fail_the_write() -> None:
    """With how many, why, and what to do."""
    with pytest.raises(RowsRefused) as caught:
        writing().conclude([GOOD, BAD, BAD])

    assert str(caught.value) == (
        "Error: 4 rows of 7 refused, the others are sent: body is null (2); the queue is full (2)\n"
        "  fix: correct them and write them alone, or have such rows kept: option rejects=FOLDER"
    )


def test_rows_that_were_refused_and_are_kept_do_not(tmp_path: Path) -> None:
    """They are in the account, and in the folder."""
    assert writing(tmp_path).conclude([BAD]) == Account(rows=2, rejected=1, nacked=1)


def test_a_task_that_says_nothing_fails_the_write() -> None:
    """Nobody knows what became of its rows."""
    with pytest.raises(DelayctlError, match="1 task said nothing"):
        writing().conclude([GOOD, None])


def test_an_account_that_does_not_add_up_fails_the_write() -> None:
    """A row is nowhere."""
    with pytest.raises(DoesNotAddUp):
        writing().conclude([Committed(RUN, Result(Account(rows=3, confirmed=2)))])


def test_what_a_losing_attempt_put_aside_is_removed(tmp_path: Path) -> None:
    """Of two attempts at a task the driver believes one; other writes to the same folder are left alone."""
    won, lost, other = Part(RUN, 1, 0, 0, 1), Part(RUN, 2, 0, 0, 1), Part(8, 2, 0, 0, 1)
    put_aside(tmp_path, won, lost, other)

    writing(tmp_path).conclude([Committed(RUN, BAD.result, ((REJECTS, won),))])

    assert Folder(str(tmp_path)).parts(REJECTS) == [won, other]


def test_rows_that_only_an_executor_can_find_fail_the_write(tmp_path: Path) -> None:
    """Its disk is cleared when the job is over."""
    there, elsewhere = Part(RUN, 1, 0, 0, 1), Part(RUN, 2, 0, 0, 1)
    put_aside(tmp_path, there)

    with pytest.raises(DelayctlError, match=f"executors do not see the folder of the driver: {tmp_path}"):
        writing(tmp_path).conclude([Committed(RUN, BAD.result, ((REJECTS, there), (REJECTS, elsewhere)))])


def test_a_path_from_here_is_the_same_folder_for_executors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They work elsewhere."""
    monkeypatch.chdir(tmp_path)
    options = Options((), WAYS, "up", 10, Duration(0), rejects="aside")
    made = Writing.of(options, {"message_id": "string", "body": "string", "routing_key": "string", "delay": "string"})

    assert made.folders == {REJECTS: str(tmp_path / "aside")}


def test_a_write_that_fails_leaves_nothing_aside(tmp_path: Path) -> None:
    """It will be done again, and meet the same rows; what is sent is told."""
    mine, other = Part(RUN, 1, 0, 0, 1), Part(8, 2, 0, 0, 1)
    put_aside(tmp_path, mine, other)

    account = writing(tmp_path).give_up([None, BAD])

    assert account == Account(rows=2, rejected=1, nacked=1)
    assert Folder(str(tmp_path)).parts(REJECTS) == [other]
