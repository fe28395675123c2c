"""Desired and live to Plan."""

from dataclasses import replace

import pytest
from delayctl.topology.changes import Comparison
from delayctl.topology.diff import at_stake, diff, empty_topology, fingerprint
from delayctl.topology.duration import Duration
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings, Topology, freeze_arguments
from delayctl.topology.order import Stage
from delayctl.topology.plan import Create, Delete, Difference, Plan, Refusal, Replace, Update, Wait, label, title
from delayctl.topology.record import Record, record_of
from delayctl.topology.spec import BrokerWaits, ExchangeSpec, QueueSpec, RetrySpec, RouteSpec, Target

from tests.support.examples import ORDERS, ORDERS_QUEUE, ORDERS_ROUTE, live_of, shop

SHOP, LONGER = shop("5m"), shop("5m", max_length=99)
DELAY_QUEUE = next(queue for queue in SHOP.queues if queue.name == "delay.5m.queue")
LONGER_QUEUE = next(queue for queue in LONGER.queues if queue.name == "delay.5m.queue")
INTO_QUEUE = Binding("delay.5m.exchange", "queue", "delay.5m.queue")
WAY_IN = Binding("orders.exchange", "exchange", "delay.5m.exchange", "order.created")
WAY_OUT = Binding("delay.exchange", "queue", "orders.queue", "order.created")
THEIR_BINDING = Binding("their.exchange", "queue", "delay.5m.queue", "their.key")
THEIR_EXCHANGE = Exchange("their.exchange")
MAX_LENGTH = (Difference("x-max-length", 10, 99),)
LOSES = "holds 3 messages that would be lost"


def wait_or_insist(name: str) -> str:
    """How a user gets past a refusal that time can mend."""
    return f"wait until the messages have left and run it again, or give --accept-loss {name}"


def without(live: Live, *names: str) -> Live:
    """The broker after someone deleted these exchanges or queues, and their bindings with them."""
    gone = {b for b in live.bindings if b.source in names or b.destination in names}
    return replace(
        live,
        exchanges={name: exchange for name, exchange in live.exchanges.items() if name not in names},
        queues={name: queue for name, queue in live.queues.items() if name not in names},
        bindings=live.bindings - gone,
    )


def with_queue(live: Live, queue: Queue) -> Live:
    """The broker with this queue in the place of another."""
    return replace(live, queues={**live.queues, queue.name: queue})


def with_exchange(live: Live, exchange: Exchange, *bindings: Binding) -> Live:
    """The broker with this exchange, and bindings more."""
    return replace(
        live, exchanges={**live.exchanges, exchange.name: exchange}, bindings=live.bindings | frozenset(bindings)
    )


def shown(plan: Plan) -> list[str]:
    """The changes as verbs and labels, for where only these matter."""
    return [f"{type(change).__name__} {title(change)}" for change in plan.changes]


def refused(plan: Plan) -> list[tuple[str, str]]:
    """Subjects and reasons of what a plan refuses."""
    return [(refusal.subject, refusal.reason) for refusal in plan.refusals]


class TestCreation:
    """What is missing is made."""

    def test_an_empty_broker_gets_everything_in_order(self) -> None:
        """The whole plan of a first apply."""
        record = record_of(SHOP)
        by_label = {label(resource): resource for resource in SHOP}

        assert diff(SHOP, Live(), vhost="shop") == Plan(
            vhost="shop",
            prefix="",
            changes=tuple(
                Create(by_label[name], stage)
                for stage, name in [
                    (Stage.PUT_ENDS, "exchange delay.unrouted.exchange"),
                    (Stage.PUT_ENDS, "exchange orders.exchange"),
                    (Stage.PUT_ENDS, "queue delay.unrouted.queue"),
                    (Stage.PUT_ENDS, "queue orders.queue"),
                    (Stage.PUT_SAFETY_NET, "binding delay.unrouted.exchange → delay.unrouted.queue"),
                    (Stage.PUT_EXIT, "exchange delay.exchange"),
                    (Stage.PUT_WAYS_OUT, "binding delay.exchange → [order.created] orders.queue"),
                    (Stage.PUT_DELAY_QUEUES, "queue delay.5m.queue"),
                    (Stage.PUT_ENTRANCES, "exchange delay.5m.exchange"),
                    (Stage.PUT_WAYS_INTO_QUEUES, "binding delay.5m.exchange → delay.5m.queue"),
                    (Stage.PUT_WAYS_IN, "binding orders.exchange → [order.created] delay.5m.exchange"),
                ]
            ),
            refusals=(),
            warnings=(),
            record=record,
            intent=record,
            existing=(),
            fingerprint=fingerprint(record, (), Live()),
        )

    def test_a_broker_that_matches_needs_nothing(self) -> None:
        """No change, no refusal, not even the record is written."""
        plan = diff(SHOP, live_of(SHOP))

        assert plan == Plan("/", "", (), (), (), record_of(SHOP), record_of(SHOP), (), "")
        assert not plan.writes

    def test_what_someone_deleted_comes_back_with_its_bindings(self) -> None:
        """A queue that is gone took its bindings along."""
        assert diff(SHOP, without(live_of(SHOP), "delay.5m.queue")).changes == (
            Create(DELAY_QUEUE, Stage.PUT_DELAY_QUEUES),
            Create(INTO_QUEUE, Stage.PUT_WAYS_INTO_QUEUES),
        )

    def test_a_missing_binding_alone_comes_back(self) -> None:
        """Nothing else is touched."""
        live = live_of(SHOP)

        plan = diff(SHOP, replace(live, bindings=live.bindings - {WAY_OUT}))

        assert plan.changes == (Create(WAY_OUT, Stage.PUT_WAYS_OUT),)

    def test_short_delays_come_first(self) -> None:
        """Within a stage, levels stand in the order of their time and not of their names."""
        delays = [name for name in shown(diff(shop("5m 10s 1h"), Live())) if name.startswith("Create queue delay.")]

        assert delays == [
            "Create queue delay.unrouted.queue",
            "Create queue delay.10s.queue",
            "Create queue delay.5m.queue",
            "Create queue delay.1h.queue",
        ]

    def test_what_others_made_just_so_is_taken_over(self) -> None:
        """Nothing has to be done for it, and from now on it is in the record."""
        plan = diff(SHOP, replace(live_of(SHOP), record=None))

        assert plan.is_empty
        assert plan.writes
        assert plan.record == record_of(SHOP)


