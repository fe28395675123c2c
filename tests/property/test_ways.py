"""Any change of routes, whatever can't be made of it: who has a way before and after has one all the time."""

from delayctl.topology.diff import diff
from delayctl.topology.execute import execute
from delayctl.topology.model import Policy, Topology
from delayctl.topology.names import Names
from delayctl.topology.routing import Message, Network, route
from delayctl.topology.spec import ExchangeSpec, QueueSpec, RouteSpec, Target
from hypothesis import given, note
from hypothesis import strategies as st

from tests.support.examples import live_of, shop
from tests.support.memory_broker import MemoryBroker

LEVELS = ("1m", "5m")
SITE = ExchangeSpec("site.exchange", "topic", existing=True)
BETWEEN = (ExchangeSpec("a", "topic"), ExchangeSpec("b", "fanout"), ExchangeSpec("c", "direct"))


@st.composite
def files(draw: st.DrawFn) -> Topology:
    """Orders go from an exchange of others through some of the file's to a queue, and wait before any of them or not at all."""
    exchanges = (SITE, *draw(st.lists(st.sampled_from(BETWEEN), unique=True, max_size=2)))
    queue = draw(st.sampled_from(("first", "second")))
    sources = [exchange.name for exchange in exchanges]
    targets = (*(Target("exchange", name) for name in sources[1:]), Target("queue", queue))
    wait_at = draw(st.sampled_from((None, *range(len(sources)))))
    level = draw(st.sampled_from(LEVELS))
    routes = tuple(
        RouteSpec(("order.created",), (target,), source, level if number == wait_at else None)
        for number, (source, target) in enumerate(zip(sources, targets, strict=True))
    )
    return shop(" ".join(LEVELS), exchanges=exchanges, queues=(QueueSpec(queue),), routes=routes)


def places(broker: MemoryBroker) -> frozenset[str]:
    """Where an order comes to now."""
    network = Network.of_live(broker.live())
    found = route(network, "site.exchange", Message("order.created")).queues
    return frozenset(found)


@given(files(), files(), st.sampled_from(LEVELS))
def test_what_can_not_be_entered_costs_nobody_the_way(before: Topology, after: Topology, bent: str) -> None:
    """A policy of others robs a level of its TTL between the two: messages go the old way or the new one, and never none."""
    broker = MemoryBroker.holding(live_of(before))
    pattern = f"^{Names().delay_queue(bent)}$".replace(".", r"\.")
    broker.policies["theirs"] = Policy("theirs", pattern, "queues", 5, (("message-ttl", 1_000),))
    seen = [places(broker)]
    broker.watch = lambda broker: seen.append(places(broker))

    outcomes = list(execute(diff(after, broker.live()), broker))

    note(f"{outcomes=} {seen=}")
    assert {len(each) for each in seen} == {1}
    del broker.policies["theirs"]
    broker.watch = lambda _: None
    list(execute(diff(after, broker.live()), broker))
    assert places(broker) == places(MemoryBroker.holding(live_of(after)))
