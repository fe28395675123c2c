"""delayctl backfill on a real broker: what it foretells, what it sends, what it puts aside, and how it goes on."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from delayctl.cli.backfill_bar import Bar
from delayctl.spark.folder import Folder

from testbed.spark import SparkHome
from testbed.wait import until
from tests.support.backfills import Backfill, orders
from tests.support.commands import delayctl, delayctl_process
from tests.support.rabbit import Rabbit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEVELS = """
version: 1
delay: {{levels: {levels}}}
queues: {{orders: {{}}}}
routes: [{{key: order.created, delay: 1h, to: orders}}]
"""
THREE = LEVELS.format(levels="[1h, 3h, 6h]")  # Long enough for the slowest machine: nothing comes due meanwhile.
SMALL = LEVELS.format(levels="{1h: {max_length: 100}}")
SAME_KEY = "another row has the same key, and comes first"


@pytest.fixture
def backfill(rabbit: Rabbit, tmp_path: Path, spark: "SparkSession") -> Backfill:
    """A job with nothing to do yet; commands take the session of the tests for theirs."""
    return Backfill(rabbit, tmp_path / "topology.yaml", tmp_path)


def waiting(backfill: Backfill, *levels: str) -> list[int]:
    """How many messages wait in these levels now."""
    return [backfill.rabbit.ready(f"delay.{level}.queue") for level in levels]


def test_what_a_dry_run_foretells_comes_true(backfill: Backfill) -> None:
    """Rows per level, overdue, beyond, bad and the same key twice; nothing is sent before, all of it after."""
    backfill.apply(THREE)
    backfill.write(orders(*[-5] * 30, *[3000] * 200, *[10_000] * 300, *[40_000] * 7, None, None, None))
    backfill.write(orders(9_000, 9_000), "same keys again")

    code, foretold = backfill.answer("--dry-run")

    estimate = foretold["estimate"]
    rows = {level["level"]: (level["rows"], level["waiting"], level["peak"]) for level in estimate["levels"]}
    assert (code, foretold["outcome"], waiting(backfill, "1h", "3h", "6h")) == (0, None, [0, 0, 0])
    assert rows == {"1h": (200, 0, 200), "3h": (300, 0, 300), "6h": (0, 0, 0)}
    assert (estimate["to_send"], estimate["overdue"], estimate["beyond"]) == (530, 30, 7)
    assert estimate["rejected"] == {SAME_KEY: 2, "due_at is null": 3}
    assert not backfill.checkpoint.exists()

    code, done = backfill.answer()

    outcome = done["outcome"]
    assert (code, outcome["state"], outcome["rows"]) == (3, "done", 542)
    assert (outcome["confirmed"], outcome["rejected"], outcome["in_ledger"]) == (530, 12, 530)
    assert waiting(backfill, "1h", "3h", "6h") == [200, 300, 0]
    assert backfill.rabbit.ready("orders") == 30
    assert backfill.ledger_by_level() == {None: 30, "1h": 200, "3h": 300}
    assert backfill.rejected() == {**estimate["rejected"], "due later than the longest level (6h) waits": 7}


def test_a_second_run_sends_nothing(backfill: Backfill) -> None:
    """It says so in a line; the same rows rejected again are not there twice."""
    backfill.apply(THREE)
    backfill.write(orders(*[3000] * 50))
    first = backfill.run()

    second = backfill.run()

    assert (first.code, second.code) == (0, 0)
    assert second.out == (
        f"Nothing to do: all is confirmed, 50 messages; the ledger is in {backfill.checkpoint}/ledger.\n"
    )
    backfill.write(orders(3000, None, start=50), "more")
    third, fourth = backfill.run(), backfill.run()
    assert (third.code, fourth.code) == (3, 3)
    assert (waiting(backfill, "1h"), backfill.rejected()) == ([51], {"due_at is null": 1})


def test_a_level_is_not_made_to_overflow(backfill: Backfill) -> None:
    """The room is what the level holds minus what waits in it now; told to, it goes on all the same."""
    backfill.apply(SMALL)
    backfill.rabbit.publish("delay.1h.exchange", "order.created", *map(str, range(20)))
    backfill.write(orders(*[3000] * 85))

    refused = backfill.run()

    assert (refused.code, waiting(backfill, "1h")) == (1, [20])
    assert "  1h                  85            20           105         100  5 too many\n" in refused.out
    assert "as many of the oldest leave it early.\n" in refused.out
    assert refused.err.startswith("Error: 1h would overflow; nothing was sent\n  fix: ")
    assert not backfill.checkpoint.exists()
    assert backfill.run("--where", "order_id < 80").code == 0
    assert waiting(backfill, "1h") == [100]
    told = backfill.run("--allow-overflow", "--checkpoint", str(backfill.folder / "other"))
    assert (told.code, waiting(backfill, "1h")) == (0, [100])


def test_a_queue_that_stays_full_costs_nothing(backfill: Backfill) -> None:
    """What is refused to the end is in the table of rejects; when there is room, the next run sends exactly that."""
    backfill.apply(LEVELS.format(levels="{1h: {max_length: 100, overflow: reject-publish}}"))
    backfill.write(orders(*[3000] * 130))

    full = backfill.run("--allow-overflow", "--full-wait", "500ms", "--partitions", "1")

    sent = waiting(backfill, "1h")[0]
    assert (full.code, len(backfill.table("ledger"))) == (3, sent)
    assert sum(backfill.rejected().values()) == 130 - sent > 0
    backfill.rabbit.take("delay.1h.queue")
    again = backfill.run()
    assert (again.code, waiting(backfill, "1h"), backfill.table("rejects")) == (0, [130 - sent], [])
    assert len({row["message_id"] for row in backfill.table("ledger")}) == 130


def test_keys_of_a_csv_stay_what_they_are(backfill: Backfill) -> None:
    """Zeros in front of them, in ids and in bodies; another file changes no id."""
    backfill.apply(THREE)
    due = (datetime.now(UTC) + timedelta(seconds=3000)).strftime("%Y-%m-%d %H:%M:%S")
    source = ("--source", f"csv:{backfill.folder}/csv")
    (backfill.folder / "csv").mkdir()
    (backfill.folder / "csv" / "a.csv").write_text(f"order_id,pay_by\n00123,{due}\n0123,{due}\n123,{due}\n")
    first = backfill.run(*source)

    (backfill.folder / "csv" / "b.csv").write_text(f"order_id,pay_by\nA0006,{due}\n")
    second = backfill.run(*source)

    assert (first.code, second.code) == (0, 0), second.err
    assert sorted(row["message_id"] for row in backfill.table("ledger")) == ["00123", "0123", "123", "A0006"]
    bodies = [json.loads(message.body)["order_id"] for message in backfill.rabbit.take("delay.1h.queue")]
    assert sorted(bodies) == ["00123", "0123", "123", "A0006"]


def test_a_checkpoint_of_an_earlier_release_that_took_keys_for_numbers(backfill: Backfill) -> None:
    """It is refused, and nothing is sent again."""
    backfill.apply(THREE)
    due = (datetime.now(UTC) + timedelta(seconds=3000)).strftime("%Y-%m-%d %H:%M:%S")
    source = ("--source", f"csv:{backfill.folder}/a.csv")
    (backfill.folder / "a.csv").write_text(f"order_id,pay_by\n1,{due}\n")
    assert backfill.run(*source).code == 0
    job = backfill.checkpoint / "job.json"
    job.write_text(json.dumps({key: value for key, value in json.loads(job.read_text()).items() if key != "key_kinds"}))

    (backfill.folder / "a.csv").write_text(f"order_id,pay_by\n001,{due}\n")
    ran = backfill.run(*source)

    assert (ran.code, waiting(backfill, "1h")) == (1, [1])
    assert ran.err.startswith(
        "Error: an earlier release sent the row '001' as '1', since it took keys in csv for numbers"
    )


def test_another_name_of_the_broker_goes_on_with_the_checkpoint(backfill: Backfill) -> None:
    """It is known by its cluster, and said to have moved."""
    backfill.apply(THREE)
    backfill.write(orders(*[3000] * 5))
    assert backfill.run().code == 0

    elsewhere = backfill.rabbit.broker.url.replace("127.0.0.1", "localhost")
    again = delayctl(*backfill.arguments("--yes"), *backfill.rabbit.options, "--url", elsewhere)

    assert (again.code, waiting(backfill, "1h")) == (0, [5]), again.err
    assert "Nothing to do: all is confirmed" in again.out
    assert again.err.startswith("The checkpoint knows this broker at amqp://127.0.0.1:")


def test_a_header_that_can_not_be_made_ends_the_look(backfill: Backfill) -> None:
    """Nothing is begun, and it says how to go on."""
    backfill.apply(THREE)
    backfill.write(orders(3000, 3000))

    ran = backfill.run("--headers-column", "map(if(order_id = 1, null, 'a'), 'x')")

    assert (ran.code, backfill.checkpoint.exists()) == (1, False)
    assert "null as map key" in ran.err
    assert ran.err.splitlines()[1].startswith("  fix: correct the expression: try_to_timestamp, try_cast and the like")


def test_what_is_due_beyond_the_levels_waits_for_a_later_run(backfill: Backfill) -> None:
    """It is put aside, and taken as soon as there is a level for it."""
    backfill.apply(LEVELS.format(levels="[1h]"))
    backfill.write(orders(*[3000] * 5, *[9000] * 8))

    first = backfill.run("--beyond", "later")

    assert (first.code, waiting(backfill, "1h"), backfill.rejected()) == (0, [5], {})
    assert sorted(int(row["message_id"]) for row in backfill.table("later")) == list(range(5, 13))
    backfill.apply(LEVELS.format(levels="[1h, 3h]"))
    second = backfill.run("--beyond", "later")
    assert (second.code, waiting(backfill, "1h", "3h"), backfill.table("later")) == (0, [5, 8], [])


def test_one_row_in_a_hundred_is_bad(backfill: Backfill) -> None:
    """The others are sent; each bad one is in the rejects with its reason and its content, and counted."""
    backfill.apply(THREE)
    backfill.write(orders(*[None if number % 100 == 7 else 3000 for number in range(3000)]))

    ran = backfill.run()

    assert (ran.code, waiting(backfill, "1h"), backfill.rejected()) == (3, [2970], {"due_at is null": 30})
    assert "3,000 rows: 2,970 confirmed, 30 rejected" in ran.out
    assert f"The rows that were refused are in {backfill.checkpoint}/rejects, each with the reason.\n" in ran.out
    row = min(backfill.table("rejects"), key=lambda each: int(each["message_id"]))
    assert json.loads(json.loads(row["row"])["body"]) == {"order_id": 7}


def test_bytes_count_as_messages_do(backfill: Backfill) -> None:
    """Where a level has a limit of bytes, and bodies are more, nothing is sent."""
    backfill.apply(LEVELS.format(levels="{1h: {max_length: 1000, max_bytes: 10000}}"))
    backfill.write(orders(*[3000] * 100).append_column("text", pa.array(["x" * 200] * 100)))

    refused = backfill.run("--body-column", "text")

    assert (refused.code, waiting(backfill, "1h")) == (1, [0])
    assert refused.err == (
        "Error: 1h would overflow; nothing was sent\n"
        "  fix: send fewer rows (--where) or slower (--rate), raise max_bytes, or say --allow-overflow\n"
    )
    assert "Level 1h has no room for 10,000 bytes of bodies (max_bytes) at the worst moment" in refused.out
    assert backfill.run("--body-column", "text", "--where", "order_id < 50").code == 0
    assert (waiting(backfill, "1h"), backfill.rabbit.ready("orders")) == ([50], 0)


def test_a_level_that_waits_otherwise_is_refused(backfill: Backfill) -> None:
    """Somebody's policy shortens it: what is sent would come out at once."""
    backfill.apply(THREE)
    backfill.write(orders(*[3000] * 3))
    backfill.rabbit.put_policy("shorter", "^delay.1h.queue$", message_ttl=1000)
    backfill.rabbit.await_effective("delay.1h.queue", {"message-ttl": 1000})

    ran = backfill.run()

    assert (ran.code, ran.out, waiting(backfill, "1h"), backfill.rabbit.ready("orders")) == (1, "", [0], 0)
    assert ran.err == (
        "Error: the levels do not wait as the file says: delay.1h.queue lets messages out after 1s, not after 1h (policy shorter);"
        f" nothing was sent\n  fix: delayctl plan {backfill.topology} shows what differs, and what can be done about it\n"
    )