class TestReplacement:
    """What can't be changed is deleted and declared anew."""

    def test_an_empty_queue_is_replaced_and_bound_again(self) -> None:
        """With its own bindings and those of others, which the record remembers until it is done."""
        live = with_exchange(live_of(SHOP), THEIR_EXCHANGE, THEIR_BINDING)

        plan = diff(LONGER, live)

        assert plan.changes == (
            Replace(DELAY_QUEUE, LONGER_QUEUE, MAX_LENGTH, (INTO_QUEUE, THEIR_BINDING), Stage.PUT_DELAY_QUEUES),
        )
        assert plan.record == record_of(LONGER)
        assert plan.intent == record_of(LONGER).union(Record(restore=frozenset({THEIR_BINDING})))

    def test_a_queue_that_holds_messages_is_kept(self) -> None:
        """The difference is shown, the queue stays ours, and the rest goes ahead."""
        live = with_exchange(live_of(SHOP, {"delay.5m.queue": 3}), THEIR_EXCHANGE, THEIR_BINDING)
        plan = diff(shop("1m 5m", max_length=99), live)

        assert plan.refusals == (Refusal("queue delay.5m.queue", LOSES, wait_or_insist("delay.5m.queue"), MAX_LENGTH),)
        assert shown(plan) == [
            "Create queue delay.1m.queue",
            "Create exchange delay.1m.exchange",
            "Create binding delay.1m.exchange → delay.1m.queue",
        ]
        assert "delay.5m.queue" in plan.record.queues

    def test_a_loss_that_is_accepted_by_name_is_planned(self) -> None:
        """The change says so itself, since the plan is all that apply looks at."""
        plan = diff(LONGER, live_of(SHOP, {"delay.5m.queue": 3}), accept_loss=["delay.5m.queue"])

        assert plan.refusals == ()
        assert plan.changes == (
            Replace(DELAY_QUEUE, LONGER_QUEUE, MAX_LENGTH, (INTO_QUEUE,), Stage.PUT_DELAY_QUEUES, accept_loss=True),
        )

    def test_a_loss_that_is_accepted_for_nothing_stays_guarded(self) -> None:
        """A queue that is empty now may not be later."""
        (change,) = diff(LONGER, live_of(SHOP), accept_loss=["delay.5m.queue"]).changes

        assert isinstance(change, Replace)
        assert not change.accept_loss

    def test_insisting_on_what_nothing_is_called(self) -> None:
        """A slip of a name would go unnoticed, and what was meant is refused all the same."""
        live = live_of(SHOP, {"orders.queue": 3})

        plan = diff(empty_topology(""), live, accept_loss=["order.queue", "delay.5m.queue"])

        assert plan.warnings == (
            "--accept-loss order.queue: neither the file nor the broker has anything of this name "
            "(did you mean 'orders.queue'?). What is refused now: orders.queue.",
        )

    def test_another_name_accepts_nothing(self) -> None:
        """Acceptance is for one object."""
        live = with_exchange(live_of(SHOP, {"delay.5m.queue": 3}), THEIR_EXCHANGE, THEIR_BINDING)
        plan = diff(LONGER, live, accept_loss=["delay.1m.queue"])

        assert refused(plan) == [("queue delay.5m.queue", LOSES)]

    def test_a_queue_of_others_is_refused_and_not_recorded(self) -> None:
        """What we did not make we must not remove later either."""
        theirs = Queue("orders.queue", Settings(max_length=5))
        live = replace(with_queue(live_of(SHOP), theirs), record=None)

        plan = diff(SHOP, live)

        assert refused(plan) == [("queue orders.queue", "exists with other settings, and delayctl did not make it")]
        assert plan.record == replace(record_of(SHOP), queues=record_of(SHOP).queues - {"orders.queue"})

    def test_a_queue_of_others_that_is_accepted_becomes_ours(self) -> None:
        """From then on it is in the record."""
        theirs = Queue("orders.queue", Settings(max_length=5))
        live = replace(with_queue(live_of(SHOP), theirs), record=None)

        plan = diff(SHOP, live, accept_loss=["orders.queue"])

        assert shown(plan) == ["Replace queue orders.queue"]
        assert plan.record == record_of(SHOP)

    def test_a_business_exchange_is_refused(self) -> None:
        """Even one of ours: publishers depend on it."""
        plan = diff(SHOP, with_exchange(live_of(SHOP), Exchange("orders.exchange", "direct")))

        assert refused(plan) == [
            (
                "exchange orders.exchange",
                "its type or arguments differ, and publishers would meet a missing exchange while it is replaced",
            )
        ]
        assert "orders.exchange" in plan.record.exchanges

    def test_an_exchange_is_bound_again_on_both_sides(self) -> None:
        """Bindings that begin at it and bindings that end at it go with it."""
        incoming = Binding("their.exchange", "exchange", "delay.5m.exchange", "k")
        live = with_exchange(live_of(SHOP), Exchange("delay.5m.exchange", "direct"))
        live = with_exchange(live, THEIR_EXCHANGE, incoming)

        (change,) = diff(SHOP, live).changes

        assert isinstance(change, Replace)
        assert change.restore == (INTO_QUEUE, WAY_IN, incoming)

    def test_a_binding_of_ours_that_goes_is_not_remembered_as_one_of_others(self) -> None:
        """A replacement puts it back and its removal follows; after an interruption it stays away."""
        live = with_queue(live_of(SHOP), replace(DELAY_QUEUE, settings=replace(DELAY_QUEUE.settings, max_length=5)))
        obsolete = Binding("orders.exchange", "queue", "delay.5m.queue", "obsolete")
        live = replace(live, bindings=live.bindings | {obsolete}, record=record_of([*SHOP, obsolete]))

        plan = diff(SHOP, live)

        assert shown(plan) == ["Replace queue delay.5m.queue", f"Delete {label(obsolete)}"]
        assert plan.intent.restore == frozenset()


