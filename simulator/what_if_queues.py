"""The queues of a run: messages enter, expire, make room, are consumed, and every one is accounted for."""

from collections import Counter

from delayctl.simulator.flow import Cohort, FlowQueue, Room
from delayctl.simulator.flow_counts import Series
from delayctl.simulator.what_if_answer import Account, Occurrence
from delayctl.simulator.what_if_consumers import Consumers
from delayctl.simulator.what_if_places import Place, Router, Ways
from delayctl.simulator.what_if_scenario import Scenario
from delayctl.topology.journey import Fate, is_at_least_once
from delayctl.topology.model import Queue

_RETRY_MS = 180_000  # What is dead-lettered at least once and finds no room is tried again after three minutes.
_MOST_STRETCHES = 400


class Queues:
    """Every queue that a message has come to so far."""

    def __init__(self, router: Router, scenario: Scenario) -> None:
        self.accounts: dict[str, Account] = {}
        self.ends: Counter[Fate] = Counter()
        self.waiting = 0
        self._idle_since = 0
        self._router, self._scenario = router, scenario
        # As fine as a picture shows it.
        self._gap = max(2 * scenario.step, scenario.traffic_ends // _MOST_STRETCHES)
        self._queues: dict[str, FlowQueue[Place]] = {}
        self._waits: dict[str, FlowQueue[Place]] = {}  # Those with a TTL.
        self._paced: dict[str, Consumers] = {}
        self._keeping_up: dict[str, Consumers] = {}
        self._blocked: dict[str, int] = {}
        self._touched: set[str] = set()

    def publish(self, ways: Ways, now: int, due: int, count: int) -> None:
        """Let messages in from outside."""
        self._route(ways, now, due, count, is_published=True)

    def expire(self, now: int) -> None:
        """Let go on what is over its time."""
        for name, queue in list(self._waits.items()):
            expiry = queue.next_expiry
            if expiry is not None and max(expiry, self._blocked.get(name, 0)) <= now:
                self._expire(name, queue, now)

    def work(self, since: int, now: int) -> None:
        """Let consumers do what they can between two times; what they take is taken at the end, in `consume`."""
        # Who had nothing to do has saved up no more than one step.
        self._idle_since = max(since, now - self._scenario.step)
        for name, consumers in self._paced.items():
            queue = self._queues[name]
            queue.slack = consumers.work(since if queue.length else self._idle_since, now)

    def consume(self, now: int) -> None:
        """Let consumers take what they can."""
        for name, consumers in self._paced.items():
            queue = self._queues[name]
            count = min(queue.slack, queue.length)
            self._consume(name, count, now)
            queue.slack = 0
            consumers.have_taken(count, is_empty=not queue.length)
        for name, consumers in self._keeping_up.items():
            if self._queues[name].length and consumers.are_here(now):
                self._consume(name, self._queues[name].length, now)

    def note(self, now: int) -> None:
        """Take down how many wait from now on."""
        for name in self._touched:
            self.accounts[name].note(now, self._queues[name].length)
        self._touched.clear()

    @property
    def next_expiry(self) -> int | None:
        """When the next messages are over their time, and can leave."""
        times = ((self._blocked.get(name, 0), queue.next_expiry) for name, queue in self._waits.items())
        return min((max(blocked, expiry) for blocked, expiry in times if expiry is not None), default=None)

    def next_consumption(self, time: int) -> int | None:
        """When consumers who have something to do take the next messages, from a time on."""
        everyone = (*self._paced.items(), *self._keeping_up.items())
        return min((c.back_at(time) for name, c in everyone if self._queues[name].length), default=None)

    @property
    def time_to_drain(self) -> int:
        """How long consumers take for what is there."""
        return max((c.time_for(self._queues[name].length) for name, c in self._paced.items()), default=0)

    def _route(self, ways: Ways, now: int, due: int, count: int, *, is_published: bool = False) -> None:
        for fate in ways.ends:
            self.ends[fate] += count
        for place in ways.places:
            self._enter(place, now, due, count, is_published)

    def _enter(self, place: Place, now: int, due: int, count: int, is_published: bool) -> None:
        queue = self._queues.get(place.queue) or self._opened(place.queue, now)
        account = self.accounts[place.queue]
        account.arrived += count
        if self._are_consumed_at_once(place.queue, queue, now):
            self._count_consumed(account, now, due, count)
            return
        free = queue.free if is_published or not queue.takes_all_dead_letters else None
        if free is not None and count > free:
            account.full_from = now if account.full_from is None else account.full_from
            (account.refused if is_published else account.lost).add(now, count - free)
            count = free
        if count:
            self._keep(place, queue, now, due, count)

    def _keep(self, place: Place, queue: FlowQueue[Place], now: int, due: int, count: int) -> None:
        self._touched.add(place.queue)
        wait = 0 if queue.ttl is None or place.queue in self._scenario.consume else queue.ttl
        queue.push(Cohort(now, due + wait, count, place))
        self.waiting += count
        if queue.is_full:
            self._make_room(queue, self.accounts[place.queue], now)

    def _make_room(self, queue: FlowQueue[Place], account: Account, now: int) -> None:
        account.full_from = now if account.full_from is None else account.full_from
        for cohort in queue.take(queue.excess):
            self.waiting -= cohort.size
            account.left_early.add(now, cohort.size)
            if queue.ttl is not None:
                account.early.add(cohort.entered + queue.ttl - now, cohort.size)
            self._route(cohort.place.onward, now, cohort.due, cohort.size)

    def _expire(self, name: str, queue: FlowQueue[Place], now: int) -> None:
        self._touched.add(name)
        is_kept = is_at_least_once(self._router.network.queues[name].settings)
        for cohort in queue.expired(now):
            fitting = min(self._fitting(cohort, now), cohort.size) if is_kept else cohort.size
            if fitting:
                self.accounts[name].expired += fitting
                self.waiting -= fitting
                self._route(cohort.place.onward, now, cohort.due, fitting)
            if fitting < cohort.size:
                queue.put_back(cohort._replace(size=cohort.size - fitting))
                self._blocked[name] = now + _RETRY_MS
                return

    def _fitting(self, cohort: Cohort[Place], now: int) -> int:
        """How many of a cohort every queue takes that they go on to."""
        frees = (self._free(place.queue, now) for place in cohort.place.onward.places)
        return min((free for free in frees if free is not None), default=cohort.size)

    def _free(self, name: str, now: int) -> int | None:
        """How many a queue takes of who waits for its answer; None means all."""
        queue = self._queues.get(name) or self._opened(name, now)
        return None if self._are_consumed_at_once(name, queue, now) else queue.free

    def _are_consumed_at_once(self, name: str, queue: FlowQueue[Place], now: int) -> bool:
        keeping_up = self._keeping_up.get(name)
        return keeping_up is not None and not queue.length and keeping_up.are_here(now)

    def _consume(self, name: str, count: int, now: int) -> None:
        if not count:
            return
        self._touched.add(name)
        account = self.accounts[name]
        for cohort in self._queues[name].take(count):
            self.waiting -= cohort.size
            self._count_consumed(account, now, cohort.due, cohort.size)
            account.longest_wait = max(account.longest_wait, now - cohort.entered)

    def _count_consumed(self, account: Account, now: int, due: int, count: int) -> None:
        account.consumed += count
        account.late.add(now - due, count)

    def _opened(self, name: str, now: int) -> FlowQueue[Place]:
        declared, scenario = self._router.network.queues[name], self._scenario
        is_consumed = name in scenario.consume or (declared.settings.ttl is None and name not in self._router.parking)
        room = Room() if scenario.is_unlimited else Room.of(declared.settings, scenario.message_bytes)
        queue = self._queues[name] = FlowQueue[Place](declared.settings.ttl, room)
        self.accounts[name] = self._account(declared)
        if queue.ttl is not None:
            self._waits[name] = queue
        if is_consumed:
            self._let_consume(name, now)
        return queue

    def _account(self, queue: Queue) -> Account:
        early, refused, lost = (Occurrence(gap=self._gap) for _ in range(3))
        return Account(queue, Series(self._scenario.step), left_early=early, refused=refused, lost=lost)

    def _let_consume(self, name: str, now: int) -> None:
        rate = self._scenario.consumers_of(name)
        consumers = Consumers(rate, self._scenario.consumers_away_from(name))
        if rate is None:
            self._keeping_up[name] = consumers
        else:
            self._paced[name] = consumers
            self._queues[name].slack = consumers.work(self._idle_since, now)