def test_a_routing_key_that_no_route_takes_is_refused(backfill: Backfill) -> None:
    """Before Spark looks at a row; one that somebody else takes is sent."""
    backfill.apply(THREE)
    backfill.write(orders(*[-5] * 3))

    refused = backfill.run("--routing-key", "typo.created")

    assert (refused.code, refused.out, backfill.checkpoint.exists()) == (1, "", False)
    assert refused.err == (
        "Error: no route takes the routing key 'typo.created': every message would be parked in delay.unrouted.queue; "
        f"nothing was sent\n  fix: correct --routing-key, or add a route for it to {backfill.topology} and apply that\n"
    )
    with backfill.rabbit.channel() as channel:
        channel.queue_bind("orders", "delay.exchange", "typo.#")
    assert (backfill.run("--routing-key", "typo.created").code, backfill.rabbit.ready("orders")) == (0, 3)


def test_rows_whose_key_no_route_takes_are_told(backfill: Backfill) -> None:
    """They are counted while it looks at the rows, and may be what is wanted."""
    backfill.apply(THREE)
    backfill.write(orders(*[3000] * 10))

    ran = backfill.run("--routing-key-column", "if(order_id < 4, 'typo', 'order.created')", "--dry-run")

    assert ran.code == 0
    assert "Warning: 4 rows have a routing key that no route takes, such as 'typo': " in ran.out