class TestInterruption:
    """What a run that died has left on the broker is taken up."""

    def test_bindings_of_others_are_put_back(self) -> None:
        """The queue and our own binding come back by themselves, theirs from the record."""
        record = record_of(SHOP).union(Record(restore=frozenset({THEIR_BINDING})))
        live = replace(without(with_exchange(live_of(SHOP), THEIR_EXCHANGE), "delay.5m.queue"), record=record)

        plan = diff(SHOP, live)

        assert plan.changes == (
            Create(DELAY_QUEUE, Stage.PUT_DELAY_QUEUES),
            Create(INTO_QUEUE, Stage.PUT_WAYS_INTO_QUEUES),
            Create(THEIR_BINDING, Stage.PUT_WAYS_IN),
        )
        assert (plan.intent, plan.record) == (record, record_of(SHOP))

    @pytest.mark.parametrize("gone", ["their.exchange", "their.queue", "their.other.exchange"])
    def test_bindings_whose_other_end_is_gone_are_forgotten(self, gone: str) -> None:
        """Their owner has removed what they led from or to."""
        bindings = {
            "their.exchange": Binding("their.exchange", "queue", "delay.5m.queue"),
            "their.queue": Binding("delay.5m.exchange", "queue", "their.queue"),
            "their.other.exchange": Binding("delay.5m.exchange", "exchange", "their.other.exchange"),
        }
        record = record_of(SHOP).union(Record(restore=frozenset({bindings[gone]})))

        plan = diff(SHOP, replace(live_of(SHOP), record=record))

        assert (plan.changes, plan.record) == ((), record_of(SHOP))

    def test_a_predefined_exchange_is_always_there(self) -> None:
        """The broker does not list it among its definitions."""
        binding = Binding("amq.topic", "queue", "delay.5m.queue", "k")
        record = record_of(SHOP).union(Record(restore=frozenset({binding})))

        assert diff(SHOP, replace(live_of(SHOP), record=record)).changes == (Create(binding, Stage.PUT_WAYS_IN),)

    def test_a_binding_of_others_is_put_back_beside_ours(self) -> None:
        """On a fanout exchange it makes no difference, until ours is removed one day."""
        binding = Binding("delay.5m.exchange", "queue", "delay.5m.queue", "their.key")
        record = record_of(SHOP).union(Record(restore=frozenset({binding})))

        assert shown(diff(SHOP, replace(live_of(SHOP), record=record))) == [f"Create {label(binding)}"]

    def test_what_was_put_back_is_forgotten(self) -> None:
        """Nothing is left to do but to write the record."""
        record = record_of(SHOP).union(Record(restore=frozenset({THEIR_BINDING})))
        live = replace(with_exchange(live_of(SHOP), THEIR_EXCHANGE, THEIR_BINDING), record=record)

        plan = diff(SHOP, live)

        assert (plan.changes, plan.record) == ((), record_of(SHOP))

    def test_a_record_with_nothing_but_bindings_to_restore_counts(self) -> None:
        """It is not taken for an empty one."""
        binding = Binding("their.exchange", "queue", "their.queue")
        live = Live(
            exchanges={"their.exchange": THEIR_EXCHANGE},
            queues={"their.queue": Queue("their.queue")},
            record=Record(restore=frozenset({binding})),
        )

        assert diff(empty_topology(""), live).changes == (Create(binding, Stage.PUT_WAYS_IN),)


