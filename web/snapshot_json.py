"""A snapshot as the page reads it: the state when it changes, counts on every beat. Pure."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from delayctl.topology.figures import Samples
from delayctl.topology.wording import escaped_within
from delayctl.web.stage import Away, Snapshot


def state_json(snapshot: Snapshot) -> dict[str, Any]:
    """All that changes seldom."""
    observation = snapshot.observation
    return {
        "version": snapshot.version,
        "counted": list(observation.counted) if observation else [],
        "state": observation.state if observation else None,
    }


def beat_json(snapshot: Snapshot) -> dict[str, Any]:
    """All that moves: counts in the order of `counted`, and whether the broker is there."""
    counted = snapshot.observation.counted if snapshot.observation else ()
    return {
        "at": snapshot.at_ms,
        "seen": snapshot.seen_ms,
        "version": snapshot.version,
        "counts": [snapshot.counts.get(name) for name in counted],
        "away": _away_json(snapshot.away),
    }


def _away_json(away: Away | None) -> dict[str, Any] | None:
    return None if away is None else {"since": away.since_ms, "what": away.what, "fix": away.fix}


def history_json(history: Mapping[str, Samples], most: int) -> dict[str, Any]:
    """The backlog of each queue over time, no more points than can be seen."""
    return {name: list(_thinned(samples, most)) for name, samples in history.items()}


def _thinned(samples: Samples, most: int) -> Iterable[tuple[int, int]]:
    """Of every stretch its highest point, so that no peak is lost; the last point as it is."""
    size = -(-len(samples) // most) if samples else 1
    stretches = [samples[start : start + size] for start in range(0, len(samples), size)]
    return [max(stretch, key=lambda sample: sample[1]) for stretch in stretches[:-1]] + list(samples[-1:])


def event(name: str, value: object) -> bytes:
    """A server-sent event; JSON has no line breaks of its own."""
    return f"event: {name}\ndata: {to_text(value)}\n\n".encode()


def to_text(value: object) -> str:
    """JSON in one line."""
    text = json.dumps(value, separators=(",", ":"))
    # Halves of characters are as rare as answers are many: only these are gone through value by value.
    return json.dumps(escaped_within(value), separators=(",", ":")) if "\\ud" in text else text
