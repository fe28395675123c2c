"""What a DataFrame's writer was told, from strings to values."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from delayctl.publishers.choice import ROUNDINGS, Rounding, Ways
from delayctl.publishers.known import brokers_at, known_ways
from delayctl.publishers.publisher import DEFAULT_WINDOW
from delayctl.topology.access import DEFAULT_URL, Access, Tls, access_from, credentials_from
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.wording import did_you_mean, quoted

_DEFAULTS: Mapping[str, str] = {
    "topology": "",
    "values": "{}",
    "prefix": "",
    "url": "",
    "management_url": "",
    "credentials_file": "",
    "ca_file": "",
    "cert_file": "",
    "key_file": "",
    "vhost": "",
    "key": "",
    "id_prefix": "",
    "ids": "key",
    "payload": "body",
    "routing_key": "",
    "delay": "",
    "level": "",
    "rounding": "up",
    "beyond": "refuse",
    "rejects": "",
    "later": "",
    "window": str(DEFAULT_WINDOW),
    "full_wait": "5m",
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "ids": ("key", "random"),
    "payload": ("body", "json"),
    "rounding": ROUNDINGS,
    "beyond": ("refuse", "later"),
}
_SPARKS_OWN = ("path", "checkpointlocation")  # Of a save with a path, and of a stream.


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `df.write.format("delayctl")`, checked. No repr shows a password: `Access` has none in its own."""

    brokers: tuple[Access, ...]
    ways: Ways
    rounding: Rounding
    window: int
    full_wait: Duration
    columns: Mapping[str, object] = field(default_factory=dict)  # Arguments of `check_columns`.
    rejects: str | None = None
    later: str | None = None


def read_options(given: Mapping[str, str]) -> Options:
    """Check the options, and read the topology; raises DelayctlError."""
    said = {name.lower(): value for name, value in given.items() if name.lower() not in _SPARKS_OWN}
    for name in said:
        if name not in _DEFAULTS:
            raise BadOption(
                f"there is no option {quoted(name)}{did_you_mean(name, _DEFAULTS)}",
                fix=f"the options are: {', '.join(_DEFAULTS)}",
            )
    options = {**_DEFAULTS, **said}
    for name, choices in _CHOICES.items():
        if options[name] not in choices:
            raise BadOption(f"{name} is {quoted(options[name])}", fix=f"choose one of: {', '.join(choices)}")
    if (options["beyond"] == "later") != bool(options["later"]):
        raise BadOption(
            "beyond=later and the folder for such rows go together", fix="give both: beyond=later, later=FOLDER"
        )
    if options["later"] and not options["rejects"]:
        raise BadOption(
            "a folder for rows that are due later, and none for bad ones: a bad row fails the write, and nothing is kept then",
            fix="give rejects=FOLDER too; it may be the same",
        )
    brokers = _brokers(options)
    vhost, ways = known_ways(options["topology"] or None, _values(options["values"]), options["prefix"], brokers)
    return Options(
        tuple(access.at(options["vhost"] or access.vhost or vhost) for access in brokers),
        ways,
        _rounding(options["rounding"]),
        _window(options["window"]),
        _duration("full_wait", options["full_wait"]),
        {
            "key": tuple(name.strip() for name in options["key"].split(",") if name.strip()),
            "id_prefix": options["id_prefix"],
            "random_ids": options["ids"] == "random",
            "payload": options["payload"],
            "routing_key": options["routing_key"] or None,
            "delay": options["delay"] or None,
            "level": options["level"] or None,
        },
        options["rejects"] or None,
        options["later"] or None,
    )


def _brokers(options: Mapping[str, str]) -> list[Access]:
    urls = options["url"] or os.environ.get("DELAYCTL_URL") or DEFAULT_URL
    management = options["management_url"] or os.environ.get("DELAYCTL_MANAGEMENT_URL") or None
    credentials = credentials_from(options["credentials_file"] or None, os.environ)
    tls = Tls(options["ca_file"] or None, options["cert_file"] or None, options["key_file"] or None)
    return brokers_at(
        [
            access_from(url.strip(), management_url=management, credentials=credentials, tls=tls)
            for url in urls.split(",")
        ]
    )


def _values(text: str) -> dict[str, object]:
    fix = 'write a JSON object: {"region": "eu"}'
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadOption("the option values is not JSON", fix=fix) from error
    if not isinstance(found, dict):
        raise BadOption("the option values is no JSON object", fix=fix)
    return found


def _rounding(text: str) -> Rounding:
    return next(rounding for rounding in ROUNDINGS if rounding == text)


def _window(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise BadOption(f"window is {quoted(text)}", fix="give a whole number from 1 on")
    return int(text)


def _duration(name: str, text: str) -> Duration:
    try:
        return Duration.parse(text)
    except ValueError as error:
        raise BadOption(f"{name}: {error}", fix="write it as 500ms, 10s, 1m30s, 2h or 1d") from error
