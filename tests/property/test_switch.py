"""Any change of levels, killed anywhere and followed by any other: it comes to its end, no message is lost, doubled or early."""

from contextlib import suppress

from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.model import Topology
from delayctl.topology.spec import LevelSpec, RouteSpec, SettingsHome, Spec, Target, WaitSpec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import ORDERS, ORDERS_QUEUE, live_of
from tests.support.memory_broker import Died, MemoryBroker
from tests.support.switches import after, all_of, let_out_before, run_to_the_end, state, under_load, waits

_waits = st.builds(
    WaitSpec,
    type=st.sampled_from(("classic", "quorum")),
    max_length=st.sampled_from((None, 10, 1000)),
    overflow=st.sampled_from(("drop-head", "reject-publish")),
    shards=st.sampled_from((1, 2, 3)),
)
_ttls = st.sampled_from((1_000, 60_000, 300_000)).map(Duration)


@st.composite
def files(draw: st.DrawFn) -> Topology:
    """A level that is in every file, others that come and go, and a route through one of them."""
    names = ["soon", *draw(st.lists(st.sampled_from(("later", "last")), unique=True))]
    route = RouteSpec(
        ("order.created",), (Target("queue", "orders.queue"),), "orders.exchange", draw(st.sampled_from(names))
    )
    levels = tuple(LevelSpec(name, draw(_ttls), draw(_waits)) for name in names)
    homes: tuple[SettingsHome, ...] = ("arguments", "policy")
    settings = draw(st.sampled_from(homes))
    return expand(Spec(levels, settings=settings, exchanges=(ORDERS,), queues=(ORDERS_QUEUE,), routes=(route,)))


@given(st.data())
def test_wherever_it_is_killed_and_whatever_comes_next(data: st.DataObject) -> None:
    """After every call on the way a message has one place to wait in; in the end the broker is what the last file says."""
    begin, goals = data.draw(files()), data.draw(st.lists(files(), min_size=1, max_size=4))
    broker = MemoryBroker.holding(live_of(begin, dict.fromkeys(begin.delay_queues, 2)))
    seen: list[frozenset[str]] = []

    for goal in goals:
        early: list[Duration] = []
        broker.watch = all_of(under_load(seen), let_out_before(least_of(broker, goal), early))
        if goal is not goals[-1]:
            broker.break_at(data.draw(st.integers(1, 40)), Died())
        with suppress(Died):
            run_to_the_end(broker, goal)
        broker.mend()
        assert early == []

    assert {len(places) for places in seen} <= {1}
    assert broker.lost == []
    assert state(broker) == after(goals[-1])


def least_of(broker: MemoryBroker, goal: Topology) -> Duration:
    """How long orders have to wait while one becomes the other: as long as before, or as long as the file says."""
    return min(waits(broker) + waits(MemoryBroker.holding(live_of(goal))))
