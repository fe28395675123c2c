"""The way of a message from its publish through exchanges, waits and dead-letterings to where every copy ends."""

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from delayctl.topology.duration import Duration
from delayctl.topology.model import Queue, Settings
from delayctl.topology.routing import FURTHER_KEYS, Hop, Message, Network, Routed, route

Fate = Literal["delivered", "parked", "handed_over", "lost", "dropped", "stuck", "returned", "refused", "unknown"]
GOOD: frozenset[Fate] = frozenset({"delivered", "parked", "handed_over"})
MAX_STAYS = 5_000  # Dead-letter exchanges that lead to each other multiply copies beyond all bounds.
_AT_ONCE = Duration(0)
_NOWHERE = Routed((), ())


@dataclass(frozen=True, slots=True)
class End:
    """What became of one copy: in or behind which queue, after how long, and with which key."""

    fate: Fate
    after: Duration
    key: str
    queue: str | None = None
    reason: str = ""
    exchange: str | None = None  # Where it was handed over: an exchange that others bind to.


@dataclass(frozen=True, slots=True)
class Stay:
    """A copy in a queue: it ends there, or goes on after `wait` with the passage of this number."""

    queue: str
    at: Duration
    wait: Duration | None = None
    onward: int | None = None
    end: End | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """One routing: into an exchange at a time, through all that it leads to, into queues."""

    exchange: str
    message: Message
    at: Duration
    out_of: str | None  # The queue that it expired in; None for the publish.
    routed: Routed
    stays: tuple[Stay, ...] = ()
    ends: tuple[End, ...] = ()  # Of what reached no queue.


@dataclass(frozen=True)
class Journey:
    """Every passage, the publish first. `is_cut` says that there were too many copies to follow them all."""

    passages: tuple[Passage, ...]
    is_cut: bool = False

    @cached_property
    def ends(self) -> tuple[End, ...]:
        """Where the copies ended, the earliest first."""
        return tuple(sorted(_ends(self.passages), key=lambda end: end.after))

    @property
    def total(self) -> Duration:
        """How long the last copy takes."""
        return max((end.after for end in self.ends), default=_AT_ONCE)

    @property
    def is_safe(self) -> bool:
        """Say whether every copy is delivered or parked, or handed over to what others bound."""
        return all(end.fate in GOOD for end in self.ends)

    @property
    def repeated(self) -> Mapping[str, int]:
        """The queues that get the message more than once, and how often."""
        counts = Counter(end.queue for end in self.ends if end.fate in GOOD and end.queue is not None)
        return {queue: count for queue, count in sorted(counts.items()) if count > 1}


@dataclass(frozen=True, slots=True)
class _Departure:
    """A copy about to enter an exchange; `waited` are the queues that it expired in."""

    exchange: str
    message: Message
    at: Duration = _AT_ONCE
    waited: tuple[str, ...] = ()


def journey(network: Network, exchange: str, message: Message, *, parking: Collection[str] = ()) -> Journey:
    """Follow a message until every copy has come to rest; in `parking` queues it is parked, in others delivered.

    A queue with a TTL is taken for one that nobody consumes from.
    """
    if refusal := _refusal(network, exchange):
        end = End("refused", _AT_ONCE, message.key, reason=refusal)
        return Journey((Passage(exchange, message, _AT_ONCE, None, _NOWHERE, ends=(end,)),))
    passages: list[Passage] = []
    ahead = deque([_Departure(exchange, message)])
    stays, is_cut = 0, False
    while ahead:
        departure = ahead.popleft()
        if stays >= MAX_STAYS:
            is_cut = True
            passages.append(_not_followed(departure))
            continue
        number = len(passages) + 1 + len(ahead)
        passage, onward = _pass(network, departure, parking, number)
        passages.append(passage)
        ahead.extend(onward)
        stays += len(passage.stays)
    return Journey(tuple(passages), is_cut)


def _refusal(network: Network, exchange: str) -> str | None:
    found = network.exchanges.get(exchange)
    if found is None:
        return f"there is no exchange {exchange}: the broker closes the publisher's channel"
    if found.internal:
        return f"exchange {exchange} is internal: the broker closes the channel of who publishes to it"
    return None


def _pass(
    network: Network, departure: _Departure, parking: Collection[str], number: int
) -> tuple[Passage, list[_Departure]]:
    """Route one copy; what goes on from the queues it reaches is numbered from `number`."""
    routed = route(network, departure.exchange, departure.message)
    circling = set(departure.waited).intersection(routed.queues)
    ends = tuple(_ends_on_the_way(network, departure, routed, circling))
    stays: list[Stay] = []
    onward: list[_Departure] = []
    is_kept = any(end.fate == "stuck" for end in ends)
    for name in () if is_kept else routed.queues:
        if name in circling:
            stays.append(Stay(name, departure.at, end=_circled(departure, name)))
            continue
        stay, following = _stay(network.queues[name], departure, name in parking, number + len(onward))
        stays.append(stay)
        onward += [following] if following else []
    out_of = departure.waited[-1] if departure.waited else None
    return Passage(departure.exchange, departure.message, departure.at, out_of, routed, tuple(stays), ends), onward


