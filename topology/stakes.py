"""All that a judgement looks at: what is asked for, what is there, what waits, and what can't be done so far."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from delayctl.topology.duration import Duration
from delayctl.topology.effective import alternate_in_force, effective
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Arguments, Exchange, Kind, Level, Queue, Topology
from delayctl.topology.names import Names
from delayctl.topology.order import Delays
from delayctl.topology.plan import Change, Delete
from delayctl.topology.record import Record
from delayctl.topology.routing import DEFAULT_EXCHANGE


@dataclass(frozen=True, slots=True)
class Hazard:
    """Why a change must not be made, and the name by which a user may insist on it."""

    name: str
    reason: str
    fix: str
    passes: bool = False  # By itself, once queues that nothing enters any more are empty.


@dataclass(frozen=True)
class Scene:
    """All that a judgement looks at."""

    desired: Topology
    live: Live
    owned: Record
    delays: Delays
    accepted: frozenset[str] = frozenset()
    held: Mapping[Change, Hazard] = field(default_factory=dict)  # What can't be done, so far, and what therefore stays.
    # Delay queues behind whose entrance messages wait otherwise than asked for, and that can't be changed yet; whether that passes.
    unchanged: Mapping[str, bool] = field(default_factory=dict)
    broken: Mapping[str, Level] = field(
        default_factory=dict
    )  # By entrances: what others' policies take a promise from.

    def backlog(self, queue: str) -> Backlog:
        """What is in a queue, as far as it was counted."""
        return self.live.backlog.get(queue, Backlog(0))

    @cached_property
    def draining(self) -> dict[str, Duration]:
        """The delay queues that nothing enters once this plan is done, and how long messages wait there."""
        going = self.owned.bindings.difference(self.desired.bindings)
        # What somebody keeps beside the levels may be entered by its name alone.
        kept = {queue.name for queue in self.desired.queues} - self.desired.delay_queues
        unentered = (
            self.live.queues[name]
            for name in (self.delays.queues & self.live.queues.keys()) - kept
            if all(b in going and self._is_closed(b.source) for b in self.live.bindings_at("queue", name))
            and not any(binding.destination == name for binding in self.desired.bindings)
        )
        return self._with_what_comes_by(self._leaving(unentered))

    def _is_closed(self, entrance: str) -> bool:
        """Say whether nobody can publish to an entrance once this plan is done.

        That of a step of the ladder stays as long as messages may come by from above; the door leads there no more.
        """
        if entrance not in self.staying:
            return True
        ways_in = (b for b in self.live.bindings_at("exchange", entrance) if b.destination == entrance)
        ours = self.owned.bindings.difference(self.desired.bindings)
        return self.names.step_of(entrance) is not None and all(binding in ours for binding in ways_in)

    def _with_what_comes_by(self, leaving: Mapping[str, Duration]) -> dict[str, Duration]:
        """How long queues take to empty where a step of the ladder also gets what waits above it now."""
        steps = {name: step for name in leaving if (step := self.names.step_of(name)) is not None}
        slowest = {step: max(leaving[name].ms for name in steps if steps[name] == step) for step in steps.values()}
        return {
            name: Duration(wait.ms + sum(ms for step, ms in slowest.items() if step > steps[name]))
            if name in steps
            else wait
            for name, wait in leaving.items()
        }

    def _leaving(self, queues: Iterable[Queue]) -> dict[str, Duration]:
        """Those of these queues that messages leave by themselves, and how long they wait there."""
        policies = self.live.policies, self.live.operator_policies
        found = ((queue.name, effective(queue, *policies).settings) for queue in queues)
        return {name: settings.ttl for name, settings in found if settings.ttl and settings.dead_letter_exchange}

    @cached_property
    def emptying(self) -> Mapping[str, Duration]:
        """The delay queues that nothing enters: also those that are not bound now, and shall be when they are declared anew."""
        unbound = {name for name in self.delays.queues if not self.live.bindings_at("queue", name)}
        return self.draining | self._leaving(self.live.queues[name] for name in unbound & self.live.queues.keys())

    def empties_by_itself(self, queue: str) -> bool:
        """Say whether nothing enters a delay queue, and nobody keeps what is in it from leaving in time."""
        return queue in self.emptying and not self.backlog(queue).consumers

    @cached_property
    def waiting(self) -> int:
        """How many messages wait in delay queues and still need the way out."""
        return sum(self.backlog(name).messages for name in self.delays.queues - self.accepted)

    @cached_property
    def is_waiting_over_soon(self) -> bool:
        """Say whether all these messages are in queues of ours that empty by themselves: those of others fill again."""
        holding = {name for name in self.delays.queues - self.accepted if self.backlog(name).messages}
        return holding <= self.draining.keys() & self.owned.queues

    @cached_property
    def names(self) -> Names:
        """The names of delayctl's own objects."""
        return Names(self.desired.prefix)

    def waiting_above(self, step: int) -> dict[str, int]:
        """The queues at a step of the ladder or above it with messages that may still come by, and how many."""
        steps = {name: self.names.step_of(name) for name in self.delays.queues - self.accepted}
        above = (name for name, found in steps.items() if found is not None and found >= step)
        return {name: count for name in above if (count := self.backlog(name).messages)}

    @cached_property
    def way_out(self) -> frozenset[str]:
        """Every name that an expiring message may pass or reach."""
        reached, ahead = set(self.safety_net), [self.desired.exit]
        while ahead:
            here = ahead.pop()
            if here not in reached:
                reached.add(here)
                ahead += [b.destination for b in self.live.bindings_at("exchange", here) if b.source == here]
                found = self.live.exchanges.get(here)
                alternate = alternate_in_force(found, self.live.policies) if found else None
                ahead += [] if alternate is None else [alternate]
        return frozenset(reached)

    @cached_property
    def led_to_by_others(self) -> Mapping[tuple[Kind, str], list[str]]:
        """The queues of others that dead-letter to an object, and the exchanges of others whose alternate it is, by that object."""
        live, found = self.live, defaultdict[tuple[Kind, str], list[str]](list)
        ours = {queue.name for queue in self.desired.queues} | self.owned.queues
        for queue in live.queues.values():
            settings = effective(queue, live.policies, live.operator_policies).settings
            if queue.name in ours or settings.dead_letter_exchange is None:
                continue
            if settings.dead_letter_exchange == DEFAULT_EXCHANGE and settings.dead_letter_key is not None:
                found["queue", settings.dead_letter_key].append(queue.name)
            found["exchange", settings.dead_letter_exchange].append(queue.name)
        ours = {exchange.name for exchange in self.desired.exchanges} | self.owned.exchanges
        for exchange in live.exchanges.values():
            if exchange.name not in ours and (alternate := alternate_in_force(exchange, live.policies)) is not None:
                found["exchange", alternate].append(exchange.name)
        return found

    @cached_property
    def routed(self) -> frozenset[tuple[str, str, Arguments]]:
        """The exchanges that shall lead somewhere, with the keys and the arguments by which they do."""
        return frozenset((binding.source, binding.key, binding.arguments) for binding in self.desired.bindings)

    @cached_property
    def safety_net(self) -> frozenset[str]:
        """What catches an expired message that has no route."""
        return frozenset({self.names.unrouted_exchange(), self.names.unrouted_queue()})

    @cached_property
    def staying(self) -> frozenset[str]:
        """The exchanges and queues that stay although the file no longer asks for them."""
        deleted = (change.resource for change in self.held if isinstance(change, Delete))
        return frozenset(resource.name for resource in deleted if isinstance(resource, Exchange | Queue))

    @cached_property
    def staying_entrances(self) -> frozenset[str]:
        """Of these, what leads into delays."""
        return self.staying & self.delays.entrances
