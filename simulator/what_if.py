"""What if: traffic through a topology in virtual time, millions of messages at a go. Pure, and the same every time."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from delayctl.simulator.what_if_answer import Answer, Occurrence, order_of
from delayctl.simulator.what_if_places import Router, Ways
from delayctl.simulator.what_if_queues import Queues
from delayctl.simulator.what_if_scenario import Scenario
from delayctl.simulator.what_if_traffic import Arrivals, merged, next_outside
from delayctl.topology.routing import Network

_DRAIN_STEPS = 5_000  # When nothing comes any more, steps may grow: a long drain is not told to the millisecond.


def what_if(network: Network, scenario: Scenario, *, parking: Collection[str] = ()) -> Answer:
    """Run a scenario until all is through, or nothing moves any more; nobody consumes what is parked."""
    return _Run(Router(network, parking), scenario).run()


@dataclass(slots=True)
class _Source:
    """A stream that is being published: where its messages go, and the next of them."""

    ways: Ways
    arrivals: Arrivals
    time: int | None = None
    count: int = 0

    def advance(self) -> None:
        """Go to the next arrival."""
        self.time, self.count = next(self.arrivals, (None, 0))

    def until(self, now: int) -> Iterator[tuple[int, int]]:
        """Every arrival up to now."""
        while self.time is not None and self.time <= now:
            yield self.time, self.count
            self.advance()


class _Run:
    """One run: time goes from step to step, and jumps where nothing happens."""

    def __init__(self, router: Router, scenario: Scenario) -> None:
        self._scenario, self._traffic_ends = scenario, scenario.traffic_ends
        self._away = merged(scenario.broker_away)
        self._queues = Queues(router, scenario)
        self._sources = [
            _Source(router.published(stream.exchange, stream.message), stream.arrivals(scenario.step))
            for stream in scenario.streams
        ]
        self._now = self._published = 0
        self._pause = scenario.step  # How long consumers work before somebody looks.
        self._peak = self._peak_at = 0
        self._held, self._failed = Occurrence(), Occurrence()

    def run(self) -> Answer:
        """Let it all happen."""
        for source in self._sources:
            source.advance()
        is_open = True
        while (following := self._next_time()) is not None:
            if is_open and following > self._traffic_ends:
                is_open = False
                self._take_stock()
            self._step(following)
        if is_open:
            self._take_stock()
        return self._answer()

    def _next_time(self) -> int | None:
        """When something happens next, on a step and while the broker is there."""
        times = [source.time for source in self._sources if source.time is not None]
        if (expiry := self._queues.next_expiry) is not None:
            times.append(expiry)
        if times:
            self._pause = self._scenario.step
        elif self._pause == self._scenario.step:
            self._pause = max(self._pause, self._queues.time_to_drain // _DRAIN_STEPS)
        if (consumption := self._queues.next_consumption(self._now + self._pause)) is not None:
            times.append(consumption)
        if not times:
            return None
        return self._on_a_step(next_outside(self._away, self._on_a_step(max(min(times), self._now))))

    def _on_a_step(self, time: int) -> int:
        return -(-time // self._scenario.step) * self._scenario.step

    def _step(self, now: int) -> None:
        since, self._now = self._now, now
        self._queues.work(since, now)
        self._queues.expire(now)
        for source in self._sources:
            for wanted, count in source.until(now):
                self._publish(source.ways, wanted, count)
        self._queues.consume(now)
        self._queues.note(now)
        if self._queues.waiting > self._peak:
            self._peak, self._peak_at = self._queues.waiting, now

    def _publish(self, ways: Ways, wanted: int, count: int) -> None:
        self._published += count
        is_away = next_outside(self._away, wanted) != wanted
        if is_away and self._scenario.gives_up:
            self._failed.add(wanted, count)
            return
        if is_away:
            self._held.add(wanted, count)
        self._queues.publish(ways, self._now, wanted, count)

    def _take_stock(self) -> None:
        for account in self._queues.accounts.values():
            account.waiting_when_traffic_ends = account.waiting

    def _answer(self) -> Answer:
        for account in self._queues.accounts.values():
            account.note(self._now, account.waiting)
        return Answer(
            accounts=dict(sorted(self._queues.accounts.items(), key=lambda item: order_of(item[1]))),
            ends=dict(sorted(self._queues.ends.items())),
            published=self._published,
            held=self._held,
            failed=self._failed,
            peak=self._peak,
            peak_at=self._peak_at,
            traffic_ends=self._traffic_ends,
            end=self._now,
            step=self._scenario.step,
        )
