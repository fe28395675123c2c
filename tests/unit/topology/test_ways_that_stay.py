"""Where something can't be done yet, what depends on it stays as it is: messages go one way, and wait as long as before."""

from dataclasses import replace

from delayctl.cli.exit_codes import after_apply
from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.effective import effective
from delayctl.topology.expand import expand
from delayctl.topology.live import Backlog
from delayctl.topology.model import Policy, Topology
from delayctl.topology.spec import LevelSpec, QueueSpec, RouteSpec, Spec, Target, WaitSpec

from tests.support.examples import ORDERS, ORDERS_QUEUE, ORDERS_ROUTE, live_of, shop
from tests.support.memory_broker import MemoryBroker
from tests.support.switches import destinations, run_once

SMALL, LARGE = WaitSpec(max_length=10), WaitSpec(max_length=20)
SPREAD = replace(SMALL, shards=2)
Waits = tuple[str, WaitSpec]


def orders_wait(at: str, *, key: str = "order.created", **levels: Waits) -> Topology:
    """A file whose orders wait at one of some levels."""
    route = RouteSpec((key,), (Target("queue", "orders.queue"),), "orders.exchange", at)
    specs = tuple(LevelSpec(name, Duration.parse(ttl), wait) for name, (ttl, wait) in levels.items())
    return expand(Spec(specs, exchanges=(ORDERS,), queues=(ORDERS_QUEUE,), routes=(route,)))


def with_a_level_that_empties() -> MemoryBroker:
    """Orders wait at `a`; the one queue of `c` is about to become two, and messages are still in it."""
    broker = MemoryBroker.holding(live_of(orders_wait("a", a=("5m", SMALL), c=("5m", SMALL)), {"delay.c.queue": 3}))
    run_once(broker, orders_wait("a", a=("5m", SMALL), c=("5m", SPREAD)))
    return broker


def waits(broker: MemoryBroker) -> list[str]:
    """How long an order would wait now, once for every queue that it would come to."""
    queues = (broker.queues[name] for name in destinations(broker, id="1"))
    return [str(effective(queue, broker.policies.values(), ()).settings.ttl) for queue in queues]


def test_a_wider_key_that_can_not_come_yet_leaves_the_narrower_one() -> None:
    """What matches both would go nowhere."""
    broker = with_a_level_that_empties()

    run_once(broker, orders_wait("c", key="order.*", a=("5m", SMALL), c=("5m", LARGE)))

    assert destinations(broker) == {"delay.a.queue"}


def test_a_level_that_messages_still_come_to_gets_no_second_queue_beside_its_own() -> None:
    """Each message would go to both."""
    broker = with_a_level_that_empties()

    run_once(broker, orders_wait("c", a=("5m", SPREAD), c=("5m", LARGE)))

    assert len(destinations(broker, id="1")) == 1


def test_a_way_is_led_to_a_level_that_waits_long_enough() -> None:
    """A level that gets longer takes what comes to it from then on for its new time."""
    before = orders_wait("slow", slow=("15m", SMALL), chosen=("1m", SMALL))
    broker, seen = MemoryBroker.holding(live_of(before)), list[list[str]]()
    broker.watch = lambda watched: seen.append(waits(watched))

    run_once(broker, orders_wait("chosen", slow=("15m", SMALL), chosen=("15m", SMALL)))

    assert seen == [["15m"]] * len(seen)
    assert destinations(broker) == {"delay.chosen.next.queue"}


def test_a_way_is_not_led_to_a_level_that_can_not_be_made_longer() -> None:
    """A policy of others would bend the queue that messages go to meanwhile."""
    before = orders_wait("slow", slow=("15m", SMALL), chosen=("1m", SMALL))
    broker = MemoryBroker.holding(live_of(before))
    broker.policies["team"] = Policy("team", "next", "queues", 0, (("max-length", 5),))

    plan, outcomes = run_once(broker, orders_wait("chosen", slow=("15m", SMALL), chosen=("15m", SMALL)))

    assert (waits(broker), after_apply(plan, outcomes)) == (["15m"], 1)
    assert plan.refusals


def test_a_queue_that_messages_go_on_coming_to_is_not_waited_for() -> None:
    """The old queue can't be declared anew while somebody consumes from it, and so the next one stays in use."""
    desired = orders_wait("l", l=("1h", LARGE))
    broker = MemoryBroker.holding(live_of(orders_wait("l", l=("1h", SMALL))))
    broker.backlog["delay.l.queue"] = Backlog(0, 1)
    run_once(broker, desired)
    broker.backlog["delay.l.next.queue"] = Backlog(4)

    plan = diff(desired, broker.live())

    assert ([refusal.subject for refusal in plan.refusals], plan.waits) == (["queue delay.l.queue"], ())


def test_a_way_out_that_a_queue_of_ones_own_needs_is_not_forgotten() -> None:
    """Nobody knows who fills such a queue by its name, so nothing says that it will ever be empty."""
    own = QueueSpec("own.wait", arguments=(("x-dead-letter-exchange", "delay.exchange"), ("x-message-ttl", 60000)))
    paid = RouteSpec(("order.paid",), (Target("queue", "orders.queue"),), "orders.exchange", "5m")
    before = shop("5m", queues=(ORDERS_QUEUE, own), routes=(ORDERS_ROUTE, paid))
    desired = shop("5m", queues=(ORDERS_QUEUE, own))
    broker = MemoryBroker.holding(live_of(before, {"own.wait": 3}))
    run_once(broker, desired)

    plan, outcomes = run_once(broker, desired)

    assert not plan.is_empty
    assert after_apply(plan, outcomes) != 0
    assert [refusal.subject for refusal in plan.refusals] == ["binding delay.exchange → [order.paid] orders.queue"]


def test_a_message_that_goes_two_ways_for_a_moment_is_foretold() -> None:
    """A wider key to another level is bound before the narrower one is unbound."""
    live = live_of(orders_wait("a", a=("5m", SMALL), b=("5m", SMALL)))

    warned, moved = (
        diff(orders_wait("b", key=key, a=("5m", SMALL), b=("5m", SMALL)), live).warnings
        for key in ("order.*", "order.created")
    )

    assert (len(warned), moved) == (1, ())
    assert warned[0].startswith(
        "orders.exchange: while this is applied, what matches both order.created and order.* comes"
    )