def test_nothing_to_do_leaves_no_rejects_behind(backfill: Backfill) -> None:
    """The row that was refused is no longer there: neither is what was written of it; a dry run removes nothing."""
    backfill.apply(THREE)
    backfill.write(orders(3000, None))
    assert backfill.run().code == 3
    backfill.write(orders(3000))

    looked, kept = backfill.run("--dry-run"), backfill.rejected()
    ran = backfill.run()

    assert (looked.code, kept) == (0, {"due_at is null": 1})
    assert (ran.code, ran.out.partition(":")[0], backfill.rejected()) == (0, "Nothing to do", {})


@pytest.mark.parametrize("format_", ["csv", "json", "orc", "table"])
def test_whatever_spark_reads(backfill: Backfill, spark: "SparkSession", format_: str) -> None:
    """Every part of a message from a column or an expression, and only the rows that are asked for."""
    backfill.apply(THREE)
    due = (datetime.now(UTC) + timedelta(seconds=3000)).replace(tzinfo=None, microsecond=0).isoformat(" ")
    rows = spark.createDataFrame(
        [(number, "de" if number % 2 else "fr", due, f"text {number}") for number in range(10)],
        "number int, country string, day string, text string",
    )
    place = f"{backfill.folder}/reminders"
    if format_ == "table":
        rows.createOrReplaceTempView("reminders")
        place = "reminders"
    else:
        rows.write.format(format_).option("header", "true").save(place)

    ran = backfill.run(
        "--source", f"{format_}:{place}", "--key", "country,number", "--due-column", "to_timestamp(day)",
        "--routing-key-column", "concat('order.', if(number > 0, 'created', ''))", "--body-column", "text",
        "--headers-column", "map('country', country)", "--where", "country = 'de'", "--id-prefix", "reminder-",
    )  # fmt: skip

    assert (ran.code, waiting(backfill, "1h")) == (0, [5]), ran.err
    assert sorted(row["message_id"] for row in backfill.table("ledger")) == [
        f"reminder-de:{n}" for n in (1, 3, 5, 7, 9)
    ]
    taken = sorted((m.body, m.key, m.headers["country"]) for m in backfill.rabbit.take("delay.1h.queue"))
    assert taken == [(f"text {number}", "order.created", "de") for number in (1, 3, 5, 7, 9)]


