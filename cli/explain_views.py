"""The way of a message as text or JSON. Pure: nothing is read, nothing is printed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import click
from delayctl.topology.duration import Duration
from delayctl.topology.journey import End, Fate, Journey, Passage, Stay
from delayctl.topology.layout import flow
from delayctl.topology.model import Binding, Kind, Settings, thaw
from delayctl.topology.names import MAX_NAME_BYTES
from delayctl.topology.routing import DEFAULT_EXCHANGE, Hop, Network
from delayctl.topology.wording import plural, shorten

MAX_LINES = 200  # Of the tree; JSON has the rest.
_COLOURS: dict[Fate, str] = {"delivered": "green", "parked": "yellow", "handed_over": "yellow", "unknown": "yellow"}
_WORDS: dict[Fate, str] = {"dropped": "dropped as a cycle", "handed_over": "handed over"}
_PLACES: dict[Fate, str] = {"delivered": "to", "parked": "in", "stuck": "in", "dropped": "before"}
_LONGEST_REASON = 600


@dataclass(frozen=True)
class Explained:
    """A journey, the network that it is through, and what else there is to say of it."""

    journey: Journey
    network: Network
    where: str  # The file, or the broker.
    unread: frozenset[str] = frozenset()  # Queues that nobody consumes from: the delays.
    notes: tuple[str, ...] = ()
    version: str | None = None  # The broker's, where it was asked.


def explain_text(explained: Explained) -> str:
    """The way as people read it: a tree with times, then what became of each copy."""
    start = explained.journey.passages[0]
    lines = list(islice(_tree(_Teller(explained).passage(0)), MAX_LINES + 1))
    width = max(len(f"+{at}") for at, _ in lines)
    shown = list(_with_times(lines[:MAX_LINES], width))
    more = [f"{'':{width}}    … and more: --output json shows all of it"] if len(lines) > MAX_LINES else []
    notes = [f"{click.style('Note:', fg='yellow')} {note}" for note in explained.notes]
    return "\n".join(
        [f"{explained.where}: {_published(start)}", "", *shown, *more, "", *_summary(explained.journey), *notes]
    )


def _published(start: Passage) -> str:
    key = f"the key {_name(start.message.key)}" if start.message.key else "an empty key"
    headers = f" and the headers {_looked_for(start.message.headers)}" if start.message.headers else ""
    return f"a message to {_exchange_name(start.exchange)} with {key}{headers}"


def _with_times(lines: Sequence[tuple[Duration, str]], width: int) -> Iterator[str]:
    """Each line behind its time, which is written where it changes."""
    before: Duration | None = None
    for at, text in lines:
        time = f"+{at}" if at != before else ""
        yield f"  {time:>{width}}  {text}"
        before = at


def _summary(journey: Journey) -> Iterator[str]:
    groups: dict[tuple[Fate, str | None, str | None, str], list[End]] = {}
    for end in journey.ends:
        groups.setdefault((end.fate, end.queue, end.exchange, end.reason), []).append(end)
    for ends in islice(groups.values(), MAX_LINES):
        yield _ended(ends)
    if len(groups) > MAX_LINES:
        yield f"… and {plural(len(groups) - MAX_LINES, 'other end')}."
    if journey.is_cut:
        yield "There are more copies than could be followed: dead-letter exchanges lead to each other."


def _ended(ends: Sequence[End]) -> str:
    end, count = ends[0], len(ends)
    fate = click.style(_WORDS.get(end.fate, end.fate).capitalize(), fg=_colour(end.fate))
    times = f" {click.style(f'{count} times', fg='red')}" if count > 1 else ""
    where = f" {_PLACES.get(end.fate, 'on the way out of')} {_name(end.queue)}" if end.queue is not None else ""
    where += f" to exchange {_name(end.exchange)}" if end.exchange is not None else ""
    spans = list(dict.fromkeys(str(each.after) for each in ends))
    after = "at once" if spans == ["0s"] else f"after {', '.join(spans[:5])}{' …' if len(spans) > 5 else ''}"
    reason = f": {_reason(end)}" if end.reason else ""
    return f"{fate}{times}{where} {after}{reason}."


@dataclass(frozen=True)
class _Node:
    at: Duration
    text: str
    children: Callable[[], "list[_Node]"] = list


def _tree(root: _Node) -> Iterator[tuple[Duration, str]]:
    """The lines of a tree, top down; as deep as it may be, since nothing here calls itself."""
    ahead = [(root, "", "")]
    while ahead:
        node, lead, indent = ahead.pop()
        yield node.at, lead + node.text
        children = node.children()
        for child in reversed(children):
            is_last = child is children[-1]
            ahead.append((child, indent + ("└─ " if is_last else "├─ "), indent + ("   " if is_last else "│  ")))


@dataclass
class _Passing:
    """One passage while it is drawn: every exchange and every queue of it once."""

    passage: Passage
    hops: Mapping[str, Hop]
    stays: Mapping[str, Stay]
    drawn: set[tuple[Kind, str]] = field(default_factory=set)


class _Teller:
    def __init__(self, explained: Explained) -> None:
        self._journey, self._network, self._unread = explained.journey, explained.network, explained.unread

    def passage(self, number: int) -> _Node:
        passage = self._journey.passages[number]
        passing = _Passing(
            passage,
            {hop.exchange: hop for hop in passage.routed.hops},
            {stay.queue: stay for stay in passage.stays},
        )
        ends = [_Node(passage.at, _told(end)) for end in passage.ends if end.exchange is None]
        return self._exchange(passing, passage.exchange, "", self._other_key(passage), ends)

    def _other_key(self, passage: Passage) -> str:
        """What to say where the queue in front gave the message a key of its own."""
        source = self._network.queues.get(passage.out_of or "")
        if source is None or source.settings.dead_letter_key is None:
            return ""
        return f", now with the key {_name(passage.message.key) or '(empty)'}"

    def _exchange(self, passing: _Passing, name: str, way: str, remark: str = "", ends: Sequence[_Node] = ()) -> _Node:
        at, text = passing.passage.at, f"{way}{_exchange_name(name)}"
        if ("exchange", name) in passing.drawn:
            return _Node(at, f"{text}, which it passed already")
        passing.drawn.add(("exchange", name))
        exchange, hop = self._network.exchanges.get(name), passing.hops.get(name)
        if exchange is None:
            return _Node(at, f"{text}, which does not exist{remark}", lambda: list(ends))
        kind = f" ({exchange.type})" if name != DEFAULT_EXCHANGE else ""
        text += f"{kind}{remark}" + "".join(f": {_told(end)}" for end in passing.passage.ends if end.exchange == name)
        return _Node(at, text, lambda: [*self._ways(passing, name, hop), *ends])

    def _ways(self, passing: _Passing, name: str, hop: Hop | None) -> list[_Node]:
        if passing.passage.exchange == DEFAULT_EXCHANGE:
            return [self._queue(passing, queue, "") for queue in passing.stays]
        if hop is None:
            return []
        if hop.alternate is not None:
            return [self._exchange(passing, hop.alternate, "nothing matches, alternate → ")]
        kind = self._network.exchanges[name].type
        if hop.one_of:
            return [self._lead(passing, hop.matched[0], f"one of {hop.one_of} → ")]
        return [self._way(passing, kind, bindings) for bindings in _by_destination(hop.matched)]

    def _way(self, passing: _Passing, kind: str, bindings: Sequence[Binding]) -> _Node:
        return self._lead(passing, bindings[0], _conditions(kind, bindings))

    def _lead(self, passing: _Passing, binding: Binding, way: str) -> _Node:
        end = binding.destination
        return self._exchange(passing, end, way) if binding.kind == "exchange" else self._queue(passing, end, way)

    def _queue(self, passing: _Passing, name: str, way: str) -> _Node:
        at, text = passing.passage.at, f"{way}{_name(name)}"
        stay = passing.stays.get(name)
        if stay is None:
            return _Node(at, f"{text}: {'is not there' if name not in self._network.queues else 'not reached'}")
        if ("queue", name) in passing.drawn:
            return _Node(at, f"{text}, which has its copy already")
        passing.drawn.add(("queue", name))
        if stay.wait is not None:
            text += f": waits {stay.wait}" if name in self._unread else f": waits {stay.wait} unless consumed before"
        if stay.end is not None:
            text += f", then {_told(stay.end)}" if stay.wait is not None else f": {_told(stay.end)}"
            text += _retries(self._network.queues[name].settings) if stay.end.fate == "delivered" else ""
        onward = stay.onward
        return _Node(at, text, list if onward is None else lambda: [self.passage(onward)])


def _retries(settings: Settings) -> str:
    """What to say of a queue that makes what failed wait."""
    if not settings.waits_between_retries or settings.retry_min is None:
        return ""
    longest = f" to {settings.retry_max}" if settings.retry_max not in (None, settings.retry_min) else ""
    times = f", {plural(settings.delivery_limit, 'time')} at most" if settings.delivery_limit else ""
    return f"; what fails waits there {settings.retry_min}{longest} and comes again{times}"


def _by_destination(bindings: Sequence[Binding]) -> list[list[Binding]]:
    groups: dict[tuple[Kind, str], list[Binding]] = {}
    for binding in bindings:
        groups.setdefault((binding.kind, binding.destination), []).append(binding)
    return list(groups.values())


def _conditions(kind: str, bindings: Sequence[Binding]) -> str:
    """What the bindings look for, where the exchange looks at anything."""
    if kind == "fanout":
        return ""
    if kind == "headers":
        return f"{', '.join(_looked_for(dict(binding.arguments)) for binding in bindings)} → "
    return f"{', '.join(_name(binding.key) or '(empty key)' for binding in bindings)} → "


def _looked_for(headers: Mapping[str, object]) -> str:
    parts = (f"{_name(name)}: {_value(value)}" for name, value in headers.items())
    return "{" + ", ".join(parts) + "}"


def _value(value: object) -> str:
    plain = thaw(value)
    return flow(plain) if isinstance(plain, str | int | list) else str(plain)


def _told(end: End) -> str:
    fate = click.style(_WORDS.get(end.fate, end.fate), fg=_colour(end.fate))
    return f"{fate}: {_reason(end)}" if end.reason else fate


def _reason(end: End) -> str:
    return shorten(end.reason, _LONGEST_REASON)


def _colour(fate: Fate) -> str:
    return _COLOURS.get(fate, "red")


def _exchange_name(name: str) -> str:
    return _name(name) or "the default exchange"


def _name(text: str) -> str:
    return shorten(text, MAX_NAME_BYTES)


def explain_json(explained: Explained) -> dict[str, Any]:
    """The way as programs read it."""
    journey = explained.journey
    start = journey.passages[0]
    return {
        "exchange": start.exchange,
        "key": start.message.key,
        "headers": dict(start.message.headers),
        "live": explained.version is not None,
        "rabbitmq_version": explained.version,
        "safe": journey.is_safe,
        "complete": not journey.is_cut,
        "total_ms": journey.total.ms,
        "ends": [_end_json(end) for end in journey.ends],
        "repeated": dict(journey.repeated),
        "passages": [_passage_json(number, passage) for number, passage in enumerate(journey.passages)],
        "notes": list(explained.notes),
    }


def _end_json(end: End) -> dict[str, Any]:
    return {
        "fate": end.fate,
        "queue": end.queue,
        "exchange": end.exchange,
        "after_ms": end.after.ms,
        "key": end.key,
        "reason": end.reason or None,
    }


def _passage_json(number: int, passage: Passage) -> dict[str, Any]:
    return {
        "number": number,
        "at_ms": passage.at.ms,
        "out_of": passage.out_of,
        "exchange": passage.exchange,
        "keys": list(passage.message.keys),
        "hops": [_hop_json(hop) for hop in passage.routed.hops],
        "stays": [_stay_json(stay) for stay in passage.stays],
        "ends": [_end_json(end) for end in passage.ends],
    }


def _hop_json(hop: Hop) -> dict[str, Any]:
    return {
        "exchange": hop.exchange,
        "exists": not hop.is_missing,
        "known": not hop.is_unknown,
        "matched": [
            {
                "destination_type": binding.kind,
                "destination": binding.destination,
                "routing_key": binding.key,
                "arguments": {name: thaw(value) for name, value in binding.arguments},
            }
            for binding in hop.matched
        ],
        "alternate": hop.alternate,
        **({"one_of": hop.one_of} if hop.one_of else {}),
    }


def _stay_json(stay: Stay) -> dict[str, Any]:
    return {
        "queue": stay.queue,
        "at_ms": stay.at.ms,
        "wait_ms": stay.wait.ms if stay.wait is not None else None,
        "onward": stay.onward,
        "end": _end_json(stay.end) if stay.end else None,
    }
