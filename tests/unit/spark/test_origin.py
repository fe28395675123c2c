"""Where rows come from, and that nobody sees a password on the way."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from delayctl.spark.origin import Origin, origin_from, read_rows_from
from delayctl.topology.errors import BadOption, DelayctlError
from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parquet:orders/", Origin("parquet", "orders/")),
        ("parquet:s3a://lake/orders", Origin("parquet", "s3a://lake/orders")),
        ("csv:/data/a b.csv", Origin("csv", "/data/a b.csv")),
        ("json:x.ndjson", Origin("json", "x.ndjson")),
        ("orc:x", Origin("orc", "x")),
        ("table:shop.orders", Origin("table", "shop.orders")),
        ("delta:/lake/orders", Origin("delta", "/lake/orders")),
        ("org.apache.spark.sql.cassandra:orders", Origin("org.apache.spark.sql.cassandra", "orders")),
        ("jdbc:postgresql://db/shop", Origin("jdbc", "jdbc:postgresql://db/shop")),
    ],
)
def test_formats(text: str, expected: Origin) -> None:
    """What stands before the first colon is the format; a JDBC URL is a place as a whole."""
    assert origin_from(text, []) == expected


@pytest.mark.parametrize("text", ["orders.parquet", "parquet:", ":x", "", "s3://bucket/x", "./a:b"])
def test_no_source(text: str) -> None:
    """A path alone does not say how it is read, and neither does a URL."""
    with pytest.raises(BadOption, match="is not FORMAT:PLACE"):
        origin_from(text, [])


def test_no_source_and_a_password() -> None:
    """Somebody has forgotten jdbc:, and sees what is wrong all the same."""
    with pytest.raises(BadOption, match=r"the source 'postgresql:…' is not FORMAT:PLACE"):
        origin_from("postgresql://reader:hunter2@db/shop", [])


def test_options_are_assignments() -> None:
    """All behind the first sign is the value."""
    assert origin_from("csv:x", ["sep==", "header=false"]).options == (("sep", "="), ("header", "false"))
    with pytest.raises(BadOption, match="NAME=VALUE"):
        origin_from("csv:x", ["header"])


SECRETS = ("hunter2", "reader", "s3cr3t")


@pytest.mark.parametrize(
    ("text", "options", "shown"),
    [
        (
            "jdbc:postgresql://reader:hunter2@db:5432/shop?user=reader&password=hunter2",
            ["dbtable=orders", "user=reader", "password=hunter2", "fetchsize=10"],
            ("jdbc:postgresql://db:5432/shop", {"dbtable": "orders", "fetchsize": "10"}),
        ),
        (
            "jdbc:sqlserver://db;user=reader;password=hunter2;databaseName=shop",
            ["FetchSize=1"],
            ("jdbc:sqlserver://db (digest DIGEST)", {"FetchSize": "1"}),
        ),
        ("jdbc:sqlserver://db:1433;app=a@b", [], ("jdbc:sqlserver:… (digest DIGEST)", {})),
        ("jdbc:oracle:thin:reader/hunter2@db:1521/shop", [], ("jdbc:oracle:thin:@db:1521/shop", {})),
        ("jdbc:oracle:thin:reader/x@hunter2@db:1521/shop", [], ("jdbc:oracle:thin:@db:1521/shop", {})),
        (
            "jdbc:oracle:thin:@(DESCRIPTION=(HOST=db)(SECURITY=(user=reader)(PASSWORD=hunter2)))",
            [],
            ("jdbc:oracle:… (digest DIGEST)", {}),
        ),
        ("jdbc:mysql://reader:x@hunter2@db/shop", [], ("jdbc:mysql://db/shop", {})),
        ("jdbc:mysql://(host=db,user=reader,password=x,hunter2)/shop", [], ("jdbc:mysql:… (digest DIGEST)", {})),
        (
            "jdbc:db2://db:50000/shop:password=hunter2;user=reader;",
            [],
            ("jdbc:db2://db:50000/shop (digest DIGEST)", {}),
        ),
        ("jdbc:mysql://a:3306,[::1]:3306/shop", [], ("jdbc:mysql://a:3306,[::1]:3306/shop", {})),
        (
            "parquet:s3a://reader:s3cr3t@lake/orders",
            ["fs.s3a.secret.key=s3cr3t", "mergeSchema=true"],
            ("parquet:s3a://lake/orders", {"mergeSchema": "true"}),
        ),
        ("parquet:/data/2026-??/x=1", [], ("parquet:/data/2026-??/x=1", {})),
        (
            "parquet:wasbs://c@account.blob.core.windows.net/orders?sig=s3cr3t",
            [],
            ("parquet:wasbs://c@account.blob.core.windows.net/orders", {}),
        ),
    ],
)
def test_secrets_show_nowhere(text: str, options: list[str], shown: tuple[str, dict[str, str]]) -> None:
    """Neither in a repr, nor in what is printed and written to job.json."""
    origin = origin_from(text, options)

    assert (re.sub("[0-9a-f]{8}", "DIGEST", origin.shown), origin.shown_options) == shown
    assert not [secret for secret in SECRETS if secret in f"{origin!r} {origin} {origin.shown}"]


@pytest.mark.parametrize(
    "text",
    [
        "jdbc:mysql://reader:12345;hunter2@db/shop",
        "jdbc:mysql://reader:2024?hunter2@db/shop",
        "jdbc:mysql://reader:x/hunter2@db/shop",
        "jdbc:sqlserver://db;user=reader;password={x;hunter2};databaseName=shop",
        "jdbc:sqlserver://db;user=reader;password={x}};hunter2};databaseName=shop",
        "jdbc:sqlserver://db;user=reader;password=x&hunter2;databaseName=shop",
        "jdbc:sqlserver://db; user=reader; password=hunter2; databaseName=shop",
        "jdbc:sqlserver://db;user=reader;password =hunter2",
        "jdbc:sqlserver://db;password=x@hunter2",
        "jdbc:mysql://(host=db, user=reader, password=hunter2)/shop",
        "jdbc:mysql://address=(host=db)(user=reader)(password=x(hunter2)y)/shop",
        "jdbc:oracle:thin:@(DESCRIPTION=(HOST=db)(SECURITY=(user = reader)(PASSWORD = hunter2)))",
        "jdbc:oracle:kprb:reader/hunter2",
        "jdbc:teradata://db/PASSWORD=hunter2,USER=reader",
        "jdbc:postgresql://db/shop?password=x;app=hunter2&user=reader",
        "parquet:s3a://reader:x/s3cr3t@lake/orders",
        "parquet:s3a://reader:1/s3cr3t@lake/orders",
        "parquet:https://lake/orders; sig = s3cr3t",
    ],
)
def test_however_a_driver_writes_a_secret_it_does_not_show(text: str) -> None:
    """Only what is surely harmless is shown; nobody has to know every way to write a password."""
    shown = origin_from(text, []).shown

    assert not [secret for secret in SECRETS if secret in shown]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("jdbc:mysql://reader:12345;a@db/shop", "jdbc:mysql://writer:b@db/shop", True),
        ("jdbc:sqlserver://db;password=a;databaseName=shop", "jdbc:sqlserver://db;password=b;databaseName=shop", True),
        ("jdbc:sqlserver://db;databaseName=shop", "jdbc:sqlserver://db;databaseName=shops", False),
        ("jdbc:mysql://(host=a)/shop", "jdbc:mysql://(host=b)/shop", False),
        ("parquet:s3a://lake/a@b", "parquet:s3a://lake/a@c", False),
    ],
)
def test_what_does_not_show_still_tells_sources_apart(one: str, other: str, is_same: bool) -> None:
    """By a digest; a login and a password may change."""
    assert (origin_from(one, []).shown == origin_from(other, []).shown) == is_same


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("keyspace=a", "keyspace=b", False),
        ("sfURL=eu.example.com", "sfURL=us.example.com", False),
        ("connection.url=mongodb://reader:a@db/x", "connection.url=mongodb://reader:a@db/y", False),
        ("connection.url=mongodb://reader:a@db/x", "connection.url=mongodb://reader:b@db/x", True),
        ("key.column=a", "key.column=b", False),
        ("authSource=a", "authSource=b", False),
        ("password=a", "password=b", True),
        ("sfPassword=a", "sfPassword=b", True),
        ("userName=a", "userName=b", True),
        ("fs.s3a.access.key=a", "fs.s3a.access.key=b", True),
        ("apikey=a", "apikey=b", True),
        ("OAUTH_TOKEN=a", "OAUTH_TOKEN=b", True),
    ],
)
def test_options_that_say_what_is_read_tell_sources_apart(one: str, other: str, is_same: bool) -> None:
    """Otherwise the second job would find all its rows in the ledger of the first, and send none."""
    shown = [origin_from("delta:orders", [option]).shown_options for option in (one, other)]

    assert (shown[0] == shown[1]) == is_same


def test_of_options_that_nobody_knows_a_digest_is_shown() -> None:
    """Any may hold a secret; the same source with the same value has the same digest, and no other has."""
    one, other = (origin_from("jdbc:derby:shop", [f"{name}=hunter2"]) for name in ("sessionInitStatement", "sasl.jaas"))
    again = [origin_from("jdbc:derby:shop", [f"sessionInitStatement={value}"]) for value in ("hunter2", "hunter3")]

    (digest,) = one.shown_options.values()
    assert re.fullmatch("digest [0-9a-f]{8}", digest)
    assert digest not in other.shown_options.values()
    assert [each.shown_options == one.shown_options for each in again] == [True, False]


def test_the_key_of_a_csv_is_the_text_that_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """Taken for numbers, 007 and 7 would be one, and another file could change the ids of all; so partitions."""
    (tmp_path / "shop=01").mkdir()
    (tmp_path / "shop=01" / "a.csv").write_text("id,at,total\n007,2026-11-16,1\n7,2026-11-17,2\n")

    rows = read_rows_from(spark, origin_from(f"csv:{tmp_path}", []), ("shop", "concat(ID, 'x')"))

    assert rows.dtypes == [("id", "string"), ("at", "date"), ("total", "int"), ("shop", "string")]
    assert [tuple(row) for row in rows.select("id", "shop").collect()] == [("007", "01"), ("7", "01")]


def test_options_reach_the_reader_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """`versionAsOf`, say; of a table of csv it is how fields are parted."""
    (tmp_path / "a.csv").write_text("1;2\n")
    spark.sql(f"CREATE TABLE parted (a string, b string) USING csv LOCATION '{tmp_path}'")
    try:
        assert read_rows_from(spark, origin_from("table:parted", ["sep=;"])).collect() == [("1", "2")]
    finally:
        spark.sql("DROP TABLE parted")


def jvm_of(spark: SparkSession) -> Any:
    """The Java behind a session."""
    return spark._jvm


@contextmanager
def jvm_in_zone(spark: SparkSession, name: str) -> Iterator[None]:
    """A Spark that somebody else started, in a zone of their own."""
    zones = jvm_of(spark).java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(name))
    try:
        yield
    finally:
        zones.setDefault(before)


def test_a_spark_that_reads_times_in_another_zone_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Messages would be hours early or late; where the database has no times, or the zone is UTC, all is well."""
    jvm_of(spark).System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    times, numbers = (
        origin_from("jdbc:derby:memory:zones;create=true", [f"query=SELECT * FROM (VALUES {value}) AS t (x)"])
        for value in ("TIMESTAMP('2026-11-16 12:00:00')", "1")
    )

    with jvm_in_zone(spark, "America/New_York"):
        assert read_rows_from(spark, numbers).first() == (1,)
        with pytest.raises(DelayctlError) as refused:
            read_rows_from(spark, times)
    with jvm_in_zone(spark, "Etc/UTC"):
        assert read_rows_from(spark, times).count() == 1

    assert str(refused.value) == (
        "Error: this Spark reads the times of a database in the zone America/New_York, not in UTC\n"
        "  fix: start it with --conf spark.driver.extraJavaOptions=-Duser.timezone=UTC"
        " --conf spark.executor.extraJavaOptions=-Duser.timezone=UTC"
    )