def test_by_level_and_by_delay(backfill: Backfill) -> None:
    """A level that is not there rejects its rows; so does a delay that is none."""
    backfill.apply(THREE)
    backfill.write(pa.table({"order_id": [1, 2, 3], "wait": ["1h", "2h", "1d"]}))

    by_level = backfill.run("--level-column", "wait")
    by_delay = backfill.run("--delay-column", "wait", "--checkpoint", str(backfill.folder / "other"))

    assert (by_level.code, by_delay.code) == (3, 3)
    assert waiting(backfill, "1h", "3h", "6h") == [2, 1, 0]
    assert backfill.rejected() == {"there is no level '2h'": 1, "there is no level '1d'": 1}
    assert "         1  due later than the longest level (6h) waits\n" in by_delay.out


def test_the_rate_is_kept_by_all_tasks_together_and_the_order_nearly(backfill: Backfill) -> None:
    """Never more in any second after the first; out of order by no more than tasks are apart."""
    backfill.apply(THREE)
    backfill.write(orders(*[600 + number for number in range(1500)]))

    ran = backfill.run("--rate", "400/s", "--partitions", "2")

    ledger = sorted(backfill.table("ledger"), key=lambda row: row["sent_at"])
    sent = [row["sent_at"].timestamp() for row in ledger]
    most = max(sum(1 for time in sent if start <= time < start + 1) for start in sent if start >= sent[0] + 1)
    assert (ran.code, len(sent), {row["partition"] for row in ledger}) == (0, 1500, {0, 1})
    assert most <= 440
    numbers = [int(row["message_id"]) for row in ledger]
    assert max(abs(place - number) for place, number in enumerate(numbers)) < 400


