"""Where rows come from, and that nobody sees a password on the way."""

import pytest
from delayctl.spark.origin import Origin, origin_from
from delayctl.topology.errors import BadOption


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
            ["query=SELECT 1"],
            ("jdbc:sqlserver://db;databaseName=shop", {"query": "SELECT 1"}),
        ),
        ("jdbc:oracle:thin:reader/hunter2@db:1521/shop", [], ("jdbc:oracle:thin:@db:1521/shop", {})),
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

    assert (origin.shown, origin.shown_options) == shown
    assert not [secret for secret in SECRETS if secret in f"{origin!r} {origin} {shown}"]
