"""Counting by the cohort comes to the same as following every message: held to the model of the broker, step by step."""

from dataclasses import dataclass, field

from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rabbitmq import Broker
from delayctl.simulator.what_if import what_if
from delayctl.simulator.what_if_answer import Answer
from delayctl.simulator.what_if_scenario import Scenario
from delayctl.simulator.what_if_traffic import Lump, Stream
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.model import QUEUE_TYPES, QueueType, Topology
from delayctl.topology.rate import Rate
from delayctl.topology.routing import Message, Network
from delayctl.topology.spec import LevelSpec, QueueSpec, RouteSpec, Spec, Target, WaitSpec
from hypothesis import given, settings
from hypothesis import strategies as st

STEP = 10
END = 100  # Steps.
TARGET = "work.queue"
TTLS = (30, 70, 200)

kinds: st.SearchStrategy[QueueType] = st.sampled_from(QUEUE_TYPES)
waits = st.builds(
    WaitSpec,
    type=kinds,
    max_length=st.one_of(st.none(), st.integers(1, 15)),
    overflow=st.sampled_from(("drop-head", "reject-publish")),
)
limits = st.one_of(
    st.just(()),
    st.tuples(
        st.tuples(st.just("x-max-length"), st.integers(1, 20)),
        st.tuples(st.just("x-overflow"), st.sampled_from(("drop-head", "reject-publish"))),
    ),
)
# When (in steps; consumers have done nothing before the first), to which of the levels, and how many: a few lumps, or a trickle that comes just when something leaves.
times, targets = st.integers(1, 60), st.integers(0, len(TTLS) - 1)
lumps = st.lists(st.tuples(times, targets, st.integers(1, 15)), min_size=1, max_size=30)
trickles = st.lists(st.tuples(times, targets, st.integers(1, 3)), min_size=40, max_size=120)
traffic = st.one_of(lumps, trickles)


@dataclass
class Seen:
    """What became of messages, one by one: how many waited at every step, and how many were refused."""

    lengths: dict[str, list[int]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    consumed: int = 0


def topology_of(
    levels: tuple[WaitSpec, ...], arguments: tuple[tuple[str, object], ...] = (), kind: QueueType = "classic"
) -> Topology:
    """Three levels that all lead to one queue."""
    named = tuple(LevelSpec(f"{ttl}ms", Duration(ttl), wait) for ttl, wait in zip(TTLS, levels, strict=True))
    routes = tuple(RouteSpec((f"key.{ttl}",), (Target("queue", TARGET),), None, f"{ttl}ms") for ttl in TTLS)
    return expand(Spec(named, queues=(QueueSpec(TARGET, kind, arguments=arguments),), routes=routes))


def one_by_one(topology: Topology, arrivals: list[tuple[int, int, int]], gets: int) -> Seen:
    """Publish every message for itself, and look at the queues after every step."""
    clock = VirtualClock()
    broker = Broker(topology, clock=clock, log=False)
    names = [*(level.queue for level in topology.levels), TARGET]
    seen = Seen({name: [] for name in names}, dict.fromkeys(names, 0))
    for step in range(END):
        clock.run_until(step * STEP)
        for level in sorted(level for time, level, count in arrivals if time == step for _ in range(count)):
            for queue in broker.publish(topology.levels[level].entrance, f"key.{TTLS[level]}").refused_by:
                seen.refused[queue] += 1
        seen.consumed += sum(broker.get(TARGET, no_ack=True) is not None for _ in range(gets))
        for name in names:
            seen.lengths[name].append(broker.count(name).ready)
    return seen


def by_the_cohort(topology: Topology, arrivals: list[tuple[int, int, int]], gets: int) -> Answer:
    """Ask what if."""
    streams = []
    for number, level in enumerate(topology.levels):
        lumps = sorted((time * STEP, count) for time, at, count in arrivals if at == number)
        streams.append(
            Stream(level.entrance, Message(f"key.{TTLS[number]}"), lumps=tuple(Lump(*lump) for lump in lumps))
        )
    consume = {TARGET: Rate.parse(f"{gets * 1000 // STEP}/s")} if gets else {}
    scenario = Scenario(tuple(streams), STEP, consume=consume)
    return what_if(Network.of_topology(topology), scenario, parking={TARGET} if not gets else ())


def lengths_of(answer: Answer, name: str) -> list[int]:
    """How many waited after every step."""
    account = answer.accounts.get(name)
    if account is None:
        return [0] * END
    assert account.series.interval == STEP
    found = account.series.most[:END]
    return found + found[-1:] * (END - len(found))


def assert_same(answer: Answer, seen: Seen) -> None:
    """Compare all that both know of."""
    accounts = answer.accounts
    assert {name: lengths_of(answer, name) for name in seen.lengths} == seen.lengths
    assert {name: accounts[name].refused.count if name in accounts else 0 for name in seen.refused} == seen.refused


@settings(max_examples=200)
@given(levels=st.tuples(waits, waits, waits), arguments=limits, kind=kinds, arrivals=traffic)
def test_every_length_at_every_step_is_the_same(
    levels: tuple[WaitSpec, ...],
    arguments: tuple[tuple[str, object], ...],
    kind: QueueType,
    arrivals: list[tuple[int, int, int]],
) -> None:
    """Overflows of both kinds, in waits and in the queue behind them."""
    topology = topology_of(levels, arguments, kind)

    assert_same(by_the_cohort(topology, arrivals, 0), one_by_one(topology, arrivals, 0))


@settings(max_examples=50)
@given(levels=st.tuples(waits, waits, waits), arrivals=traffic, gets=st.integers(1, 5))
def test_consumers_take_as_many(levels: tuple[WaitSpec, ...], arrivals: list[tuple[int, int, int]], gets: int) -> None:
    """Somebody takes a few messages in every step."""
    topology = topology_of(levels)

    answer, seen = by_the_cohort(topology, arrivals, gets), one_by_one(topology, arrivals, gets)

    assert_same(answer, seen)
    assert (answer.accounts[TARGET].consumed if TARGET in answer.accounts else 0) >= seen.consumed
