"""delayctl backfill as it is read: what would be done, what was done, how far it is; no Spark is started here."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from delayctl.cli import backfill_inputs
from delayctl.cli.backfill import _code
from delayctl.cli.backfill_bar import bar_text
from delayctl.cli.backfill_checkpoint import default_checkpoint, tell_of_others
from delayctl.cli.backfill_inputs import job_from, parts_of_key, rate_from
from delayctl.cli.backfill_views import Scene, answer_json, estimate_text, nothing_text, outcome_text, rate_text
from delayctl.cli.views import to_json_text
from delayctl.spark.account import Account
from delayctl.spark.backfill_job import BackfillJob
from delayctl.spark.estimate import HOUR_MS, Estimate, LevelForecast, More, Room, Unrouted
from delayctl.spark.outcome import Outcome
from delayctl.spark.places import TOLD_ELSEWHERE
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption

from tests.support.commands import delayctl
from tests.support.golden import check_golden

NOON = int(datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp() * 1000)
SCENE = Scene(
    "parquet:orders/", "topology.yaml", "amqp://localhost:5672", Duration.parse("1h"), "refuse", "backfill-0123456789"
)
LEVELS = (
    LevelForecast(Room("5m", 1_200, 1_000_000), 310_000, 311_200),
    LevelForecast(Room("30m", 0, 100_000), 250_000, 250_000),
    LevelForecast(Room("1h", 7, None), 400_000, 400_007),
)
HEAVY = Room("5m", 0, 1_000_000, waiting_bytes=0, max_bytes=10_000_000)
IDLE = LevelForecast(Room("1h", 20, 10), 0, 20)  # Full before, and left alone.
ESTIMATE = Estimate(
    1_000_000,
    40_000,
    2_500,
    {"due_at is null": 31, "another row has the same key, and comes first": 4},
    0,
    LEVELS,
    {NOON: 600_000, NOON + HOUR_MS: 390_000, NOON + 2 * HOUR_MS: 10_000},
    200_000,
    5_000.0,
)
DONE = Outcome(
    1,
    Account(rows=1_002_535, confirmed=1_000_000, rejected=2_535),
    1_000_000,
    (("due later than the longest level (1h) waits", 2_500), ("due_at is null", 31), ("no queue takes it", 4)),
    False,
    201_345,
)


@pytest.mark.parametrize(
    ("name", "found", "scene"),
    [
        ("overflow", ESTIMATE, SCENE),
        ("small", replace(ESTIMATE, levels=LEVELS[:1], rate=None, beyond=0, rejected={}, takes_ms=900), SCENE),
        (
            "again",
            replace(ESTIMATE, confirmed_before=990_000, to_send=10_000, overdue=0, levels=LEVELS[:1]),
            replace(SCENE, beyond="later"),
        ),
        ("rejects", replace(ESTIMATE, to_send=0, overdue=0, confirmed_before=990_000, hours={}), SCENE),
        (
            "bytes",
            replace(
                ESTIMATE,
                levels=(LevelForecast(HEAVY, 310_000, 310_000, 62_000_000), IDLE),
                hastened=70,
                rejected={},
                rate=0.5,
            ),
            SCENE,
        ),
        (
            "many_reasons",
            replace(
                ESTIMATE,
                levels=LEVELS[:1],
                rejected={f"'{number}x' is not a delay": 100 - number for number in range(22)},
                more=More(57, 114),
                unrouted=Unrouted(12, "typo.created"),
            ),
            SCENE,
        ),
        (
            "many_hours",
            replace(ESTIMATE, levels=LEVELS[:1], hours={NOON + hour * HOUR_MS: 10 * hour + 1 for hour in range(30)}),
            SCENE,
        ),
    ],
)
def test_what_would_be_done(name: str, found: Estimate, scene: Scene) -> None:
    """The whole text."""
    check_golden(f"backfill_{name}.txt", estimate_text(found, scene) + "\n")


@pytest.mark.parametrize(
    ("name", "done"),
    [
        ("done", DONE),
        ("stopped", replace(DONE, is_stopped=True, reasons=(), account=Account(rows=7_000, confirmed=7_000), in_ledger=7_000)),
        (
            "failed",
            replace(
                DONE,
                account=Account(),
                reasons=(),
                in_ledger=8_192,
                errors=(("nothing answers at amqp://localhost:5672", "check the address"), ("odd", None)),
            ),
        ),
        ("later", replace(DONE, run=2, account=Account(rows=12, confirmed=2, later=10), in_ledger=2, reasons=())),
    ],
)  # fmt: skip
def test_what_was_done(name: str, done: Outcome) -> None:
    """The whole text."""
    check_golden(f"backfill_{name}.txt", outcome_text(done, 100, SCENE) + "\n")


ODD = (("odd", None),)


@pytest.mark.parametrize(
    ("done", "code"),
    [
        (DONE, 3),  # Some rows were refused.
        (replace(DONE, account=Account(rows=3, confirmed=3)), 0),
        (replace(DONE, account=Account(), is_stopped=True), 3),
        (replace(DONE, account=Account(), errors=ODD), 3),
        (replace(DONE, account=Account(), errors=ODD, in_ledger=0), 1),
        (replace(DONE, account=Account(), errors=ODD, in_ledger=0, is_stopped=True), 3),
    ],
    ids=["refused", "done", "stopped", "failed", "failed at once", "killed at once"],
)
def test_the_code_says_whether_anything_was_sent(done: Outcome, code: int) -> None:
    """What was killed may have sent something that nobody wrote down."""
    assert _code(done) == code


def test_the_same_for_programs() -> None:
    """One object, whatever happened."""
    check_golden("backfill.json", to_json_text(answer_json(ESTIMATE, DONE, SCENE)) + "\n")
    assert answer_json(ESTIMATE, None, SCENE)["outcome"] is None


def test_nothing_to_do_is_one_line() -> None:
    """It tells all that was done before from nothing at all."""
    nothing = replace(ESTIMATE, to_send=0, beyond=0, rejected={}, confirmed_before=0)

    assert nothing_text(nothing, SCENE) == "Nothing to do: there are no such rows in parquet:orders/."
    assert nothing_text(replace(nothing, confirmed_before=5), SCENE) == (
        "Nothing to do: all is confirmed, 5 messages; the ledger is in backfill-0123456789/ledger."
    )


@pytest.mark.parametrize(
    ("confirmed", "total", "rate", "text"),
    [
        (0, 1_000, None, "[------------------------]   0%  0 of 1,000"),
        (250, 1_000, 50.0, "[######------------------]  25%  250 of 1,000, 50/s, 15s left"),
        (1, 1_000_000, 5_000.0, "[------------------------]   0%  1 of 1,000,000, 5,000/s, 3m20s left"),
        (1, 100_000_000, 5_000.0, "[------------------------]   0%  1 of 100,000,000, 5,000/s, 5h33m left"),
        (1_000, 1_000, 50.0, "[########################] 100%  1,000 of 1,000, 50/s"),
        (1_005, 1_000, 50.0, "[########################] 100%  1,005 of 1,000, 50/s"),
        (0, 0, None, "[########################] 100%  0 of 0"),
    ],
)
def test_the_bar(confirmed: int, total: int, rate: float | None, text: str) -> None:
    """Share, count, rate and time left; it fits into eighty columns."""
    assert bar_text(confirmed, total, rate) == text
    assert len(text) < 80


@pytest.mark.parametrize(
    ("text", "rate"),
    [(None, None), ("5000/s", 5000.0), ("5000", 5000.0), ("6,000/m", 100.0), ("7_200/h", 2.0), ("0.5/s", 0.5)],
)
def test_rates(text: str | None, rate: float | None) -> None:
    """By second, minute and hour."""
    assert rate_from(text) == rate


@pytest.mark.parametrize(
    ("text", "shown"),
    [("5000/s", "5,000/s"), ("10/m", "10/m"), ("90/h", "90/h"), ("1.5/s", "90/m"), ("6,000/m", "100/s"), ("1.2345/s", "1.23/s")],
)  # fmt: skip
def test_a_rate_is_shown_by_a_time_that_suits_it(text: str, shown: str) -> None:
    """Ten a minute are not none a second."""
    assert rate_text(rate_from(text) or 0) == shown


def test_later_needs_a_due_time() -> None:
    """What says how long it waits would be beyond for ever."""
    with pytest.raises(BadOption, match="--beyond later needs --due-column"):
        job_from({**OPTIONS, "beyond": "later", "due_column": None, "delay_column": "wait"}, "amqp://a:5672 / exit")


@pytest.mark.parametrize("text", ["", "fast", "0/s", "-5/s", "5/d", "5 /s", ",", "1e3/s", "5000/s/s"])
def test_what_is_no_rate(text: str) -> None:
    """It says how to write one."""
    with pytest.raises(BadOption, match="write it like 5000/s or 100000/m"):
        rate_from(text)


OPTIONS: dict[str, Any] = {
    **dict.fromkeys(("routing_key_column", "delay_column", "level_column", "body_column", "headers_column", "where")),
    "source": "parquet:orders",
    "source_options": (),
    "keys": ("a, b", "c"),
    "routing_key": "k",
    "due_column": "due",
    "id_prefix": "",
    "beyond": "refuse",
}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a, b,", ("a", "b")),
        ("concat(a, upper(b), ')', c),d", ("concat(a, upper(b), ')', c)", "d")),
        (" ", ()),
    ],
)
def test_a_key_has_parts_between_commas(text: str, parts: tuple[str, ...]) -> None:
    """But for commas in an expression."""
    assert parts_of_key(text) == parts


def test_the_checkpoint_is_the_jobs_own() -> None:
    """The same for the same command; another for another key, condition or broker."""
    jobs = [
        job_from(OPTIONS, "amqp://a:5672 / exit"),
        job_from(OPTIONS, "amqp://b:5672 / exit"),
        job_from({**OPTIONS, "where": "x"}, "amqp://a:5672 / exit"),
    ]
    names = [default_checkpoint(job) for job in jobs]

    assert jobs[0].key == ("a", "b", "c")
    assert default_checkpoint(job_from(OPTIONS, "amqp://a:5672 / exit")) == names[0]
    assert len(set(names)) == 3
    assert all(name.startswith("backfill-") and len(name) == 19 for name in names)


def test_the_checkpoint_that_an_earlier_release_named_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was named by options as they are; the same command has to go on there, and not to send everything anew."""
    monkeypatch.chdir(tmp_path)
    job = job_from({**OPTIONS, "source_options": ("someOption=x",)}, "amqp://a:5672 / exit")
    name = default_checkpoint(job)
    former = "backfill-23fde32222"
    Path(former).mkdir()

    assert (name != former, default_checkpoint(job)) == (True, former)