class TestRemoval:
    """What was applied earlier and is no longer asked for goes, if it can."""

    def test_a_level_is_removed(self) -> None:
        """Way in, entrance and queue go; the exit serves the others."""
        assert shown(diff(SHOP, live_of(shop("1m 5m")))) == [
            "Delete binding delay.1m.exchange → delay.1m.queue",
            "Delete exchange delay.1m.exchange",
            "Delete queue delay.1m.queue",
        ]

    def test_everything_is_removed(self) -> None:
        """Destroy is an apply of nothing."""
        plan = diff(empty_topology(""), live_of(SHOP))

        assert shown(plan) == [
            "Delete binding orders.exchange → [order.created] delay.5m.exchange",
            "Delete binding delay.5m.exchange → delay.5m.queue",
            "Delete exchange delay.5m.exchange",
            "Delete queue delay.5m.queue",
            "Delete binding delay.exchange → [order.created] orders.queue",
            "Delete exchange delay.exchange",
            "Delete binding delay.unrouted.exchange → delay.unrouted.queue",
            "Delete exchange delay.unrouted.exchange",
            "Delete exchange orders.exchange",
            "Delete queue delay.unrouted.queue",
            "Delete queue orders.queue",
        ]
        assert (plan.refusals, plan.record, plan.intent) == ((), Record(), record_of(SHOP))

    def test_what_is_not_in_the_record_is_not_removed(self) -> None:
        """It is not ours, whatever it is called."""
        assert diff(empty_topology(""), replace(live_of(SHOP), record=None)).is_empty

    def test_a_queue_that_holds_messages_keeps_its_way_out(self) -> None:
        """Entrances go; the queue and all that its messages need stay, in the record too, until it is empty."""
        plan = diff(empty_topology(""), live_of(SHOP, {"delay.5m.queue": 3}))

        five = Duration.parse("5m")
        assert plan.waits == (Wait("delay.5m.queue", "delay.5m.queue", 3, five, five, "removed"),)
        assert plan.refusals == ()
        assert shown(plan) == [
            "Delete binding orders.exchange → [order.created] delay.5m.exchange",
            "Delete binding delay.5m.exchange → delay.5m.queue",
            "Delete exchange delay.5m.exchange",
            "Delete exchange orders.exchange",
        ]
        assert plan.record == Record(
            exchanges=frozenset({"delay.exchange", "delay.unrouted.exchange"}),
            queues=frozenset({"delay.5m.queue", "delay.unrouted.queue", "orders.queue"}),
            bindings=frozenset({WAY_OUT, Binding("delay.unrouted.exchange", "queue", "delay.unrouted.queue")}),
        )

    def test_one_accepted_queue_frees_its_way_out(self) -> None:
        """What need not be delivered needs no way."""
        plan = diff(empty_topology(""), live_of(SHOP, {"delay.5m.queue": 3}), accept_loss=["delay.5m.queue"])

        assert (plan.refusals, plan.record) == ((), Record())
        assert Delete(DELAY_QUEUE, Stage.DROP_DELAY_QUEUES, accept_loss=True) in plan.changes

    def test_an_entrance_that_others_use_keeps_the_whole_delay(self) -> None:
        """Their messages would vanish into an entrance with no queue behind, or expire into no exit."""
        incoming = Binding("their.exchange", "exchange", "delay.5m.exchange", "k")
        live = with_exchange(live_of(SHOP), THEIR_EXCHANGE, incoming)

        plan = diff(empty_topology(""), live)

        assert refused(plan) == [
            ("binding delay.5m.exchange → delay.5m.queue", "delay.5m.exchange can't go yet and leads into it"),
            ("exchange delay.5m.exchange", "1 binding of others would go with it"),
            ("queue delay.5m.queue", "delay.5m.exchange can't go yet and leads into it"),
            (
                "binding delay.exchange → [order.created] orders.queue",
                "delay.5m.queue can't go yet and may still need it",
            ),
            ("exchange delay.exchange", "delay.5m.queue can't go yet and may still need it"),
            (
                "binding delay.unrouted.exchange → delay.unrouted.queue",
                "delay.5m.queue can't go yet and may still need it",
            ),
            ("exchange delay.unrouted.exchange", "delay.5m.queue can't go yet and may still need it"),
            ("queue delay.unrouted.queue", "delay.5m.queue can't go yet and may still need it"),
            ("queue orders.queue", "delay.5m.queue can't go yet and may still need it"),
        ]
        assert shown(plan) == [f"Delete {label(WAY_IN)}", "Delete exchange orders.exchange"]

    def test_what_is_now_called_existing_is_let_go(self) -> None:
        """It stays on the broker and leaves the record."""
        existing = shop("5m", exchanges=(ExchangeSpec("orders.exchange", existing=True),))

        plan = diff(existing, live_of(SHOP))

        assert plan.is_empty
        assert plan.record.exchanges == record_of(SHOP).exchanges - {"orders.exchange"}

    def test_a_changed_route_is_moved(self) -> None:
        """There is no moment without a way, and none with two."""
        other = RouteSpec(("order.created",), (Target("queue", "orders.queue"),), "orders.exchange", "1m")

        assert shown(diff(shop("1m 5m", routes=(other,)), live_of(shop("1m 5m")))) == [
            "Move way orders.exchange [order.created]: delay.5m.exchange ⇒ delay.1m.exchange",
        ]

    def test_waits_stand_in_the_order_of_changes(self) -> None:
        """The same plan reads the same each time, although records are sets."""
        plan = diff(empty_topology(""), live_of(shop("1m 5m 10s"), {"delay.5m.queue": 1, "delay.10s.queue": 1}))

        assert [wait.queue for wait in plan.waits] == ["delay.10s.queue", "delay.5m.queue"]


