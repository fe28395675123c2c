"""What a test may say to a simulated broker: checked before anything is done with it."""

from datetime import datetime, timedelta
from pathlib import Path

from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.model import Topology
from delayctl.topology.spec import Spec
from delayctl.topology.wording import shorten

Span = str | int | Duration | timedelta  # Text as in topology files; a number is milliseconds.
_AS_TEXT = "write it as 500ms, 10s, 1m30s, 2h or 1d"


def milliseconds(by: Span) -> int:
    """The whole milliseconds of a span; what is none, and less than nothing, is refused."""
    ms = _whole(by)
    if ms < 0:
        raise BadOption(f"time does not go back, not even by {-ms} ms", fix="advance by 0 or more")
    return ms


def _whole(by: object) -> int:
    match by:
        case str():
            try:
                return Duration.parse(by).ms
            except ValueError as error:
                raise BadOption(f"the time to advance by, {error}", fix=_AS_TEXT) from error
        case Duration():
            return by.ms
        case timedelta():
            return by // timedelta(milliseconds=1)
        case int() if not isinstance(by, bool):
            return by
    raise BadOption(f"the time to advance by is {said(by)}", fix=f"{_AS_TEXT}, or give whole milliseconds as an int")


def started_at(start: object) -> int:
    """The time at which a broker starts, in milliseconds since 1970."""
    if not isinstance(start, datetime) or start.tzinfo is None:
        raise BadOption(
            f"start is a datetime with a time zone, not {said(start)}", fix="write datetime(2031, 5, 6, tzinfo=UTC)"
        )
    return int(start.timestamp() * 1000)


def check_topology(topology: object) -> None:
    """Refuse what is neither a file nor what was read from one."""
    if not isinstance(topology, str | Path | Spec | Topology | None):
        raise BadOption(
            f"a topology is the path of a file, a Spec or a Topology, not {said(topology)}", fix="give one of these"
        )


def check_version(version: object) -> None:
    """Refuse what is no version."""
    if not isinstance(version, str) or not version.partition(".")[0].isdecimal():
        raise BadOption(f"version is a text, not {said(version)}", fix='write version="3.10" or version="4.3"')


def check_patience(patience_s: object) -> None:
    """Refuse what is no time to wait."""
    if isinstance(patience_s, bool) or not isinstance(patience_s, int | float) or not 0 < patience_s < float("inf"):
        raise BadOption(
            f"patience_s is a number of seconds above 0, not {said(patience_s)}", fix="leave it out, or give more"
        )


def check_count(what: str, count: object) -> None:
    """Refuse what is no number of things."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise BadOption(f"{what} is a number of 0 or more, not {said(count)}", fix="give such a number")


def said(value: object) -> str:
    """A wrong value as a message repeats it."""
    return f"{shorten(repr(value))} ({type(value).__name__})"
