"""Tables as folders of Parquet files: whole files or none, wherever the folder is."""

import os
import threading
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delayctl.spark.folder import Folder, FolderUnreadable, Part, for_spark
from delayctl.topology.errors import BadOption, DelayctlError

PART = Part(3, 12, 1, 0, 2)
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
ROWS: list[dict[str, Any]] = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


@pytest.mark.parametrize("name", ["plain", "with space", "50%25 #1?", "größe", "a=b:c"])
def test_what_is_written_can_be_read(tmp_path: Path, name: str) -> None:
    """Odd characters in a path are part of the path."""
    folder = Folder(str(tmp_path / name))

    folder.write_part("ledger", PART, ROWS, SCHEMA)

    assert [path.name for path in (tmp_path / name / "ledger").iterdir()] == ["0003-00012-1-000000-2.parquet"]
    assert folder.parts("ledger") == [PART]
    assert folder.read_part("ledger", PART, ["b", "a"]).to_pylist() == [{"b": "x", "a": 1}, {"b": None, "a": 2}]


def test_a_uri_is_as_good_as_a_path(tmp_path: Path) -> None:
    """A folder named by URI and by path is the same folder."""
    Folder((tmp_path / "with space").as_uri()).write_part("ledger", PART, ROWS, SCHEMA)

    assert Folder(str(tmp_path / "with space")).parts("ledger") == [PART]


def test_a_relative_path_is_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for every other program."""
    monkeypatch.chdir(tmp_path)

    Folder("checkpoint").write_json("job.json", {"a": 1})

    assert (tmp_path / "checkpoint/job.json").read_text() == '{\n  "a": 1\n}\n'


def test_a_folder_nobody_can_open_is_an_error() -> None:
    """The URI is repeated, with what one looks like."""
    with pytest.raises(DelayctlError) as caught:
        Folder("gopher://host/path")

    assert str(caught.value).startswith("Error: the folder 'gopher://host/path' can't be used: ")
    assert str(caught.value).endswith("\n  fix: give a path, or a URI such as s3://bucket/path")


def test_a_write_that_fails_leaves_nothing_under_the_final_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until all is on the disk the file has another name, which goes when the disk is full."""

    def full(_: int) -> None:
        assert [path.name[:9] for path in (tmp_path / "ledger").iterdir()] == ["_writing-"]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(DelayctlError) as caught:
        Folder(str(tmp_path)).write_part("ledger", PART, ROWS, SCHEMA)

    assert str(caught.value) == (
        f"Error: {tmp_path}/ledger/{PART} can't be written: [Errno 28] No space left on device\n"
        "  fix: check the folder, its rights and the room on the disk"
    )
    assert list((tmp_path / "ledger").iterdir()) == []


def test_a_folder_that_can_not_be_made_is_an_error(tmp_path: Path) -> None:
    """A file in the way is no folder."""
    (tmp_path / "file").write_text("")

    with pytest.raises(DelayctlError, match="can't be written"):
        Folder(str(tmp_path / "file")).write_part("ledger", PART, ROWS, SCHEMA)


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    """A table that nobody wrote to has no parts, and a file that nobody wrote is none."""
    folder = Folder(str(tmp_path / "none"))

    assert (folder.parts("ledger"), folder.names("runs"), folder.read_json("job.json")) == ([], [], None)


def test_a_table_may_be_made_while_it_is_looked_for(tmp_path: Path) -> None:
    """By another driver or a task: it is empty then, and no trouble."""
    for attempt in range(500):
        place, gate = tmp_path / str(attempt), threading.Barrier(2)
        place.mkdir()
        folder = Folder(str(place))

        def make(table: Path = place / "runs", gate: threading.Barrier = gate) -> None:
            gate.wait()
            table.mkdir()

        maker = threading.Thread(target=make)
        maker.start()
        gate.wait()
        assert [folder.names("runs") for _ in range(3)] == [[], [], []]
        maker.join()


