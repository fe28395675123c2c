"""What Spark is to read, looked for before it starts: that takes seconds, and a slip in a path should not. Nothing of Spark in it."""

import os
import re

from delayctl.topology.errors import DelayctlError

_OF_THIS_MACHINE = "file:"
_FILES = frozenset({"avro", "csv", "json", "orc", "parquet", "text"})
# Set by those who may have told Spark where paths without a scheme lead.
_TOLD_ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATTERN = re.compile(r"[*?\[{\\]")


def check_audit(ledger: str, records: tuple[str, ...]) -> None:
    """Raise DelayctlError where the ledger or a record is certainly not there."""
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
    if path == place and any(os.environ.get(name) for name in _TOLD_ELSEWHERE):
        return False
    return not os.path.exists(path)