class TestPolicies:
    """Settings that live in policies."""

    POLICY_SHOP, LONGER_POLICY_SHOP = shop("5m", settings="policy"), shop("5m", settings="policy", max_length=99)

    def test_a_missing_policy_is_made_first(self) -> None:
        """No queue is ever there without its TTL."""
        (policy,) = self.POLICY_SHOP.policies

        assert diff(self.POLICY_SHOP, Live()).changes[0] == Create(policy, Stage.PUT_POLICIES)

    def test_a_policy_is_updated_in_place(self) -> None:
        """Nothing is deleted for it."""
        (before,), (after,) = self.POLICY_SHOP.policies, self.LONGER_POLICY_SHOP.policies

        assert diff(self.LONGER_POLICY_SHOP, live_of(self.POLICY_SHOP)).changes == (
            Update(before, after, (Difference("max-length", 10, 99),), Stage.PUT_POLICIES),
        )

    def test_an_update_that_would_hasten_messages_is_refused(self) -> None:
        """The policy stays ours."""
        live = with_exchange(live_of(self.LONGER_POLICY_SHOP, {"delay.5m.queue": 12}), THEIR_EXCHANGE, THEIR_BINDING)
        plan = diff(self.POLICY_SHOP, live)

        assert plan.changes == ()
        assert plan.refusals == (
            Refusal(
                "policy delay.5m.policy",
                "delay.5m.queue holds 12 messages: 2 messages above the new max-length would leave early",
                wait_or_insist("delay.5m.queue"),
                (Difference("max-length", 99, 10),),
            ),
        )
        assert plan.record == record_of(self.POLICY_SHOP)

    def test_moving_settings_out_of_policies_replaces_the_queue(self) -> None:
        """The policy goes last, when nothing needs it any more."""
        live = with_exchange(live_of(self.POLICY_SHOP), THEIR_EXCHANGE, THEIR_BINDING)
        assert shown(diff(SHOP, live)) == [
            "Replace queue delay.5m.queue",
            "Delete policy delay.5m.policy",
        ]

    def test_a_queue_that_can_not_be_replaced_keeps_its_policy(self) -> None:
        """Without it, what enters the old queue would never leave it."""
        live = with_exchange(live_of(self.POLICY_SHOP, {"delay.5m.queue": 3}), THEIR_EXCHANGE, THEIR_BINDING)
        plan = diff(SHOP, live)

        assert plan.changes == ()
        assert refused(plan) == [
            ("queue delay.5m.queue", LOSES),
            ("policy delay.5m.policy", "delay.5m.queue can't go yet and has its settings from it"),
        ]
        assert plan.record == record_of([*SHOP, *self.POLICY_SHOP.policies])

    def test_a_queue_that_can_not_be_removed_keeps_its_policy(self) -> None:
        """The same for destroy."""
        plan = diff(empty_topology(""), live_of(self.POLICY_SHOP, {"delay.5m.queue": 3}))

        assert [wait.queue for wait in plan.waits] == ["delay.5m.queue"]
        assert plan.record.policies == {"delay.5m.policy"}

    @pytest.mark.parametrize("kind", ["policies", "operator_policies"])
    def test_a_policy_of_others_that_bends_a_delay_is_reported(self, kind: str) -> None:
        """It is not ours to undo, so it is refused for as long as it is there."""
        theirs = Policy("theirs", "^delay\\.5m", "queues", 0, freeze_arguments({"message-ttl": 1_000}))
        both = {"policies": (), "operator_policies": (), kind: (theirs,)}
        live = replace(live_of(SHOP), policies=both["policies"], operator_policies=both["operator_policies"])

        plan = diff(SHOP, live)

        assert plan.changes == ()
        assert [refusal.differences for refusal in plan.refusals] == [
            (Difference("message-ttl", Duration(1_000), Duration(300_000)),)
        ]

    def test_a_pattern_that_can_not_be_evaluated_is_warned_about(self) -> None:
        """It may or may not touch the topology."""
        theirs = Policy("theirs", "[[:digit:]]", "queues", 0, freeze_arguments({"message-ttl": 1_000}))

        assert diff(SHOP, replace(live_of(SHOP), policies=(theirs,))).warnings == (
            "policy theirs: the pattern '[[:digit:]]' can't be evaluated here; "
            "whether it touches this topology is not known.",
        )