def test_other_files_are_no_parts(tmp_path: Path) -> None:
    """What Spark or a crash left behind is not taken for a part."""
    (tmp_path / "ledger").mkdir()
    for name in (
        "_writing-0f",
        "_SUCCESS",
        "0001-00000-0-000000.parquet",
        "0001-00000-0-000000-5.json",
        "a-b-c-d-e.parquet",
    ):
        (tmp_path / "ledger" / name).write_text("")

    assert Folder(str(tmp_path)).parts("ledger") == []


def test_a_name_says_what_is_in_the_file() -> None:
    """A part is written and read as its name."""
    assert Part.parse(str(PART)) == PART
    assert Part.parse(str(Part(17_944_000_000_000_000, 1, 0, 0, 1))) == Part(17_944_000_000_000_000, 1, 0, 0, 1)


@pytest.mark.parametrize(
    ("uri", "expected"), [("s3://lake/backfills", "s3a://lake/backfills"), ("/lake", "/lake"), ("gs://a/b", "gs://a/b")]
)
def test_spark_calls_a_place_by_its_own_name(uri: str, expected: str) -> None:
    """S3 has two."""
    assert for_spark(uri) == expected


def test_hadoops_way_to_write_a_path_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`file:/path` is that path, without escapes, and no folder that is called `file:` here."""
    monkeypatch.chdir(tmp_path)

    Folder(f"file:{tmp_path}/a%20b").write_json("job.json", {})
    Folder(f"file://{tmp_path}/c%20d").write_json("job.json", {})

    assert sorted(path.name for path in tmp_path.iterdir()) == ["a%20b", "c d"]


@pytest.mark.parametrize(
    ("place", "half"), [("hdfs:/lake/orders", "hdfs:"), ("s3:bucket/orders", "s3:"), ("lake:/orders", "lake:")]
)
def test_half_a_uri_is_no_folder_here(place: str, half: str) -> None:
    """It is refused, with both that it may be meant for."""
    with pytest.raises(BadOption) as caught:
        Folder(place)

    assert str(caught.value) == (
        f"Error: the place '{place}' is neither a path nor a URI\n"
        f"  fix: write {half}//…, or ./{half}… for a folder of that name here"
    )


def test_a_time_in_a_name_is_no_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may be called as the hour is."""
    monkeypatch.chdir(tmp_path)

    Folder("rejects-18:30").write_json("job.json", {})

    assert (tmp_path / "rejects-18:30/job.json").exists()


@pytest.mark.parametrize("secret", ["hunter2", "hunter2/x+y", "x@hunter2"])
def test_a_login_in_a_uri_is_not_repeated(secret: str) -> None:
    """Neither by the error nor by what caused it."""
    with pytest.raises(DelayctlError) as caught:
        Folder(f"s3a://reader:{secret}@bucket/orders")

    assert caught.value.what.startswith("the folder 's3a://…@bucket/orders' can't be used: ")
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_what_belongs_to_others_is_an_error_with_its_place(tmp_path: Path) -> None:
    """Somebody else began the checkpoint: reading and removing say so, as writing does."""
    folder = Folder(str(tmp_path))
    folder.write_part("ledger", PART, ROWS, SCHEMA)
    (tmp_path / "job.json").symlink_to(
        "/proc/self/mem"
    )  # Root may read what belongs to others, and nobody the start of this.
    (tmp_path / "runs").write_text("")

    with pytest.raises(FolderUnreadable) as unread:
        folder.read_json("job.json")
    with pytest.raises(FolderUnreadable, match=f"{tmp_path}/runs can't be read: "):
        folder.names("runs")
    with pytest.raises(FolderUnreadable, match=r"-5\.parquet can't be read: "):
        folder.read_part("ledger", Part(1, 2, 3, 4, 5), ["a"])
    with pytest.raises(DelayctlError, match=r"-5\.parquet can't be removed: "):
        folder.delete_part("ledger", Part(1, 2, 3, 4, 5))

    assert unread.value.fix == (
        "check the folder and its rights: who goes on with it must be able to read and to write all of it"
    )