@pytest.fixture(autouse=True)
def _nobody_told_spark_where_paths_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark of an earlier test did, by the environment that it was started with."""
    for name in TOLD_ELSEWHERE:
        monkeypatch.delenv(name, raising=False)


def job_of(source: str, target: str = "amqp://a:5672 / exit") -> BackfillJob:
    """A job that reads this place."""
    return job_from({**OPTIONS, "source": source}, target)


def test_another_spelling_has_the_same_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slash more is no other job: everything would be sent again."""
    monkeypatch.chdir(tmp_path)
    spellings = ("orders", "orders/", "./orders", f"{tmp_path}/orders", f"file:{tmp_path}/orders")

    assert len({default_checkpoint(job_of(f"parquet:{place}")) for place in spellings}) == 1


def test_a_checkpoint_that_was_begun_by_another_spelling_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier release named it by the text."""
    monkeypatch.chdir(tmp_path)
    Path("backfill-formerly").mkdir()
    former = {**job_of("parquet:orders").description(), "source": "parquet:orders/"}
    Path("backfill-formerly/job.json").write_text(json.dumps(former))

    assert default_checkpoint(job_of("parquet:orders")) == "backfill-formerly"


def test_a_new_checkpoint_beside_others_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What another name of the same broker begins anew, say; what has nothing in common is not named."""
    monkeypatch.chdir(tmp_path)
    jobs = {"a": job_of("parquet:orders", "amqp://localhost:5672 / exit"), "b": replace(job_of("csv:x"), key=("z",))}
    for name, job in jobs.items():
        Path(f"backfill-{name}").mkdir()
        Path(f"backfill-{name}/job.json").write_text(json.dumps(job.description()))
    Path("backfill-c").mkdir()
    Path("backfill-c/job.json").write_text("{")

    tell_of_others(job_of("parquet:orders"), "backfill-new")
    tell_of_others(job_of("parquet:orders"), "backfill-a")

    assert capsys.readouterr().err == (
        "Note: backfill-new is a new checkpoint, beside 1 other of the same source or key: backfill-a (another target). "
        "What is confirmed there is sent again; --checkpoint names the folder to go on with.\n"
    )


@pytest.mark.parametrize("name", ["where", "due_column", "headers_column", "checkpoint"])
def test_an_option_that_is_empty_is_refused(name: str) -> None:
    """Mostly a variable of the shell is not set, and no condition would select everything."""
    with pytest.raises(BadOption) as error:
        job_from({**OPTIONS, name: " "}, "")

    assert str(error.value) == (
        f"Error: --{name.replace('_', '-')} is empty\n"
        "  fix: give it a value, or leave it out; is a variable of the shell not set?"
    )


def test_without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install."""
    monkeypatch.setattr(backfill_inputs, "find_spec", lambda _name: None)

    ran = delayctl("backfill", "--source", "parquet:x")

    assert (ran.code, ran.err) == (1, "Error: Spark is not installed\n  fix: pip install 'delayctl[spark]'\n")


def test_the_json_answer_is_json() -> None:
    """Whatever is in it."""
    assert json.loads(to_json_text(answer_json(ESTIMATE, DONE, SCENE)))["confirmed"] == 1_000_000
