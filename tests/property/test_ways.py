"""Any change of routes, whatever can't be made of it: who has a way before and after has one all the time."""

from collections.abc import Sequence
from itertools import chain

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
BY_KEY = (ExchangeSpec("a", "topic"), ExchangeSpec("b", "direct"), ExchangeSpec("c", "topic"))
BETWEEN = (*BY_KEY, ExchangeSpec("d", "fanout"))


@st.composite
def ways(draw: st.DrawFn, key: str, exchanges: Sequence[ExchangeSpec]) -> tuple[RouteSpec, ...]:
    """From an exchange of others through some of the file's to a queue, with a wait before any of them or none at all."""
    passed = draw(st.lists(st.sampled_from(exchanges), unique=True, max_size=3))
    sources = ["site.exchange", *(exchange.name for exchange in passed)]
    last = Target("queue", draw(st.sampled_from(("first", "second"))))
    targets = (*(Target("exchange", name) for name in sources[1:]), last)
    wait_at, level = draw(st.sampled_from((None, *range(len(sources))))), draw(st.sampled_from(LEVELS))
    return tuple(
        RouteSpec((key,), (target,), source, level if number == wait_at else None)
        for number, (source, target) in enumerate(zip(sources, targets, strict=True))
    )


def file_of(exchanges: Sequence[ExchangeSpec], *routes: RouteSpec) -> Topology:
    """A file with these routes, through any of these exchanges."""
    queues = (QueueSpec("first"), QueueSpec("second"))
    return shop(" ".join(LEVELS), exchanges=(SITE, *exchanges), queues=queues, routes=routes)


def _file_of(exchanges: Sequence[ExchangeSpec], *keys: str) -> st.SearchStrategy[Topology]:
    return st.tuples(*(ways(key, exchanges) for key in keys)).map(lambda all: file_of(exchanges, *chain(*all)))


one_key, two_keys = _file_of(BETWEEN, "order.created"), _file_of(BY_KEY, "order.created", "order.paid")


def places(broker: MemoryBroker, key: str) -> frozenset[str]:
    """Where a message comes to now."""
    network = Network.of_live(broker.live())
    return frozenset(route(network, "site.exchange", Message(key)).queues)


@given(st.one_of(st.tuples(one_key, one_key), st.tuples(two_keys, two_keys)), st.sampled_from(LEVELS))
def test_what_can_not_be_entered_costs_nobody_the_way(files: tuple[Topology, Topology], bent: str) -> None:
    """A policy of others robs a level of its TTL between the two: messages go the old way or the new one, and never none."""
    before, after = files
    broker = MemoryBroker.holding(live_of(before))
    pattern = f"^{Names().delay_queue(bent)}$".replace(".", r"\.")
    broker.policies["theirs"] = Policy("theirs", pattern, "queues", 5, (("message-ttl", 1_000),))
    keys = {binding.key for binding in before.bindings if binding.source == "site.exchange"}
    seen: list[tuple[frozenset[str], ...]] = []
    broker.watch = lambda broker: seen.append(tuple(places(broker, key) for key in keys))

    outcomes = list(execute(diff(after, broker.live()), broker))

    note(f"{outcomes=} {seen=}")
    assert {len(each) for at_once in seen for each in at_once} <= {1}
    del broker.policies["theirs"]
    broker.watch = lambda _: None
    list(execute(diff(after, broker.live()), broker))
    wanted = MemoryBroker.holding(live_of(after))
    assert [places(broker, key) for key in keys] == [places(wanted, key) for key in keys]
