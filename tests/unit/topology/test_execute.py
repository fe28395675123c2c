"""Plan to outcomes, on a broker in memory."""

from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.errors import BrokerError, NotPermitted, Refused, Unreachable
from delayctl.topology.execute import Done, Failed, Outcome, Skipped, execute
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Binding, Exchange, Queue, Topology
from delayctl.topology.names import Names
from delayctl.topology.order import Stage
from delayctl.topology.plan import Create, Plan, Replace, Update, label, resource_of
from delayctl.topology.record import Record, record_of
from delayctl.topology.spec import ExchangeSpec, QueueSpec, RouteSpec, Target

from tests.support.examples import first_plan, live_of, shop
from tests.support.memory_broker import VERSION, Died, MemoryBroker

SHOP, LONGER = shop("5m"), shop("5m", max_length=99)
QUORUM, LONGER_QUORUM = shop("5m", type="quorum"), shop("5m", type="quorum", max_length=99)
POLICIES = shop("5m", settings="policy")
INTO_QUEUE = Binding("delay.5m.exchange", "queue", "delay.5m.queue")
THEIRS = frozenset(
    {
        Binding("their.exchange", "queue", "delay.5m.queue", "their.key"),
        Binding("their.exchange", "exchange", "delay.5m.exchange", "their.key"),
        Binding("their.exchange", "exchange", "delay.exchange", "their.key"),
        Binding("delay.exchange", "queue", "their.queue", "their.key"),
        Binding("orders.exchange", "queue", "their.queue", "their.key"),
        Binding("amq.topic", "queue", "delay.5m.queue", "their.key"),
    }
)


def beside_others(topology: Topology) -> Live:
    """The broker after a clean apply, in use by others as well."""
    live = live_of(topology)
    return replace(
        live,
        exchanges={**live.exchanges, "their.exchange": Exchange("their.exchange")},
        queues={**live.queues, "their.queue": Queue("their.queue")},
        bindings=live.bindings | THEIRS,
    )


def with_exchange(live: Live, exchange: Exchange) -> Live:
    """The broker with this exchange in the place of another."""
    return replace(live, exchanges={**live.exchanges, exchange.name: exchange})


def run(desired: Topology, broker: MemoryBroker, *accepted: str) -> list[Outcome]:
    """Plan and carry out, as apply does."""
    return list(execute(diff(desired, broker.live(), accept_loss=accepted), broker))


def summary(outcomes: list[Outcome]) -> list[str]:
    """What became of each change, in short."""
    return [f"{type(outcome).__name__} {label(resource_of(outcome.change))}" for outcome in outcomes]


@dataclass(frozen=True)
class Journey:
    """A broker, and what it is to become."""

    start: Live
    desired: Topology
    accepted: tuple[str, ...] = ()

    def broker(self) -> MemoryBroker:
        """A broker at the beginning of it."""
        return MemoryBroker.holding(self.start)

    def run(self, broker: MemoryBroker) -> list[Outcome]:
        """Make it, or what is left of it."""
        return run(self.desired, broker, *self.accepted)


JOURNEYS = {
    "first apply": Journey(Live(), shop("1m 5m")),
    "first apply with policies": Journey(Live(), POLICIES),
    "nothing to do": Journey(beside_others(SHOP), SHOP),
    "replace a classic queue": Journey(beside_others(SHOP), LONGER),
    "replace a quorum queue": Journey(beside_others(QUORUM), LONGER_QUORUM),
    "replace a queue with loss": Journey(
        replace(beside_others(SHOP), backlog={"delay.5m.queue": Backlog(3)}), LONGER, ("delay.5m.queue",)
    ),
    "replace an entrance": Journey(with_exchange(beside_others(SHOP), Exchange("delay.5m.exchange", "direct")), SHOP),
    "replace the exit": Journey(with_exchange(beside_others(SHOP), Exchange("delay.exchange", "direct")), SHOP),
    "replace much at once": Journey(
        with_exchange(
            with_exchange(beside_others(SHOP), Exchange("delay.exchange", "direct")),
            Exchange("delay.5m.exchange", "direct"),
        ),
        LONGER,
    ),
    "change a policy": Journey(beside_others(POLICIES), shop("5m", settings="policy", max_length=99)),
    "out of policies": Journey(beside_others(POLICIES), SHOP),
    "into policies": Journey(beside_others(SHOP), POLICIES),
    "remove a level": Journey(beside_others(shop("1m 5m")), SHOP),
    "add and remove levels": Journey(beside_others(shop("5m 1m")), shop("5m 1h 2h")),
    "remove everything": Journey(live_of(shop("1m 5m", settings="policy")), empty_topology("")),
    "remove what can be": Journey(beside_others(shop("1m 5m")), empty_topology("")),
}
each_journey = pytest.mark.parametrize("journey", JOURNEYS.values(), ids=JOURNEYS)


