"""Where something can't be done yet, what depends on it stays as it is: messages go one way, and wait as long as before."""

from contextlib import suppress
from dataclasses import replace

import pytest
from delayctl.cli.exit_codes import after_apply
from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.live import Backlog
from delayctl.topology.model import Binding, Policy, Topology
from delayctl.topology.spec import LevelSpec, QueueSpec, RouteSpec, Spec, Target, WaitSpec

from tests.support.examples import ORDERS, ORDERS_QUEUE, ORDERS_ROUTE, live_of, shop
from tests.support.memory_broker import Died, MemoryBroker
from tests.support.switches import after, destinations, run_once, run_to_the_end, state, waits

SMALL, LARGE = WaitSpec(max_length=10), WaitSpec(max_length=20)
SPREAD = replace(SMALL, shards=2)
LONG = Duration.parse("15m")
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
    broker, seen = MemoryBroker.holding(live_of(before)), set[Duration]()
    broker.watch = lambda watched: seen.update(waits(watched))

    run_once(broker, orders_wait("chosen", slow=("15m", SMALL), chosen=("15m", SMALL)))

    assert seen == {LONG}
    assert destinations(broker) == {"delay.chosen.next.queue"}


@pytest.mark.parametrize("shards", [(1, 1), (1, 2), (2, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize(("at", "ttls"), [(("a", "b"), ("15m", "1m")), (("b", "a"), ("1m", "15m"))])
def test_a_level_gets_longer_before_a_route_comes_and_shorter_once_it_has_left(
    at: tuple[str, str], ttls: tuple[str, str], shards: tuple[int, int]
) -> None:
    """Neither a shard that is new lets messages out early, nor one that goes."""
    files = zip(at, ttls, shards, strict=True)
    first, second = (
        orders_wait(at, a=(ttl, replace(SMALL, shards=count)), b=("15m", SMALL)) for at, ttl, count in files
    )
    broker, seen = MemoryBroker.holding(live_of(first)), set[Duration]()
    broker.watch = lambda watched: seen.update(waits(watched))

    run_once(broker, second)

    assert seen == {LONG}


def test_shards_of_a_change_that_was_given_up_wait_long_enough_before_messages_come_to_them() -> None:
    """They were made for another time, and nothing has come to them yet."""
    broker, seen = MemoryBroker.holding(live_of(orders_wait("a", a=("15m", SMALL)))), set[Duration]()
    desired = orders_wait("a", a=("15m", replace(SPREAD, type="quorum")))
    broker.watch = lambda watched: seen.update(waits(watched))

    for call in range(1, 40):
        broker.break_at(call, Died())
        with suppress(Died):
            run_once(broker, orders_wait("a", a=("1m", SPREAD)))
        broker.mend()
        if Binding("delay.a.2.exchange", "queue", "delay.a.2.queue") in broker.bindings:
            break
    else:
        raise AssertionError("the shards have to be bound at some call")
    run_once(broker, desired)

    assert seen == {LONG}


@pytest.mark.parametrize("shards", [1, 2])
def test_a_way_is_not_led_to_a_level_that_goes_on_with_what_an_earlier_change_made(shards: int) -> None:
    """Messages that others publish there wait in a next queue of the wrong time, until the level's own is declared anew."""
    many = replace(SMALL, shards=shards)
    queues = ["delay.b.queue"] if shards == 1 else ["delay.b.1.queue", "delay.b.2.queue"]
    before = orders_wait("a", a=("15m", SMALL), b=("1h", many))
    broker, seen = MemoryBroker.holding(live_of(before, dict.fromkeys(queues, 3))), set[Duration]()
    run_once(broker, orders_wait("a", a=("15m", SMALL), b=("1m", many)))
    broker.watch = lambda watched: seen.update(waits(watched))
    desired = orders_wait("b", a=("15m", SMALL), b=("15m", many))

    plan, _ = run_once(broker, desired)
    run_to_the_end(broker, desired)

    assert (plan.refusals, {wait.queue for wait in plan.waits}) == ((), set(queues))
    assert (seen, state(broker)) == ({LONG}, after(desired))


def test_a_way_is_not_led_to_a_level_that_can_not_be_made_longer() -> None:
    """A policy of others would bend the queue that messages go to meanwhile."""
    before = orders_wait("slow", slow=("15m", SMALL), chosen=("1m", SMALL))
    broker = MemoryBroker.holding(live_of(before))
    broker.policies["team"] = Policy("team", "next", "queues", 0, (("max-length", 5),))

    plan, outcomes = run_once(broker, orders_wait("chosen", slow=("15m", SMALL), chosen=("15m", SMALL)))

    assert ({*waits(broker)}, after_apply(plan, outcomes)) == ({LONG}, 1)
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
