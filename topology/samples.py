"""Messages that a file speaks of: one for each route, and for what two patterns have in common."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from delayctl.topology.key_index import FILL, OPEN_WORDS, common_key, is_pattern, sample_of
from delayctl.topology.ladder import headers_for
from delayctl.topology.names import ANY
from delayctl.topology.routing import DEFAULT_EXCHANGE, Message
from delayctl.topology.scene import Scene
from delayctl.topology.spec import RetrySpec, RouteSpec
from delayctl.topology.wording import quoted

MAX_PAIRS = 5_000  # Pairs of patterns that are held against each other; a file has seldom more than a handful.
KEYLESS_TYPES = ("fanout", "headers")  # Exchanges that don't look at the key.


@dataclass(frozen=True, slots=True)
class Sample:
    """A message as somebody would publish it, and the line that speaks of it."""

    exchange: str
    message: Message
    line: int
    route: RouteSpec | None = None
    patterns: tuple[str, ...] = ()  # Those of the file that the key was made up for.
    retried: str | None = None  # The queue that this is a retry of.
    parked: str | None = None  # The parking queue that this was sent to.
    rejected: str | None = None  # The queue that somebody has rejected it from.
    is_known: bool = True  # False where the file does not tell which keys come: this one is as good as any.

    @property
    def shown(self) -> str:
        """The key, and the patterns that it stands for."""
        patterns = f" (of {' and '.join(self.patterns)})" if self.patterns else ""
        return f"{quoted(self.message.key)}{patterns}"


@dataclass(frozen=True, slots=True)
class Shared:
    """Samples that fit two patterns at once."""

    samples: tuple[Sample, ...]
    is_complete: bool


def samples_of(scene: Scene) -> Iterator[Sample]:
    """One for each key of each route, each retry, and each wait that nothing of the file leads into."""
    for route in scene.spec.routes:
        for key in route.keys or (FILL,):
            yield _of_route(scene, route, key)
    for retry in scene.spec.retries:
        yield from _of_retry(scene, retry)
    bound = {binding.destination for binding in scene.topology.bindings if binding.kind == "queue"}
    for name, wait in scene.waits.items():
        if name not in bound:
            yield Sample(DEFAULT_EXCHANGE, Message(name), wait.line, is_known=False)


def _of_retry(scene: Scene, retry: RetrySpec) -> Iterator[Sample]:
    if retry.by_broker is None:
        message = Message(scene.names.retry_key(retry.queue))
        # Which level it waited at makes no difference to where it comes out.
        yield Sample(scene.names.entrance(retry.waits[0]), message, retry.line, retried=retry.queue)
    yield Sample(scene.names.exit(), Message(scene.names.park_key(retry.park)), retry.line, parked=retry.park)


def takes_every_key(scene: Scene, route: RouteSpec) -> bool:
    """Say whether a route tells nothing of the keys that come: its source does not look at them, or it names no word."""
    if scene.exchange_types.get(route.source or "") in KEYLESS_TYPES:
        return True
    return route.level is None and any(set(key.split(".")) <= set(OPEN_WORDS) for key in route.keys)


def _of_route(scene: Scene, route: RouteSpec, key: str) -> Sample:
    is_open = is_pattern(key)
    # What consumers reject has keys that are known from their queue; a pattern tells no more of them.
    is_told = not takes_every_key(scene, route) and not (is_open and route.source in scene.rejection_exchanges)
    # The keys of a delayed route are those that its messages come out with, whatever its source looks at.
    if route.level is None and not is_told:
        return _sample(scene, route, FILL, (), is_known=False)
    return _sample(scene, route, sample_of(key) if is_open else key, (key,) if is_open else ())


def _sample(scene: Scene, route: RouteSpec, key: str, patterns: tuple[str, ...], *, is_known: bool = True) -> Sample:
    headers = {name: value for name, value in route.headers if name != "x-match"}
    if route.level == ANY:
        headers |= headers_for(1)  # The last step: wherever a message enters, it comes out the same way.
    return Sample(_way_in(scene, route), Message(key, headers), route.line, route, patterns, is_known=is_known)


def _way_in(scene: Scene, route: RouteSpec) -> str:
    return route.source if route.source is not None else scene.names.entrance(route.level or "")


def shared_samples(scene: Scene) -> Shared:
    """A sample for every pair of patterns that some key fits both of: at one exchange, or where all delays come out."""
    at_sources, at_exit = _at_sources(scene), _at_exit(scene)
    return Shared((*at_sources.samples, *at_exit.samples), at_sources.is_complete and at_exit.is_complete)


def _at_sources(scene: Scene) -> Shared:
    samples: list[Sample] = []
    left = MAX_PAIRS
    for routes in _patterns_by_source(scene).values():
        for one, other in _pairs(routes):
            left -= 1
            if left < 0:
                return Shared(tuple(samples), is_complete=False)
            if routes[one] != routes[other] and (key := common_key(one, other)) is not None:
                samples.append(_sample(scene, routes[other], key, (one, other)))
    return Shared(tuple(samples), is_complete=True)


def _patterns_by_source(scene: Scene) -> Mapping[str, Mapping[str, RouteSpec]]:
    """The patterns at each topic exchange, with the last route that has them."""
    found: dict[str, dict[str, RouteSpec]] = {}
    for route in scene.spec.routes:
        if route.source is not None and scene.exchange_types.get(route.source) in ("topic", None):
            found.setdefault(route.source, {}).update({key: route for key in route.keys if is_pattern(key)})
    return found


def _at_exit(scene: Scene) -> Shared:
    """For routes of different sources: what either of them lets in, the way out of both takes."""
    routes = _delayed_patterns(scene)
    samples: list[Sample] = []
    if len({source for by_source in routes.values() for source in by_source}) < 2:
        return Shared((), is_complete=True)
    for number, (one, other) in enumerate(_pairs(routes)):
        if number >= MAX_PAIRS:
            return Shared(tuple(samples), is_complete=False)
        if routes[one].keys() == routes[other].keys() and len(routes[one]) == 1:
            continue
        if (key := common_key(one, other)) is not None:
            either = {**routes[other], **routes[one]}
            samples += [_sample(scene, route, key, (one, other)) for route in either.values()]
    return Shared(tuple(samples), is_complete=True)


def _delayed_patterns(scene: Scene) -> Mapping[str, Mapping[str, RouteSpec]]:
    """The patterns of delayed routes, each with a route of every exchange that lets messages in by it."""
    found: dict[str, dict[str, RouteSpec]] = {}
    for route in scene.spec.routes:
        if route.level is not None and scene.exchange_types.get(route.source or "") != "direct":
            for key in route.keys:
                if is_pattern(key):
                    found.setdefault(key, {})[_way_in(scene, route)] = route
    return found


def _pairs(patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The pairs that may have a key in common: of the same first word, or of any."""
    by_first: dict[str, list[str]] = {}
    for pattern in patterns:
        first = pattern.partition(".")[0]
        alike = by_first.values() if first in OPEN_WORDS else [by_first.get(word, []) for word in (first, *OPEN_WORDS)]
        yield from ((earlier, pattern) for group in alike for earlier in group)
        by_first.setdefault(first, []).append(pattern)
