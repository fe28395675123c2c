"""Desired and live to Plan, where others have a say: policies, what exists, what is beside a delay, what a broker can."""

from dataclasses import replace

import pytest
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.duration import Duration
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, ExchangeType, Policy, Queue, Settings, freeze_arguments
from delayctl.topology.order import Stage
from delayctl.topology.plan import Create, Difference, Refusal, Update, label
from delayctl.topology.record import record_of
from delayctl.topology.spec import BrokerWaits, ExchangeSpec, QueueSpec, RetrySpec, RouteSpec

from tests.support.examples import ORDERS_ROUTE, live_of, shop
from tests.support.shop import (
    EXISTING,
    INTO_QUEUE,
    LONGER,
    LOSES,
    SHOP,
    THEIR_BINDING,
    THEIR_EXCHANGE,
    WAY_IN,
    refused,
    shown,
    wait_or_insist,
    with_exchange,
    with_queue,
)

EVERY_MESSAGE = "which does not look at keys: a route by key would take every message"
BY_HEADER = replace(ORDERS_ROUTE, headers=(("country", "de"),))


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

    def test_a_policy_of_others_is_not_overwritten(self) -> None:
        """It may be about other queues altogether, and they would be without it."""
        (ours,) = self.POLICY_SHOP.policies
        live = Live("4.3.6", policies=(replace(ours, pattern="^their"),))

        refusal = Refusal(
            "policy delay.5m.policy",
            "exists with other settings, and delayctl did not make it",
            "rename or remove it, or overwrite it with --accept-loss delay.5m.policy",
            (Difference("pattern", "^their", ours.pattern),),
            blocking=True,
        )
        assert diff(self.POLICY_SHOP, live).refusals == (refusal,)
        assert diff(self.POLICY_SHOP, live, accept_loss=["delay.5m.policy"]).refusals == ()

    def test_a_policy_that_is_as_wanted_is_taken_over(self) -> None:
        """Whoever made it."""
        live = replace(live_of(self.POLICY_SHOP), record=None)

        assert diff(self.POLICY_SHOP, live).is_empty

    def test_the_way_round_a_queue_does_not_overwrite_theirs(self) -> None:
        """The policy that would lead round is somebody else's until it is out of the way."""
        theirs = Policy("delay.5m.next.policy", "^their", "exchanges", 0, ())
        live = replace(live_of(SHOP, {"delay.5m.queue": 3}), policies=(theirs,))

        plan = diff(LONGER, live)

        assert [(refusal.subject, refusal.blocking) for refusal in plan.refusals] == [
            ("policy delay.5m.next.policy", True)
        ]

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

    def test_it_is_neither_made_nor_recorded(self) -> None:
        """Only our bindings to it are."""
        live = Live(
            exchanges={"orders.exchange": Exchange("orders.exchange")},
            queues={"orders.queue": Queue("orders.queue", Settings("quorum", max_length=5))},
        )

        plan = diff(EXISTING, live)

        assert plan.refusals == ()
        assert not {"Create exchange orders.exchange", "Create queue orders.queue"} & set(shown(plan))
        assert plan.record == record_of(EXISTING)
        assert WAY_IN in plan.record.bindings

    def test_one_that_is_missing_blocks_everything(self) -> None:
        """Nothing is applied on a base that is not there."""
        plan = diff(EXISTING, Live())

        fix = "create it first, or remove 'existing: true' so that delayctl declares it"
        assert plan.refusals == (
            Refusal("exchange orders.exchange", "is marked existing and is not on the broker", fix, blocking=True),
            Refusal("queue orders.queue", "is marked existing and is not on the broker", fix, blocking=True),
        )
        assert plan.is_blocked

    def test_one_of_another_type_blocks_everything(self) -> None:
        """A queue without a type is classic."""
        live = live_of(EXISTING)
        live = with_queue(with_exchange(live, Exchange("orders.exchange", "direct")), Queue("orders.queue"))

        assert diff(EXISTING, live).refusals == (
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


class TestAnyType:
    """Of an existing exchange whose type the file leaves open, the broker knows what it looks at."""

    UNTYPED = (ExchangeSpec("orders.exchange", None, existing=True),)

    def planned(self, kind: str, *routes: RouteSpec) -> tuple[Refusal, ...]:
        """What is refused where the exchange is of this type."""
        desired = shop("1m 5m", exchanges=self.UNTYPED, routes=routes)
        return diff(desired, with_exchange(live_of(desired), Exchange("orders.exchange", kind))).refusals

    @pytest.mark.parametrize(
        ("kind", "route", "reason", "fix"),
        [
            ("fanout", ORDERS_ROUTE, EVERY_MESSAGE, "write type: fanout there"),
            (
                "headers",
                ORDERS_ROUTE,
                EVERY_MESSAGE,
                "write type: headers there, and headers: {NAME: VALUE} in its routes",
            ),
            (
                "direct",
                replace(ORDERS_ROUTE, keys=("order.#",)),
                "which knows no patterns: nothing would come by order.#",
                "write the keys out, or route from a topic exchange",
            ),
            ("topic", BY_HEADER, "which does not look at headers", "route by key, or from a headers exchange"),
            ("fanout", BY_HEADER, "which does not look at headers", "route by key, or from a headers exchange"),
        ],
    )
    def test_routes_that_it_does_not_look_at_block_everything(
        self, kind: str, route: RouteSpec, reason: str, fix: str
    ) -> None:
        """Messages would come twice, by a wrong delay, or not at all."""
        expected = Refusal("exchange orders.exchange", f"is of type {kind}, {reason}", fix, blocking=True)

        assert self.planned(kind, route) == (expected,)

    def test_several_routes_from_a_fanout_are_refused_together(self) -> None:
        """With the type alone in the file each message would wait at both levels."""
        short = replace(ORDERS_ROUTE, keys=("order.paid",), level="1m")

        [refusal] = self.planned("fanout", ORDERS_ROUTE, short)

        assert refusal.fix == (
            "write type: fanout there, and let all its routes wait at one level: each of them takes every message then"
        )

    @pytest.mark.parametrize(
        ("kind", "route"),
        [
            ("topic", replace(ORDERS_ROUTE, keys=("order.#",))),
            ("direct", ORDERS_ROUTE),
            ("headers", BY_HEADER),
            ("fanout", replace(ORDERS_ROUTE, keys=("",))),
            ("x-consistent-hash", replace(ORDERS_ROUTE, keys=("1",))),
        ],
    )
    def test_routes_that_it_looks_at_are_fine(self, kind: str, route: RouteSpec) -> None:
        """An empty key is what people give to an exchange that looks at none; of other types nothing is known."""
        assert self.planned(kind, route) == ()

    @pytest.mark.parametrize("kind", ["fanout", "headers"])
    def test_one_that_is_of_another_type_than_the_file_says_is_no_better(self, kind: ExchangeType) -> None:
        """It stays what it is, and by a key it would send every message into the delay."""
        plan = diff(SHOP, with_exchange(Live("4.3.6"), Exchange("orders.exchange", kind)))

        stays, blocks = plan.refusals
        assert (stays.subject, stays.blocking) == ("exchange orders.exchange", False)
        assert (blocks.subject, blocks.reason, blocks.blocking) == (
            "exchange orders.exchange",
            f"is of type {kind}, {EVERY_MESSAGE}",
            True,
        )

    @pytest.mark.parametrize("kind", ["direct", "topic"])
    def test_one_that_looks_at_keys_gets_no_route_without_any(self, kind: ExchangeType) -> None:
        """Of a file that calls it a fanout exchange: what comes by the keys that it is bound with would have no way."""
        there = shop("5m", exchanges=(ExchangeSpec("orders.exchange", kind),))
        desired = shop("5m", exchanges=(ExchangeSpec("orders.exchange", "fanout"),))

        [blocks] = [refusal for refusal in diff(desired, live_of(there)).refusals if refusal.blocking]

        assert (blocks.subject, blocks.reason, blocks.fix) == (
            "exchange orders.exchange",
            f"is of type {kind}, which looks at keys: nothing would come by a route without one",
            f"write type: {kind} there, and keys",
        )

    def test_one_of_another_type_that_routes_alike_blocks_nothing(self) -> None:
        """By whole keys a direct exchange routes as a topic exchange does."""
        plan = diff(SHOP, with_exchange(Live("4.3.6"), Exchange("orders.exchange", "direct")))

        [stays] = plan.refusals
        assert not stays.blocking

    def test_the_fix_is_accepted(self) -> None:
        """With its type in the file the same route leads from a fanout exchange."""
        desired = shop("5m", exchanges=(ExchangeSpec("orders.exchange", "fanout", existing=True),))

        assert diff(desired, live_of(desired)).is_empty


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


@pytest.mark.parametrize("is_record_lost", [True, False])
def test_a_way_into_another_delay_beside_a_route_is_told(is_record_lost: bool) -> None:
    """Left by a file that nothing is remembered of, or bound by hand: messages wait in both, and come twice."""
    desired = shop("1m 5m")
    before = live_of(desired)
    stray = WAY_IN._replace(destination="delay.1m.exchange")
    live = replace(before, bindings=before.bindings | {stray}, record=None if is_record_lost else before.record)

    warnings = [text for text in diff(desired, live).warnings if "twice" in text]

    assert warnings == [
        "binding orders.exchange → [order.created] delay.1m.exchange is not delayctl's, and a route leads the same messages "
        "into another delay: they come twice. Unbind it, if an earlier file left it."
    ]


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
