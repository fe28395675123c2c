"""What delays by hand: queues on a broker that hold messages for a time and pass them on, and all that belongs to them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from delayctl.topology.arguments import policy_settings
from delayctl.topology.duration import Duration
from delayctl.topology.effective import Effective, effective
from delayctl.topology.foreign_ladders import Ladder, find_ladders
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Kind, Policy, Queue, Settings, sorted_bindings
from delayctl.topology.names import Names
from delayctl.topology.routing import DEFAULT_EXCHANGE, Message, matches


@dataclass(frozen=True, slots=True)
class Wait:
    """A queue that lets messages out by a TTL, with what is in force for it, policies included."""

    queue: str
    settings: Settings
    ways_in: tuple[Binding, ...] = ()
    ways_out: tuple[Binding, ...] = ()  # What an expired message may take; of the default exchange, too.
    policies: tuple[str, ...] = ()  # Those that give it its TTL or its exit.

    @property
    def ttl(self) -> Duration:
        """How long it holds a message."""
        assert self.settings.ttl is not None
        return self.settings.ttl


@dataclass(frozen=True, slots=True)
class Found:
    """The waits of a virtual host, the ladders of other products, and the names and bindings that belong to the waits."""

    waits: tuple[Wait, ...] = ()
    ladders: tuple[Ladder, ...] = ()
    exchanges: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    bindings: frozenset[Binding] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.waits or self.ladders or self.exchanges or self.queues)


def recognise(live: Live, *, prefix: str = "", everything: bool = False) -> Found:
    """Find what delays in a virtual host: waits whose names begin with the prefix, or all there is besides."""
    ladders = find_ladders(live, prefix)
    of_ladders = frozenset[str]().union(*(ladder.queues for ladder in ladders))
    waits = [
        wait
        for name, queue in live.queues.items()
        if name not in of_ladders and name.startswith(prefix) and (wait := _wait(queue, live))
    ]
    surroundings = _Surroundings(live)
    surroundings.take_recorded()
    for wait in waits:
        surroundings.take(wait.queue)
    for name in _queues_of_retries(live, prefix):
        surroundings.take(name)
    if everything:
        surroundings.take_all()
    return Found(
        tuple(sorted(waits, key=lambda wait: (wait.ttl, wait.queue))),
        ladders,
        frozenset(surroundings.exchanges).union(*(ladder.exchanges for ladder in ladders)),
        frozenset(surroundings.queues) | of_ladders,
        frozenset(surroundings.bindings),
    )


def _queues_of_retries(live: Live, prefix: str) -> Iterator[str]:
    """The queues that make what failed wait; their names are the business's, but they park by our exit."""
    for name, queue in live.queues.items():
        settings = in_force(queue, live).settings
        is_ours = name.startswith(prefix) or settings.dead_letter_exchange == Names(prefix).exit()
        if settings.waits_between_retries and is_ours:
            yield name


def names_mentioned(live: Live) -> frozenset[str]:
    """The exchanges that bindings, dead-lettering and alternates speak of, on the broker or not."""
    exits = (in_force(queue, live).settings.dead_letter_exchange for queue in live.queues.values())
    alternates = (exchange.alternate for exchange in live.exchanges.values())
    ends = (name for b in live.bindings for name in (b.source, b.destination if b.kind == "exchange" else None))
    return frozenset(name for name in (*exits, *alternates, *ends) if name)


def in_force(queue: Queue, live: Live) -> Effective:
    """What a queue does, its policies included."""
    return effective(queue, live.policies, live.operator_policies)


def _wait(queue: Queue, live: Live) -> Wait | None:
    found = in_force(queue, live)
    settings = found.settings
    if settings.ttl is None or settings.dead_letter_exchange is None:
        return None
    by = (policy for policy in (found.policy, found.operator_policy) if policy and _gives_a_delay(policy))
    return Wait(
        queue.name,
        settings,
        sorted_bindings(live.bindings_at("queue", queue.name)),
        sorted_bindings(_ways_on(settings.dead_letter_exchange, settings.dead_letter_key, live)),
        tuple(policy.name for policy in by),
    )


