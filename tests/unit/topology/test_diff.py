"""Desired and live to Plan."""

from dataclasses import replace

import pytest
from delayctl.topology.diff import diff, empty_topology, fingerprint
from delayctl.topology.duration import Duration
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Binding, Exchange, Queue, Settings, Topology
from delayctl.topology.order import Stage
from delayctl.topology.plan import Create, Delete, Plan, Refusal, Replace, Wait, label
from delayctl.topology.record import Record, record_of
from delayctl.topology.spec import ExchangeSpec, QueueSpec, RouteSpec, Target

from tests.support.examples import ORDERS, ORDERS_QUEUE, ORDERS_ROUTE, live_of, shop
from tests.support.shop import (
    DELAY_QUEUE,
    INTO_QUEUE,
    LONGER,
    LONGER_QUEUE,
    LOSES,
    MAX_LENGTH,
    SHOP,
    THEIR_BINDING,
    THEIR_EXCHANGE,
    WAY_IN,
    WAY_OUT,
    refused,
    shown,
    wait_or_insist,
    with_exchange,
    with_queue,
    without,
)


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


def test_a_prefix_keeps_topologies_apart() -> None:
    """An empty topology knows the exit that belongs to its prefix."""
    assert empty_topology("shop.") == Topology("shop.", "shop.delay.exchange", (), (), (), (), (), ())


def test_a_consumer_on_a_queue_that_goes_is_a_reason_to_wait() -> None:
    """Its owner should know."""
    routes = (RouteSpec(("order.paid",), (Target("queue", "paid.queue"),), "orders.exchange"), ORDERS_ROUTE)
    before = shop("5m", exchanges=(ORDERS,), queues=(ORDERS_QUEUE, QueueSpec("paid.queue")), routes=routes)
    live = replace(live_of(before), backlog={"paid.queue": Backlog(0, 2)})

    assert refused(diff(SHOP, live)) == [("queue paid.queue", "2 consumers would be cut off")]
