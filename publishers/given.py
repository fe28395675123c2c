"""What a caller gives for a message, taken as what it has to be, or refused with what would do."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from delayctl.publishers.choice import NoSuchDelay
from delayctl.publishers.frames import Properties
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.wording import shorten

_EPOCH, _MS = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)


def as_bytes(body: object) -> bytes:
    """A body that is neither a text nor bytes already."""
    if isinstance(body, bytearray | memoryview):
        return bytes(body)
    raise DelayctlError(
        f"the body of a message is bytes or str, not of type {type(body).__name__}",
        fix="encode it, for example with json.dumps(…)",
    )


def duration(text: str) -> Duration:
    """A delay as it is written."""
    try:
        return Duration.parse(text)
    except ValueError as error:
        raise NoSuchDelay(f"the delay {error}", fix="write it as 500ms, 10s, 1m30s, 2h or 1d") from error


def milliseconds(delay: object) -> int:
    """How long a delay is that is no text; of a timedelta a begun millisecond counts whole, so that nothing is early."""
    if isinstance(delay, Duration):
        return delay.ms
    if isinstance(delay, timedelta):
        return -(-delay // _MS)
    if isinstance(delay, int | float):
        fix = f'if seconds are meant, write delay="{delay}s" or delay=timedelta(seconds={delay})'
        raise BadOption(f"the delay {delay} has no unit", fix=fix)
    raise BadOption(f"a delay can't be {_shown(delay)}", fix='write delay="15m", or give a timedelta')


def epoch_ms_of(due: object) -> int:
    """When a message is due, in milliseconds since 1970."""
    if not isinstance(due, datetime):
        fix = "give a datetime with a time zone; for a day: datetime.combine(day, time(9), tzinfo=UTC)"
        raise BadOption(f"a due time can't be {_shown(due)}", fix=fix)
    if due.tzinfo is None:
        raise DelayctlError(
            "a due time needs a time zone, or nobody knows when it is",
            fix="use datetime.now(UTC) + …, or .astimezone()",
        )
    return (due - _EPOCH) // _MS  # In whole numbers: a float loses the last millisecond now and then.


def checked_name(level: object) -> str:
    """The name of a level."""
    if not isinstance(level, str):
        raise BadOption(f"a level is named by a text, not by {_shown(level)}", fix='write level="15m"')
    return level


def wrong_type(key: object, exchange: object, headers: object, properties: object) -> str | None:
    """Which part of a message is not what it has to be; None where that can't be told."""
    for name, value in (("key", key), ("exchange", exchange)):
        if not isinstance(value, str):
            return f"its {name} is {_shown(value)}, and no text"
    if properties is not None and not isinstance(properties, Properties):
        return f"its properties are of type {type(properties).__name__}, and not Properties(…)"
    for each in (headers, properties.headers if properties is not None else None):
        if each is not None and not isinstance(each, Mapping):  # What is in them is nobody's business.
            return f"its headers are of type {type(each).__name__}, and no dict"
    return None


def _shown(value: object) -> str:
    return f"{shorten(repr(value))} of type {type(value).__name__}"