class TestExisting:
    """What must be there already is checked, and nothing else."""

    DESIRED = shop(
        "5m",
        exchanges=(ExchangeSpec("orders.exchange", "topic", existing=True),),
        queues=(QueueSpec("orders.queue", "quorum", existing=True),),
    )

    def test_it_is_neither_made_nor_recorded(self) -> None:
        """Only our bindings to it are."""
        live = Live(
            exchanges={"orders.exchange": Exchange("orders.exchange")},
            queues={"orders.queue": Queue("orders.queue", Settings("quorum", max_length=5))},
        )

        plan = diff(self.DESIRED, live)

        assert plan.refusals == ()
        assert not {"Create exchange orders.exchange", "Create queue orders.queue"} & set(shown(plan))
        assert plan.record == record_of(self.DESIRED)
        assert WAY_IN in plan.record.bindings

    def test_one_that_is_missing_blocks_everything(self) -> None:
        """Nothing is applied on a base that is not there."""
        plan = diff(self.DESIRED, Live())

        fix = "create it first, or remove 'existing: true' so that delayctl declares it"
        assert plan.refusals == (
            Refusal("exchange orders.exchange", "is marked existing and is not on the broker", fix, blocking=True),
            Refusal("queue orders.queue", "is marked existing and is not on the broker", fix, blocking=True),
        )
        assert plan.is_blocked

    def test_one_of_another_type_blocks_everything(self) -> None:
        """A queue without a type is classic."""
        live = live_of(self.DESIRED)
        live = with_queue(with_exchange(live, Exchange("orders.exchange", "direct")), Queue("orders.queue"))

        assert diff(self.DESIRED, live).refusals == (
            Refusal(
                "exchange orders.exchange",
                "is marked existing with type topic, but is of type direct",
                "write type: direct",
                blocking=True,
            ),
            Refusal(
                "queue orders.queue",
                "is marked existing with type quorum, but is of type classic",
                "write type: classic",
                blocking=True,
            ),
        )

    def test_any_type_will_do_where_none_is_given(self) -> None:
        """Only that it is there is checked."""
        desired = shop("5m", exchanges=(ExchangeSpec("orders.exchange", None, existing=True),))
        live = with_exchange(live_of(desired), Exchange("orders.exchange", "x-consistent-hash"))

        assert diff(desired, live).is_empty


