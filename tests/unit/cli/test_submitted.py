"""Passwords on the command line of spark-submit."""

import pytest

from tests.support.commands import Ran, delayctl

WHOLE = {
    "--source": "parquet:none",
    "--key": "id",
    "--due-column": "due",
    "--routing-key": "k",
    "--topology": "/none/topology.yaml",
}


@pytest.fixture(autouse=True)
def submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs behind spark-submit."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.delenv("DELAYCTL_URL", raising=False)


def backfill(**options: str) -> Ran:
    """A backfill with these options, which comes as far as its file."""
    given = {**WHOLE, **{f"--{name.replace('_', '-')}": value for name, value in options.items()}}
    return delayctl("backfill", *(word for option in given.items() for word in option))


@pytest.mark.parametrize(
    ("option", "value", "fix"),
    [
        ("url", "amqp://etl:hunter2@host/", "give --credentials-file, or DELAYCTL_USERNAME and DELAYCTL_PASSWORD"),
        ("management_url", "http://etl:hunter2@host:15672", "give --credentials-file, or DELAYCTL_USERNAME and"),
        ("source", "jdbc:mysql://reader:hunter2@db/shop", "run delayctl backfill --master … instead of spark-submit"),
        ("source", "jdbc:sqlserver://db;Password = hunter2", "run delayctl backfill --master … instead of spark"),
        ("source", "jdbc:oracle:thin:reader/hunter2@db:1521/shop", "run delayctl backfill --master … instead of"),
        (
            "source",
            "parquet:s3a://KEY:hunter2/x@lake/orders",
            "run delayctl backfill --master … instead of spark-submit",
        ),
        ("source_option", "sfPassword=hunter2", "run delayctl backfill --master … instead of spark-submit"),
    ],
)
def test_a_password_that_spark_would_write_down_is_refused(option: str, value: str, fix: str) -> None:
    """With the way to give it that does not show, and without repeating it."""
    ran = backfill(**{option: value})

    what, how, *_ = ran.err.splitlines()
    assert (ran.code, what) == (
        64,
        f"Error: --{option.replace('_', '-')} has a password in it, "
        "and spark-submit writes its command line into Spark's event log",
    )
    assert how.startswith(f"  fix: {fix}")
    assert "hunter2" not in ran.err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("url", "amqp://etl@host:5672/"),
        ("source", "jdbc:mysql://reader@db:3306/shop?user=reader"),
        ("source", "parquet:/lake/2026-11-16T12:00/a@b"),
        ("source_option", "dbtable=orders"),
        ("source_option", "partitionKey=day"),
    ],
)
def test_what_has_no_password_goes_on(option: str, value: str) -> None:
    """A user may be named."""
    assert "topology.yaml" in backfill(**{option: value}).err


def test_a_password_in_the_environment_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody writes that down."""
    monkeypatch.setenv("DELAYCTL_URL", "amqp://etl:hunter2@host/")

    assert "topology.yaml" in backfill().err


def test_without_spark_submit_nobody_writes_it_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line of delayctl itself is no part of Spark's."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT")

    assert "topology.yaml" in backfill(url="amqp://etl:hunter2@host/").err
