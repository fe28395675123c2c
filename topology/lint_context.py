"""What the rules of lint look at: the scene, and the ways of the messages that a file speaks of."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from delayctl.topology.scene import Scene
from delayctl.topology.trails import Trails


@dataclass(frozen=True)
class Context(Scene):
    """A file, the broker where one was asked for, and where messages go."""

    @cached_property
    def trails(self) -> Trails:
        """What became of a message of every route."""
        return Trails(self)

    @cached_property
    def targets_by_way_in(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """What the routes that lead from an exchange into a wait want to reach; an entrance leads into its own."""
        found: dict[tuple[str, str], set[str]] = defaultdict(set)
        for route in self.spec.routes:
            if route.level is not None:
                source = self.names.entrance(route.level) if route.source is None else route.source
                wait = self.wait_behind(route.level)
                found[source, wait].update(target.name for target in route.targets)
        return {way: frozenset(targets) for way, targets in found.items()}

    @cached_property
    def delayed_targets(self) -> frozenset[str]:
        """Every target of a route with a delay."""
        return frozenset().union(*self.targets_by_way_in.values())

    @cached_property
    def on_delayed_ways(self) -> tuple[frozenset[str], frozenset[str]]:
        """The exchanges and the queues that messages pass before, while or after they wait."""
        exchanges = {wait.exit for wait in self.waits.values()}
        queues = {wait.queue.name for wait in self.waits.values()}
        for route in self.spec.routes:
            leads_in = any(target.kind == "queue" and target.name in self.waits for target in route.targets)
            if route.level is not None or leads_in or route.source in exchanges:
                exchanges |= {route.source} if route.source else set()
                exchanges |= {target.name for target in route.targets if target.kind == "exchange"}
                queues |= {target.name for target in route.targets if target.kind == "queue"}
        queues |= {name for retry in self.spec.retries for name in (retry.queue, retry.park)}
        return frozenset(exchanges), frozenset(queues)