class TestFanout:
    """A fanout exchange does not look at keys."""

    FANOUT = ExchangeSpec("orders.exchange", "fanout")
    DESIRED = shop("5m", exchanges=(FANOUT,))
    KEYLESS = Binding("orders.exchange", "exchange", "delay.5m.exchange")
    KEYED = KEYLESS._replace(key="their.key")

    def test_a_binding_under_another_key_will_do(self) -> None:
        """Bound twice or once is the same to it."""
        live = live_of(self.DESIRED)

        assert diff(self.DESIRED, replace(live, bindings=live.bindings - {self.KEYLESS} | {self.KEYED})).is_empty

    def test_a_binding_that_is_about_to_go_will_not_do(self) -> None:
        """Ours under an old key is removed only once the new one is there."""
        live = live_of(self.DESIRED)
        live = replace(
            live,
            bindings=live.bindings - {self.KEYLESS} | {self.KEYED},
            record=replace(record_of(self.DESIRED), bindings=record_of(self.DESIRED).bindings | {self.KEYED}),
        )

        assert shown(diff(self.DESIRED, live)) == [f"Create {label(self.KEYLESS)}", f"Delete {label(self.KEYED)}"]

    def test_an_exchange_that_is_to_look_at_keys_needs_the_right_one(self) -> None:
        """It is fanout now, and will be topic."""
        fanout = with_exchange(live_of(SHOP), Exchange("orders.exchange", "fanout"), self.KEYED)
        live = replace(fanout, bindings=fanout.bindings - {WAY_IN})

        assert shown(diff(SHOP, live, accept_loss=["orders.exchange"])) == [
            "Replace exchange orders.exchange",
            f"Create {label(WAY_IN)}",
        ]


class TestSurroundings:
    """What others hang behind an entrance."""

    def test_a_way_around_the_delay_is_warned_about(self) -> None:
        """What enters there is delivered twice, once at once."""
        stranger = Binding("delay.5m.exchange", "queue", "their.queue")
        live = replace(live_of(SHOP), bindings=live_of(SHOP).bindings | {stranger})

        plan = diff(SHOP, live)

        assert plan.is_empty
        assert plan.warnings == (
            "binding delay.5m.exchange → their.queue is not delayctl's: "
            "what enters there reaches their.queue without any delay.",
        )

    def test_a_second_way_into_the_same_queue_is_none(self) -> None:
        """It changes nothing."""
        again = INTO_QUEUE._replace(key="their.key")

        assert diff(SHOP, replace(live_of(SHOP), bindings=live_of(SHOP).bindings | {again})).warnings == ()


class TestFingerprint:
    """A plan is for one state of the broker."""

    def changed(self, live: Live) -> bool:
        """Say whether this broker is another than the one after a clean apply."""
        record = record_of(SHOP)
        return fingerprint(record, SHOP.existing, live) != fingerprint(record, SHOP.existing, live_of(SHOP))

    def test_the_same_state_has_the_same_fingerprint(self) -> None:
        """Whatever order it is listed in."""
        live = live_of(SHOP)
        shuffled = replace(
            live,
            exchanges=dict(reversed(list(live.exchanges.items()))),
            queues=dict(reversed(list(live.queues.items()))),
        )

        assert not self.changed(shuffled)

    def test_messages_do_not_count(self) -> None:
        """They come and go all the time."""
        assert not self.changed(live_of(SHOP, {"delay.5m.queue": 3}))

    def test_what_is_elsewhere_does_not_count(self) -> None:
        """Another team's objects are none of our business."""
        elsewhere = Binding("their.exchange", "queue", "their.queue")

        assert not self.changed(
            with_queue(with_exchange(live_of(SHOP), THEIR_EXCHANGE, elsewhere), Queue("their.queue"))
        )

    @pytest.mark.parametrize(
        "live",
        [
            without(live_of(SHOP), "delay.5m.queue"),
            without(live_of(SHOP), "delay.5m.exchange"),
            with_queue(live_of(SHOP), LONGER_QUEUE),
            with_exchange(live_of(SHOP), Exchange("orders.exchange", "direct")),
            with_exchange(live_of(SHOP), THEIR_EXCHANGE, THEIR_BINDING),
            replace(live_of(SHOP), bindings=live_of(SHOP).bindings - {WAY_OUT}),
            replace(live_of(SHOP), policies=(Policy("p", ".*", "queues", 0, ()),)),
            replace(live_of(SHOP), operator_policies=(Policy("p", ".*", "queues", 0, ()),)),
            replace(live_of(SHOP), record=None),
        ],
        ids=["queue", "exchange", "argument", "type", "theirs", "binding", "policy", "operator policy", "record"],
    )
    def test_all_that_a_plan_was_made_from_counts(self, live: Live) -> None:
        """Any change of it makes the plan stale."""
        assert self.changed(live)

    def test_what_must_exist_counts(self) -> None:
        """It may have been replaced by something of the same name."""
        desired = TestExisting.DESIRED
        before, record = live_of(desired), record_of(desired)
        after = with_exchange(before, Exchange("orders.exchange", "direct"))

        assert fingerprint(record, desired.existing, before) != fingerprint(record, desired.existing, after)


def test_what_is_at_stake_is_counted_and_nothing_more() -> None:
    """A replacement of one queue among thousands asks for no more than it has to know."""
    desired = shop("1m 5m", queues=(ORDERS_QUEUE, QueueSpec("paid.queue", "classic")))
    live = with_queue(live_of(desired), Queue("paid.queue", Settings("classic", max_length=5)))

    assert at_stake(Comparison(desired, live)) == {"paid.queue", "delay.1m.queue", "delay.5m.queue"}


