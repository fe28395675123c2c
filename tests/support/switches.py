"""Changes of delay queues carried to their end on a broker in memory, with messages coming all the while."""

from collections.abc import Callable, Iterable
from itertools import count

from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.errors import StillHolds
from delayctl.topology.execute import Done, Failed, Outcome, execute
from delayctl.topology.ladder import headers_for
from delayctl.topology.live import Backlog
from delayctl.topology.model import Topology
from delayctl.topology.names import ANY, Names
from delayctl.topology.plan import Plan, label, resource_of
from delayctl.topology.routing import Message, Network, route

from tests.support.examples import live_of
from tests.support.memory_broker import MemoryBroker

IDS = [str(number) for number in range(12)]  # Enough to reach every one of a few shards.


def run_once(broker: MemoryBroker, desired: Topology) -> tuple[Plan, list[Outcome]]:
    """Plan and carry out, once."""
    plan = diff(desired, broker.live())
    return plan, list(execute(plan, broker))


def run_to_the_end(broker: MemoryBroker, desired: Topology) -> list[str]:
    """What `apply --wait` does: plan, carry out, let the queues empty that are waited for, and again; gives what was said."""
    said: list[str] = []
    for number in count():
        assert number < 20, "it has to come to an end"
        plan, outcomes = run_once(broker, desired)
        assert not plan.refusals, plan.refusals
        # A queue that was empty when the plan was made may have got a message since: then there is more to wait for.
        late = [
            outcome for outcome in outcomes if isinstance(outcome, Failed) and isinstance(outcome.error, StillHolds)
        ]
        assert late or all(isinstance(outcome, Done) for outcome in outcomes), outcomes
        said += [f"{type(outcome.change).__name__} {label(resource_of(outcome.change))}" for outcome in outcomes]
        if not plan.waits and not late:
            return said
        for wait in plan.waits:
            said.append(f"wait for {wait.queue}")
            if broker.backlog.get(wait.queue) and not any(wait.queue in destinations(broker, id=id) for id in IDS):
                broker.backlog[wait.queue] = Backlog(0)
    raise AssertionError("unreachable")


def destinations(broker: MemoryBroker, exchange: str = "orders.exchange", *, id: str | None = None) -> frozenset[str]:
    """Where a message for the delay would be put now; none where the broker would refuse it."""
    if exchange not in broker.exchanges:
        return frozenset()
    return frozenset(route(Network.of_live(broker.live()), exchange, Message("order.created", id=id)).queues)


def waits(broker: MemoryBroker, ids: Iterable[str] = IDS) -> list[Duration]:
    """How long orders would wait now: one figure for every queue that each of them would come to."""
    network = Network.of_live(broker.live())
    ways = (route(network, "orders.exchange", Message("order.created", id=id)) for id in ids)
    found = (network.queues[name].settings.ttl for way in ways for name in way.queues)
    return [wait for wait in found if wait]


def under_load(seen: list[frozenset[str]]) -> Callable[[MemoryBroker], None]:
    """After every single call a message comes, and is put where the broker routes it."""

    def message_comes(broker: MemoryBroker) -> None:
        places = destinations(broker, id=IDS[len(seen) % len(IDS)])
        seen.append(places)
        for name in places:
            broker.backlog[name] = Backlog(broker.backlog.get(name, Backlog(0)).messages + 1)

    return message_comes


def let_out_before(least: Duration, early: list[Duration]) -> Callable[[MemoryBroker], None]:
    """After every single call, note how long an order would wait where that is too short."""

    def looks(broker: MemoryBroker) -> None:
        early.extend(wait for wait in waits(broker) if wait < least)

    return looks


def all_of(*watchers: Callable[[MemoryBroker], None]) -> Callable[[MemoryBroker], None]:
    """One watcher that is several."""

    def watch(broker: MemoryBroker) -> None:
        for watcher in watchers:
            watcher(broker)

    return watch


def use_ladder(broker: MemoryBroker) -> None:
    """Let messages wait wherever the door of a ladder leads now; what nothing enters any more has run empty."""
    network, door = Network.of_live(broker.live()), Names().entrance(ANY)
    ways = (route(network, door, Message("key", headers_for(1 << step))) for step in range(8))
    places = {queue for way in ways for queue in way.queues} if door in broker.exchanges else set[str]()
    broker.backlog = dict.fromkeys(places - {Names().unrouted_queue()}, Backlog(3))


def state(broker: MemoryBroker) -> tuple[object, ...]:
    """What has to be the same in the end."""
    return broker.exchanges, broker.queues, broker.bindings, broker.policies, broker.records


def after(desired: Topology) -> tuple[object, ...]:
    """The state of a broker that was always like this."""
    return state(MemoryBroker.holding(live_of(desired)))
