"""What a parked message tells of itself by its headers. Pure; headers are written by anybody, so nothing is taken for granted."""

from collections.abc import Mapping
from typing import Any

from delayctl.consumers.deaths import Delays, death_at_home, latest_death, told_by, way_in
from delayctl.publishers.contract import DUE, ORIGIN, REASON, without_deaths
from delayctl.topology.canary import CANARY
from delayctl.topology.examination import Seen


def seen_of(exchange: str, key: str, headers: Mapping[str, Any], delays: Delays, now_ms: int) -> Seen:
    """The key that it came with and the one that it first had, why it was parked, and where it waited."""
    last, at_home = latest_death(headers), death_at_home(headers, delays)
    said = headers.get(REASON)
    return Seen(
        key,
        reason=said if isinstance(said, str) else told_by(at_home),
        waited_in=str(last["queue"]) if last.get("reason") == "expired" and "queue" in last else None,
        first_key=_first_key(headers, at_home),
        exchange=exchange,
        headers=without_deaths(headers),
        is_canary=CANARY in headers,
        is_due=type(due := headers.get(DUE)) is int and 0 < due <= now_ms,
    )


def _first_key(headers: Mapping[str, Any], at_home: Mapping[str, Any]) -> str | None:
    origin, noted = headers.get(ORIGIN), way_in(at_home)
    if isinstance(origin, dict) and isinstance(origin.get("key"), str):
        return str(origin["key"])
    return noted[1] if noted else None
