"""Which column of a DataFrame is which part of a message."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from delayctl.spark.identity import check_key
from delayctl.topology.errors import BadOption
from delayctl.topology.wording import did_you_mean, quoted

BODY, KEY, ID, HEADERS, EXCHANGE = "body", "routing_key", "message_id", "headers", "exchange"
REASON = "reject_reason"  # A row that has one is rejected with it.
DELAY, DUE, LEVEL = "delay", "due_at", "level"
WAITS = (DELAY, DUE, LEVEL)
OURS = (BODY, KEY, *WAITS, ID, HEADERS, EXCHANGE, REASON)

_INTERVAL = "interval day to second"
_IS_SPAN = re.compile("interval (day|hour|minute|second)( to (hour|minute|second))?")  # Months have no length.
_VARIANT = "variant"
_MONTHS = r"interval(?: year| month)?(?: to month)?"
# Types, however deep inside others; what a colon follows is the name of a field.
_NO_JSON = re.compile(rf"(?:^|[:<,])({_VARIANT}|{_MONTHS})(?=[,>]|$)")
_NO_HEADER = re.compile(rf"(?:^|[:<,])({_VARIANT}|date|time\(\d\)|interval[a-z ]*)(?=[,>]|$)")
_TYPES: Mapping[str, tuple[str, ...]] = {
    BODY: ("string", "binary"),
    KEY: ("string",),
    DELAY: ("string", _INTERVAL),
    DUE: ("timestamp",),
    LEVEL: ("string",),
    ID: ("string",),
    EXCHANGE: ("string",),
    REASON: ("string",),
}
_FIXES: Mapping[str, str] = {
    BODY: "use a string or binary column; option payload=json takes all columns instead",
    DELAY: "write delays as '15m' or as an interval: INTERVAL 15 MINUTES",
    DUE: "make it a timestamp: to_timestamp(due_at), or timestamp_millis(due_at)",
}


@dataclass(frozen=True, slots=True)
class Columns:
    """What is taken from columns; what is not is the same for every row."""

    present: frozenset[str]  # Of OURS.
    key: tuple[str, ...] = ()  # The id is made from these; none where there is a column message_id, or chance decides.
    id_prefix: str = ""
    json: tuple[str, ...] = ()  # The body is these columns as JSON; none where there is a column body.
    routing_key: str | None = None
    delay: str | None = None
    level: str | None = None


def check_columns(
    types: Mapping[str, str],
    *,
    key: tuple[str, ...] = (),
    id_prefix: str = "",
    random_ids: bool = False,
    payload: str = "body",
    routing_key: str | None = None,
    delay: str | None = None,
    level: str | None = None,
) -> Columns:
    """Hold the columns that are there (name to type, as Spark writes them) against what a message needs."""
    ours = frozenset(OURS) - {BODY} if payload == "json" else frozenset(OURS)
    present = frozenset(types) & ours
    for name in sorted(present):
        _check_type(name, types[name])
    for name in key:
        check_key(name, types)
    _check_waits(present, delay, level)
    _check_routing_key(present, types, routing_key)
    _check_ids(present, types, key, id_prefix, random_ids=random_ids)
    json = _json_columns(types, present) if payload == "json" else ()
    if payload != "json":
        _check_body(present, types, key)
    return Columns(present, key, id_prefix, json, routing_key, delay, level)


def _check_type(name: str, type_name: str) -> None:
    is_map = name == HEADERS and type_name.startswith("map<string,")
    is_interval = name == DELAY and _IS_SPAN.fullmatch(type_name) is not None
    if not is_map and not is_interval and type_name not in _TYPES.get(name, ()):
        wanted = " or ".join(_TYPES.get(name, ("map<string,string>",)))
        raise BadOption(
            f"the column {name} is of type {type_name}, not {wanted}",
            fix=_FIXES.get(name, f"cast it: CAST({name} AS {wanted})"),
        )
    if is_map:
        _check_headers(type_name)


def _check_headers(type_name: str) -> None:
    """A header can be all that a row can, but for what AMQP has no sign for."""
    if found := _NO_HEADER.search(type_name):
        raise BadOption(
            f"the column headers is of type {type_name}, and a header can't be of type {found[1]}",
            fix="make text of it: transform_values(headers, (name, value) -> CAST(value AS string))",
        )


def _json_columns(types: Mapping[str, str], present: frozenset[str]) -> tuple[str, ...]:
    """The columns that are the body, one called body last."""
    names = sorted((name for name in types if name not in present), key=BODY.__eq__)
    for name in names:
        if found := _NO_JSON.search(types[name]):
            fix = f"to_json({name})" if found[1] == _VARIANT else f"CAST({name} AS string)"
            raise BadOption(
                f"the column {quoted(name)} is of type {types[name]}, and a JSON body can't have {found[1]} in it",
                fix=f"make text of it: {fix} AS {name}",
            )
    return tuple(names)


def _check_body(present: frozenset[str], types: Mapping[str, str], key: tuple[str, ...]) -> None:
    """Without payload=json there is a column body, and none that is nothing."""
    if BODY not in present:
        raise _missing(BODY, types, "name the body column so, or send all columns: option payload=json")
    for name in types:
        if name not in present and name not in key:
            raise BadOption(
                f"nobody knows the column {quoted(name)}{did_you_mean(name, OURS)}",
                fix="drop it, rename it, or send all columns: option payload=json",
            )


def _check_routing_key(present: frozenset[str], types: Mapping[str, str], routing_key: str | None) -> None:
    if KEY not in present and routing_key is None:
        raise _missing(KEY, types, "add it, or give one for all: option routing_key")
    if KEY in present and routing_key is not None:
        raise BadOption(
            "there is more than one of: routing_key, option routing_key",
            fix=f"keep one of them; where some rows have none: coalesce(routing_key, '{routing_key}') AS routing_key",
        )


def _check_ids(
    present: frozenset[str], types: Mapping[str, str], key: tuple[str, ...], id_prefix: str, *, random_ids: bool
) -> None:
    ways = ((ID, ID in present), ("option key", bool(key)), ("option ids=random", random_ids))
    found = [way for way, is_given in ways if is_given]
    if not found:
        raise _missing(
            ID, types, "name the columns that identify a row (option key), or give each attempt new ids: ids=random"
        )
    if len(found) > 1:
        raise BadOption(f"there is more than one of: {', '.join(found)}", fix="keep one of them: a message has one id")
    if id_prefix and not key:
        raise BadOption(
            f"option id_prefix stands in front of ids that are made of a key, and these come from {found[0]}",
            fix="give option key, or leave id_prefix out",
        )


def _check_waits(present: frozenset[str], delay: str | None, level: str | None) -> None:
    columns = [name for name in WAITS if name in present]
    options = [f"option {name}" for name, value in ((DELAY, delay), (LEVEL, level)) if value is not None]
    if len(columns) + len(options) > 1:
        raise BadOption(f"there is more than one of: {', '.join([*columns, *options])}", fix="keep one of them")
    if options and EXCHANGE in present:
        raise BadOption(
            f"{options[0]} is for all rows, and a row that has an exchange does not wait",
            fix="leave one of them out, or add a column delay, due_at or level that is null where exchange is not",
        )
    if not columns and not options and EXCHANGE not in present:
        raise BadOption(
            "nothing says how long messages wait",
            fix="add one of the columns delay, due_at and level, or option delay or level for all rows",
        )


def _missing(name: str, types: Mapping[str, str], fix: str) -> BadOption:
    near = next((other for other in types if other not in OURS and did_you_mean(other, [name])), None)
    return BadOption(f"there is no column {name}" + (f" (is it {quoted(near)}?)" if near else ""), fix=fix)
