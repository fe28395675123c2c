"""Where the rows of a backfill come from: whatever Spark reads."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from delayctl.spark.disclosure import digest, disclosed, identity, is_secret
from delayctl.spark.former_origin import formerly_shown, formerly_shown_options
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.wording import quoted
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

_WORD = re.compile(r"(?<=`)[^`]+(?=`)|\w+")
_FORMAT = re.compile(r"\w+(?:\.\w+)*")
_CSV = {"header": "true", "inferSchema": "true"}
# Options of Spark's readers that say nothing in confidence; of all others only a digest is written down.
_HARMLESS = frozenset(
    """
    batchsize charset charToEscapeQuoteEscaping columnNameOfCorruptRecord comment dateFormat dbtable delimiter driver
    emptyValue encoding escape fetchsize header ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace inferSchema isolationLevel
    lineSep locale lowerBound maxColumns mergeSchema mode modifiedAfter modifiedBefore multiLine nanValue nullValue
    numPartitions partitionColumn pathGlobFilter preferTimestampNTZ primitivesAsString pushDownPredicate queryTimeout quote
    recursiveFileLookup rowTag samplingRatio sep timestampAsOf timestampFormat timestampNTZFormat upperBound versionAsOf
    """.lower().split()
)
_JVMS_ZONE = "java_method('java.time.ZoneId', 'systemDefault')"
_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Etc/UCT", "Zulu", "Universal", "Z"})
_SET = "-Duser.timezone=UTC"


@dataclass(frozen=True, slots=True)
class Origin:
    """A format, a place, and options; what may be secret shows nowhere."""

    format: str
    place: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    known_as: str = field(
        default="", repr=False
    )  # The place, the same however it is spelled; empty where it has one spelling.

    @property
    def shown(self) -> str:
        """The place as it may be shown."""
        return disclosed(self._text)

    @property
    def written(self) -> str:
        """The place as it is written down: the same however it is spelled."""
        return disclosed(self._normal)

    @property
    def written_options(self) -> dict[str, str]:
        """The options as they are written down."""
        return self._options_at(self._normal)

    @property
    def shown_options(self) -> dict[str, str]:
        """The options that make it this source: harmless ones as they are, of others a digest; none that is a secret by its name."""
        return self._options_at(self._text)

    def _options_at(self, text: str) -> dict[str, str]:
        known, place = {name: value for name, value in self.options if not is_secret(name)}, identity(text)
        return {
            name: value if name.lower() in _HARMLESS else digest(identity(value), f"{place} {name.lower()}")
            for name, value in known.items()
        }

    @property
    def formerly_shown(self) -> tuple[tuple[str, dict[str, str]], ...]:
        """Place and options as earlier releases wrote them down, the oldest first."""
        oldest = formerly_shown(self._text), formerly_shown_options(self.options)
        return oldest, (identity(self._text), self.shown_options), (self.shown, self.shown_options)

    @property
    def _text(self) -> str:
        return self.place if self.format == "jdbc" else f"{self.format}:{self.place}"

    @property
    def _normal(self) -> str:
        return self.place if self.format == "jdbc" else f"{self.format}:{self.known_as or self.place}"


def origin_from(text: str, assignments: Iterable[str]) -> Origin:
    """Read `parquet:PATH`, `csv:PATH`, `table:NAME`, `jdbc:…` and the like."""
    format_, colon, place = text.partition(":")
    if not colon or not place or place.startswith("//") or not _FORMAT.fullmatch(format_):
        raise BadOption(  # Behind the colon there may be a password.
            f"the source {quoted(f'{format_}:…' if colon else text)} is not FORMAT:PLACE",
            fix="write parquet:orders/, csv:orders.csv, json:…, orc:…, table:shop.orders or jdbc:postgresql://host/db",
        )
    return Origin(format_, text if format_ == "jdbc" else place, tuple(_option(each) for each in assignments))


def read_rows_from(spark: SparkSession, origin: Origin, key: Sequence[str] = ()) -> DataFrame:
    """The rows, not yet read; what a key is made of is read from csv as the text that it is."""
    given = dict(origin.options)
    if origin.format == "table":
        return spark.read.options(**given).table(origin.place)
    reader = spark.read.format(origin.format)
    if origin.format == "jdbc":
        rows = reader.options(url=origin.place, **given).load()
        _check_zone(rows)
        return rows
    if origin.format == "csv":
        return _csv(reader.options(**{**_CSV, **given}), origin.place, key)
    return reader.options(**given).load(origin.place)


def _csv(reader: DataFrameReader, place: str, key: Sequence[str]) -> DataFrame:
    """The rows of a csv: taken for a number, the key 007 would be 7, until a key with a letter comes to the same column."""
    inferred = reader.load(place)
    schema = StructType(
        [
            StructField(field.name, StringType()) if _is_of_key(field.name, key) else field
            for field in inferred.schema.fields
        ]
    )
    return inferred if schema == inferred.schema else reader.schema(schema).load(place)


def _is_of_key(name: str, key: Sequence[str]) -> bool:
    """Whether a column is a part of the key, or is named in one."""
    words = {word.lower() for part in key if "(" in part for word in _WORD.findall(part)}
    return name in key or name.lower() in words


def _check_zone(rows: DataFrame) -> None:
    """Make sure that times without a zone are read in UTC: Spark takes the zone of the JVMs that run its tasks."""
    if not any(type_name == "timestamp" for _, type_name in rows.dtypes):
        return
    spark = rows.sparkSession
    tasks = spark.sparkContext.defaultParallelism
    asked = spark.range(0, tasks, 1, tasks).selectExpr(f"{_JVMS_ZONE} AS zone").collect()
    others = sorted({row["zone"] for row in asked} - _UTC)
    if others:
        raise DelayctlError(
            f"this Spark reads the times of a database in the zone {others[0]}, not in UTC",
            fix=f"start it with --conf spark.driver.extraJavaOptions={_SET} --conf spark.executor.extraJavaOptions={_SET}",
        )


def _option(assignment: str) -> tuple[str, str]:
    name, sign, value = assignment.partition("=")
    if not sign or not name:
        raise BadOption("--source-option is not NAME=VALUE", fix="write --source-option header=false")
    return name, value
