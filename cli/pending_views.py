"""What waits and what is parked, as text or JSON. Pure: nothing is read, nothing is printed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from delayctl.consumers.sighting import Sighting
from delayctl.topology.duration import Duration
from delayctl.topology.wording import plural, shorten

_STEPS = tuple(Duration.parse(text) for text in ("10s", "1m", "5m", "15m", "1h", "6h", "1d", "7d"))
_OVERDUE, _LATER, _UNSAID = "overdue", f"in more than {_STEPS[-1]}", "not said"
_MOST_LINES = 20
_KEY_WIDTH, _REASON_WIDTH, _ID_WIDTH = 60, 100, 60


@dataclass(frozen=True, slots=True)
class Place:
    """A queue of the topology: a level, a step of the ladder, what stands in for one, or where messages are parked."""

    queue: str
    level: str | None  # None: parked.
    ttl: Duration | None = None
    names: tuple[str, ...] = ()  # All levels that it is part of, itself included.


@dataclass(frozen=True, slots=True)
class Found:
    """What was seen in one place."""

    place: Place
    ready: int
    seen: tuple[Sighting, ...]
    held_ms: int = 0
    is_worn: bool = False
    keeps_places: bool | None = (
        True  # What was looked at, or would have been, is put back where it was; None: nobody says.
    )
    dead_lettering: int | None = 0  # Expired, without a taker yet: not among the ready. None: nobody says.


def pending_text(found: Sequence[Found], now_ms: int, *, is_listed: bool) -> str:
    """All places as people read them."""
    waiting = [each for each in found if each.place.level is not None]
    parked = [each for each in found if each.place.level is None]
    lines = [line for each in waiting for line in _waiting_lines(each, now_ms, is_listed)]
    lines += [line for each in parked for line in _parked_lines(each, now_ms, is_listed)]
    lines += _totals(waiting, parked)
    return "\n".join([*lines, *_costs(found)])


def _totals(waiting: Sequence[Found], parked: Sequence[Found]) -> Iterator[str]:
    waits, rests = (sum(each.ready for each in some) for some in (waiting, parked))
    untaken = sum(each.dead_lettering or 0 for each in waiting)
    kept = f", {untaken:,} expired without a taker" if untaken else ""
    yield f"In all: {plural(waits, 'message')} waiting, {rests:,} parked{kept}."


def _waiting_lines(found: Found, now_ms: int, is_listed: bool) -> Iterator[str]:
    yield f"level {found.place.level}: {_counted(found)}"
    groups = _by(found.seen, lambda one: one.key)
    for key, some in groups[:_MOST_LINES]:
        dues = [one.due_ms for one in some if one.due_ms is not None]
        yield f"  {len(some):>7,}  {shorten(key, _KEY_WIDTH)}{_due_range(dues, now_ms)}"
    yield from _others(groups, "keys")
    if found.dead_lettering:
        yield f"  {found.dead_lettering:>7,}  expired and found no taker yet: delayctl doctor says why"
    if found.seen:
        yield "  due: " + ", ".join(f"{count:,} {when}" for when, count in due_counts(found.seen, now_ms))
    if is_listed:
        yield from (_line(one, f"due {_ahead(one.due_ms, now_ms)}") for one in found.seen)


def _parked_lines(found: Found, now_ms: int, is_listed: bool) -> Iterator[str]:
    yield f"parked in {found.place.queue}: {_counted(found)}"
    groups = _by(found.seen, lambda one: (one.key, one.reason))
    for (key, reason), some in groups[:_MOST_LINES]:
        since = [one.since_ms for one in some if one.since_ms is not None]
        oldest = f", the oldest {_ago(min(since), now_ms)}" if since else ""
        why = f": {shorten(reason, _REASON_WIDTH)}" if reason else ""
        yield f"  {len(some):>7,}  {shorten(key, _KEY_WIDTH)}{why}{oldest}"
    yield from _others(groups, "kinds")
    if is_listed:
        for one in found.seen:
            yield _line(one, "parked at an unknown time" if one.since_ms is None else _ago(one.since_ms, now_ms))


def _counted(found: Found) -> str:
    if not found.ready:
        return "nothing is ready" if found.dead_lettering else "nothing"
    seen = len(found.seen)
    part = "" if not seen or seen >= found.ready else f"; of the first {seen:,}:"
    return plural(found.ready, "message") + part


def _by(seen: Iterable[Sighting], what: Any) -> list[tuple[Any, list[Sighting]]]:
    groups: dict[Any, list[Sighting]] = {}
    for one in seen:
        groups.setdefault(what(one), []).append(one)
    return sorted(groups.items(), key=lambda pair: -len(pair[1]))


def _others(groups: Sequence[tuple[Any, list[Sighting]]], what: str) -> Iterator[str]:
    """What is left out of the lines, so that the numbers add up."""
    if others := groups[_MOST_LINES:]:
        yield f"  {sum(len(some) for _, some in others):>7,}  of {len(others):,} other {what}"


def due_counts(seen: Iterable[Sighting], now_ms: int) -> list[tuple[str, int]]:
    """How many are due by when, in the order of time; each is counted once."""
    counts = Counter(_bucket(one.due_ms, now_ms) for one in seen)
    order = [_OVERDUE, *(f"within {step}" for step in _STEPS), _LATER, _UNSAID]
    return [(when, counts[when]) for when in order if counts[when]]


def _bucket(due_ms: int | None, now_ms: int) -> str:
    if due_ms is None:
        return _UNSAID
    if due_ms < now_ms:
        return _OVERDUE
    return next((f"within {step}" for step in _STEPS if due_ms - now_ms <= step.ms), _LATER)


def _due_range(dues: Sequence[int], now_ms: int) -> str:
    if not dues:
        return ""
    first, last = _ahead(min(dues), now_ms), _ahead(max(dues), now_ms)
    return f", due {first}" if first == last else f", due {first} to {last.removeprefix('in ')}"


def _line(one: Sighting, when: str) -> str:
    reason = f": {shorten(one.reason, _REASON_WIDTH)}" if one.reason else ""
    return f"    {shorten(one.message_id or '(no id)', _ID_WIDTH)}  {shorten(one.key, _KEY_WIDTH)}  {when}{reason}"


def _ahead(due_ms: int | None, now_ms: int) -> str:
    if due_ms is None:
        return "at an unknown time"
    return f"in {_rough(due_ms - now_ms)}" if due_ms >= now_ms else _ago(due_ms, now_ms)


def _ago(then_ms: int, now_ms: int) -> str:
    return f"{_rough(now_ms - then_ms)} ago"


def _rough(ms: int) -> str:
    """A time as people say it: whole seconds, then minutes, then hours."""
    unit = 1_000 if ms < 600_000 else 60_000 if ms < 86_400_000 else 3_600_000
    return str(Duration(max(0, ms) // unit * unit))


def _costs(found: Sequence[Found]) -> Iterator[str]:
    """What looking did to the messages."""
    looked = [each for each in found if each.seen]
    if looked:
        longest = max(looked, key=lambda each: each.held_ms)
        yield (
            f"Looked at {plural(sum(len(each.seen) for each in looked), 'message')}: held for up to {longest.held_ms} ms, "
            "then put back, marked as redelivered."
        )
    if any(each.place.level is not None for each in looked):
        yield "What was due while it was held comes out that much later, and behind what was due with it."
    for each in found:
        if not each.keeps_places and each.ready:
            yield _out_of_place(each)
        if each.is_worn:
            yield (
                f"Of {each.place.queue} no more were looked at: a message there was given back so often that the broker "
                "would soon give it up (its delivery limit). Look with --sample 0, which only counts."
            )


def _out_of_place(found: Found) -> str:
    if found.keeps_places is None:
        return _perhaps_out_of_place(found)
    why = "quorum queues of this broker put what was looked at behind the others"
    if not found.seen:
        return (
            f"Not looked into {found.place.queue}: {why}, where it would wait too long. --disturb looks all the same."
        )
    return f"{found.place.queue} has another order now: {why}."


def _perhaps_out_of_place(found: Found) -> str:
    why = "what kind of queue it is could not be asked, and some put what was looked at behind the others"
    if not found.seen:
        return f"Not looked into {found.place.queue}: {why}. --disturb looks all the same."
    return f"{found.place.queue} may have another order now: {why}."


def pending_json(found: Sequence[Found], now_ms: int) -> dict[str, Any]:
    """All places as programs read them; times are milliseconds since 1970."""
    return {"at": now_ms, "queues": [_found_json(each, now_ms) for each in found]}


def _found_json(found: Found, now_ms: int) -> dict[str, Any]:
    return {
        "queue": found.place.queue,
        "kind": "parked" if found.place.level is None else "waiting",
        "level": found.place.level,
        "ttl_ms": found.place.ttl.ms if found.place.ttl else None,
        "messages": found.ready,
        "dead_lettering": found.dead_lettering,
        "looked_at": len(found.seen),
        "held_ms": found.held_ms,
        "returned_too_often": found.is_worn,
        "keeps_places": found.keeps_places,
        "keys": dict(Counter(one.key for one in found.seen).most_common()),
        "due": dict(due_counts(found.seen, now_ms)) if found.place.level is not None else None,
        "seen": [
            {
                "message_id": one.message_id,
                "key": one.key,
                "due": one.due_ms,
                "attempt": one.attempt,
                "reason": one.reason,
                "parked_at": one.since_ms,
            }
            for one in found.seen
        ],
    }
