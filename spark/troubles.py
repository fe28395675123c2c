"""What Spark complains about, in one line and with a fix."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from delayctl.spark.disclosure import without_logins
from delayctl.topology.errors import BadOption, DelayctlError
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

# What somebody wrote into an option.
_EXPRESSIONS = {
    "UNRESOLVED_COLUMN": "correct the name; names with odd characters stand in `backticks`",
    "UNRESOLVED_ROUTINE": "correct the name of the function",
    "PARSE_SYNTAX_ERROR": "correct the expression",
    "DATATYPE_MISMATCH": "correct the expression: it has another type than it needs",
}
_FIXES = _EXPRESSIONS | {
    "PATH_NOT_FOUND": "check the path; executors must see it too",
    "TABLE_OR_VIEW_NOT_FOUND": "check the name of the table",
    "DATA_SOURCE_NOT_FOUND": "correct the format in --source, or give Spark its package: --conf spark.jars.packages=…",
    "UNABLE_TO_INFER_SCHEMA": "check the path and the format in --source: there is no file of that format",
    "FAILED_READ_FILE": "check the file and the format in --source",
}
# What an expression met in a row.
_VALUES = re.compile(
    r"\[((?:CAST_(?:INVALID_INPUT|OVERFLOW)|CANNOT_PARSE_TIME(?:STAMP)?|INVALID_(?:ARRAY_INDEX|DATETIME_PATTERN|FRACTION_OF_SECOND)"
    r"|(?:NULL|DUPLICATED)_MAP_KEY|(?:DIVIDE|REMAINDER)_BY_ZERO|INTERVAL_DIVIDED_BY_ZERO|(?:BINARY_|INTERVAL_)?ARITHMETIC_OVERFLOW"
    r"|DATETIME_(?:OVERFLOW|FIELD_OUT_OF_BOUNDS)|NUMERIC_VALUE_OUT_OF_RANGE)\w*)[.\]]"
)
_VALUES_FIX = (
    "correct the expression: try_to_timestamp, try_cast and the like give null, which rejects that row alone;"
    " or leave such rows out: --where"
)
_SLOTS_FIX = "give fewer --partitions, or more executors; with dynamic allocation on: --conf spark.dynamicAllocation.enabled=false"
_SLOTS = re.compile("SPARK-24819|SPARK-24942|slots")
_MODULE_FIX = (
    "send it along (spark-submit --py-files delayctl-spark.zip), or let PYSPARK_PYTHON name a Python that has it"
)
_DRIVER_FIX = "give Spark the driver of the database: --conf spark.jars.packages=org.postgresql:postgresql:42.7.4"
_OTHER_FIX = "look at the executors' logs, and run it again: it goes on where it stopped"
_OURS = re.compile(r"delayctl[\w.]*\.\w+: Error: (.+)")
_FIX = re.compile(r"\s*fix: (.+)")
_JAVAS = re.compile("Caused by: ")
_PYTHONS = re.compile(r"(?!org\.|java\.)(?:\w+\.)*\w+(?:Error|Exception): ")
_CONDITION = re.compile(r"^\[[A-Z_.0-9]+\] ")
_CLASS = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)+[\w$]+(?:Exception|Error): ")


def told(error: Exception) -> DelayctlError:
    """The same trouble as an error of ours."""
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()] or [type(error).__name__]
    if ours := _ours(lines):
        return ours
    condition = (error.getCondition() or "").partition(".")[0] if isinstance(error, PySparkException) else ""
    if met := _met_in_a_row(condition, lines):
        return DelayctlError(f"Spark: {_without_state(met)}", fix=_VALUES_FIX)
    what = _without_state(lines[0] if condition in _FIXES else _cause(lines))
    kind = BadOption if condition in _EXPRESSIONS else DelayctlError
    return kind(f"Spark: {what}", fix=_fix(condition, what))


@contextmanager
def telling() -> Iterator[None]:
    """Turn what Spark complains about into an error of ours."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise told(error) from error


@contextmanager
def noting(troubles: list[tuple[str, str | None]]) -> Iterator[None]:
    """Write an error down, what and how to fix it, instead of letting it end everything."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = told(error)
        troubles.append((found.what, found.fix))
    except DelayctlError as error:
        troubles.append((error.what, error.fix))
    except Exception as error:  # Whatever it is, what was done must be told.
        troubles.append((f"{type(error).__name__}: {error}", None))


def _text(error: Exception) -> str:
    if isinstance(error, PySparkException):
        return (error.getMessage() or str(error)).strip().removeprefix("[None] ")
    return str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)


def _met_in_a_row(condition: str, lines: list[str]) -> str | None:
    """The line that says what value an expression could not do with; where a task met it, it stands among others."""
    if _VALUES.match(f"[{condition}]"):
        return lines[0]
    return next((line[found.start() :] for line in lines if (found := _VALUES.search(line))), None)


def _fix(condition: str, what: str) -> str:
    if "No suitable driver" in what or "ClassNotFound" in what:
        return _DRIVER_FIX
    if "No module named" in what:
        return _MODULE_FIX
    return _SLOTS_FIX if _SLOTS.search(what) else _FIXES.get(condition, _OTHER_FIX)


def _ours(lines: list[str]) -> DelayctlError | None:
    """An error of ours that a task was ended by, as it stands at the end of a traceback."""
    for place, line in enumerate(lines):
        if found := _OURS.search(line):
            fix = next((match[1] for each in lines[place + 1 :] if (match := _FIX.fullmatch(each))), None)
            return DelayctlError(found[1], fix=fix)
    return None


def _cause(lines: list[str]) -> str:
    """What Java says caused it, or what Python ended with, or what is said first."""
    for pattern in (_JAVAS, _PYTHONS):
        if found := next((line for line in reversed(lines) if pattern.match(line)), None):
            return found
    return lines[0]


def _without_state(text: str) -> str:
    return without_logins(_CONDITION.sub("", _CLASS.sub("", text.partition(" SQLSTATE:")[0])))
