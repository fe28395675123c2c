"""The checkpoint folder of a backfill."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from delayctl.spark.account import Account
from delayctl.spark.backfill_job import BackfillJob
from delayctl.spark.checkpoint import Checkpoint, check_shared
from delayctl.spark.folder import Folder, Part
from delayctl.spark.journal import LATER, LEDGER, REJECTS, SCHEMAS
from delayctl.spark.origin import Origin, origin_from
from delayctl.spark.outcome import Outcome
from delayctl.topology.errors import DelayctlError
from pyspark.sql import SparkSession

JOB = BackfillJob(Origin("parquet", "orders"), ("order_id",), "key", due="pay_by", target="amqp://a:5672 / exit")


def put_aside(folder: Path, run: int, table: str = REJECTS) -> None:
    """A table with a row of a run."""
    Folder(str(folder)).write_part(table, Part(run, 0, 0, 0, 1), [{"message_id": str(run)}], SCHEMAS[table])


def outcome(run: int, *, is_stopped: bool = False, errors: tuple[tuple[str, str | None], ...] = ()) -> Outcome:
    """How a run ended that met nothing."""
    return Outcome(run, Account(), 0, (), is_stopped, 5, errors)


def parts(folder: Path, table: str) -> list[int]:
    """Which runs have rows in a table."""
    return [part.run for part in Folder(str(folder)).parts(table)]


def test_a_folder_is_one_jobs(tmp_path: Path) -> None:
    """Nobody's is anybody's; another's is refused, with all that differs; to another broker it is another job."""
    checkpoint = Checkpoint(str(tmp_path))
    checkpoint.check(JOB)
    checkpoint.begin(JOB)

    checkpoint.check(JOB)
    other = BackfillJob(Origin("parquet", "x"), ("order_id",), "key", due="pay_by", target="amqp://b:5672 / exit")
    with pytest.raises(DelayctlError, match="belongs to a job with another target, source\n") as error:
        checkpoint.check(other)

    assert error.value.where == str(tmp_path)


MOVED = replace(JOB, target="amqp://b:5672 / exit")


def test_a_broker_that_moved_is_known_by_its_cluster(tmp_path: Path) -> None:
    """Another node, or another name of the host: a job goes on there, and is told so."""
    checkpoint = Checkpoint(str(tmp_path))
    checkpoint.begin(replace(JOB, cluster="rabbit@shop"))

    assert checkpoint.check(replace(MOVED, cluster="rabbit@shop")) == "amqp://a:5672"
    checkpoint.begin(replace(MOVED, cluster="rabbit@shop"))
    assert checkpoint.check(MOVED) is None  # Today nobody says what the cluster is called.
    assert json.loads((tmp_path / "job.json").read_text())["cluster"] == "rabbit@shop"


@pytest.mark.parametrize(
    ("job", "differing"),
    [
        (replace(MOVED, cluster="rabbit@eu"), "target, cluster"),
        (replace(JOB, cluster="rabbit@eu"), "cluster"),
        (MOVED, "target"),
        (replace(MOVED, target="amqp://b:5672 other exit", cluster="rabbit@shop"), "target"),
    ],
)
def test_another_broker_is_another_job(tmp_path: Path, job: BackfillJob, differing: str) -> None:
    """Be it behind the same address; where it is the same all the same, somebody has to say so."""
    checkpoint = Checkpoint(str(tmp_path))
    checkpoint.begin(replace(JOB, cluster="rabbit@shop"))

    with pytest.raises(DelayctlError, match=f"belongs to a job with another {differing}\n") as error:
        checkpoint.check(job)

    assert error.value.fix == (
        "give this job a folder of its own (--checkpoint), or the options that the other was begun with"
        "; where only the broker has moved, correct that in job.json"
    )


def test_another_spelling_of_the_place_is_the_same_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier release wrote it down as it was given."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.json").write_text(json.dumps({**JOB.description(), "source": "parquet:./orders/"}))
    job = replace(JOB, origin=Origin("parquet", "orders", known_as=f"{tmp_path}/orders"))

    Checkpoint(str(tmp_path)).check(job)

    assert json.loads((tmp_path / "job.json").read_text()) == {
        **JOB.description(),
        "source": f"parquet:{tmp_path}/orders",
    }


