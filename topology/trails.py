"""Messages that a file speaks of, sent on their way: one for each route, and for what two patterns have in common."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from delayctl.topology.journey import Journey, journey
from delayctl.topology.key_index import FILL, OPEN_WORDS, common_key, is_pattern, sample_of
from delayctl.topology.model import Binding
from delayctl.topology.routing import DEFAULT_EXCHANGE, Message
from delayctl.topology.scene import Scene
from delayctl.topology.spec import RouteSpec

MAX_PAIRS = 5_000  # Pairs of patterns that are held against each other; a file has seldom more than a handful.
MAX_COPIES = 5_000  # Copies that are followed: where all routes share a key, every message reaches all targets.


@dataclass(frozen=True, slots=True)
class Sample:
    """A message as somebody would publish it, and the line that speaks of it."""

    exchange: str
    message: Message
    shown: str  # The key as the file writes it.
    line: int
    route: RouteSpec | None = None
    retried: str | None = None  # The queue that this is a retry of.


@dataclass(frozen=True, slots=True)
class Trail:
    """What became of a sample; `waited[n]` are the queues that it had expired in before passage n."""

    sample: Sample
    journey: Journey
    waited: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Trails:
    """The ways of all samples of a file, but for those that can't but be right."""

    scene: Scene

    @property
    def all(self) -> tuple[Trail, ...]:
        """Every way that is worth a look."""
        return self._followed[0]

    @property
    def are_complete(self) -> bool:
        """Say whether all of them were looked at."""
        is_cut = any(trail.journey.is_cut for trail in self.all)
        return self._followed[1] and self._shared.is_complete and not is_cut

    @cached_property
    def _followed(self) -> tuple[tuple[Trail, ...], bool]:
        trails: list[Trail] = []
        copies = 0
        for sample in _once_each((*_samples(self.scene), *self._shared.samples)):
            if self._is_plain(sample):
                continue
            if copies >= MAX_COPIES:
                return tuple(trails), False
            trails.append(self._follow(sample))
            copies += sum(1 + len(passage.stays) for passage in trails[-1].journey.passages)
        return tuple(trails), True

    @cached_property
    def _shared(self) -> "_Shared":
        return _shared_keys(_patterns(self.scene))

    def _follow(self, sample: Sample) -> Trail:
        way = journey(self.scene.network, sample.exchange, sample.message)
        return Trail(sample, way, _waited(way))

    def _is_plain(self, sample: Sample) -> bool:
        """Say whether a message meets one binding on its way in and its own targets on its way out, and all end there."""
        scene, route = self.scene, sample.route
        if route is None:
            return False
        if any(target.kind != "queue" or target.name in scene.waits for target in route.targets):
            return False
        if route.source is not None and not self._meets(sample, route.source, 1 if route.level else len(route.targets)):
            return False
        if route.level is None:
            return True
        return route.level in self._simple_levels and self._meets(sample, scene.names.exit(), len(route.targets))

    def _meets(self, sample: Sample, exchange: str, count: int) -> bool:
        """Say whether an exchange has so many bindings for a sample: it can't have fewer than the sample's own."""
        return len(self.scene.network.bindings_for(exchange, sample.message)) == count

    @cached_property
    def _simple_levels(self) -> frozenset[str]:
        """The levels behind whose entrance there is nothing but their queue."""
        found, names = self.scene.network.indexes, self.scene.names
        entrances = ((level.name, names.entrance(level.name)) for level in self.scene.spec.levels)
        return frozenset(level for level, entrance in entrances if entrance in found and found[entrance].size == 1)


def exit_bindings(trail: Trail, exit: str) -> Iterator[tuple[str, Binding]]:
    """The bindings that let a sample out of its first wait, each with that wait."""
    for passage, waited in zip(trail.journey.passages, trail.waited, strict=True):
        if passage.exchange == exit and len(waited) == 1:
            for hop in passage.routed.hops:
                if hop.exchange == exit:
                    yield from ((waited[0], binding) for binding in hop.matched)


def _waited(way: Journey) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = [()] * len(way.passages)
    for number, passage in enumerate(way.passages):
        for stay in passage.stays:
            if stay.onward is not None:
                found[stay.onward] = (*found[number], stay.queue)
    return tuple(found)


def _once_each(samples: Iterable[Sample]) -> Iterable[Sample]:
    """The samples without those that are the same message to the same exchange."""
    found: dict[object, Sample] = {}
    for sample in samples:
        headers = sample.route.headers if sample.message.headers and sample.route else ()
        found.setdefault((sample.exchange, sample.message.key, headers), sample)
    return found.values()


def _samples(scene: Scene) -> Iterator[Sample]:
    for route in scene.spec.routes:
        yield from _of_route(scene, route)
    for retry in scene.spec.retries:
        key = scene.names.retry_key(retry.queue)
        # Which level it waited at makes no difference to where it comes out.
        yield Sample(scene.names.entrance(retry.waits[0]), Message(key), key, retry.line, retried=retry.queue)
    bound = {binding.destination for binding in scene.topology.bindings if binding.kind == "queue"}
    for name, wait in scene.waits.items():
        if name not in bound:
            yield Sample(DEFAULT_EXCHANGE, Message(name), name, wait.line)


def _of_route(scene: Scene, route: RouteSpec) -> Iterator[Sample]:
    exchange = route.source if route.source is not None else scene.names.entrance(route.level or "")
    headers = {name: value for name, value in route.headers if name != "x-match"}
    for key in route.keys or (FILL,):
        yield Sample(exchange, Message(sample_of(key) if is_pattern(key) else key, headers), key, route.line, route)


@dataclass(frozen=True, slots=True)
class _Shared:
    """Samples that fit two patterns at once."""

    samples: tuple[Sample, ...]
    is_complete: bool


def _shared_keys(patterns: Mapping[str, Mapping[str, RouteSpec]]) -> _Shared:
    """A sample for every pair of patterns at one exchange that some key fits both of."""
    samples: list[Sample] = []
    left = MAX_PAIRS
    for exchange, routes in patterns.items():
        for one, other in _pairs(routes):
            left -= 1
            if left < 0:
                return _Shared(tuple(samples), is_complete=False)
            key = common_key(one, other)
            if key is not None and routes[one] != routes[other]:
                route = routes[other]
                samples.append(Sample(exchange, Message(key), f"{one} and {other}", route.line, route))
    return _Shared(tuple(samples), is_complete=True)


def _pairs(patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The pairs that may have a key in common: of the same first word, or of any."""
    by_first: dict[str, list[str]] = {}
    for pattern in patterns:
        first = pattern.partition(".")[0]
        alike = by_first.values() if first in OPEN_WORDS else [by_first.get(word, []) for word in (first, *OPEN_WORDS)]
        yield from ((earlier, pattern) for group in alike for earlier in group)
        by_first.setdefault(first, []).append(pattern)


def _patterns(scene: Scene) -> Mapping[str, Mapping[str, RouteSpec]]:
    """The patterns at each topic exchange, with the last route that has them."""
    found: dict[str, dict[str, RouteSpec]] = {}
    types = {exchange.name: exchange.type for exchange in scene.spec.exchanges}
    for route in scene.spec.routes:
        if route.source is not None and types.get(route.source) in ("topic", None):
            found.setdefault(route.source, {}).update({key: route for key in route.keys if is_pattern(key)})
    return found
