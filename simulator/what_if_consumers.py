"""Those who take messages out of a queue: at a rate or as fast as they come, and not while they are away."""

from dataclasses import dataclass

from delayctl.simulator.what_if_traffic import Span, next_outside
from delayctl.topology.rate import Rate


@dataclass(slots=True)
class Consumers:
    """All that consume from one queue, taken together; without a rate they keep up. `away` is merged."""

    rate: Rate | None
    away: tuple[Span, ...]
    _credit: int = 0  # In parts of a message, as many as the rate's denominator.

    @property
    def _pace(self) -> tuple[int, int]:
        assert self.rate is not None
        return self.rate.per_second.numerator, self.rate.per_second.denominator * 1000

    def are_here(self, now: int) -> bool:
        """Say whether they are not away."""
        return next_outside(self.away, now) == now

    def back_at(self, time: int) -> int:
        """The next time that they are there."""
        return next_outside(self.away, time)

    def work(self, since: int, now: int) -> int:
        """Let them work between two times; says how many messages they can take."""
        per, parts = self._pace
        worked = now - since - sum(span.overlap(since, now) for span in self.away)
        self._credit += per * worked
        return self._credit // parts

    def have_taken(self, count: int, *, is_empty: bool) -> None:
        """Note what they took; who has nothing to do saves nothing up."""
        self._credit = 0 if is_empty else self._credit - count * self._pace[1]

    def time_for(self, count: int) -> int:
        """How long they take for so many."""
        return -(-count * self._pace[1] // self._pace[0]) if self.rate is not None else 0
