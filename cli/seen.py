"""What a parked message tells of itself by its headers. Pure; headers are written by anybody, so nothing is taken for granted."""

from collections.abc import Mapping
from typing import Any

from delayctl.publishers.contract import ORIGIN, REASON
from delayctl.topology.examination import Seen

_DEATHS = "x-death"
_TRIED_TOO_OFTEN = "delivery_limit"


def seen_of(key: str, headers: Mapping[str, Any]) -> Seen:
    """The key that it came with and the one that it first had, why it was parked, and where it waited."""
    death = _last_death(headers)
    return Seen(
        key,
        reason=_reason(headers, death),
        waited_in=str(death["queue"]) if death.get("reason") == "expired" and "queue" in death else None,
        first_key=_first_key(headers, death),
    )


def _last_death(headers: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the broker noted when it last dead-lettered the message; nothing where it never did."""
    deaths = headers.get(_DEATHS)
    last = deaths[0] if isinstance(deaths, list) and deaths else None
    return last if isinstance(last, dict) else {}


def _reason(headers: Mapping[str, Any], death: Mapping[str, Any]) -> str | None:
    said = headers.get(REASON)
    if isinstance(said, str):
        return said
    return f"tried too often in {death.get('queue')}" if death.get("reason") == _TRIED_TOO_OFTEN else None


def _first_key(headers: Mapping[str, Any], death: Mapping[str, Any]) -> str | None:
    origin, keys = headers.get(ORIGIN), death.get("routing-keys")
    if isinstance(origin, dict) and isinstance(origin.get("key"), str):
        return str(origin["key"])
    return str(keys[0]) if death.get("reason") == _TRIED_TOO_OFTEN and isinstance(keys, list) and keys else None
