"""Which ways into delays get longer and which get shorter, and so which of these come before the routes and which after them."""

from dataclasses import dataclass, replace
from functools import cached_property

from delayctl.topology.duration import Duration
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Policy, Resource, Topology
from delayctl.topology.order import Stage
from delayctl.topology.routing import Network

_ONCE_ROUTES_HAVE_LEFT = {
    Stage.PUT_WAYS_INTO_QUEUES: Stage.PUT_WAYS_INTO_SHORTER_QUEUES,
    Stage.PUT_WAYS_INTO_SHARDS: Stage.PUT_WAYS_INTO_SHORTER_SHARDS,
    Stage.PUT_WAYS_INTO_SPREADS: Stage.PUT_WAYS_INTO_SHORTER_SPREADS,
}
_BEFORE_ROUTES_COME = {Stage.CUT_WAYS_INTO_SHARDS: Stage.CUT_WAYS_INTO_SHORTER_SHARDS}


@dataclass(frozen=True)
class WaitLengths:
    """How long messages wait behind an exchange, now and once a plan is done."""

    live: Live
    desired: Topology
    policies_then: tuple[Policy, ...]

    def stage_to_put(self, way: Binding, stage: Stage) -> Stage:
        """When a way is put whose turn were at `stage`: later, where messages wait longer by the ways that are there."""
        if stage not in _ONCE_ROUTES_HAVE_LEFT or way.source not in self.live.exchanges:
            return stage
        now, then = _waits(way.source, self._now), _waits(way.destination, self._then)
        return _ONCE_ROUTES_HAVE_LEFT[stage] if now and then and min(then) < max(now) else stage

    def stage_to_cut(self, way: Resource, stage: int) -> int:
        """When a way is cut whose turn were at `stage`: earlier, where messages wait longer by the ways that will be there."""
        if stage not in _BEFORE_ROUTES_COME or not isinstance(way, Binding):
            return stage
        now, then = _waits(way.destination, self._now), _waits(way.source, self._then)
        return _BEFORE_ROUTES_COME[Stage(stage)] if now and then and min(now) < max(then) else stage

    @cached_property
    def _now(self) -> Network:
        return Network.of_live(self.live)

    @cached_property
    def _then(self) -> Network:
        return Network.of_topology(replace(self.desired, policies=self.policies_then))


def _waits(place: str, network: Network) -> list[Duration]:
    """How long messages wait in the queues behind a place, be it round one that is being changed."""
    reached = [place]
    for name in reached:
        ahead = [binding.destination for binding in network.bindings_from.get(name, ())]
        alternate = network.exchanges[name].alternate if name in network.exchanges and not ahead else None
        ahead += [] if alternate is None else [alternate]
        reached += [each for each in ahead if each not in reached]
    found = (network.queues[name].settings.ttl for name in reached if name in network.queues)
    return [wait for wait in found if wait]