def _ends_on_the_way(
    network: Network, departure: _Departure, routed: Routed, circling: Collection[str]
) -> Iterator[End]:
    """What becomes of a copy, or of a part of it, before it reaches a queue."""
    at, key = departure.at, departure.message.key
    unknown = [hop.exchange for hop in routed.hops if hop.is_unknown]
    for name in unknown:
        kind = network.exchanges[name].type
        reason = f"exchange {name} is of type {kind}, a plugin's: where it leads is not known here"
        yield End("unknown", at, key, reason=reason)
    open_ended = [hop.exchange for hop in routed.hops if _is_handed_over(network, hop)]
    for name in open_ended:
        yield End("handed_over", at, key, reason="what is bound there is not in the file", exchange=name)
    if unknown or open_ended or len(routed.queues) > len(circling):
        return
    source = network.queues[departure.waited[-1]] if departure.waited else None
    why = "it would circle" if circling else _why_nowhere(network, departure)
    if source and is_at_least_once(source.settings):
        reason = f"{why}; dead-lettered at least once, it stays and is tried again every 3 minutes"
        yield End("stuck", at, key, source.name, reason)
    elif source and not routed.queues:
        yield End("lost", at, key, source.name, why)
    elif not routed.queues:
        yield End("returned", at, key, reason=f"{why} (and lost, if it was not published as mandatory)")


def _is_handed_over(network: Network, hop: Hop) -> bool:
    return hop.exchange in network.open_ended and not (hop.matched or hop.is_unknown or hop.alternate is not None)


def _why_nowhere(network: Network, departure: _Departure) -> str:
    name = departure.exchange or "the default exchange"
    if departure.exchange not in network.exchanges:
        return f"the dead-letter exchange {name} does not exist"
    return f"nothing behind {name} takes it"


def _circled(departure: _Departure, queue: str) -> End:
    reason = "it waited there before, and the broker drops what circles"
    return End("dropped", departure.at, departure.message.key, queue, reason)


def _stay(queue: Queue, departure: _Departure, is_parking: bool, number: int) -> tuple[Stay, _Departure | None]:
    settings, at, key = queue.settings, departure.at, departure.message.key
    if settings.ttl is None:
        end = End("parked" if is_parking else "delivered", at, key, queue.name)
        return Stay(queue.name, at, end=end), None
    out_at = Duration(at.ms + settings.ttl.ms)
    if settings.dead_letter_exchange is None:
        end = End("lost", out_at, key, queue.name, "it expires, and the queue has no dead-letter exchange")
        return Stay(queue.name, at, settings.ttl, end=end), None
    message = _dead_lettered(departure, queue)
    waited = (*departure.waited, queue.name)
    return Stay(queue.name, at, settings.ttl, number), _Departure(
        settings.dead_letter_exchange, message, out_at, waited
    )


def _dead_lettered(departure: _Departure, queue: Queue) -> Message:
    """The message as the dead-letter exchange gets it: with its own keys, or with the queue's and no others."""
    headers = dict(departure.message.headers)
    if not departure.waited:
        headers |= {
            "x-first-death-exchange": departure.exchange,
            "x-first-death-queue": queue.name,
            "x-first-death-reason": "expired",
        }
    key = queue.settings.dead_letter_key
    if key is None:
        return Message(departure.message.key, headers, departure.message.id)
    kept = {name: value for name, value in headers.items() if name not in FURTHER_KEYS}
    return Message(key, kept, departure.message.id)


def is_at_least_once(settings: Settings) -> bool:
    """Say whether a queue keeps what it can't dead-letter; all three settings are needed, or the broker ignores it."""
    return (settings.type, settings.dead_letter_strategy, settings.overflow) == (
        "quorum",
        "at-least-once",
        "reject-publish",
    )


def _not_followed(departure: _Departure) -> Passage:
    reason = f"not followed: there are more than {MAX_STAYS:,} copies"
    end = End("unknown", departure.at, departure.message.key, departure.waited[-1], reason)
    return Passage(departure.exchange, departure.message, departure.at, departure.waited[-1], _NOWHERE, ends=(end,))


def _ends(passages: Collection[Passage]) -> Iterator[End]:
    for passage in passages:
        yield from passage.ends
        yield from (stay.end for stay in passage.stays if stay.end)
