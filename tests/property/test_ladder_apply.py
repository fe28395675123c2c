"""A ladder that grows, shrinks, comes or goes: at no moment of it can a message be early or get lost."""

from contextlib import suppress
from dataclasses import dataclass, replace

from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.errors import Refused
from delayctl.topology.execute import execute
from delayctl.topology.expand import expand
from delayctl.topology.journey import journey
from delayctl.topology.ladder import TOP, headers_for, step_header
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Topology
from delayctl.topology.names import ANY, Names, rung_name
from delayctl.topology.routing import Message, Network
from delayctl.topology.spec import LadderSpec, QueueSpec, RouteSpec, SettingsHome, Spec, Target, WaitSpec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import live_of
from tests.support.memory_broker import Died, MemoryBroker
from tests.support.switches import after as state_after
from tests.support.switches import run_once, state, use_ladder

MOST_STEPS = 4
NAMES = Names("")
UNIT = Duration(1_000)
QUEUE_TYPES = ("classic", "quorum")


def ladder_of(
    steps: int, kind: str = "classic", *, max_length: int | None = None, settings: SettingsHome = "arguments"
) -> Topology:
    """A ladder of so many steps, with a level that keeps exit and net in place; none where there are no steps."""
    wait = WaitSpec(type="quorum" if kind == "quorum" else "classic", max_length=max_length)
    ladder = LadderSpec(UNIT, steps, wait) if steps else None
    target = Target("queue", "target")
    routes = (RouteSpec(("key",), (target,), level=ANY),) if ladder else ()
    return expand(Spec((), ladder=ladder, settings=settings, queues=(QueueSpec("target"),), routes=routes))


@dataclass
class Witness:
    """Looks at the broker after every call; at one of them messages slip in wherever the door leads just then."""

    slips_in_at: int
    calls: int = 0

    def look(self, broker: MemoryBroker) -> None:
        """Check every way, after somebody has published."""
        self.calls += 1
        network = Network.of_live(broker.live())
        for units in range(1, 2**MOST_STEPS):
            self._check_door(network, units)
        if self.calls == self.slips_in_at:
            self._slip_in(network, broker)
        for queue, backlog in broker.backlog.items():
            if backlog.messages:
                self._check_waiting(network, queue)

    def _check_door(self, network: Network, units: int) -> None:
        """What is published is refused, parked at once, or comes to the exit when it is due."""
        if NAMES.entrance(ANY) not in network.exchanges:
            return
        way = journey(network, NAMES.entrance(ANY), Message("key", headers_for(units)))
        ends = [(end.queue, end.after) for end in way.ends]
        assert ends in ([("target", Duration(units * UNIT.ms))], [(NAMES.unrouted_queue(), Duration(0))]), units

    def _slip_in(self, network: Network, broker: MemoryBroker) -> None:
        for step in range(MOST_STEPS):
            queue = NAMES.delay_queue(rung_name(step))
            door = NAMES.entrance(ANY)
            if door in network.exchanges:
                way = journey(network, door, Message("key", headers_for(1 << step)))
                if any(stay.queue == queue for stay in way.passages[0].stays):
                    broker.backlog[queue] = Backlog(1)

    def _check_waiting(self, network: Network, queue: str) -> None:
        """What waits at a step comes to the exit after all the shorter ones that it has to wait at."""
        step, exit = NAMES.step_of(queue) or 0, network.queues[queue].settings.dead_letter_exchange or ""
        for below in range(1 << step):
            headers = {step_header(each): True for each in range(step) if below >> each & 1}
            way = journey(network, exit, Message("key", {TOP: str(step), **headers}))
            assert [(end.queue, end.after) for end in way.ends] == [("target", Duration(below * UNIT.ms))], (
                step,
                below,
            )


