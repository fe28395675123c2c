"""Places as people write them: what is on this machine, what may be shown, and what is surely not there. Nothing of Spark in it."""

import os
import re
from pathlib import Path
from urllib.parse import unquote

from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.wording import quoted

_OF_THIS_MACHINE = "file:"
_FILES = frozenset({"avro", "csv", "delta", "json", "orc", "parquet", "text", "xml"})
# Set by those who may have told Spark where paths without a scheme lead.
TOLD_ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATTERN = re.compile(r"[*?\[{\\]")
# What is meant for a place elsewhere, and would be a folder of that name here; a time in a name (`rejects-18:30`) is none.
_HALF_A_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?=/)|(?:s3[an]?|gs|hdfs|viewfs|abfss?|wasbs?|dbfs):")
_LOGIN = re.compile(r"://[^@\s]*:\S*@")


def local_path(place: str) -> str | None:
    """The path of a place on this machine, however it is written; None where it is elsewhere."""
    if place.startswith("file://"):
        return unquote(place.removeprefix("file://")) if place.startswith("file:///") else None
    if place.startswith(_OF_THIS_MACHINE):
        return place.removeprefix(_OF_THIS_MACHINE)  # As Hadoop writes it, and without escapes.
    if "://" in place:
        return None
    if half := _HALF_A_SCHEME.match(place):
        raise BadOption(
            f"the place {quoted(place)} is neither a path nor a URI",
            fix=f"write {half[0]}//…, or ./{half[0]}… for a folder of that name here",
        )
    return place


def absolute(place: str) -> str:
    """The same folder for executors, who work elsewhere than the driver: a path from here would lead them to another."""
    path = local_path(place)
    return place if path is None else str(Path(path).absolute())


def normal(format: str, place: str) -> str:
    """The same for all ways to write a place that files of this format are read from."""
    if format not in _FILES:
        return place
    if "://" in place.removeprefix("file:///") or _HALF_A_SCHEME.match(place.removeprefix(_OF_THIS_MACHINE)):
        return place.rstrip("/")
    path = re.sub("^file:(//(?=/))?", "", place)
    is_absolute = place != path or not is_told_elsewhere()
    return os.path.abspath(path) if is_absolute else os.path.normpath(path)


def is_told_elsewhere() -> bool:
    """Whether somebody may have told Spark where paths without a scheme lead."""
    return any(os.environ.get(name) for name in TOLD_ELSEWHERE)


def shown(place: str) -> str:
    """A place as it may be shown: `s3://KEY:SECRET@bucket` without the login."""
    return _LOGIN.sub("://…@", place)


def check_audit(ledger: str, records: tuple[str, ...]) -> None:
    """Raise DelayctlError where the ledger or a record is certainly not there."""
    for place in (ledger, *records):
        local_path(place)  # Spark would look for a file system that is called so, and say that in words of its own.
    if _is_missing(ledger):
        raise no_ledger(ledger)
    for place in records:
        if _is_missing(place):
            raise no_record(place)


def no_ledger(place: str) -> DelayctlError:
    """That there is no ledger."""
    return DelayctlError(
        "there is no ledger", where=place, fix="name the folder that was given to delayctl backfill --checkpoint"
    )


def no_record(place: str) -> DelayctlError:
    """That there is no record."""
    return DelayctlError("there is no record", where=place, fix="name the folder that was given to consumer.record(…)")


def check_source(format: str, place: str, *, is_told_elsewhere: bool) -> None:
    """Raise DelayctlError where the files of a source are certainly not there."""
    if format in _FILES and not is_told_elsewhere and _is_missing(place):
        raise DelayctlError("the source is not there", where=place, fix="check the path in --source")


def _is_missing(place: str) -> bool:
    """Say whether a place is one of this machine and not there; of all others only Spark can tell."""
    path = place.removeprefix(_OF_THIS_MACHINE)
    if _SCHEME.match(path) or _PATTERN.search(path):
        return False
    if path == place and is_told_elsewhere():
        return False
    return not os.path.exists(path)
