"""What is done to prove each way: canaries that wait, canaries that are hastened, or a look at the objects alone."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from delayctl.topology.canary import Flight, Probe, Task, Trouble
from delayctl.topology.duration import Duration
from delayctl.topology.journey import Journey
from delayctl.topology.key_index import IndexedNetwork
from delayctl.topology.model import Topology
from delayctl.topology.names import Names
from delayctl.topology.routing import FURTHER_KEYS, Network
from delayctl.topology.verify_ways import (
    Seen,
    arrivals,
    blocked,
    bystanders,
    delay_troubles,
    net_trouble,
    network_with_catcher,
    no_room,
    opened,
    own_plugin_exchanges,
    refusing,
    route_troubles,
    way_of,
)
from delayctl.topology.wording import plural

BODY = b'{"canary": "of delayctl verify"}'
HASTEN_MS = 500
_HARMLESS = ("returned", "refused")  # The broker gives such a canary back, or does not take it.


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done: canaries per way, up to which wait they really wait, and whether they go to where routes end."""

    count: int
    up_to: Duration
    max_lateness: Duration
    patience: Duration  # So long after it was due a canary is given up.
    hasten: bool = True
    through_routes: bool = False


def tasks_for(
    probes: Iterable[Probe], seen: Seen, effort: Effort, *, desired: Topology, run: str, file: str
) -> list[Task]:
    """What is done for each probe; nothing is sent that others would get, unless routes are to be proved by that."""
    names = Names(desired.prefix)
    described = IndexedNetwork.of(Network.of_topology(desired))
    planner = _Planner(names, seen, network_with_catcher(seen, names), described, effort, file)
    numbered = enumerate(probes)
    return [planner.route(p, names.verify_key(run, n)) if p.kind == "route" else planner.delay(p) for n, p in numbered]


@dataclass(frozen=True)
class _Planner:
    names: Names
    seen: Seen
    network: Network
    described: Network  # As it would be by the file alone.
    effort: Effort
    file: str

    def delay(self, probe: Probe) -> Task:
        """Prove the exit, a level, or rungs of the ladder."""
        way, catcher = way_of(self.network, probe), self.names.verify_queue()
        net = net_trouble(self.network, self.names, self.file) if probe.kind == "exit" else None
        known = (net,) if net else ()
        if probe.kind == "exit" and self._has_no_exit:
            return Task(probe, known=known)
        if own_plugin_exchanges(way, self.names):
            return self._sent(probe, ())  # Where these lead is not ours to foresee: canaries tell.
        expected = tuple(delay_troubles(way, probe, catcher, self.seen, self.file))
        if self._has_no_exit or not self._comes_back(way, probe):
            return Task(probe, expected=expected, known=known)
        if (others := bystanders(way, catcher)) and not self.effort.through_routes:
            note = f"{', '.join(others)} would get the canaries too; --through-routes sends them all the same"
            return Task(probe, expected=expected, known=known, note=note)
        return replace(self._sent(probe, expected), known=known)

    def route(self, probe: Probe, key: str) -> Task:
        """Prove a route: its messages come to where others consume, so that canaries need leave."""
        network, described = (opened(each, probe.exchange) for each in (self.network, self.described))
        expected = tuple(route_troubles(network, probe, described, self.seen, self.file))
        if expected or not self.effort.through_routes:
            return Task(probe, expected=expected)
        if note := self._why_not_through(probe, key):
            return Task(probe, note=note)
        return self._sent(_also_caught(probe, key), ())

    @property
    def _has_no_exit(self) -> bool:
        """Say whether canaries can't be caught anywhere."""
        return self.names.exit() not in self.network.exchanges

    def _why_not_through(self, probe: Probe, key: str) -> str | None:
        if probe.is_parking:
            return "nobody consumes what is parked, and a canary would stay there"
        if self.network.exchanges[probe.exchange].internal:
            return f"{probe.exchange} is internal, and nobody can publish to it"
        way, catcher = way_of(self.network, _also_caught(probe, key)), self.names.verify_queue()
        if len(arrivals(way, catcher)) != 1:
            return "it does not pass the exit, where canaries are seen"
        alone = bystanders(way_of(self.network, probe), catcher)
        others = set(bystanders(way, catcher)) - set(alone)
        return f"{', '.join(sorted(others))} would get canaries that its messages don't go to" if others else None

    def _comes_back(self, way: Journey, probe: Probe) -> bool:
        """Say whether a canary is caught, once and soon, or given back: it must not be lost, and not stay anywhere."""
        catcher = self.names.verify_queue()
        caught, elsewhere = arrivals(way, catcher), [end for end in way.ends if end.queue != catcher]
        if not caught:
            hops = {hop.exchange for passage in way.passages for hop in passage.routed.hops}
            return all(end.fate in _HARMLESS for end in elsewhere) and not hops & self.seen.veiled
        latest = Duration(max(probe.wait.ms, self.effort.up_to.ms) + self.effort.patience.ms)
        return len(caught) == 1 and caught[0] <= latest and all(end.fate == "delivered" for end in elsewhere)

    def _sent(self, probe: Probe, expected: tuple[Trouble, ...]) -> Task:
        count = self.effort.count
        for queue in probe.queues:
            if trouble := no_room(self.network, queue, self.seen, count, len(BODY)):
                return Task(probe, expected=(*expected, trouble))
        if probe.wait <= self.effort.up_to:
            return Task(probe, Flight(probe, count), expected)
        return self._hastened(probe, expected)

    def _hastened(self, probe: Probe, expected: tuple[Trouble, ...]) -> Task:
        """What is longer than anybody waits for; only the first message of a queue can be hastened."""
        queue = probe.queues[0]
        figures = self.seen.figures.get(queue)
        longer = f"longer than --up-to {self.effort.up_to}"
        unseen = (refusing(self.network, queue, self.seen), blocked(queue, self.seen, self.file))
        unsent = (*expected, *(trouble for trouble in unseen if trouble))
        if probe.kind == "route" or probe.is_spread or not self.effort.hasten:
            return Task(probe, expected=unsent, note=longer)
        if figures is not None and figures.waiting:
            note = f"{longer}, and a canary can't pass {plural(figures.waiting, 'message')} waiting there"
            return Task(probe, expected=unsent, note=note)
        note = f"{longer}: sent with an expiration of {Duration(HASTEN_MS)}"
        return Task(probe, Flight(probe, self.effort.count, HASTEN_MS), expected, note=note)


def _also_caught(probe: Probe, key: str) -> Probe:
    """The same way, with a second key that leads to the catcher once it has waited."""
    return replace(probe, headers={**probe.headers, FURTHER_KEYS[0]: [key]})
