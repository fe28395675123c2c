"""Desired and live to Plan, where others need what is there: promises they break, objects of theirs, topologies beside this one."""

from dataclasses import replace

import pytest
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Reference, Settings, Topology
from delayctl.topology.plan import resource_of
from delayctl.topology.record import Record, record_of
from delayctl.topology.spec import ExchangeSpec, QueueSpec, RouteSpec, SettingsHome, Target

from tests.support.examples import ORDERS, ORDERS_QUEUE, ORDERS_ROUTE, live_of, shop
from tests.support.shop import SHOP, WAY_IN, refused, shown, with_exchange, with_queue


class TestBrokenByOthers:
    """Policies of others that take a promise from a delay queue."""

    HASTENS = Policy("theirs", ".*", "queues", 20, (("message-ttl", 1_500),))
    LIMITS = Policy("theirs", r"^delay\.", "queues", 20, (("max-length", 5_000),))
    DIRECT = replace(ORDERS_ROUTE, level=None)
    WITHOUT_DELAY = shop("5m", routes=(DIRECT,))

    @pytest.mark.parametrize(("settings", "theirs"), [("arguments", HASTENS), ("policy", LIMITS)])
    def test_nothing_is_led_there_anew(self, settings: SettingsHome, theirs: Policy) -> None:
        """Whether messages came early or, without any TTL, would never leave: they go on as they did."""
        desired = shop("5m", settings=settings)
        before = live_of(shop("5m", settings=settings, routes=(self.DIRECT,)))
        live = replace(before, policies=(*before.policies, theirs))

        plan = diff(desired, live)

        assert WAY_IN not in {resource_of(change) for change in plan.changes}
        assert (f"binding {WAY_IN.source} → [order.created] delay.5m.exchange", self.REASON) in refused(plan)

    def test_what_is_there_stays(self) -> None:
        """The policy is not ours to undo, and neither are ways that messages go already."""
        plan = diff(SHOP, replace(live_of(SHOP), policies=(self.HASTENS,)))

        assert plan.changes == ()
        assert [refusal.subject for refusal in plan.refusals] == ["queue delay.5m.queue", "queue delay.unrouted.queue"]

    def test_no_change_is_begun_that_ends_in_what_is_broken(self) -> None:
        """With its settings in a policy the queue would have none of them, and keep what comes for ever."""
        plan = diff(shop("5m", settings="policy"), replace(live_of(SHOP), policies=(self.LIMITS,)))

        assert (plan.changes, plan.waits) == ((), ())
        reason = "stays as it is: once it is declared anew, policy theirs (priority 20) changes what it does"
        assert ("queue delay.5m.queue", reason) in refused(plan)

    def test_a_lower_limit_alone_breaks_no_promise(self) -> None:
        """It is told, and the level works."""
        plan = diff(SHOP, replace(live_of(self.WITHOUT_DELAY), policies=(self.LIMITS,)))

        assert WAY_IN in {resource_of(change) for change in plan.changes}

    REASON = "delay.5m.queue is not as it should be: what enters it would be lost, early or late"


