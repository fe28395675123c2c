"""Where the rows of a backfill come from: whatever Spark reads."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from delayctl.topology.errors import BadOption
from delayctl.topology.wording import quoted
from pyspark.sql import DataFrame, SparkSession

_CSV = {"header": "true", "inferSchema": "true"}
_SECRET = re.compile("(?i)pass|pwd|secret|token|key|user|url|sig")
_LOGIN = re.compile(r"//[^/@:]*:[^/@]*@")
_ORACLES_LOGIN = re.compile(r"^(jdbc:oracle:\w+:)[^@]*@")
_PARAMETER = re.compile(r"[?&;]([\w.-]+)=[^&;]*")


@dataclass(frozen=True, slots=True)
class Origin:
    """A format, a place, and options; what may be secret shows nowhere."""

    format: str
    place: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def shown(self) -> str:
        """The place as it may be shown: without logins, and without parameters that hold a secret."""
        text = self.place if self.format == "jdbc" else f"{self.format}:{self.place}"
        without_login = _ORACLES_LOGIN.sub(r"\1@", _LOGIN.sub("//", text))
        return _PARAMETER.sub(lambda found: "" if _SECRET.search(found[1]) else found[0], without_login)

    @property
    def shown_options(self) -> dict[str, str]:
        """The options that hold no secret."""
        return {name: value for name, value in self.options if not _SECRET.search(name)}


def origin_from(text: str, assignments: Iterable[str]) -> Origin:
    """Read `parquet:PATH`, `csv:PATH`, `table:NAME`, `jdbc:…` and the like."""
    format_, colon, place = text.partition(":")
    if not colon or not place or place.startswith("//") or not format_.replace("_", "").isalnum():
        raise BadOption(
            f"the source {quoted(text)} is not FORMAT:PLACE",
            fix="write parquet:orders/, csv:orders.csv, json:…, orc:…, table:shop.orders or jdbc:postgresql://host/db",
        )
    return Origin(format_, text if format_ == "jdbc" else place, tuple(_option(each) for each in assignments))


def read_rows_from(spark: SparkSession, origin: Origin) -> DataFrame:
    """The rows, not yet read."""
    if origin.format == "table":
        return spark.table(origin.place)
    reader = spark.read.format(origin.format)
    given = dict(origin.options)
    if origin.format == "jdbc":
        return reader.options(url=origin.place, **given).load()
    return reader.options(**({**_CSV, **given} if origin.format == "csv" else given)).load(origin.place)


def _option(assignment: str) -> tuple[str, str]:
    name, sign, value = assignment.partition("=")
    if not sign or not name:
        raise BadOption("--source-option is not NAME=VALUE", fix="write --source-option header=false")
    return name, value
