"""Options that say which messages are meant. Pure: texts to a value."""

from collections.abc import Callable, Iterable
from typing import Any

import click
from delayctl.consumers.sighting import Wanted
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.wording import did_you_mean, quoted

_FIELDS = ("key", "reason", "id")
_HEADER = "header."


def wanted_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--where, --older-than and --newer-than."""
    for option in (
        click.option("--newer-than", metavar="DURATION", help="Only what was parked less than this long ago."),
        click.option(
            "--older-than", metavar="DURATION", help="Only what was parked at least this long ago, such as 1h."
        ),
        click.option(
            "--where",
            multiple=True,
            metavar="FIELD=VALUE",
            help="Only what has this key (a pattern as in routes: order.*), reason (words in it), id, or header.NAME; "
            "the same field again adds another value, another field narrows it down.",
        ),
    ):
        command = option(command)
    return command


def wanted_from(where: Iterable[str], older_than: str | None, newer_than: str | None) -> Wanted:
    """What the options say together."""
    said: dict[str, list[str]] = {name: [] for name in _FIELDS}
    headers: list[tuple[str, str]] = []
    for condition in where:
        name, sign, value = condition.partition("=")
        if not sign or not value:
            raise BadOption(f"--where {quoted(condition)} is not FIELD=VALUE", fix="write --where key=order.created")
        if name.startswith(_HEADER):
            headers.append((name.removeprefix(_HEADER), value))
        elif name in said:
            said[name].append(value)
        else:
            fix = f"use {', '.join(_FIELDS)} or header.NAME"
            raise BadOption(f"--where knows no {quoted(name)}{did_you_mean(name, _FIELDS)}", fix=fix)
    return Wanted(
        keys=tuple(said["key"]),
        reasons=tuple(said["reason"]),
        ids=frozenset(said["id"]),
        headers=tuple(headers),
        older_than_ms=_ms("--older-than", older_than),
        newer_than_ms=_ms("--newer-than", newer_than),
    )


def _ms(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else Duration.parse(text).ms
    except ValueError as error:
        raise BadOption(f"{option}: {error}", fix="write it as 10s, 1h or 2d") from error
