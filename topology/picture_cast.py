"""Who is who in a picture: which card an object belongs to, and what part the card plays."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from itertools import product

from delayctl.topology.duration import Duration
from delayctl.topology.model import Binding
from delayctl.topology.names import ANY, shard_name
from delayctl.topology.picture import Role, Thing, Way
from delayctl.topology.picture_subject import Subject
from delayctl.topology.routing import DEFAULT_EXCHANGE

EXIT, NET, PUBLISHERS = "exit", "net", "publishers"
_LAST = Duration(2**63)


class Cast:
    """The objects of a subject, each at its card."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._names = subject.names

    def card_of(self, thing: Thing) -> str:
        """The id of the card that an object is on."""
        names, (kind, name) = self._names, thing
        if thing == Thing("exchange", names.exit()):
            return EXIT
        if name in (names.unrouted_exchange(), names.unrouted_queue()):
            return NET
        level = self.level_of(name)
        return f"{kind} {name}" if level is None else f"level {level}"

    def level_of(self, name: str) -> str | None:
        """The level that an object belongs to by its name, be it that of a queue which is about to take its place."""
        middle = name.removeprefix(f"{self._names.prefix}delay.")
        middle = next(
            (middle.removesuffix(end) for end in (".queue", ".exchange", ".policy") if middle.endswith(end)), ""
        )
        if not middle or not name.startswith(f"{self._names.prefix}delay."):
            return None
        if middle.split(".")[0] == ANY:
            return ANY if self._has_ladder else None
        level = middle.removesuffix(".next")
        # What spreads a level over several queues, and these, are parts of it.
        return next((name for name in (level, level.partition(".")[0]) if name in self.levels), None)

    @cached_property
    def _has_ladder(self) -> bool:
        return self._names.entrance(ANY) in self._subject.exchanges

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, the shortest first."""
        begin, end = self._names.delay_queue("\0").split("\0")
        found = {name[len(begin) : -len(end)] for name in self._subject.queues if _is_between(begin, name, end)}
        known = {
            level for level in found if self._names.entrance(level) in self._subject.exchanges and "." not in level
        }
        known |= {level for name in self._subject.exchanges if (level := self._names.spread_level(name)) is not None}
        return tuple(sorted(known - {"unrouted"}, key=lambda level: (self.ttl(level), level)))

    def ttl(self, level: str) -> Duration:
        """How long a level waits; by its name where nothing else is known, as in a saved plan."""
        first = self._names.delay_queue(shard_name(level, 1))
        queue = self._subject.queues.get(self._names.delay_queue(level)) or self._subject.queues.get(first)
        if queue and queue.settings.ttl:
            return queue.settings.ttl
        try:
            return Duration.parse(level)
        except ValueError:
            return _LAST

    @cached_property
    def waits(self) -> tuple[str, ...]:
        """The ids of the cards that messages wait on."""
        ladder = (ANY,) if self._has_ladder else ()
        return tuple(f"level {level}" for level in (*self.levels, *ladder))

    @cached_property
    def things(self) -> tuple[Thing, ...]:
        """Every object, those that are only named by others included."""
        subject = self._subject
        named = {end for binding in subject.bindings for end in ends(binding)}
        named |= {Thing("exchange", name) for name in subject.exchanges} | {Thing("queue", n) for n in subject.queues}
        return tuple(sorted(named | {target for _, target, _ in relations(subject)}))

    @cached_property
    def sources(self) -> frozenset[str]:
        """The cards of exchanges from which a message comes to a wait or to the exit, by however many bindings."""
        found: set[str] = set()
        ahead = {*self.waits, EXIT}
        while ahead:
            before = {card for card, target in self._between if target in ahead} - found - set(self.waits) - {EXIT}
            found |= before
            ahead = before
        return frozenset(found)

    @cached_property
    def _between(self) -> frozenset[tuple[str, str]]:
        pairs = (tuple(map(self.card_of, ends(binding))) for binding in self._subject.bindings)
        return frozenset((source, target) for source, target in pairs)

    def waited_at(self, binding: Binding) -> tuple[str, ...]:
        """The levels that messages come from which take this binding of the exit, as far as bindings and routes tell."""
        found = self._levels_by_key[binding.key] | self._levels_by_route[ends(binding)[1], binding.key]
        return tuple(level for level in (*self.levels, ANY) if level in found)

    @cached_property
    def _levels_by_key(self) -> dict[str, set[str | None]]:
        found: dict[str, set[str | None]] = defaultdict(set)
        for binding in self._subject.bindings:
            if binding.kind == "exchange" and not binding.arguments:
                found[binding.key].add(self.level_of(binding.destination))
        return found

    @cached_property
    def _levels_by_route(self) -> dict[tuple[Thing, str], set[str | None]]:
        found: dict[tuple[Thing, str], set[str | None]] = defaultdict(set)
        for route in self._subject.routes:
            for key, target in product(route.keys, route.targets):
                found[Thing(target.kind, target.name), key].add(route.level)
        return found

    def role_of(self, card: str, thing: Thing) -> Role:
        """The part that a card plays."""
        if card in self.waits:
            return "ladder" if card == f"level {ANY}" else "level"
        if card == EXIT:
            return "exit"
        if card == NET:
            return "net"
        if card in self.sources:
            return "source"
        if thing.kind == "exchange":
            return "exchange"
        return "park" if thing.name in self._parks else "queue"

    @cached_property
    def _parks(self) -> frozenset[str]:
        by_key = {b.destination for b in self._subject.bindings if b.key == self._names.park_key(b.destination)}
        return frozenset(by_key | {retry.park for retry in self._subject.retries})


def ends(binding: Binding) -> tuple[Thing, Thing]:
    """The two objects that a binding joins."""
    return Thing("exchange", binding.source), Thing(binding.kind, binding.destination)


def _is_between(begin: str, text: str, end: str) -> bool:
    return len(text) > len(begin) + len(end) and text.startswith(begin) and text.endswith(end)


def relations(subject: Subject) -> Iterator[tuple[Thing, Thing, Way]]:
    """The ways that are no bindings: alternate exchanges, and where queues dead-letter to."""
    for _, exchange in sorted(subject.exchanges.items()):
        if exchange.alternate:
            yield Thing("exchange", exchange.name), Thing("exchange", exchange.alternate), "alternate"
    for _, queue in sorted(subject.queues.items()):
        exit, key = queue.settings.dead_letter_exchange, queue.settings.dead_letter_key
        if exit == DEFAULT_EXCHANGE and key:
            yield Thing("queue", queue.name), Thing("queue", key), "dead-letter"
        elif exit:
            yield Thing("queue", queue.name), Thing("exchange", exit), "dead-letter"
