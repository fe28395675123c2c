"""Messages to be published, as lines of JSON: what one line says, or why it can't be used."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from delayctl.topology.errors import DelayctlError
from delayctl.topology.wording import did_you_mean, quoted

FIELDS = ("body", "key", "delay", "due", "level", "exchange", "message_id", "headers")
WAYS = ("delay", "due", "level", "exchange")
_COPIES = ("CC", "BCC")
_EXAMPLE = '{"body": "order 4711", "key": "order.created", "delay": "15m"}'


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to be published; at most one of the ways is set."""

    key: str
    body: bytes = b""
    delay: str | None = None
    due: str | int | None = None  # ISO 8601, or milliseconds since 1970.
    level: str | None = None
    exchange: str | None = None
    message_id: str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)


def read_line(line: bytes, defaults: Mapping[str, Any]) -> Outgoing:
    """Understand one line; what it does not say is taken from `defaults`. Raises DelayctlError with the fix."""
    given = _object(line)
    for name in given:
        if name not in FIELDS:
            raise DelayctlError(
                f"{quoted(name)} is unknown{did_you_mean(name, FIELDS)}", fix=f"use {', '.join(FIELDS)}"
            )
    if "body" not in given:
        raise DelayctlError("there is no body", fix=f"write {_EXAMPLE}")
    ways = [name for name in WAYS if given.get(name) is not None]
    if len(ways) > 1:
        raise DelayctlError(f"{' and '.join(ways)} exclude each other", fix="leave out all but one")
    # A way in the line takes the place of the one that the options name, whatever it is.
    kept = {name: value for name, value in defaults.items() if not (ways and name in WAYS)}
    said = {name: value for name, value in given.items() if value is not None and name not in ("body", "headers")}
    return outgoing(_body(given["body"]), {**kept, **said}, {**defaults.get("headers", {}), **_headers(given)})


def outgoing(body: bytes, said: Mapping[str, Any], headers: Mapping[str, Any]) -> Outgoing:
    """Put a message together, or raise DelayctlError where a value is not what it should be."""
    if said.get("key") is None:
        raise DelayctlError("there is no key", fix='add "key" to the line, or --key for all lines')
    for name in ("key", "delay", "level", "exchange", "message_id"):
        _check_text(name, said.get(name))
    due = said.get("due")
    if isinstance(due, bool) or not isinstance(due, str | int | None):
        _refuse("due", due, "write it as 2026-11-16T18:30:00Z, or as milliseconds since 1970")
    _check_copies(headers)
    return Outgoing(
        key=said["key"],
        body=body,
        delay=said.get("delay"),
        due=due,
        level=said.get("level"),
        exchange=said.get("exchange"),
        message_id=said.get("message_id"),
        headers=headers,
    )


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise DelayctlError(f"byte 0x{line[error.start]:02x} is not UTF-8", fix="save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise DelayctlError(f"this is not JSON: {reason}", fix=f"write {_EXAMPLE}") from error
    if not isinstance(found, dict):
        raise DelayctlError(f"a line must be an object, not {_kind(found)}", fix=f"write {_EXAMPLE}")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _body(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DelayctlError("the body holds half a character (a lone surrogate)", fix="correct the escape") from error


def _headers(given: Mapping[str, Any]) -> Mapping[str, Any]:
    headers = given.get("headers") or {}
    if not isinstance(headers, dict):
        _refuse("headers", headers, 'write {"headers": {"name": "value"}}')
    return headers


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str | None):
        _refuse(name, value, f'write it in quotes: {{"{name}": "…"}}')
    if value is not None and len(value.encode("utf-8", "surrogatepass")) > 255:
        raise DelayctlError(f"the {name} {quoted(value)} is longer than 255 bytes", fix="shorten it")


def _check_copies(headers: Mapping[str, Any]) -> None:
    """The broker closes the channel over any other CC, and takes every message on its way with it."""
    for name in _COPIES:
        keys = headers.get(name, [])
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            _refuse(f"header {name}", keys, f'it names further keys: {{"{name}": ["order.audit"]}}')


def _refuse(name: str, value: Any, fix: str) -> NoReturn:
    raise DelayctlError(f"the {name} can't be {_kind(value)}", fix=fix)


def _kind(value: Any) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), "null")
