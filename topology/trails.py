"""The messages that a file speaks of, sent on their way; and what consumers reject, where that goes on to wait."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from delayctl.topology.journey import Journey, journey
from delayctl.topology.model import Binding
from delayctl.topology.routing import DEFAULT_EXCHANGE, Message
from delayctl.topology.samples import Sample, Shared, samples_of, shared_samples
from delayctl.topology.scene import Scene

MAX_COPIES = 5_000  # Copies that are followed: where all routes share a key, every message reaches all targets.


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
    def known_rejections(self) -> frozenset[str]:
        """The exchanges that get rejected messages whose keys the file tells."""
        return frozenset(trail.sample.exchange for trail in self.all if trail.sample.rejected and trail.sample.is_known)

    def is_key_known(self, trail: Trail, number: int) -> bool:
        """Say whether the key of a passage is one that really comes: the sample's own, or one that a queue has put in its place."""
        queues = self.scene.network.queues
        return trail.sample.is_known or any(
            queues[q].settings.dead_letter_key is not None for q in trail.waited[number]
        )

    @cached_property
    def _followed(self) -> tuple[tuple[Trail, ...], bool]:
        trails: list[Trail] = []
        copies = 0
        seen: set[object] = set()
        ahead = deque((*samples_of(self.scene), *self._shared.samples))
        while ahead:
            sample = ahead.popleft()
            identity = _identity(sample)
            if identity in seen or self._is_plain(sample):
                continue
            seen.add(identity)
            if copies >= MAX_COPIES:
                return tuple(trails), False
            trails.append(self._follow(sample))
            copies += sum(1 + len(passage.stays) for passage in trails[-1].journey.passages)
            ahead.extend(self._rejections(trails[-1]))
        return tuple(trails), True

    @cached_property
    def _shared(self) -> Shared:
        return shared_samples(self.scene)

    def _follow(self, sample: Sample) -> Trail:
        way = journey(self.scene.network, sample.exchange, sample.message)
        return Trail(sample, way, _waited(way))

    def _rejections(self, trail: Trail) -> Iterator[Sample]:
        """What comes of a sample if those who get it reject it."""
        for end in trail.journey.ends:
            if end.fate == "delivered" and end.queue in self.scene.rejects_into_waits:
                settings = self.scene.network.queues[end.queue].settings
                is_renamed = settings.dead_letter_key is not None
                key = end.key if settings.dead_letter_key is None else settings.dead_letter_key
                yield replace(
                    trail.sample,
                    exchange=settings.dead_letter_exchange or DEFAULT_EXCHANGE,
                    message=Message(key, {} if is_renamed else trail.sample.message.headers),
                    patterns=trail.sample.patterns if key == trail.sample.message.key else (),
                    route=None,
                    retried=None,
                    rejected=end.queue,
                    is_known=trail.sample.is_known or is_renamed,
                )

    def _is_plain(self, sample: Sample) -> bool:
        """Say whether a message meets one binding on its way in and its own targets on its way out, and all end there."""
        scene, route = self.scene, sample.route
        if route is None:
            return False
        if any(target.kind != "queue" or self._goes_on_from(target.name) for target in route.targets):
            return False
        if route.source is not None and not self._meets(sample, route.source, 1 if route.level else len(route.targets)):
            return False
        if route.level is None:
            return True
        return route.level in self._simple_levels and self._meets(sample, scene.names.exit(), len(route.targets))

    def _goes_on_from(self, queue: str) -> bool:
        return queue in self.scene.waits or queue in self.scene.rejects_into_waits

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


def _identity(sample: Sample) -> object:
    """The same for samples that are the same message to the same exchange; one whose key really comes counts for itself."""
    headers = sample.route.headers if sample.message.headers and sample.route else ()
    return sample.exchange, sample.message.key, headers, sample.is_known
