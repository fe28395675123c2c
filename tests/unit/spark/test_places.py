"""What is looked for before Spark starts."""

from pathlib import Path

import pytest
from delayctl.spark.places import check_audit, check_source, normal, shown
from delayctl.topology.errors import BadOption, DelayctlError

from tests.support.commands import delayctl

SPARKS = ("PYSPARK_GATEWAY_PORT", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has told Spark where files are."""
    for name in SPARKS:
        monkeypatch.delenv(name, raising=False)


def test_an_audit_of_nothing_says_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything of Spark is loaded: here that would fail."""
    monkeypatch.setattr("delayctl.cli.audit._check_spark", pytest.fail)

    ran = delayctl("audit", "--ledger", str(tmp_path / "none"), "--record", str(tmp_path))

    assert (ran.code, ran.err) == (
        1,
        f"Error: there is no ledger\n  at {tmp_path / 'none'}\n"
        "  fix: name the folder that was given to delayctl backfill --checkpoint\n",
    )


def test_every_record_has_to_be_there(tmp_path: Path) -> None:
    """Not only the first."""
    with pytest.raises(DelayctlError, match="there is no record"):
        check_audit(str(tmp_path), (str(tmp_path), f"file:{tmp_path}/none"))


@pytest.mark.parametrize("place", ["hdfs://host/none", "s3a://bucket/none", "none/*.parquet", "none/{a,b}"])
def test_what_only_spark_can_tell_is_left_to_it(place: str) -> None:
    """Other machines, and patterns."""
    check_audit(place, (place,))
    check_source("parquet", place, is_told_elsewhere=False)


@pytest.mark.parametrize("name", SPARKS)
def test_where_spark_was_told_elsewhere_paths_may_be_anywhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is said to be of this machine is looked for."""
    monkeypatch.setenv(name, "1")

    check_audit("none", ("none",))
    with pytest.raises(DelayctlError, match="there is no ledger"):
        check_audit("file:///none", ())


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    """Files are looked for; tables are not files, and who sets Hadoop's file system is believed."""
    with pytest.raises(DelayctlError, match="the source is not there"):
        check_source("parquet", str(tmp_path / "none"), is_told_elsewhere=False)

    check_source("parquet", str(tmp_path), is_told_elsewhere=False)
    check_source("parquet", str(tmp_path / "none"), is_told_elsewhere=True)
    check_source("table", "shop.orders", is_told_elsewhere=False)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("orders", "{here}/orders"),
        ("./orders/", "{here}/orders"),
        ("{here}/x/../orders", "{here}/orders"),
        ("file:{here}/orders/", "{here}/orders"),
        ("file://{here}/orders", "{here}/orders"),
        ("2026-11-16T18:30", "{here}/2026-11-16T18:30"),
        ("s3a://lake/orders/", "s3a://lake/orders"),
        ("hdfs:/lake/orders/", "hdfs:/lake/orders"),
    ],
)
def test_the_same_files_are_known_by_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, expected: str
) -> None:
    """However their place is written; another name would begin another checkpoint, and send everything again."""
    monkeypatch.chdir(tmp_path)

    assert normal("parquet", place.format(here=tmp_path)) == expected.format(here=tmp_path)


def test_a_path_that_may_lead_elsewhere_is_not_led_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver on a cluster works in another folder each time; and a table is no path."""
    monkeypatch.setenv("SPARK_CONF_DIR", "/x")

    assert [normal("parquet", place) for place in ("./orders/", "/lake/", "file:/lake/")] == [
        "orders",
        "/lake",
        "/lake",
    ]
    assert normal("table", "./orders/") == "./orders/"


def test_half_a_uri_is_refused_before_spark_starts() -> None:
    """Spark would look for a file system that is called so."""
    with pytest.raises(BadOption, match="the place 's3:bucket/x' is neither a path nor a URI"):
        check_audit("s3:bucket/x", ())


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("s3://KEY:SEC/RET@bucket/x", "s3://…@bucket/x"),
        ("abfs://container@account/x", "abfs://container@account/x"),
        ("/a:b@c", "/a:b@c"),
    ],
)
def test_what_may_be_shown_of_a_place(place: str, expected: str) -> None:
    """All but a login."""
    assert shown(place) == expected
