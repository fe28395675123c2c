"""The state of one judgement: what is taken into the plan so far, what is held back, and what both are judged by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from delayctl.topology.changes import Comparison
from delayctl.topology.effective import effective
from delayctl.topology.key_index import common_key
from delayctl.topology.model import Binding, Level
from delayctl.topology.plan import Change, Refusal
from delayctl.topology.stakes import Hazard, Scene
from delayctl.topology.surroundings import broken_by_others


@dataclass
class Work:
    """The state of one judgement."""

    both: Comparison
    changes: list[Change] = field(default_factory=list)
    held: dict[Change, Hazard] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def broken(self) -> Mapping[str, Level]:
        """The entrances that lead into what others broke."""
        return broken_by_others(self.both)

    @cached_property
    def entrances(self) -> frozenset[str]:
        """What leads into delays, wanted or not."""
        return self.both.desired.entrances | self.both.delays.entrances

    @cached_property
    def _look_at_keys(self) -> frozenset[str]:
        """The exchanges that do."""
        desired = {exchange.name: exchange for exchange in self.both.desired.exchanges}
        exchanges = {**desired, **self.both.live.exchanges}.values()
        return frozenset(exchange.name for exchange in exchanges if exchange.type in ("direct", "topic"))

    def may_go_on(self, way: Binding, on: Binding) -> bool:
        """Say whether a message that goes one way may go the other one later, as far as keys tell."""
        look_at_keys = {way.source, on.source} <= self._look_at_keys
        return not look_at_keys or common_key(way.key, on.key) is not None

    @property
    def scene(self) -> Scene:
        """What a judgement looks at, as far as judgement has come."""
        both = self.both
        return Scene(
            both.desired,
            both.live,
            both.owned,
            both.delays,
            both.insisted,
            dict(self.held),
            _bent_waits(both),
            self.broken,
        )


def _bent_waits(both: Comparison) -> dict[str, bool]:
    """Delay queues that can't be changed yet, behind whose entrance messages wait as the file says no more; whether that passes."""
    policies = both.live.policies, both.live.operator_policies
    held = (
        name
        for name, wanted in both.course.held.items()
        if effective(both.live.queues[name], *policies).settings.ttl != wanted.settings.ttl
    )
    return dict.fromkeys(both.course.bent, True) | dict.fromkeys(held, False)