def test_a_key_and_a_column_of_that_name_are_two_jobs(tmp_path: Path) -> None:
    """An earlier release wrote both down alike; its folders are known again."""
    by_column = replace(JOB, routing_key=None, routing_key_column="key")
    formerly = tmp_path / "formerly"
    Checkpoint(str(tmp_path)).begin(JOB)
    Checkpoint(str(formerly)).begin(JOB)
    (formerly / "job.json").write_text(json.dumps(by_column.former_descriptions()[-1]))

    with pytest.raises(DelayctlError, match="belongs to a job with another routing_key_column\n"):
        Checkpoint(str(tmp_path)).check(by_column)
    Checkpoint(str(formerly)).check(by_column)


def test_the_name_of_a_folder_is_no_pattern(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would read the ledger of a neighbour, and what is in this one would be sent again."""
    for name in ("a1", "a[1]", "a{1,2}*?"):
        Folder(str(tmp_path / name)).write_part(LEDGER, Part(1, 0, 0, 0, 1), [{"message_id": name}], SCHEMAS[LEDGER])

    for name in ("a1", "a[1]", "a{1,2}*?"):
        ledger = Checkpoint(str(tmp_path / name)).ledger(spark)
        assert ledger is not None
        assert [row.message_id for row in ledger.collect()] == [name]


SECRETIVE = replace(
    JOB,
    origin=origin_from("jdbc:mysql://reader:x@hunter2@db/shop", ["dbtable=t", "password=p", "initStatement=hunter2"]),
)


def test_no_secret_is_written_down(tmp_path: Path) -> None:
    """Whatever the name of the option that holds it, and whatever it has in it."""
    Checkpoint(str(tmp_path)).begin(SECRETIVE)

    assert "hunter2" not in (tmp_path / "job.json").read_text()


# As releases wrote it down, the oldest first.
FORMER = (
    {"source": "jdbc:mysql://hunter2@db/shop", "source_options": {"dbtable": "t", "initStatement": "hunter2"}},
    {"source": "jdbc:mysql://db/shop", "source_options": {"dbtable": "t", "initStatement": "digest 3599cb26"}},
)


@pytest.mark.parametrize("former", FORMER)
def test_a_folder_of_an_earlier_release_is_known_again(tmp_path: Path, former: dict[str, object]) -> None:
    """Another value is another job, as ever."""
    (tmp_path / "job.json").write_text(json.dumps({**SECRETIVE.former_descriptions()[0], **former}))
    other = replace(SECRETIVE, origin=origin_from("jdbc:mysql://reader:x@hunter2@db/shop", ["dbtable=u"]))
    checkpoint = Checkpoint(str(tmp_path))

    with pytest.raises(DelayctlError, match="belongs to a job with another source_options"):
        checkpoint.check(other)
    checkpoint.check(SECRETIVE)


def test_what_a_driver_reads_in_a_way_of_its_own_is_known_again(tmp_path: Path) -> None:
    """An earlier release took such a password for a part of the place, and wrote it down."""
    text = "jdbc:sqlserver://db;password={x;hunter2};databaseName=shop"
    former = {"source": "jdbc:sqlserver://db;hunter2};databaseName=shop", "source_options": {}}
    job = replace(JOB, origin=origin_from(text, []))
    (tmp_path / "job.json").write_text(json.dumps({**job.former_descriptions()[0], **former}))

    Checkpoint(str(tmp_path)).check(job)

    assert "hunter2" not in (tmp_path / "job.json").read_text()


def test_secrets_that_an_earlier_release_wrote_down_go_at_the_first_look(tmp_path: Path) -> None:
    """No run has to begin: a job that is finished, and a dry run, come no further."""
    (tmp_path / "job.json").write_text(json.dumps({**SECRETIVE.former_descriptions()[0], **FORMER[0]}))

    Checkpoint(str(tmp_path)).check(SECRETIVE)

    assert json.loads((tmp_path / "job.json").read_text()) == SECRETIVE.description()
    assert "hunter2" not in (tmp_path / "job.json").read_text()


@pytest.mark.parametrize("text", ["{", "[]", '"x"'])
def test_a_damaged_folder_is_not_taken(tmp_path: Path, text: str) -> None:
    """Whatever is in job.json, it is an error that says what to do."""
    (tmp_path / "job.json").write_text(text)

    with pytest.raises(DelayctlError, match=r"damaged|another target"):
        Checkpoint(str(tmp_path)).check(JOB)


def test_runs_are_numbered(tmp_path: Path) -> None:
    """Each has its sheet, which says how it is doing."""
    checkpoint = Checkpoint(str(tmp_path))

    assert [checkpoint.begin(JOB), checkpoint.begin(JOB)] == [1, 2]
    checkpoint.end(outcome(2, is_stopped=True))

    states = [json.loads((tmp_path / "runs" / f"000{run}.json").read_text())["state"] for run in (1, 2)]
    assert states == ["running", "stopped"]


def test_drivers_that_begin_in_the_same_moment_have_runs_of_their_own(tmp_path: Path) -> None:
    """Otherwise neither would end the other, and both would send everything."""
    drivers, runs = 8, []
    gate = threading.Barrier(drivers)

    def begin() -> None:
        checkpoint = Checkpoint(str(tmp_path))
        gate.wait()
        runs.append(checkpoint.begin(JOB))

    threads = [threading.Thread(target=begin) for _ in range(drivers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(runs) == list(range(1, drivers + 1))
    assert not [path.name for path in (tmp_path / "runs").iterdir() if path.name.startswith("_")]


def test_a_driver_that_lost_its_number_leaves_the_sheet_alone(tmp_path: Path) -> None:
    """An object store may give it to two; the tasks of the one that has it would end by the word of the other."""
    lost, won = Checkpoint(str(tmp_path)), Checkpoint(str(tmp_path))
    run = lost.begin(JOB)
    Folder(str(tmp_path)).write_json("runs/0001.json", {"state": "running", "token": won.token})
    put_aside(tmp_path, 0)

    lost.end(outcome(run))

    assert json.loads((tmp_path / "runs/0001.json").read_text()) == {"state": "running", "token": won.token}
    assert parts(tmp_path, REJECTS) == [0]


def test_confirmed_of_one_run_and_of_all(tmp_path: Path) -> None:
    """By the names of the parts alone."""
    put_aside(tmp_path, 1, LEDGER)
    put_aside(tmp_path, 2, LEDGER)
    checkpoint = Checkpoint(str(tmp_path))

    assert (checkpoint.confirmed(), checkpoint.confirmed(2), checkpoint.confirmed(3)) == (2, 1, 0)


@pytest.mark.parametrize(
    ("ended", "left"),
    [
        (outcome(2), [2]),
        (outcome(2, is_stopped=True), [1, 2]),
        (outcome(2, errors=(("gone", None),)), [1, 2]),
    ],
)
def test_a_run_that_went_through_has_met_all_that_was_put_aside(
    tmp_path: Path, ended: Outcome, left: list[int]
) -> None:
    """So what earlier ones put aside goes; the ledger stays, always."""
    for run in (1, 2):
        for table in (REJECTS, LATER, LEDGER):
            put_aside(tmp_path, run, table)

    Checkpoint(str(tmp_path)).end(ended)

    assert [parts(tmp_path, table) for table in (REJECTS, LATER, LEDGER)] == [left, left, [1, 2]]


def test_a_path_from_here_is_the_same_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors do not work where the driver does."""
    monkeypatch.chdir(tmp_path)

    assert Checkpoint("here").uri == str(tmp_path / "here")
    for there in (f"{tmp_path}/there/", f"file:{tmp_path}/there", f"file://{tmp_path}/there"):
        assert Checkpoint(there).uri == str(tmp_path / "there")


def test_executors_that_see_another_folder_send_nothing(tmp_path: Path) -> None:
    """A ledger on the disk of each executor would be no ledger."""
    run = Checkpoint(str(tmp_path / "driver")).begin(JOB)

    check_shared(Folder(str(tmp_path / "driver")), run)
    with pytest.raises(DelayctlError, match="executors do not see the checkpoint"):
        check_shared(Folder(str(tmp_path / "executor")), run)
