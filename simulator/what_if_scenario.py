"""What is asked: who publishes what, who consumes how fast, and who is away when."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from delayctl.simulator.what_if_traffic import Span, Stream, merged
from delayctl.topology.rate import Rate


@dataclass(frozen=True, slots=True)
class Scenario:
    """One question; times are milliseconds from the beginning, rounded up to steps.

    Consumers keep up unless they have a rate. While the broker is away publishers hold messages back and publish them
    when it returns, or give them up.
    """

    streams: tuple[Stream, ...]
    step: int = 1
    consume: Mapping[str, Rate] = field(default_factory=dict)
    consume_others: Rate | None = None
    broker_away: tuple[Span, ...] = ()
    consumers_away: Mapping[str | None, tuple[Span, ...]] = field(default_factory=dict)  # None: those of every queue.
    gives_up: bool = False
    message_bytes: int | None = None
    is_unlimited: bool = False  # As if no queue had a limit, to see how much room is needed.

    @property
    def traffic_ends(self) -> int:
        """When the last message has come."""
        return max((stream.end for stream in self.streams), default=0)

    def consumers_of(self, queue: str) -> Rate | None:
        """How fast a queue is consumed; None where consumers keep up."""
        return self.consume.get(queue, self.consume_others)

    def consumers_away_from(self, queue: str) -> tuple[Span, ...]:
        """When nobody consumes from a queue, the broker's absence included."""
        away = self.consumers_away
        return merged((*self.broker_away, *away.get(None, ()), *away.get(queue, ())))