def test_where_nothing_changes_nothing_is_at_stake() -> None:
    """An idle plan counts no queue."""
    assert at_stake(Comparison(SHOP, live_of(SHOP))) == frozenset()


def test_a_prefix_keeps_topologies_apart() -> None:
    """An empty topology knows the exit that belongs to its prefix."""
    assert empty_topology("shop.") == Topology("shop.", "shop.delay.exchange", (), (), (), (), (), ())


def test_a_consumer_on_a_queue_that_goes_is_a_reason_to_wait() -> None:
    """Its owner should know."""
    routes = (RouteSpec(("order.paid",), (Target("queue", "paid.queue"),), "orders.exchange"), ORDERS_ROUTE)
    before = shop("5m", exchanges=(ORDERS,), queues=(ORDERS_QUEUE, QueueSpec("paid.queue")), routes=routes)
    live = replace(live_of(before), backlog={"paid.queue": Backlog(0, 2)})

    assert refused(diff(SHOP, live)) == [("queue paid.queue", "2 consumers would be cut off")]


def test_what_others_made_and_the_file_describes_is_adopted_aloud() -> None:
    """Without a record of it, an object that matches becomes ours; the plan says so."""
    live = replace(live_of(SHOP), record=None)

    assert [warning.partition(")")[0] for warning in diff(SHOP, live).warnings] == [
        "7 objects on the broker that delayctl has no record of "
        "(delay.5m.exchange, delay.exchange, delay.unrouted.exchange, orders.exchange, delay.5m.queue, …"
    ]
    assert diff(SHOP, live_of(SHOP)).warnings == ()


def test_a_policy_on_the_parking_queue_is_drift() -> None:
    """What is parked must not vanish by somebody's TTL."""
    stranger = Policy("short", "unrouted", "queues", 0, freeze_arguments({"message-ttl": 1_000}))

    plan = diff(SHOP, replace(live_of(SHOP), policies=(stranger,)))

    assert refused(plan) == [("queue delay.unrouted.queue", "policy short (priority 0) changes what it does")]


class TestRetriesByBroker:
    """Waits that only newer brokers know, in a queue that parks by the exit."""

    QUEUES = (QueueSpec("orders.queue", "quorum"), QueueSpec("orders.dlq"))
    RETRY = RetrySpec("orders.queue", (), "orders.dlq", BrokerWaits(Duration(10_000), Duration(60_000), 16))
    DESIRED = shop("5m", queues=QUEUES, retries=(RETRY,))

    @pytest.mark.parametrize("version", ["4.3.1", "4.3.6", "4.10.0", "5.0.0-beta.1"])
    def test_are_made_where_the_broker_knows_how(self, version: str) -> None:
        """From 4.3.1 on."""
        assert diff(self.DESIRED, Live(version)).refusals == ()

    @pytest.mark.parametrize("version", ["3.10.8", "4.2.9", "4.3.0"])
    def test_are_refused_by_an_older_broker(self, version: str) -> None:
        """It would take the arguments and do nothing of what they say, so nothing at all is applied."""
        plan = diff(self.DESIRED, Live(version))

        assert plan.is_blocked
        assert plan.refusals == (
            Refusal(
                "queue orders.queue",
                f"its retries wait by broker, which RabbitMQ {version} does not do: what fails would come back at once",
                "upgrade to 4.3.1 or later, or let them wait in levels: remove by: broker",
                blocking=True,
            ),
        )

    def test_are_refused_where_the_version_is_not_known(self) -> None:
        """Rather that than a wait that is none."""
        assert [refusal.reason.partition(":")[0] for refusal in diff(self.DESIRED, Live()).refusals] == [
            "its retries wait by broker, which a broker that does not tell its version does not do"
        ]

    def test_do_not_make_a_delay_of_their_queue(self) -> None:
        """What is in it needs no way out of the delays: a route may go while it is full."""
        before = shop("5m", queues=self.QUEUES, retries=(self.RETRY,), routes=(ORDERS_ROUTE,))
        live = live_of(before, {"orders.queue": 5})

        plan = diff(shop("5m", queues=self.QUEUES, retries=(self.RETRY,), routes=()), live)

        assert refused(plan) == []

    def test_another_wait_is_another_queue(self) -> None:
        """Arguments can't be changed, and what is in the queue is not given up for it."""
        waits = BrokerWaits(Duration(5_000), Duration(60_000), 16)
        desired = shop("5m", queues=self.QUEUES, retries=(replace(self.RETRY, by_broker=waits),))

        (refusal,) = diff(desired, live_of(self.DESIRED, {"orders.queue": 3})).refusals

        assert (refusal.reason, refusal.differences) == (
            LOSES,
            (Difference("x-delayed-retry-min", Duration(10_000), Duration(5_000)),),
        )