@pytest.mark.parametrize(
    ("options", "code", "error"),
    [
        (["--key", "id"], 64, "the key column 'id' is not there"),
        (["--due-column", "payby"], 64, "`payby` cannot be resolved. Did you mean one of the following? [`pay_by`"),
        (["--due-column", "order_id"], 64, "the due column is of type bigint, not timestamp"),
        (["--body-column", "order_id"], 64, "the column body is of type bigint, not string or binary"),
        (["--where", "order_id >"], 64, "Spark: Syntax error"),
        (["--where", "nofunction(order_id)"], 64, "`nofunction`"),
        (["--source", "parquet:/nowhere/at/all"], 1, "Spark: Path does not exist: file:/nowhere/at/all"),
        (["--source", "table:nobody.knows"], 1, "`nobody`.`knows` cannot be found"),
        (["--source", "avrooo:x"], 1, "Spark: Failed to find the data source: avrooo"),
        (["--source", "orc:/proc/self/status"], 1, "Spark: "),
        (["--source", "jdbc:sqlite:/x.db", "--source-option", "dbtable=t"], 1, "Spark: No suitable driver"),
        (["--source", "orders.parquet"], 64, "the source 'orders.parquet' is not FORMAT:PLACE"),
        (["--partitions", "3"], 64, "--partitions 3 is more than the 2 cores of this Spark"),
        (["--url", "amqp://127.0.0.1:1/", "--timeout", "1"], 1, "127.0.0.1:1"),
        (["--vhost", "nobody-has-it"], 1, "there is no virtual host 'nobody-has-it'"),
        (["--rate", "fast"], 64, "--rate is 'fast'"),
        (["--delay-column", "'1h'", "--level-column", "'1h'"], 64, "exactly one of --due-column"),
    ],
)
def test_bad_input_is_one_clear_error(backfill: Backfill, options: list[str], code: int, error: str) -> None:
    """With the right code and a fix, and nothing is begun."""
    backfill.apply(THREE)
    backfill.write(orders(*[3000] * 3))

    ran = delayctl(*backfill.arguments(), "--yes", *backfill.rabbit.options, *options)

    assert (ran.code, ran.out) == (code, "")
    assert error in ran.err
    assert (ran.err.split(" ")[0], ran.err.count("Error:"), ran.err.count("\n  fix: ")) == ("Error:", 1, 1)
    assert (waiting(backfill, "1h"), backfill.checkpoint.exists()) == ([0], False)


def test_the_way_has_to_be_there_before_anything_is_sent(backfill: Backfill) -> None:
    """A file that was never applied: nothing begins, not even Spark."""
    backfill.topology.write_text(THREE, encoding="utf-8")
    backfill.write(orders(3000))

    ran = backfill.run()

    assert (ran.code, ran.out, backfill.checkpoint.exists()) == (1, "", False)
    assert ran.err.startswith("Error: the broker is not as the file says: no exchange 'delay.exchange'")
    assert ran.err.endswith(f"\n  fix: delayctl apply {backfill.topology}\n")