def _gives_a_delay(policy: Policy) -> bool:
    given = policy_settings(policy.definition)
    return given.ttl is not None or given.dead_letter_exchange is not None


def _ways_on(exchange: str, key: str | None, live: Live) -> Iterator[Binding]:
    """The bindings that a message may take here; all of them where its key is not known."""
    if exchange == DEFAULT_EXCHANGE:
        if key is not None and key in live.queues:
            yield Binding(DEFAULT_EXCHANGE, "queue", key, key)
        return
    kind = live.exchanges[exchange].type if exchange in live.exchanges else ""
    is_by_key = key is not None and kind in ("direct", "topic")
    for binding in live.bindings_at("exchange", exchange):
        if binding.source == exchange and (not is_by_key or matches(binding, kind, Message(key or ""))):
            yield binding


class _Surroundings:
    """Walks from the waits against the stream to where messages come from, and with it to where they end."""

    def __init__(self, live: Live) -> None:
        self.exchanges: set[str] = set()
        self.queues: set[str] = set()
        self.bindings: set[Binding] = set()
        self._live = live
        self._left: set[str] = set()  # Queues that were followed to where they dead-letter to.
        self._passed: set[tuple[str, str | None]] = set()
        self._traced: set[tuple[Kind, str]] = set()

    def take(self, queue: str) -> None:
        """Take in a queue that messages wait in with all that leads into it, and all that it leads to."""
        self._walk([queue])
        self._trace([("queue", queue)])

    def take_recorded(self) -> None:
        """Take in what an earlier apply remembers: a file that leaves it out would remove it."""
        if record := self._live.record:
            self.exchanges |= record.exchanges & self._live.exchanges.keys()
            self.queues |= record.queues & self._live.queues.keys()
            self._take_bindings(record.bindings & self._live.bindings)

    def take_all(self) -> None:
        """Take in the whole virtual host."""
        self.exchanges |= self._live.exchanges.keys()
        self.queues |= self._live.queues.keys()
        self._take_bindings(self._live.bindings)

    def _trace(self, ahead: list[tuple[Kind, str]]) -> None:
        while ahead:
            here = ahead.pop()
            if here in self._traced:
                continue
            self._traced.add(here)
            into = [binding for binding in self._live.bindings_at(*here) if (binding.kind, binding.destination) == here]
            self._take_bindings(into)
            sources = [binding.source for binding in into]
            if here[0] == "exchange":
                sources += [e.name for e in self._live.exchanges.values() if e.alternate == here[1]]
                self.exchanges.update(sources)
            ahead += [("exchange", source) for source in sources]

    def _walk(self, queues: list[str]) -> None:
        """Follow dead-lettering from queue to queue; every exchange on the way is passed once for each key."""
        while queues:
            name = queues.pop()
            if name in self._left:
                continue
            self._left.add(name)
            self.queues.add(name)
            settings = in_force(self._live.queues[name], self._live).settings
            if settings.dead_letter_exchange is not None:
                queues += self._reached(settings.dead_letter_exchange, settings.dead_letter_key)

    def _reached(self, exchange: str, key: str | None) -> list[str]:
        """The queues behind an exchange."""
        reached, ahead = dict[str, None](), [exchange]
        while ahead:
            here = ahead.pop()
            if (here, key) in self._passed:
                continue
            self._passed.add((here, key))
            ways = list(_ways_on(here, key, self._live))
            self._take_bindings(binding for binding in ways if binding.source != DEFAULT_EXCHANGE)
            reached.update(dict.fromkeys(b.destination for b in ways if b.kind == "queue"))
            ahead += [b.destination for b in ways if b.kind == "exchange"]
            if found := self._live.exchanges.get(here):
                self.exchanges.add(here)
                ahead += [found.alternate] if found.alternate else []
        return [name for name in reached if name in self._live.queues]

    def _take_bindings(self, bindings: Iterable[Binding]) -> None:
        for binding in bindings:
            self.bindings.add(binding)
            self.exchanges.add(binding.source)
            (self.queues if binding.kind == "queue" else self.exchanges).add(binding.destination)
