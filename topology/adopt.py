"""What was recognised on a broker to a Spec that says the same, so that planning its file changes nothing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from delayctl.topology.adopt_levels import OwnShape, own_shapes, routes_of_levels
from delayctl.topology.adopt_retries import with_retries
from delayctl.topology.diff import diff
from delayctl.topology.expand import expand
from delayctl.topology.live import Live, is_to_hidden_queue
from delayctl.topology.model import Binding, Kind, sorted_bindings
from delayctl.topology.own_names import own_names_of
from delayctl.topology.parse_routes import KEYLESS_TYPES
from delayctl.topology.plan import Plan, label
from delayctl.topology.recognise import Found
from delayctl.topology.spec import ExchangeSpec, QueueSpec, RouteSpec, Spec, Target
from delayctl.topology.writable import (
    exchange_obstacle,
    exchange_type,
    object_obstacle,
    queue_obstacle,
    queue_type,
    route_obstacle,
    written_arguments,
)


@dataclass(frozen=True, slots=True)
class Note:
    """An object that the file can only mark as existing, or has to leave out, and why."""

    subject: str
    reason: str
    is_left_out: bool


@dataclass(frozen=True, slots=True)
class Adopted:
    """A Spec for what was found, and all that it could not say."""

    spec: Spec
    notes: tuple[Note, ...] = ()


def adopt(live: Live, found: Found, *, vhost: str | None = None, prefix: str = "") -> Adopted:
    """Describe what was found: as levels where it has delayctl's own shape, else object by object."""
    base = Spec((), vhost=vhost if vhost and not object_obstacle(vhost) else None, prefix=prefix)
    for shape in own_shapes(live, base):
        adopted = _settled(_described(live, found, base, shape), live)
        if adopted and diff(expand(adopted.spec), live).is_empty:
            told = with_retries(adopted.spec)
            return replace(adopted, spec=told) if diff(expand(told), live).is_empty else adopted
    plain = _settled(_described(live, found, base, None), live)
    assert plain is not None
    return plain


def own_prefixes(live: Live) -> tuple[str, ...]:
    """The prefixes of what has delayctl's own shape in a virtual host."""
    ending = "delay.exchange"
    candidates = sorted(name.removesuffix(ending) for name in live.exchanges if name.endswith(ending))
    unrecorded = replace(live, record=None)
    return tuple(prefix for prefix in candidates if any(own_shapes(unrecorded, Spec((), prefix=prefix))))


@dataclass
class _Description:
    """The objects of a file as they come together."""

    live: Live
    own: Mapping[Kind, frozenset[str]]  # The names that the file can give to nothing else.
    exchanges: dict[str, ExchangeSpec] = field(default_factory=dict)
    queues: dict[str, QueueSpec] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def add_exchange(self, name: str, *, is_foreign: bool) -> None:
        """List an exchange, as exactly as the file can."""
        found = self.live.exchanges.get(name)
        if found is None or self._is_unnamable("exchange", name):
            return
        obstacle = exchange_obstacle(found)
        kind = exchange_type(found)
        if is_foreign or obstacle:
            self.exchanges[name] = ExchangeSpec(name, kind, existing=True)
        else:
            self.exchanges[name] = ExchangeSpec(
                name,
                kind,
                found.alternate,
                durable=found.durable,
                auto_delete=found.auto_delete,
                internal=found.internal,
                arguments=found.extra,
            )
        if obstacle and not is_foreign and not name.startswith("amq."):
            self._mark(f"exchange {name}", obstacle)

    def add_queue(self, name: str, *, is_foreign: bool) -> None:
        """List a queue, as exactly as the file can."""
        found = self.live.queues.get(name)
        if found is None or self._is_unnamable("queue", name):
            return
        obstacle = queue_obstacle(found)
        kind = queue_type(found)
        if is_foreign or obstacle:
            self.queues[name] = QueueSpec(name, kind, existing=True)
        else:
            self.queues[name] = QueueSpec(
                name,
                kind,
                arguments=written_arguments(found),
                durable=found.durable,
                auto_delete=found.auto_delete,
            )
        if obstacle and not is_foreign:
            self._mark(f"queue {name}", obstacle)

    def sayable(self, bindings: Iterable[Binding]) -> Iterator[Binding]:
        """The bindings that a route can say; of the others a note is taken."""
        for binding in sorted_bindings(bindings):
            if obstacle := self._obstacle(binding):
                self.notes.append(Note(label(binding), obstacle, is_left_out=True))
            else:
                yield binding

    def _obstacle(self, binding: Binding) -> str | None:
        if is_to_hidden_queue(binding, self.live):
            return "the queue is exclusive: only its owner can bind it"
        if binding.source not in self.exchanges:
            return f"exchange {binding.source} can't be listed"
        if binding.destination not in (self.queues if binding.kind == "queue" else self.exchanges):
            return f"{binding.kind} {binding.destination} can't be listed"
        return route_obstacle(binding, self.exchanges[binding.source].type)

    def _is_unnamable(self, kind: Kind, name: str) -> bool:
        is_own = name in self.own[kind]
        obstacle = (
            "it is delayctl's own name" if is_own else object_obstacle(name, may_be_predefined=kind == "exchange")
        )
        if obstacle:
            self.notes.append(Note(f"{kind} {name}", obstacle, is_left_out=True))
        return obstacle is not None

    def _mark(self, subject: str, reason: str) -> None:
        self.notes.append(Note(subject, reason, is_left_out=False))


