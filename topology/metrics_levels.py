"""The figures of the queues that messages wait in: a table of metrics and where each is found. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from delayctl.topology.exposition import Family, Metric, Sample
from delayctl.topology.figures import Age, stuck_for
from delayctl.topology.status import LevelStatus

Figure = Callable[[LevelStatus], float | None]


def _gauge(name: str, help: str, figure: Figure) -> tuple[Metric, Figure]:
    return Metric(f"delayctl_level_{name}", "gauge", help), figure


def _ttl_s(level: LevelStatus) -> float | None:
    return level.settings.ttl.ms / 1000 if level.settings.ttl else None


def _stuck_s(level: LevelStatus) -> float | None:
    """How long nothing has left; None where there is no telling."""
    stuck = stuck_for(level.figures, level.settings.ttl) if level.settings.ttl else None
    return stuck.ms / 1000 if stuck else None


def _published(level: LevelStatus) -> float | None:
    """What clients have published to it, as the broker counts; begins at nothing when a broker starts."""
    return level.figures.published[-1][1] if level.figures.published else None


def _early_window_s(level: LevelStatus) -> float | None:
    return level.early.window.ms / 1000 if level.early and level.early.window else None


def _untaken(level: LevelStatus) -> float | None:
    return None if level.waiting is None else level.figures.dead_lettering


_PUBLISHED = Metric(
    "delayctl_level_published_messages_total",
    "counter",
    "Messages that clients published to the queue, counted by the broker.",
)
_TABLE: tuple[tuple[Metric, Figure], ...] = (
    _gauge("exists", "Whether the queue is on the broker: 1, or 0.", lambda level: level.is_there),
    _gauge("waiting_messages", "Messages in the queue.", lambda level: level.waiting),
    _gauge("waiting_bytes", "Bytes of the messages in the queue.", lambda level: level.figures.size),
    _gauge("max_length", "How many messages it holds, in force.", lambda level: level.settings.max_length),
    _gauge("fullness_ratio", "What waits against the limit, of messages or bytes.", lambda level: level.fullness),
    _gauge("ttl_seconds", "How long messages wait, in force.", _ttl_s),
    _gauge(
        "in_per_second",
        "Messages that came in, per second over the last minute.",
        lambda level: level.rates.into if level.rates else None,
    ),
    _gauge(
        "out_per_second",
        "Messages that left, per second over the last minute.",
        lambda level: level.rates.out_of if level.rates else None,
    ),
    (_PUBLISHED, _published),
    _gauge(
        "stuck_seconds",
        "How long nothing has left although its time was up; 0 where something has, or nothing waits.",
        _stuck_s,
    ),
    _gauge(
        "early_messages",
        "Messages of the last window that left before their time was up: so many or more.",
        lambda level: level.early.at_least if level.early else None,
    ),
    _gauge("early_window_seconds", "Within how long the early ones came in.", _early_window_s),
    _gauge("untaken_messages", "Messages that have expired and that nothing behind the queue has taken.", _untaken),
    _gauge("consumers", "Consumers of the queue, which should have none.", lambda level: level.figures.consumers),
)
_OLDEST = Metric(
    "delayctl_level_oldest_seconds", "gauge", "How long the first message has waited: at least, and at most."
)

LEVEL_METRICS = (*(metric for metric, _ in _TABLE), _OLDEST)


def level_families(levels: Sequence[LevelStatus], labels: Mapping[str, str]) -> Iterator[Family]:
    """Every figure of every queue, as far as it is known."""
    named = [(level, {**labels, "level": level.name, "queue": level.queue}) for level in levels]
    for metric, figure in _TABLE:
        found = ((own, _of(level, figure)) for level, own in named)
        yield Family(metric, tuple(Sample(own, value) for own, value in found if value is not None))
    yield Family(_OLDEST, tuple(sample for level, own in named for sample in _age(level.oldest, own)))


def _of(level: LevelStatus, figure: Figure) -> float | None:
    """A figure; of a queue that is not there nothing is known but that."""
    return figure(level) if level.is_there or figure is _TABLE[0][1] else None


def _age(age: Age | None, labels: Mapping[str, str]) -> Iterator[Sample]:
    if age is not None:
        yield Sample({**labels, "bound": "least"}, age.at_least_ms / 1000)
    if age is not None and age.at_most_ms is not None:
        yield Sample({**labels, "bound": "most"}, age.at_most_ms / 1000)
