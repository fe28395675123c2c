"""Which messages a file speaks of: where they are published, with which key, and how many its levels expect."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from delayctl.topology.key_index import FILL
from delayctl.topology.rate import Rate
from delayctl.topology.routing import Message, topic_matches
from delayctl.topology.samples import Sample, samples_of
from delayctl.topology.scene import Scene


@dataclass(frozen=True)
class Entry:
    """A message as it is published, and which part of a rate is its own."""

    exchange: str
    message: Message
    share: int = 1  # One of so many.
    is_made_up: bool = False  # The file does not tell which keys come.

    def of(self, rate: Rate) -> Rate:
        """Its part of a rate."""
        return Rate(rate.per_second / self.share)


def delayed_entries(scene: Scene) -> list[Entry]:
    """One for each delayed route; a route of several keys is known by its first."""
    firsts: dict[int, Sample] = {}
    for sample in _delayed(scene):
        firsts.setdefault(id(sample.route), sample)
    return _once(Entry(sample.exchange, sample.message) for sample in firsts.values())


def expected_entries(scene: Scene) -> list[tuple[Entry, Rate]]:
    """What comes to every level that expects a rate."""
    return [
        (entry, entry.of(level.wait.expected_rate))
        for level in scene.spec.levels
        if level.wait.expected_rate is not None
        for entry in entries_at(scene, level.name)
    ]


def entries_at(scene: Scene, level: str) -> list[Entry]:
    """Messages that are published straight to a level: one for each route through it, in equal parts.

    Without a route, one for each queue whose retries wait there; without these, one whose key is made up.
    """
    firsts: dict[int, str] = {}
    for sample in _delayed(scene):
        if sample.route and sample.route.level == level:
            firsts.setdefault(id(sample.route), sample.message.key)
    retried = (scene.names.retry_key(retry.queue) for retry in scene.spec.retries if level in retry.waits)
    keys = list(dict.fromkeys(firsts.values() or retried))
    entrance = scene.names.entrance(level)
    if not keys:
        return [Entry(entrance, Message(FILL), is_made_up=True)]
    return [Entry(entrance, Message(key), len(keys)) for key in keys]


def entries_with(scene: Scene, key: str) -> list[Entry]:
    """Messages with a key, from wherever a delayed route of the file takes them."""
    taking = (sample for sample in _delayed(scene) if _takes(sample, key))
    return _once(Entry(sample.exchange, Message(key, sample.message.headers)) for sample in taking)


def known_keys(scene: Scene) -> list[str]:
    """Every key of a delayed route."""
    return [key for route in scene.spec.routes if route.level is not None for key in route.keys]


def _delayed(scene: Scene) -> Iterator[Sample]:
    return (sample for sample in samples_of(scene) if sample.route is not None and sample.route.level is not None)


def _takes(sample: Sample, key: str) -> bool:
    patterns = sample.route.keys if sample.route else ()
    return not patterns or any(topic_matches(pattern, key) for pattern in patterns)


def _once(entries: Iterable[Entry]) -> list[Entry]:
    found: list[Entry] = []
    alike: dict[tuple[str, str], list[Entry]] = {}  # Headers can't be looked up by.
    for entry in entries:
        others = alike.setdefault((entry.exchange, entry.message.key), [])
        if entry not in others:
            others.append(entry)
            found.append(entry)
    return found
