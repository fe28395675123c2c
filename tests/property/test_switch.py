"""Any change of levels, killed anywhere and followed by any other: it comes to its end, and no message is lost or doubled."""

from contextlib import suppress

from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.model import Topology
from delayctl.topology.spec import LevelSpec, RouteSpec, SettingsHome, Spec, Target, WaitSpec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import ORDERS, ORDERS_QUEUE, live_of
from tests.support.memory_broker import Died, MemoryBroker
from tests.support.switches import after, run_to_the_end, state, under_load

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
    broker.watch = under_load(seen)

    for goal in goals[:-1]:
        broker.break_at(data.draw(st.integers(1, 40)), Died())
        with suppress(Died):
            run_to_the_end(broker, goal)
        broker.mend()
    run_to_the_end(broker, goals[-1])

    assert {len(places) for places in seen} <= {1}
    assert broker.lost == []
    assert state(broker) == after(goals[-1])