class TestJourneys:
    """Whole applies, undisturbed and disturbed."""

    @each_journey
    def test_a_plan_leads_to_where_nothing_is_left_to_do(self, journey: Journey) -> None:
        """All changes are made, the record is as the plan says, and the next plan has no changes."""
        broker = journey.broker()
        plan = diff(journey.desired, broker.live(), accept_loss=journey.accepted)

        outcomes = list(execute(plan, broker))

        assert outcomes == [Done(change) for change in plan.changes]
        assert broker.records.get("", Record()) == plan.record
        assert diff(journey.desired, broker.live()).changes == ()

    @each_journey
    def test_bindings_of_others_are_all_there_afterwards(self, journey: Journey) -> None:
        """Whatever was replaced."""
        broker = journey.broker()

        journey.run(broker)

        assert broker.bindings >= journey.start.bindings & THEIRS

    @each_journey
    def test_killed_at_any_call_the_next_run_completes(self, journey: Journey) -> None:
        """Before each single call in turn: the second run ends exactly where an undisturbed one does."""
        undisturbed = journey.broker()
        journey.run(undisturbed)

        for call in range(1, len(undisturbed.journal) + 1):
            broker = journey.broker()
            broker.break_at(call, Died())
            with pytest.raises(Died):
                journey.run(broker)
            journey.run(broker)
            assert broker.live() == undisturbed.live(), undisturbed.journal[call - 1]

    @each_journey
    def test_killed_twice_the_third_run_completes(self, journey: Journey) -> None:
        """What the first run left to restore survives the death of the second."""
        undisturbed = journey.broker()
        journey.run(undisturbed)

        for call in range(1, len(undisturbed.journal) + 1):
            broker = journey.broker()
            for again in (call, max(1, call // 2)):
                broker = MemoryBroker.holding(broker.live())
                broker.break_at(again, Died())
                with suppress(Died):
                    journey.run(broker)
            broker = MemoryBroker.holding(broker.live())
            journey.run(broker)
            assert broker.live() == undisturbed.live(), undisturbed.journal[call - 1]

    @each_journey
    @pytest.mark.parametrize("error", [Refused("no", code=406), NotPermitted("no"), Unreachable("gone")], ids=repr)
    def test_refused_at_any_call_the_next_run_completes(self, journey: Journey, error: BrokerError) -> None:
        """A broker that says no, or goes away, is as good as a kill."""
        undisturbed = journey.broker()
        journey.run(undisturbed)

        for call in range(1, len(undisturbed.journal) + 1):
            broker = journey.broker()
            broker.break_at(call, error)
            with suppress(type(error)):  # What is refused may be the record itself.
                journey.run(broker)
            journey.run(broker)
            assert broker.live() == undisturbed.live(), undisturbed.journal[call - 1]

    @each_journey
    def test_no_delay_is_ever_without_an_exit(self, journey: Journey) -> None:
        """After every single call, an entrance that leads into its queue has an exit with a safety net behind it."""
        names = Names("")
        net = Binding(names.unrouted_exchange(), "queue", names.unrouted_queue())
        replaces_exit = "delay.exchange" in {
            resource_of(change).name  # type: ignore[union-attr]  # Only exchanges and queues are replaced.
            for change in diff(journey.desired, journey.start, accept_loss=journey.accepted).changes
            if isinstance(change, Replace)
        }

        def check(broker: MemoryBroker) -> None:
            is_open = any(b.source.startswith("delay.") and b.destination == "delay.5m.queue" for b in broker.bindings)
            has_exit = names.exit() in broker.exchanges and net in broker.bindings
            assert has_exit or replaces_exit or not is_open, broker.journal[-1]

        broker = journey.broker()
        broker.watch = check

        journey.run(broker)

    @each_journey
    def test_no_delay_queue_is_ever_without_a_ttl(self, journey: Journey) -> None:
        """After every single call, a delay queue has its TTL from an argument or from a policy."""

        def check(broker: MemoryBroker) -> None:
            for name, queue in broker.queues.items():
                if queue.settings.dead_letter_exchange == "delay.exchange":
                    assert queue.settings.ttl or name.replace(".queue", ".policy") in broker.policies, broker.journal[
                        -1
                    ]

        broker = journey.broker()
        broker.watch = check

        journey.run(broker)


class TestRecord:
    """What the broker remembers."""

    def test_the_intent_is_written_first_and_the_record_last(self) -> None:
        """Nothing made is ever forgotten."""
        broker = MemoryBroker()
        plan = first_plan(SHOP)

        list(execute(plan, broker))

        assert [call for call, _ in broker.journal if call == "write_record"] == ["write_record"] * 2
        assert (broker.journal[0], broker.journal[-1]) == (("write_record", ""), ("write_record", ""))

    def test_where_nothing_is_to_be_done_nothing_is_written(self) -> None:
        """An idle apply does not touch the broker."""
        broker = MemoryBroker.holding(live_of(SHOP))

        assert run(SHOP, broker) == []
        assert broker.journal == []

    def test_what_is_taken_over_is_only_recorded(self) -> None:
        """One write, no change."""
        broker = MemoryBroker.holding(replace(live_of(SHOP), record=None))

        assert run(SHOP, broker) == []
        assert broker.journal == [("write_record", "")]
        assert broker.records == {"": record_of(SHOP)}

    def test_after_a_failure_the_intent_stands(self) -> None:
        """It holds all that may have been made, and what is to be put back."""
        broker = MemoryBroker.holding(beside_others(SHOP))
        plan = diff(LONGER, broker.live())
        broker.break_at(3, Refused("no", code=406))

        outcomes = list(execute(plan, broker))

        assert [type(outcome) for outcome in outcomes] == [Failed]
        assert broker.records == {"": plan.intent}
        assert plan.intent.restore == {binding for binding in THEIRS if binding.destination == "delay.5m.queue"}

    def test_a_record_that_can_not_be_written_stops_everything(self) -> None:
        """What could not be remembered is not made."""
        broker = MemoryBroker()
        broker.break_at(1, NotPermitted("no"))

        with pytest.raises(NotPermitted):
            run(SHOP, broker)
        assert len(broker.journal) == 1

    def test_the_record_of_nothing_is_removed(self) -> None:
        """Destroy leaves no trace."""
        broker = MemoryBroker.holding(live_of(SHOP))

        run(empty_topology(""), broker)

        assert broker.live() == Live(VERSION)


class TestReplacement:
    """Delete, declare, bind again."""

    def test_a_classic_queue_is_deleted_guarded(self) -> None:
        """The broker itself sees to it that nothing is lost."""
        broker = MemoryBroker.holding(live_of(SHOP))

        run(LONGER, broker, "delay.5m.queue")

        assert broker.journal[1:-1] == [
            ("delete_queue", "delay.5m.queue"),
            ("declare", "delay.5m.queue"),
            ("bind", "delay.5m.exchange delay.5m.queue"),
        ]

    def test_a_quorum_queue_is_unbound_before_it_is_counted(self) -> None:
        """Nothing can arrive between the count and the deletion."""
        broker = MemoryBroker.holding(live_of(QUORUM))

        run(LONGER_QUORUM, broker, "delay.5m.queue")

        assert broker.journal[1:-1] == [
            ("unbind", "delay.5m.exchange delay.5m.queue"),
            ("delete_queue", "delay.5m.queue"),
            ("declare", "delay.5m.queue"),
            ("bind", "delay.5m.exchange delay.5m.queue"),
        ]

    @pytest.mark.parametrize(("before", "after"), [(SHOP, LONGER), (QUORUM, LONGER_QUORUM)], ids=["classic", "quorum"])
    def test_a_message_that_came_since_the_plan_is_kept(self, before: Topology, after: Topology) -> None:
        """The replacement fails, the queue stays bound, and its message is safe."""
        broker = MemoryBroker.holding(live_of(before))
        plan = diff(after, broker.live(), accept_loss=["delay.5m.queue"])
        broker.backlog["delay.5m.queue"] = Backlog(1)
        expected = broker.live()

        outcomes = list(execute(plan, broker))

        assert summary(outcomes) == ["Failed queue delay.5m.queue"]
        assert replace(broker.live(), record=None) == replace(expected, record=None)
        assert broker.lost == []

    @pytest.mark.parametrize("error", [Refused("no", code=406), NotPermitted("no")], ids=repr)
    @pytest.mark.parametrize("call", [2, 3, 4])
    def test_a_quorum_queue_that_stays_is_bound_again(self, call: int, error: BrokerError) -> None:
        """Whatever the broker had against unbinding, counting or deleting it."""
        broker = MemoryBroker.holding(beside_others(QUORUM))
        expected = set(broker.bindings)
        broker.break_at(call, error)

        outcomes = run(LONGER_QUORUM, broker)

        assert [type(outcome) for outcome in outcomes] == [Failed]
        assert broker.bindings == expected

    def test_an_accepted_loss_is_not_guarded(self) -> None:
        """The user has named the queue."""
        broker = MemoryBroker.holding(live_of(SHOP, {"delay.5m.queue": 3}))

        run(LONGER, broker, "delay.5m.queue")

        assert broker.lost == ["delay.5m.queue"]
        assert INTO_QUEUE in broker.bindings

    def test_many_replacements_do_not_miss_each_other(self) -> None:
        """Although they stand in one stage that is worth a pool, one is complete before the next begins."""
        count = 30
        exchanges = tuple(ExchangeSpec(f"e{i}") for i in range(count))
        queues = tuple(QueueSpec(f"q{i}", "classic") for i in range(count))
        routes = tuple(RouteSpec(("k",), tuple(Target("queue", q.name) for q in queues), e.name) for e in exchanges)
        before = shop("5m", exchanges=exchanges, queues=queues, routes=routes)
        after = replace(
            before,
            exchanges=tuple(replace(e, type="direct") if e.name[0] == "e" else e for e in before.exchanges),
            queues=tuple(replace(q, durable=False) if q.name[0] == "q" else q for q in before.queues),
        )
        broker = MemoryBroker.holding(live_of(before))

        outcomes = run(after, broker, *(exchange.name for exchange in exchanges))

        assert {type(outcome) for outcome in outcomes} == {Done}
        assert len(outcomes) == 2 * count
        assert broker.bindings == set(after.bindings)


class TestFailure:
    """What happens after the first change that could not be made."""

    def test_later_stages_are_skipped(self) -> None:
        """Nothing is built on a base that is not there; the rest of the stage is still tried."""
        broker = MemoryBroker()
        broker.break_at(2, Refused("no", code=406))

        assert summary(run(SHOP, broker)) == [
            "Failed exchange delay.unrouted.exchange",
            "Done exchange orders.exchange",
            "Done queue delay.unrouted.queue",
            "Done queue orders.queue",
            "Skipped binding delay.unrouted.exchange → delay.unrouted.queue",
            "Skipped exchange delay.exchange",
            "Skipped binding delay.exchange → [order.created] orders.queue",
            "Skipped queue delay.5m.queue",
            "Skipped exchange delay.5m.exchange",
            "Skipped binding delay.5m.exchange → delay.5m.queue",
            "Skipped binding orders.exchange → [order.created] delay.5m.exchange",
        ]

    @pytest.mark.parametrize("levels", [3, 40], ids=["one by one", "in a pool"])
    def test_a_broker_that_is_gone_is_not_asked_again(self, levels: int) -> None:
        """Each further attempt would only wait for its own timeout."""

        class Gone(MemoryBroker):
            def declare(self, resource: Exchange | Queue) -> None:
                self.journal.append(("declare", resource.name))
                raise Unreachable("gone")

        broker = Gone()
        desired = shop(" ".join(f"{i}s" for i in range(1, levels)) + " 5m", queues=(), routes=(), exchanges=())

        outcomes = run(desired, broker)

        attempts = [call for call, _ in broker.journal if call == "declare"]
        assert len(attempts) <= 8
        assert {type(outcome) for outcome in outcomes} == {Failed, Skipped}

    def test_an_error_that_is_no_answer_of_the_broker_is_not_swallowed(self) -> None:
        """A bug is not an outcome."""
        broker = MemoryBroker()
        broker.break_at(2, ZeroDivisionError())

        with pytest.raises(ZeroDivisionError):
            run(SHOP, broker)

    def test_what_another_made_meanwhile_is_not_overwritten(self) -> None:
        """A queue that appeared since the plan, with other arguments, fails the change."""
        broker = MemoryBroker()
        plan = first_plan(SHOP)
        broker.queues["delay.5m.queue"] = Queue("delay.5m.queue")

        outcomes = list(execute(plan, broker))

        assert "Failed queue delay.5m.queue" in summary(outcomes)
        assert broker.queues["delay.5m.queue"] == Queue("delay.5m.queue")


class TestDeletion:
    """Guarded, unless a loss was accepted."""

    def test_a_message_that_came_since_the_plan_keeps_its_way_out(self) -> None:
        """The delay queue is the first of all that matters, and what stands behind it is then skipped."""
        broker = MemoryBroker.holding(live_of(SHOP))
        plan = diff(empty_topology(""), broker.live())
        broker.backlog["delay.5m.queue"] = Backlog(1)

        outcomes = list(execute(plan, broker))

        assert summary(outcomes)[3:5] == [
            "Failed queue delay.5m.queue",
            "Skipped binding delay.exchange → [order.created] orders.queue",
        ]
        assert broker.lost == []
        assert broker.exchanges.keys() == {"delay.exchange", "delay.unrouted.exchange", "orders.exchange"}

    def test_an_exchange_that_others_bound_since_the_plan_is_kept(self) -> None:
        """The broker refuses to delete what is in use."""
        broker = MemoryBroker.holding(live_of(SHOP))
        plan = diff(empty_topology(""), broker.live())
        broker.queues["their.queue"] = Queue("their.queue")
        broker.bindings.add(Binding("orders.exchange", "queue", "their.queue", "k"))

        outcomes = list(execute(plan, broker))

        assert "Failed exchange orders.exchange" in summary(outcomes)
        assert Binding("orders.exchange", "queue", "their.queue", "k") in broker.bindings


class TestPool:
    """Stages of many changes are carried out by several threads."""

    def test_the_result_is_the_same(self) -> None:
        """A hundred levels, made and removed."""
        desired = shop(" ".join(f"{i}s" for i in range(1, 100)) + " 5m")
        broker = MemoryBroker()

        made = run(desired, broker)
        after = broker.live()
        run(empty_topology(""), broker)

        assert {type(outcome) for outcome in made} == {Done}
        assert replace(after, backlog={}) == live_of(desired)
        assert broker.live() == Live(VERSION)

    def test_one_that_is_refused_does_not_keep_the_others_away(self) -> None:
        """Many are said at once; which of them it was is found out, and told of that one alone."""
        desired = shop(" ".join(f"{i}s" for i in range(1, 100)) + " 5m")
        plan, broker = first_plan(desired), MemoryBroker()
        broker.queues["delay.50s.queue"] = Queue("delay.50s.queue")

        outcomes = [outcome for outcome in execute(plan, broker) if outcome.change.stage == Stage.PUT_DELAY_QUEUES]

        assert [line for line in summary(outcomes) if not line.startswith("Done")] == ["Failed queue delay.50s.queue"]
        assert {queue.name for queue in desired.queues} <= broker.queues.keys()
        assert broker.queues["delay.50s.queue"] == Queue("delay.50s.queue")

    def test_the_stages_still_follow_each_other(self) -> None:
        """However many threads there are."""
        desired = shop(" ".join(f"{i}s" for i in range(1, 100)) + " 5m")
        broker = MemoryBroker()

        run(desired, broker)

        kinds = [(call, name.split()[0].rpartition(".")[2]) for call, name in broker.journal if name[6:7].isdigit()]
        assert kinds == sorted(kinds, key=[("declare", "queue"), ("declare", "exchange"), ("bind", "exchange")].index)


class TestLock:
    """The lock is kept, and its loss stops the run."""

    def test_it_is_kept_before_the_first_change_and_after_every_one(self) -> None:
        """So that heartbeats are answered, and a lock that was lost while planning is noticed."""
        kept: list[None] = []

        outcomes = list(execute(first_plan(SHOP), MemoryBroker(), keep_lock=lambda: kept.append(None)))

        assert len(kept) == len(outcomes) + 1

    def test_its_loss_stops_the_run_and_hides_nothing(self) -> None:
        """What was done by then has been told."""
        broker = MemoryBroker()

        def lose() -> None:
            if len(broker.journal) > 1:
                raise Unreachable("the lock is gone")

        told: list[Outcome] = []

        with pytest.raises(Unreachable):
            told.extend(execute(first_plan(SHOP), broker, keep_lock=lose))
        assert summary(told) == ["Done exchange delay.unrouted.exchange"]
        assert len(broker.journal) == 2


def test_each_kind_of_change_is_one_call() -> None:
    """But for replacements."""
    (policy,) = POLICIES.policies
    plan = Plan("/", "", (Update(policy, policy, (), 0), Create(INTO_QUEUE, 1)), (), (), Record(), Record(), (), "x")
    broker = MemoryBroker.holding(live_of(SHOP))

    assert list(execute(plan, broker)) == [Done(plan.changes[0]), Done(plan.changes[1])]
    assert broker.journal[1:-1] == [("put_policy", policy.name), ("bind", "delay.5m.exchange delay.5m.queue")]