def _described(live: Live, found: Found, base: Spec, shape: OwnShape | None) -> Adopted | None:
    description = _Description(live, own_names_of(shape.spec if shape else base))
    foreign = frozenset[str]().union(*(ladder.exchanges | ladder.queues for ladder in found.ladders))
    own_exchanges, own_queues = (shape.exchanges, shape.queues) if shape else (frozenset(), frozenset())
    for name in sorted(found.exchanges - own_exchanges):
        is_foreign = name in foreign or name.startswith("amq.")
        description.add_exchange(name, is_foreign=is_foreign)
    for name in sorted(found.queues - own_queues):
        description.add_queue(name, is_foreign=name in foreign)
    bindings = frozenset(b for b in found.bindings if not _is_within(b, foreign))
    of_levels = frozenset(b for b in bindings if shape and shape.touches(b) and not is_to_hidden_queue(b, live))
    routes = _routes(description.sayable(bindings - of_levels), description.exchanges)
    if shape is None:
        return _adopted(base, description, routes)
    delayed = routes_of_levels(shape, of_levels, description.exchanges, description.queues)
    return None if delayed is None else _adopted(shape.spec, description, (*delayed, *routes))


def _adopted(base: Spec, description: _Description, routes: tuple[RouteSpec, ...]) -> Adopted:
    exchanges, queues = description.exchanges, description.queues
    spec = replace(
        base,
        exchanges=tuple(exchanges[name] for name in sorted(exchanges)),
        queues=tuple(queues[name] for name in sorted(queues)),
        routes=routes,
    )
    return Adopted(spec, tuple(description.notes))


def _is_within(binding: Binding, foreign: frozenset[str]) -> bool:
    """Say whether a binding belongs to a ladder of another product, from end to end."""
    return binding.source in foreign and binding.destination in foreign


def _routes(bindings: Iterable[Binding], exchanges: Mapping[str, ExchangeSpec]) -> tuple[RouteSpec, ...]:
    """Bindings as routes without delay: one for all keys and targets that go together."""
    targets: dict[RouteSpec, dict[Target, None]] = {}
    for binding in bindings:
        way = _way(binding, exchanges[binding.source].type)
        targets.setdefault(way, {})[Target(binding.kind, binding.destination)] = None
    keys: dict[RouteSpec, list[str]] = {}
    for way, ends in targets.items():
        keys.setdefault(replace(way, keys=(), targets=tuple(ends)), []).extend(way.keys)
    return tuple(replace(route, keys=tuple(together)) for route, together in keys.items())


def _way(binding: Binding, source_type: str | None) -> RouteSpec:
    """What a binding looks for: a fanout exchange at nothing, where headers are asked for no key."""
    keys = () if source_type in KEYLESS_TYPES or binding.arguments else (binding.key,)
    return RouteSpec(keys, (), binding.source, headers=() if source_type == "fanout" else binding.arguments)


def _settled(adopted: Adopted | None, live: Live) -> Adopted | None:
    """The same with every queue marked existing that a policy makes to do something else than its arguments say."""
    if adopted is None:
        return None
    bent = _bent_queues(diff(expand(adopted.spec), live))
    queues = tuple(
        QueueSpec(queue.name, queue.type, existing=True) if queue.name in bent else queue
        for queue in adopted.spec.queues
    )
    notes = [Note(f"queue {q.name}", bent[q.name], is_left_out=False) for q in adopted.spec.queues if q.name in bent]
    return Adopted(replace(adopted.spec, queues=queues), (*adopted.notes, *notes))


def _bent_queues(plan: Plan) -> dict[str, str]:
    return {
        refusal.subject.removeprefix("queue "): refusal.reason
        for refusal in plan.refusals
        if refusal.subject.startswith("queue ")
    }