def test_a_checkpoint_is_one_jobs_own(backfill: Backfill) -> None:
    """Another source, key or broker would take its ledger for its own, and send nothing."""
    backfill.apply(THREE)
    backfill.write(orders(3000))
    assert backfill.run().code == 0

    ran = backfill.run("--where", "order_id > 0", "--id-prefix", "x")

    assert (ran.code, ran.out, waiting(backfill, "1h")) == (1, "", [1])
    assert ran.err.startswith(
        f"Error: the checkpoint belongs to a job with another id_prefix, where\n  at {backfill.checkpoint}\n"
    )


def test_nobody_to_ask(backfill: Backfill) -> None:
    """Without --yes and without a terminal it shows what it would do, and stops."""
    backfill.apply(THREE)
    backfill.write(orders(3000))

    ran = backfill.run(yes=False)

    assert (ran.code, waiting(backfill, "1h"), backfill.checkpoint.exists()) == (64, [0], False)
    assert "             1  to send\n" in ran.out
    assert "give --yes" in ran.err


def test_a_newer_run_ends_an_older_one(backfill: Backfill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once would send things twice; the older one says who has taken over."""
    backfill.apply(THREE)
    backfill.write(orders(*[3000] * 3000))
    monkeypatch.setattr(Bar, "progress", lambda _bar, _confirmed, _total: overtake(backfill))

    ran = backfill.run("--rate", "500/s")

    assert ran.code in (1, 3)
    assert "Error: run 2 of this job has begun, and run 1 ends here\n  fix: let it finish\n" in ran.out
    assert waiting(backfill, "1h")[0] < 3000


def overtake(backfill: Backfill) -> None:
    """Begin another run, as another driver would."""
    Folder(str(backfill.checkpoint)).write_json("runs/0002.json", {"state": "running"})


@pytest.fixture
def interrupted(backfill: Backfill, spark_folder: SparkHome) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, slow enough to be stopped, with some rows confirmed already."""
    backfill.apply(THREE)
    backfill.write(orders(*[3000] * 6000))
    process = delayctl_process(
        *backfill.arguments("--rate", "400/s", "--yes"), *backfill.rabbit.options,
        env=spark_folder.environment(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        until(lambda: len(backfill.table("ledger")) > 400 or process.poll() is not None, 240)
        yield process
    finally:
        process.kill()
        process.communicate()


def test_stopped_in_the_middle(backfill: Backfill, interrupted: subprocess.Popen[str]) -> None:
    """All that was sent is in the ledger, and the next run sends exactly the rest."""
    interrupted.send_signal(signal.SIGINT)
    out, err = interrupted.communicate(timeout=60)

    sent = waiting(backfill, "1h")[0]
    assert (interrupted.returncode, len(backfill.table("ledger"))) == (3, sent), out + err
    assert err == "Stopping: what is on its way is confirmed and written down first. Ctrl-C once more kills it.\n"
    assert f"{sent:,} rows: {sent:,} confirmed" in out
    assert out.endswith("Run the same command again: only what is not confirmed is sent.\n")
    assert backfill.run().code == 0
    ids = [row["message_id"] for row in backfill.table("ledger")]
    assert (waiting(backfill, "1h"), len(ids), len(set(ids))) == ([6000], 6000, 6000)


def test_without_java(backfill: Backfill, spark_folder: SparkHome) -> None:
    """It says so, and how to get one."""
    backfill.apply(THREE)
    backfill.write(orders(3000))
    outside = spark_folder.environment(os.environ)
    environment = {**outside, "JAVA_HOME": "/nowhere", "PATH": "/usr/bin"}

    process = delayctl_process(
        *backfill.arguments("--yes"), *backfill.rabbit.options,
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip

    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert err == (
        "Error: Spark did not start: /nowhere/bin/java: No such file or directory\n"
        "  fix: install Java 17 or newer (apt-get install openjdk-17-jre-headless), and check --master and --conf\n"
    )
