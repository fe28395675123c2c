"""What the page is told of a topology, as JSON, its map, and the colours of both. Pure: nothing is read, nothing is printed."""

import hashlib
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from delayctl.cli.doctor_views import diagnosis_json
from delayctl.cli.graph_layout import TITLE_HEIGHT
from delayctl.cli.graph_svg import svg
from delayctl.cli.graph_text import whole
from delayctl.cli.graph_theme import DARK, LIGHT, PAGE, page_style
from delayctl.cli.lint_views import finding_json
from delayctl.cli.pending_views import Found
from delayctl.cli.status_views import status_json
from delayctl.cli.views import drift_json
from delayctl.consumers.sighting import Body, Sighting
from delayctl.topology.diagnosis import Diagnosis
from delayctl.topology.examination import Examination
from delayctl.topology.figures import Samples
from delayctl.topology.findings import Finding
from delayctl.topology.picture import Card, Picture
from delayctl.topology.verdict import Reason
from delayctl.topology.wording import escaped

_WIDEST_COUNT = 9_999_999  # Room is left for so many, so that the map keeps its shape while they are counted.
_MOST_COUNTED = 200
_HISTORY_MS = 600_000
_MOST_KINDS = 50


@dataclass(frozen=True, slots=True)
class Taken:
    """How many messages of a queue consumers were given, and how many per second of late."""

    count: int | None = None
    rate: float | None = None


@dataclass(frozen=True)
class Seen:
    """All that one look at the broker found."""

    title: str
    examination: Examination
    reasons: Sequence[Reason]
    diagnoses: Sequence[Diagnosis]
    lint: Sequence[Finding]  # What the file says by itself.
    taken: Mapping[str, Taken]
    picture: Picture


def page_json(seen: Seen, map: str) -> dict[str, Any]:
    """The whole state but for what is counted."""
    examination, told = seen.examination, status_json(seen.examination.status, seen.reasons)
    return {
        **told,
        "title": seen.title,
        "targets": [{**target, **_taken_json(seen.taken.get(target["queue"], Taken()))} for target in told["targets"]],
        "drift": drift_json(examination.plan),
        "findings": [diagnosis_json(diagnosis) for diagnosis in seen.diagnoses],
        "lint": [finding_json(finding) for finding in seen.lint],
        "map": hashlib.sha256(map.encode()).hexdigest()[:16],
        "map_top": round(TITLE_HEIGHT) + 10,  # Above it is the title, which the page has already.
        "hues": list(seen.picture.levels),  # Levels have the colours that they have on the map.
        "cards": [_card_json(card) for card in seen.picture.cards if card.messages is not None],
    }


def _taken_json(taken: Taken) -> dict[str, Any]:
    return {"taken": taken.count, "rate_taken": taken.rate}


def _card_json(card: Card) -> dict[str, Any]:
    """Where the counts of a card come from."""
    queues = [thing.name for thing in card.things if thing.kind == "queue"]
    is_wait = card.role in ("level", "ladder")
    return {"card": whole(card.id), "queues": queues, "is_wait": is_wait, "level": card.badge or None}


def map_of(picture: Picture) -> str:
    """The picture with room for counts, and without them."""
    cards = tuple(
        replace(
            card,
            messages=None if card.messages is None else _WIDEST_COUNT,
            fullness=None if card.fullness is None else 0.0,
        )
        for card in picture.cards
    )
    return svg(replace(picture, cards=cards), PAGE)


def map_style() -> str:
    """The colours of the map as a style sheet, for light and dark."""
    light, dark = ("".join(f"{name}:{colour};" for name, colour in page_style(t).items()) for t in (LIGHT, DARK))
    return f":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"


def counted_queues(seen: Seen) -> tuple[str, ...]:
    """The queues whose messages are counted on every beat: waits first, then what is parked, then all others."""
    status = seen.examination.status
    names = [
        *(level.queue for level in status.levels if level.is_there),
        *(parked.queue for parked in status.parked),
        *(target.queue for target in status.targets),
        *(name for card in seen.picture.cards for kind, name in card.things if kind == "queue"),
    ]
    return tuple(name for name in dict.fromkeys(names) if name in seen.examination.live.queues)


def quickly_counted(queues: Sequence[str]) -> tuple[str, ...]:
    """Those of many queues that are asked for on every beat; of the others the last look's counts stand."""
    return tuple(queues[:_MOST_COUNTED])


def histories(seen: Seen) -> dict[str, Samples]:
    """What the broker remembers of the last ten minutes of each wait."""
    found = {}
    for level in seen.examination.status.levels:
        since = level.figures.now_ms - _HISTORY_MS
        found[level.queue] = tuple(sample for sample in level.figures.lengths if sample[0] >= since)
    return found


def parked_json(found: Found, bodies: Sequence[Body]) -> dict[str, Any]:
    """What was seen in a parking queue: each message, and how many there are of each kind."""
    kinds = Counter((escaped(one.key), _shown(one.reason)) for one in found.seen)
    return {
        "queue": found.place.queue,
        "ready": found.ready,
        "looked_at": len(found.seen),
        "held_ms": found.held_ms,
        "is_worn": found.is_worn,
        "keeps_place": found.keeps_places,
        "kinds": [{"key": k, "reason": r, "count": count} for (k, r), count in kinds.most_common(_MOST_KINDS)],
        "more_kinds": max(0, len(kinds) - _MOST_KINDS),
        "messages": [_message_json(one, body) for one, body in zip(found.seen, bodies, strict=True)],
    }


def _message_json(seen: Sighting, body: Body) -> dict[str, Any]:
    return {
        "id": _shown(seen.message_id),
        "key": escaped(seen.key),
        "reason": _shown(seen.reason),
        "since": seen.since_ms,
        "attempt": seen.attempt,
        "body": body_text(body.start),
        "size": body.size,
    }


def _shown(text: str | None) -> str | None:
    return None if text is None else escaped(text)


def body_text(start: bytes) -> str | None:
    """The beginning of a body as text; None where it is none. A character may be cut in two at the end."""
    try:
        text = getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