class TestWhatIsTheirs:
    """What others made and still need."""

    def test_what_is_marked_existing_is_not_destroyed(self) -> None:
        """Be it that an earlier file did not say so."""
        existing = (Reference("exchange", "orders.exchange"), Reference("queue", "orders.queue"))

        plan = diff(empty_topology("", existing), live_of(SHOP))

        gone = {resource_of(change) for change in plan.changes}
        assert {r.name for r in gone if isinstance(r, Exchange | Queue)}.isdisjoint({"orders.exchange", "orders.queue"})
        assert plan.record == Record()

    def test_what_is_marked_existing_need_not_be_there_to_be_left_alone(self) -> None:
        """Destroying asks for nothing."""
        assert diff(empty_topology("", (Reference("queue", "gone.queue"),)), live_of(SHOP)).refusals == ()

    def test_a_binding_between_their_objects_stays_theirs(self) -> None:
        """The file says what is so already."""
        exchanges = (ExchangeSpec("orders.exchange", "topic", existing=True),)
        queues = (QueueSpec("orders.queue", existing=True),)
        direct = RouteSpec(("order.paid",), (Target("queue", "orders.queue"),), "orders.exchange")
        desired = shop("5m", exchanges=exchanges, queues=queues, routes=(ORDERS_ROUTE, direct))
        there = Binding("orders.exchange", "queue", "orders.queue", "order.paid")
        theirs = replace(live_of(desired), bindings=frozenset({there}), record=None)

        agreed, made = diff(desired, theirs), diff(desired, replace(theirs, bindings=frozenset()))

        assert (there in agreed.record, there in made.record) == (False, True)

    @pytest.mark.parametrize(
        ("name", "instead"),
        [
            ("delay.5m.exchange", "give the file a prefix of its own"),
            ("delay.exchange", "give the file a prefix of its own"),
            ("orders.exchange", "change the file to match it, mark it 'existing: true'"),
        ],
    )
    def test_an_exchange_of_the_same_name_is_not_made_another(self, name: str, instead: str) -> None:
        """Its bindings would match other messages than they do; a prefix helps where the name is delayctl's."""
        theirs = Binding(name, "queue", "their.queue", "their.key")
        live = with_exchange(with_queue(Live("4.3.6"), Queue("their.queue")), Exchange(name, "direct"), theirs)

        reason = "is there as another exchange with 1 binding, and delayctl did not make it"
        [refusal] = [each for each in diff(SHOP, live).refusals if each.subject == f"exchange {name}"]
        assert (refusal.reason, refusal.fix) == (reason, f"{instead}, or replace it with --accept-loss {name}")

    @pytest.mark.parametrize(
        ("queues", "exchanges"),
        [
            ((Queue("work.queue", Settings(dead_letter_exchange="delay.1m.exchange")),), ()),
            ((), (Exchange("work.exchange", alternate="delay.1m.exchange"),)),
        ],
        ids=["dead letters", "alternate"],
    )
    def test_what_others_send_to_can_not_go(self, queues: tuple[Queue, ...], exchanges: tuple[Exchange, ...]) -> None:
        """Without a binding, by a dead-letter or an alternate exchange."""
        live = live_of(shop("1m 5m"))
        live = replace(live, queues={**live.queues, **{queue.name: queue for queue in queues}})
        live = replace(live, exchanges={**live.exchanges, **{exchange.name: exchange for exchange in exchanges}})

        [sender] = [*(queue.name for queue in queues), *(exchange.name for exchange in exchanges)]
        reason = f"{sender} of others, which leads there by dead-letter or alternate exchange, would lose messages"
        plan = diff(SHOP, live)
        assert ("exchange delay.1m.exchange", reason) in refused(plan)
        assert "Delete queue delay.1m.queue" not in shown(plan)


class TestNeighbours:
    """Topologies with other prefixes in the same virtual host."""

    AUDIT = QueueSpec("audit.queue")
    TO_AUDIT = RouteSpec(("#",), (Target("queue", "audit.queue"),), "orders.exchange")
    SHARED = shop("5m", queues=(ORDERS_QUEUE, AUDIT), routes=(ORDERS_ROUTE, TO_AUDIT))
    BINDING = Binding("orders.exchange", "queue", "audit.queue", "#")

    def test_what_they_made_too_stays(self) -> None:
        """Whoever goes first."""
        live = replace(live_of(self.SHARED), neighbours={"b.": record_of([Queue("audit.queue"), self.BINDING])})

        plan = diff(empty_topology(""), live)

        gone = {resource_of(change) for change in plan.changes}
        assert self.BINDING not in gone
        assert "Delete queue audit.queue" not in shown(plan)
        assert plan.record == Record()
        assert (
            "2 objects (audit.queue, binding orders.exchange → [#] audit.queue) stay: the topology with the prefix 'b.' "
            "was applied with them, too." in plan.warnings
        )

    def test_the_same_file_with_another_prefix_is_warned_about(self) -> None:
        """Each message would wait in both."""
        old = live_of(SHOP)
        assert old.record is not None

        plan = diff(shop("5m", prefix="new."), replace(old, record=None, neighbours={"": old.record}))

        assert (
            "binding orders.exchange → [order.created] delay.5m.exchange of the topology without a prefix leads the same "
            "messages to the same place: they come twice. If that was this file with another prefix, destroy what was "
            "applied with that one." in plan.warnings
        )

    MAILS = RouteSpec(("mail",), (Target("queue", "mails.queue"),), level="5m")
    ANOTHER_FILE = (
        "nothing that was applied here before is in this file but for delays; it goes (orders.exchange, orders.queue). "
        "If that is another file's, give one of the two a prefix: without one, each takes the place of the other."
    )

    def test_a_file_that_takes_the_place_of_another_is_warned_about(self) -> None:
        """It would remove all that the other service needs."""
        mails = shop("5m", exchanges=(), queues=(QueueSpec("mails.queue"),), routes=(self.MAILS,))

        assert diff(mails, live_of(SHOP)).warnings == (self.ANOTHER_FILE,)

    @pytest.mark.parametrize(
        "after",
        [
            empty_topology(""),
            shop("5m", exchanges=(), queues=(), routes=()),
            shop("5m", exchanges=(), routes=(MAILS,)),
            shop("5m", exchanges=(replace(ORDERS, existing=True),), queues=(), routes=(MAILS,)),
        ],
    )
    def test_the_same_file_may_change(self, after: Topology) -> None:
        """Be it that all goes, that nothing but delays stays, or that there is something of both."""
        assert self.ANOTHER_FILE not in diff(after, live_of(SHOP)).warnings