@given(
    before=st.integers(0, MOST_STEPS),
    after=st.integers(1, MOST_STEPS),
    kind=st.sampled_from(QUEUE_TYPES),
    waiting=st.sets(st.integers(0, MOST_STEPS - 1)),
    slips_in_at=st.integers(0, 40),
    dies_at=st.integers(1, 80),
)
def test_no_moment_of_a_change_lets_a_message_out_early(
    *, before: int, after: int, kind: str, waiting: set[int], slips_in_at: int, dies_at: int
) -> None:
    """Whatever waits, whenever somebody publishes, and wherever the run dies and is begun again."""
    aim = ladder_of(after, kind)
    backlog = {NAMES.delay_queue(rung_name(step)): 1 for step in waiting if step < before}
    broker = MemoryBroker.holding(live_of(ladder_of(before, kind), backlog) if before else Live())
    witness = Witness(slips_in_at)
    broker.watch = witness.look
    broker.break_at(dies_at, Died())

    for _ in range(2):
        with suppress(Died):
            list(execute(diff(aim, broker.live()), broker))

    assert broker.lost == []
    drained = MemoryBroker.holding(replace(broker.live(), backlog={}))
    list(execute(diff(aim, drained.live()), drained))
    assert diff(aim, drained.live()).is_empty


_files = st.builds(
    ladder_of,
    st.integers(1, MOST_STEPS),
    st.sampled_from(QUEUE_TYPES),
    max_length=st.sampled_from((5, 9)),
    settings=st.sampled_from(("arguments", "policy")),
)


@given(begin=_files, on_the_way=st.lists(st.tuples(_files, st.integers(1, 60)), max_size=2), goal=_files)
def test_a_ladder_in_use_is_changed_to_its_end(
    begin: Topology, on_the_way: list[tuple[Topology, int]], goal: Topology
) -> None:
    """Messages wait at every step all the while, and earlier changes were left wherever they died."""
    broker = MemoryBroker.holding(live_of(begin))
    broker.watch = Witness(slips_in_at=0).look

    for aim, dies_at in on_the_way:
        broker.break_at(dies_at, Died())
        with suppress(Died):
            _change_in_use(broker, aim)
        broker.mend()
    _change_in_use(broker, goal)

    assert broker.lost == []
    assert state(broker) == state_after(goal)


def _change_in_use(broker: MemoryBroker, aim: Topology) -> None:
    for _ in range(6):
        use_ladder(broker)
        run_once(broker, aim)


@given(steps=st.integers(1, MOST_STEPS), waiting=st.sets(st.integers(0, MOST_STEPS - 1), min_size=1))
def test_a_ladder_with_messages_in_it_stays_as_far_up_as_they_are(steps: int, waiting: set[int]) -> None:
    """Steps above the last message may go; the others stay until it has left."""
    there = {step for step in waiting if step < steps}
    backlog = {NAMES.delay_queue(rung_name(step)): 1 for step in there}
    broker = MemoryBroker.holding(live_of(ladder_of(steps), backlog))

    list(execute(diff(ladder_of(0), broker.live()), broker))

    left = [step for step in range(steps) if NAMES.delay_queue(rung_name(step)) in broker.queues]
    assert left == list(range(max(there, default=-1) + 1))


def test_growing_only_adds() -> None:
    """No object that is there is touched, so that what waits and what is published goes its way."""
    plan = diff(ladder_of(4), live_of(ladder_of(2), {"delay.any.00.queue": 3}))

    assert {type(change).__name__ for change in plan.changes} == {"Create"}
    assert plan.refusals == ()


def test_a_step_that_somebody_slips_into_is_not_dropped() -> None:
    """The broker refuses to delete its queue, and all shorter steps stay."""
    broker = MemoryBroker.holding(live_of(ladder_of(3)))
    plan = diff(ladder_of(1), broker.live())
    broker.backlog["delay.any.02.queue"] = Backlog(1)

    outcomes = list(execute(plan, broker))

    assert [outcome.error.what for outcome in outcomes if hasattr(outcome, "error")] == [
        Refused("queue delay.any.02.queue holds messages", code=406).what
    ]
    assert {"delay.any.01.queue", "delay.any.02.queue"} <= broker.queues.keys()
