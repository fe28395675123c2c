"""What a backfill is: which rows become which messages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from delayctl.publishers.choice import Ways
from delayctl.spark.columns import BODY, DELAY, DUE, HEADERS, ID, KEY, LEVEL, REASON, Columns, check_columns
from delayctl.spark.due_order import due_order
from delayctl.spark.identity import as_text, check_key, check_key_type, id_of_texts
from delayctl.spark.origin import Origin
from delayctl.topology.errors import BadOption
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

SAME_KEY = "another row has the same key, and comes first"
_TIMES = ("timestamp", "timestamp_ntz", "date", "string")


@dataclass(frozen=True, slots=True)
class BackfillJob:
    """Which rows become which messages. What stands for a column may be any expression of Spark's SQL."""

    origin: Origin
    key: tuple[str, ...]
    routing_key: str | None = None
    routing_key_column: str | None = None
    due: str | None = None
    delay: str | None = None
    level: str | None = None
    body: str | None = None  # None: all columns, as JSON.
    headers: str | None = None
    where: str | None = None
    id_prefix: str = ""
    target: str = ""  # Broker, virtual host and exit.
    cluster: str = ""  # What the broker calls itself, at whatever address; empty where it does not say.

    def description(self) -> dict[str, Any]:
        """All that makes it this job and no other, without secrets."""
        return {
            "target": self.target,
            "source": self.origin.written,
            "source_options": self.origin.written_options,
            "key": list(self.key),
            "id_prefix": self.id_prefix,
            "routing_key": self.routing_key,
            "routing_key_column": self.routing_key_column,
            "due": self.due,
            "delay": self.delay,
            "level": self.level,
            "body": self.body,
            "headers": self.headers,
            "where": self.where,
        }

    def former_descriptions(self) -> tuple[dict[str, Any], ...]:
        """The same as earlier releases wrote it down: to recognise it, and not to be written any more."""
        as_written = {**self.description(), "source": self.origin.shown, "source_options": self.origin.shown_options}
        known = self.description()
        column = known.pop("routing_key_column")
        known["routing_key"] = self.routing_key or column
        *former, last = (
            {**known, "source": source, "source_options": options} for source, options in self.origin.formerly_shown
        )
        return *former, as_written, last


def check_job(job: BackfillJob) -> None:
    """Make sure that a job says all that is needed, once."""
    if not job.key:
        raise BadOption("--key is missing", fix="name the columns that identify a row, such as --key order_id")
    if (job.routing_key is None) == (job.routing_key_column is None):
        raise BadOption("exactly one of --routing-key and --routing-key-column is needed", fix="give one of them")
    if [job.due, job.delay, job.level].count(None) != 2:
        raise BadOption(
            "exactly one of --due-column, --delay-column and --level-column is needed",
            fix="say when rows are due: --due-column pay_by",
        )


def outline(job: BackfillJob) -> BackfillJob:
    """The same job with empty bodies where all columns make them: to count its messages, Spark reads but a few."""
    return job if job.body else replace(job, body="''")


def messages_of(rows: DataFrame, job: BackfillJob) -> tuple[DataFrame, Columns]:
    """The rows as messages, one column for each part, and which columns these are."""
    chosen = rows.where(job.where) if job.where else rows
    texts = [as_text(key_part(part), kind) for part, kind in zip(job.key, key_types(rows, job), strict=True)]
    parts: dict[str, Column] = {
        ID: id_of_texts(texts, job.id_prefix),
        KEY: f.lit(job.routing_key) if job.routing_key is not None else f.expr(job.routing_key_column or ""),
        BODY: f.expr(job.body) if job.body else f.to_json(f.struct(*map(_column, rows.columns))),
    }
    if job.due is not None:
        parts[DUE] = _due(chosen, job.due)
    if job.delay is not None:
        parts[DELAY] = f.expr(job.delay)
    if job.level is not None:
        parts[LEVEL] = f.expr(job.level)
    if job.headers is not None:
        parts[HEADERS] = f.expr(job.headers)
    found = chosen.select(*[column.alias(name) for name, column in parts.items()])
    columns = check_columns({**types_of(found), REASON: "string"})
    return found, columns


def first_of_each_key(messages: DataFrame, ways: Ways) -> DataFrame:
    """Mark all rows of a key but the first due as rejected: their messages would have the same id.

    What can't be sent comes last: it must not keep a good row from being sent.
    """
    due = due_order(messages, ways)
    is_bad = f.col(KEY).isNull() | f.col(BODY).isNull() | due.isNull()
    place = f.row_number().over(Window.partitionBy(ID).orderBy(is_bad, due.asc_nulls_last(), f.asc_nulls_last(BODY)))
    is_extra = f.col(ID).isNotNull() & (place > 1)
    return messages.withColumn(REASON, f.when(is_extra, f.lit(SAME_KEY)))


def types_of(rows: DataFrame) -> Mapping[str, str]:
    """The columns and their types, as Spark writes them."""
    return {field.name: field.dataType.simpleString() for field in rows.schema.fields}


def key_types(rows: DataFrame, job: BackfillJob) -> list[str]:
    """The types of the parts of the key, all of which can be one."""
    types = types_of(rows)
    return [_key_type(rows, part, types) for part in job.key]


def key_part(part: str) -> Column:
    """A part of the key: a column by its name, or an expression, which has parentheses."""
    return f.expr(part) if "(" in part else _column(part)


def _key_type(rows: DataFrame, part: str, types: Mapping[str, str]) -> str:
    if "(" not in part:
        check_key(part, types)
        return types[part]
    (type_name,) = types_of(rows.select(key_part(part))).values()
    check_key_type(part, type_name)
    return type_name


def _due(rows: DataFrame, expression: str) -> Column:
    """The due time; null where a text is none."""
    (type_name,) = types_of(rows.select(f.expr(expression))).values()
    if type_name not in _TIMES:
        raise BadOption(
            f"the due column is of type {type_name}, not timestamp",
            fix="give an expression that makes it one: --due-column 'timestamp_millis(pay_by)'",
        )
    return f.expr(expression).try_cast("timestamp")


def _column(name: str) -> Column:
    return f.col(f"`{name.replace('`', '``')}`")
