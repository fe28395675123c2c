"""Changing a delay queue while messages go on coming: how far that is, and what this run aims at.

No message is moved. A way round is put behind the entrance as its alternate exchange, and the queue is unbound: from then
on messages wait in the next queue, and the old one empties by itself. Then it is declared anew and bound, the way round
falls silent, and the next queue empties too. Every stage is recognised from what is on the broker, and each plan aims no
farther than the next one; so a change that was interrupted goes on, or back, with whatever plan comes next.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from delayctl.topology.arguments import ALTERNATE_EXCHANGE, policy_settings
from delayctl.topology.compare import breaks_a_promise, compare_exchange, compare_policy, compare_queue, policy_drift
from delayctl.topology.duration import Duration
from delayctl.topology.effective import effective
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Level, Policy, Queue, Settings, Topology, sorted_bindings
from delayctl.topology.names import Names, WaitNames
from delayctl.topology.plan import Difference, Refusal, Wait

_PRIORITY = 1000  # Above what people use: of all policies that match an exchange, one applies.

# How far a change has come: the old queue empties, it is declared anew, it takes messages again, the next queue empties.
Stage = Literal["empties", "renewed", "takes over", "next empties"]
# As people who look on are told: a change that nobody has begun empties nothing yet.
Seen = Literal["due"] | Stage


@dataclass(frozen=True)
class Course:
    """What one run aims at on the way to what is asked for."""

    aim: Topology
    waits: tuple[Wait, ...] = ()
    covered: Mapping[Binding, str] = field(default_factory=dict)  # Bindings that go once a policy leads round them.
    lengthened: frozenset[Binding] = frozenset()  # Of these, what led to a shorter wait.
    stages: Mapping[str, Seen] = field(default_factory=dict)  # How far each change is, by its level.
    # Queues that stay as they are, and those that messages would wait in meanwhile: policies of others would bend these.
    held: Mapping[str, Queue] = field(default_factory=dict)
    # Queues whose way round was made for another time, and is still in use: what is led there now would wait as long as that says.
    bent: frozenset[str] = frozenset()


def course(asked: Topology, live: Live, *, others: Iterable[Policy], insisted: Collection[str] = ()) -> Course:
    """Recognise every change of a delay queue that is due or under way; `insisted` are queues to be replaced at once."""
    policies = (*others, *asked.policies)
    levels = [_Switch(wait, asked, live, policies) for wait in asked.waits if wait.queue not in insisted]
    switches = [switch for switch in levels if switch.stage]
    if not switches:
        return Course(asked)
    held = [switch for switch in switches if switch.is_held]
    going = [switch for switch in switches if not switch.is_held]
    return Course(
        _aim(asked, going, held),
        tuple(switch.to_wait_for for switch in going),
        {switch.binding: switch.next.policy for switch in going if switch.stage == "empties"},
        frozenset(switch.binding for switch in going if switch.stage == "empties" and switch.is_lengthened),
        {switch.wait.name: switch.stage if switch.is_under_way else "due" for switch in going if switch.stage},
        {switch.wait.queue: switch.next_queue for switch in held},
        frozenset(switch.wait.queue for switch in going if switch.is_bent),
    )


def _aim(asked: Topology, going: list["_Switch"], held: list["_Switch"]) -> Topology:
    """What is asked for, with the ways round in it and without what has to wait."""
    staying = [*held, *(switch for switch in going if switch.stage == "empties")]
    kept = {switch.wait.queue: switch.found for switch in staying if switch.found}
    unbound = {switch.binding for switch in going if switch.stage in ("empties", "renewed")}
    left_alone = {switch.own_policy for switch in staying}
    policies = [policy for policy in asked.policies if policy.name not in left_alone]
    policies += [policy for switch in staying if (policy := switch.policy_found)]
    queues = [*(kept.get(queue.name, queue) for queue in asked.queues), *(switch.next_queue for switch in going)]
    exchanges = [*asked.exchanges, *(Exchange(switch.next.entrance, "fanout") for switch in going)]
    ways_round = [Binding(switch.next.entrance, "queue", switch.next.queue) for switch in going]
    return replace(
        asked,
        exchanges=tuple(sorted(exchanges, key=lambda exchange: exchange.name)),
        queues=tuple(sorted(queues, key=lambda queue: queue.name)),
        bindings=sorted_bindings((*(b for b in asked.bindings if b not in unbound), *ways_round)),
        policies=(*policies, *(switch.leading_round for switch in going)),
        rounds=tuple(switch.round for switch in going),
    )


@dataclass(frozen=True)
class _Switch:
    """One delay queue, as it is and as it shall be."""

    wait: Level
    asked: Topology
    live: Live
    policies: tuple[Policy, ...]  # In force once all is done.

    @cached_property
    def stage(self) -> Stage | None:
        """How far the change has come; None where there is none, or nothing is left but to clear up."""
        is_led_round = self.is_under_way and not self.is_bound
        if self.found and self.differences and not (is_led_round or (self._can_go_round and self._empties)):
            return None
        if self.found and self.differences and (self.is_bound or self._messages(self.wait.queue)):
            return "empties"
        if not self.is_under_way:
            return None
        if self.found and self.differences:
            return "renewed"
        if not self.is_bound:
            return "takes over" if self.found and not self._is_ruled_by_the_past else "renewed"
        return "next empties" if self._messages(self.next.queue) else None

    @cached_property
    def is_held(self) -> bool:
        """Say whether the change is not to be begun: by a policy of others messages would not wait as they should, on the way round or in the end."""
        if self.stage != "empties":
            return False  # The queue is renewed already, and leads away from there.
        in_the_end = self._drift_of(self._desired)
        return bool(self._drift_of(self.next_queue) or (in_the_end and breaks_a_promise(in_the_end)))

    def _drift_of(self, queue: Queue) -> Refusal | None:
        return policy_drift(queue, self.live, self.policies, self.asked.policies, is_delay=True)

    @cached_property
    def next(self) -> WaitNames:
        """The names of the way round."""
        return Names(self.asked.prefix).next(self.wait.name)

    @property
    def binding(self) -> Binding:
        """The one way into the queue."""
        return Binding(self.wait.entrance, "queue", self.wait.queue)

    @property
    def found(self) -> Queue | None:
        """The queue as it is."""
        return self.live.queues.get(self.wait.queue)

    @cached_property
    def is_bound(self) -> bool:
        """Say whether messages enter the queue."""
        return self.binding in self.live.bindings

    @cached_property
    def is_under_way(self) -> bool:
        """Say whether something of the way round is there."""
        return (
            self.next.queue in self.live.queues
            or self.next.entrance in self.live.exchanges
            or any(policy.name == self.next.policy for policy in self.live.policies)
        )

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """What the queue can't be changed for in place."""
        assert self.found is not None
        return compare_queue(self._desired, self.found, self.live, self.policies) or self._lowered

    @property
    def _lowered(self) -> tuple[Difference, ...]:
        """What a policy would take from messages that wait: they would leave early, or hold up those behind them."""
        policy, found = next((p for p in self.asked.policies if p.name == self.own_policy), None), self.policy_found
        if policy is None or found is None:
            return ()
        before, after = policy_settings(found.definition), policy_settings(policy.definition)
        return compare_policy(policy, found) if _is_lower(before, after) else ()

    @property
    def own_policy(self) -> str:
        """The name of the policy that holds the level's settings, where one does."""
        return Names(self.asked.prefix).policy(self.wait.name)

    @property
    def policy_found(self) -> Policy | None:
        """That policy as it is."""
        return next((policy for policy in self.live.policies if policy.name == self.own_policy), None)

    @property
    def _is_ruled_by_the_past(self) -> bool:
        """Say whether the policy that held the settings before is still in force on what holds them itself now."""
        return self.policy_found is not None and all(policy.name != self.own_policy for policy in self.asked.policies)

    @property
    def _desired(self) -> Queue:
        return next(queue for queue in self.asked.queues if queue.name == self.wait.queue)

    @property
    def _can_go_round(self) -> bool:
        """Say whether a way round would lead round: nobody else's bindings are there, and the entrance is what it shall be."""
        entrance = self.live.exchanges.get(self.wait.entrance)
        ways = {*self.live.bindings_at("queue", self.wait.queue)}
        ways |= {b for b in self.live.bindings_at("exchange", self.wait.entrance) if b.source == self.wait.entrance}
        return ways <= {self.binding} and (entrance is None or not compare_exchange(self._entrance, entrance))

    @property
    def _empties(self) -> bool:
        """Say whether what waits leaves the queue by itself, and by the way that it should."""
        assert self.found is not None
        now = effective(self.found, self.live.policies, self.live.operator_policies).settings
        wanted = self._desired.settings.dead_letter_exchange
        return now.ttl is not None and now.expires is None and now.dead_letter_exchange == wanted

    @property
    def _entrance(self) -> Exchange:
        return next(exchange for exchange in self.asked.exchanges if exchange.name == self.wait.entrance)

    @cached_property
    def next_queue(self) -> Queue:
        """Where messages wait meanwhile: as they shall in the end, or in what is there for it and may be in use."""
        there = self.live.queues.get(self.next.queue)
        if there and (self._is_way_round_open or self._messages(there.name)):
            return there
        settings = effective(self._desired, self.asked.policies, ()).settings
        return replace(self._desired, name=self.next.queue, settings=settings)

    @property
    def _is_way_round_open(self) -> bool:
        """Say whether messages may come to the way round: the entrance leads nowhere else, and somebody leads there or may publish to it."""
        entrance, names = self.wait.entrance, Names(self.asked.prefix)
        ways = self.live.bindings_at("exchange", entrance)
        if any(way.source == entrance for way in ways):
            return False
        level = names.shard_level(entrance)
        if level is None:
            return True
        spread = names.spread(level)
        led_to = (way.destination for way in self.live.bindings_at("exchange", spread))
        return any(way.source == spread for way in ways) and spread in led_to

    @property
    def is_bent(self) -> bool:
        """Say whether messages that come meanwhile wait otherwise than asked for: the way round was made for another time."""
        return self.stage in ("empties", "renewed") and self.next_queue.settings.ttl != self.wait.ttl

    @property
    def is_lengthened(self) -> bool:
        """Say whether messages wait longer from now on."""
        return self.found is not None and self._ttl(self.found) < self._ttl(self.next_queue)

    @property
    def leading_round(self) -> Policy:
        """The policy that gives the entrance its alternate."""
        pattern, definition = f"^{re.escape(self.wait.entrance)}$", ((ALTERNATE_EXCHANGE, self.next.entrance),)
        return Policy(self.next.policy, pattern, "exchanges", _PRIORITY, definition)

    @property
    def round(self) -> Level:
        """The way round, as a level that no file asks for."""
        return Level(self.next.level, self._ttl(self.next_queue), self.next.entrance, self.next.queue)

    @property
    def to_wait_for(self) -> Wait:
        """Which queue has to empty before the next stage."""
        later = self._ttl(self.next_queue)
        if self.stage != "empties" or self.found is None:
            messages = self._messages(self.next.queue)
            return Wait(self.wait.name, self.next.queue, messages, later, later, "removed")
        now = self._ttl(self.found)
        altogether = Duration(now.ms + later.ms)
        messages = self._messages(self.wait.queue)
        return Wait(self.wait.name, self.wait.queue, messages, now, altogether, "declared anew", self.differences)

    def _ttl(self, queue: Queue) -> Duration:
        """How long messages wait in a queue as it is."""
        return effective(queue, self.live.policies, self.live.operator_policies).settings.ttl or self.wait.ttl

    def _messages(self, queue: str) -> int:
        found = self.live.backlog.get(queue)
        return found.messages if found else 0


def _is_lower(before: Settings, after: Settings) -> bool:
    """Say whether messages that wait under the one would be let out early by the other, or hold up what comes after."""
    if before.ttl and after.ttl and after.ttl < before.ttl:
        return True
    limits = ((before.max_length, after.max_length), (before.max_bytes, after.max_bytes))
    is_less_room = any(new is not None and (old is None or new < old) for old, new in limits)
    refused, refuses = (settings.overflow == "reject-publish" for settings in (before, after))
    if refused and not refuses:
        return any(
            new is not None for _, new in limits
        )  # More may wait than the limit says: it was not enforced on them.
    return is_less_room and not (refused and refuses)
