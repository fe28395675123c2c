"""What a task writes down, and how it takes over from an attempt before it."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from delayctl.spark.folder import Folder, Part
from delayctl.spark.journal import LATER, LEDGER, REJECTS, RUNS, Fenced, Journal, Place, run_sheet, stop_sign


def ledger_row(message_id: str) -> dict[str, object]:
    """A line of the ledger of which only the id matters."""
    return {"message_id": message_id, "routing_key": "k", "exchange": "e", "run": 1, "partition": 0}


def journal(path: Path, place: Place, **options: Any) -> Journal:
    """A journal with all tables in one folder."""
    return Journal(dict.fromkeys((LEDGER, REJECTS, LATER), Folder(str(path))), place, **options)


def test_what_is_written_is_known_by_its_parts(tmp_path: Path) -> None:
    """Each write is a part of its own; nothing is written where there is nothing to write."""
    book = journal(tmp_path, Place(1, 2, 0))

    book.write(LEDGER, [ledger_row("a"), ledger_row("b")])
    book.write(LEDGER, [])
    book.write(REJECTS, [{"message_id": None, "reason": "bad", "row": "{}"}])

    assert book.written == [(LEDGER, Part(1, 2, 0, 0, 2)), (REJECTS, Part(1, 2, 0, 1, 1))]
    assert Folder(str(tmp_path)).parts(LEDGER) == [Part(1, 2, 0, 0, 2)]


def test_a_table_without_a_folder_is_not_kept() -> None:
    """A write without a ledger keeps none."""
    book = Journal({}, Place(1, 0, 0))

    book.write(LEDGER, [ledger_row("a")])

    assert (book.keeps(LEDGER), book.written, book.begin()) == (False, [], frozenset())


def test_a_later_attempt_knows_what_the_ones_before_have_confirmed(tmp_path: Path) -> None:
    """Only of the same task in the same run."""
    for place, message_id in [((1, 0, 3), "a"), ((1, 0, 4), "b"), ((1, 1, 3), "other task"), ((2, 0, 3), "other run")]:
        journal(tmp_path, Place(*place)).write(LEDGER, [ledger_row(message_id)])

    assert journal(tmp_path, Place(1, 0, 9)).begin() == {"a", "b"}
    assert journal(tmp_path, Place(1, 0, 3)).begin() == frozenset()


def test_a_later_attempt_removes_what_the_ones_before_put_aside(tmp_path: Path) -> None:
    """It meets the same rows, and puts them aside itself."""
    reject, later = {"message_id": "a", "reason": "bad", "row": "{}"}, {"message_id": "b", "due_at": 0, "row": "{}"}
    for place in [Place(1, 0, 0), Place(1, 1, 0)]:
        journal(tmp_path, place).write(REJECTS, [reject])
        journal(tmp_path, place).write(LATER, [later])

    journal(tmp_path, Place(1, 0, 1)).begin()

    assert Folder(str(tmp_path)).parts(REJECTS) == [Part(1, 1, 0, 0, 1)]
    assert Folder(str(tmp_path)).parts(LATER) == [Part(1, 1, 0, 0, 1)]


def test_a_newer_run_ends_an_older_one(tmp_path: Path) -> None:
    """Two runs of a job at once would send everything twice."""
    book = journal(tmp_path, Place(1, 0, 0), is_fenced=True)
    folder = Folder(str(tmp_path))
    folder.write_json(f"{RUNS}/{run_sheet(1)}", {})
    book.check_fence()

    folder.write_json(f"{RUNS}/{run_sheet(2)}", {})

    with pytest.raises(Fenced) as caught:
        book.check_fence()
    assert str(caught.value) == "Error: run 2 of this job has begun, and run 1 ends here\n  fix: let it finish"


@pytest.mark.parametrize(("token", "is_ended"), [("mine", False), ("theirs", True), (None, False)])
def test_a_run_of_the_same_number_is_told_by_its_token(tmp_path: Path, token: str | None, is_ended: bool) -> None:
    """Object stores can't keep two drivers from taking the same number; sheets of earlier releases have no token."""
    book = journal(tmp_path, Place(1, 0, 0), is_fenced=True, token="mine")
    Folder(str(tmp_path)).write_json(f"{RUNS}/{run_sheet(1)}", {} if token is None else {"token": token})

    with pytest.raises(Fenced, match="another run 1 of this job has begun") if is_ended else nullcontext():
        book.check_fence()


def test_a_newer_attempt_ends_an_older_one(tmp_path: Path) -> None:
    """An executor that was taken for dead may live, and must not go on beside its successor."""
    first, other = journal(tmp_path, Place(1, 0, 5), is_fenced=True), journal(tmp_path, Place(1, 1, 6), is_fenced=True)
    first.begin()
    other.begin()
    first.check_fence()

    journal(tmp_path, Place(1, 0, 7), is_fenced=True).begin()

    other.check_fence()
    with pytest.raises(Fenced, match="partition 0 has begun anew"):
        first.check_fence()


def test_without_a_fence_nobody_looks(tmp_path: Path) -> None:
    """A plain write has no runs."""
    book = journal(tmp_path, Place(1, 0, 0))
    Folder(str(tmp_path)).write_json(f"{RUNS}/{run_sheet(2)}", {})

    book.check_fence()

    assert not book.is_stopped


def test_a_stop_sign_is_seen_by_its_run(tmp_path: Path) -> None:
    """A run is asked to end by a file with its number."""
    first, second = (journal(tmp_path, Place(run, 0, 0), is_fenced=True) for run in (1, 2))

    Folder(str(tmp_path)).write_json(f"{RUNS}/{stop_sign(1)}", {})

    assert (first.is_stopped, second.is_stopped) == (True, False)
