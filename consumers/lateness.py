"""How late messages come to a consumer, for a monitoring system: a histogram for each queue.

>>> lateness = Lateness()
>>> consumer.measure(lateness)
>>> lateness.exposition()            # as text, for any web server there is
>>> REGISTRY.register(lateness)      # or with prometheus_client, beside what a service has already
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delayctl.consumers.message import Message
from delayctl.publishers.contract import DUE, EXPEDITED
from delayctl.topology.errors import BadOption
from delayctl.topology.exposition import Family, Metric, Sample, exposition
from delayctl.topology.lateness import BOUNDS_S, Counts

if TYPE_CHECKING:
    from prometheus_client import Metric as ClientMetric

LATENESS = Metric(
    "delayctl_consumer_lateness_seconds", "histogram", "How much later than due messages came to the consumer."
)
EARLY = Metric("delayctl_consumer_early_messages_total", "counter", "Messages that came to the consumer before due.")
UNDATED = Metric(
    "delayctl_consumer_undated_messages_total", "counter", "Messages that came to the consumer and had no due time."
)
METRICS = (LATENESS, EARLY, UNDATED)
_TOLERANCE_MS = 100  # By how much the clocks of machines may differ before a message counts as early, as in an audit.


class Lateness:
    """Counts from any thread; `bounds_s` are the upper ends of the histogram's buckets, in seconds and rising."""

    def __init__(self, bounds_s: Sequence[float] = BOUNDS_S, *, tolerance_ms: int = _TOLERANCE_MS) -> None:
        if not bounds_s or list(bounds_s) != sorted(set(bounds_s)) or bounds_s[0] <= 0:
            raise BadOption("the bounds of a lateness are not seconds that rise from above 0", fix="such as 0.1, 1, 10")
        self._bounds, self._tolerance_ms = tuple(bounds_s), tolerance_ms
        self._lock = threading.Lock()
        self._late: defaultdict[str, Counts] = defaultdict(lambda: Counts(self._bounds))
        self._early: Counter[str] = Counter()
        self._undated: Counter[str] = Counter()

    def note(self, message: Message, received_ms: int) -> None:
        """Count a message that came in at this moment (milliseconds since 1970).

        One that is delivered again is left out: when it first came is not known any more. So is one that was expedited:
        it comes early on purpose.
        """
        if message.redelivered:
            return
        headers = _headers(message)
        if EXPEDITED in headers:
            return
        found = headers.get(DUE)
        due = found if type(found) is int else None
        with self._lock:
            if due is None:
                self._undated[message.queue] += 1
                return
            self._late[message.queue].add(received_ms - due)
            self._early[message.queue] += received_ms < due - self._tolerance_ms

    def families(self) -> tuple[Family, ...]:
        """All that was counted so far."""
        with self._lock:
            late = {queue: counts.histogram() for queue, counts in sorted(self._late.items())}
            early, undated = dict(sorted(self._early.items())), dict(sorted(self._undated.items()))
        return (
            Family(LATENESS, tuple(s for queue, found in late.items() for s in found.samples({"queue": queue}))),
            Family(EARLY, tuple(Sample({"queue": queue}, count) for queue, count in early.items())),
            Family(UNDATED, tuple(Sample({"queue": queue}, count) for queue, count in undated.items())),
        )

    def exposition(self) -> str:
        """The same as Prometheus reads it."""
        return exposition(self.families())

    def collect(self) -> "Iterator[ClientMetric]":
        """The same for a registry of prometheus_client, which has to be there."""
        from prometheus_client.core import Metric as ClientMetric  # noqa: PLC0415 (only a service that has it gets here)

        for family in self.families():
            # A client's counter has no _total in its name; its samples do.
            found = ClientMetric(family.metric.name.removesuffix("_total"), family.metric.help, family.metric.kind)
            for sample in family.samples:
                found.add_sample(f"{family.metric.name}{sample.suffix}", dict(sample.labels), sample.value)
            yield found


def _headers(message: Message) -> Mapping[str, Any]:
    try:
        return message.headers
    except (
        Exception
    ):  # Headers are written by anybody: what can't be read is the handler's to find out, and ends no worker.
        return {}
