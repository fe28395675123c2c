"""What a change would cost: every reason to refuse one, and every warning."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from delayctl.topology.diff import diff, empty_topology
from delayctl.topology.hazards import hazard_of, judging_rank, queues_to_count, warnings_of
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Topology, freeze_arguments
from delayctl.topology.order import delays_on
from delayctl.topology.plan import Change, Create, Delete, Replace, Update, title
from delayctl.topology.record import Record
from delayctl.topology.spec import RouteSpec, Target
from delayctl.topology.stakes import Hazard, Scene

from tests.support.examples import ORDERS_ROUTE, live_of, shop

SHOP, POLICY_SHOP, NOTHING = shop("1m 5m"), shop("1m 5m", settings="policy"), empty_topology("")
EXCHANGES = {exchange.name: exchange for exchange in SHOP.exchanges}
QUEUES = {queue.name: queue for queue in SHOP.queues}
WAY_OUT = Binding("delay.exchange", "queue", "orders.queue", "order.created")
SAFETY_NET = Binding("delay.unrouted.exchange", "queue", "delay.unrouted.queue")
INTO_QUEUE = Binding("delay.5m.exchange", "queue", "delay.5m.queue")
THEIRS = Binding("their.exchange", "exchange", "delay.5m.exchange", "their.key")
WAIT = "wait until the messages have left and run it again, or give --accept-loss"


def scene(
    desired: Topology = SHOP,
    live: Live | None = None,
    accepted: str = "",
    held: Change | None = None,
    **messages: int,
) -> Scene:
    """The shop, with this many messages in delay queues (`_5m=3`) and in the orders' queue (`orders=3`)."""
    live = live or live_of(SHOP)
    names = {"orders": "orders.queue", "unrouted": "delay.unrouted.queue"}
    counts = {names.get(name, f"delay.{name[1:]}.queue"): Backlog(count) for name, count in messages.items()}
    live = replace(live, backlog={**live.backlog, **counts})
    owned = live.record or Record()
    return Scene(
        desired,
        live,
        owned,
        delays_on(live, desired),
        frozenset(accepted.split()),
        {held: Hazard("", "", "")} if held else {},
    )


def replaced(name: str) -> Replace:
    """A replacement of an exchange or a queue of the shop."""
    resource = EXCHANGES.get(name) or QUEUES[name]
    return Replace(resource, resource, (), (), 0)


def deleted(name: str) -> Delete:
    """A removal of an exchange or a queue of the shop."""
    return Delete(EXCHANGES.get(name) or QUEUES[name], 10)


def policy(**definition: object) -> Policy:
    """The policy of the level 5m with this definition."""
    spelled = freeze_arguments({name.replace("_", "-"): value for name, value in definition.items()})
    return Policy("delay.5m.policy", "^delay\\.5m\\.queue$", "queues", 10, spelled)


@pytest.mark.parametrize("resource", [EXCHANGES["orders.exchange"], QUEUES["orders.queue"], WAY_OUT])
def test_creation_costs_nothing(resource: Exchange | Queue | Binding) -> None:
    """Nothing can be lost with what was not there."""
    assert hazard_of(Create(resource, 0), scene(_5m=3)) is None


@pytest.mark.parametrize("name", ["delay.5m.queue", "orders.queue"])
@pytest.mark.parametrize("make", [replaced, deleted])
def test_a_queue_goes_with_its_messages(make: Callable[[str], Change], name: str) -> None:
    """Replaced or removed, what it holds would be lost."""
    live = live_of(SHOP, {name: 1_234})

    assert hazard_of(make(name), scene(live=live)) == Hazard(
        name, "holds 1,234 messages that would be lost", f"{WAIT} {name}"
    )


@pytest.mark.parametrize("make", [replaced, deleted])
def test_a_queue_goes_with_its_consumers(make: Callable[[str], Change]) -> None:
    """They would be cut off, messages or not."""
    live = replace(live_of(SHOP), backlog={"orders.queue": Backlog(0, 1)})

    assert hazard_of(make("orders.queue"), scene(live=live)) == Hazard(
        "orders.queue", "1 consumer would be cut off", "stop them first, or give --accept-loss orders.queue"
    )


@pytest.mark.parametrize("name", ["delay.5m.queue", "orders.queue", "delay.unrouted.queue"])
def test_an_empty_queue_of_ours_is_replaced(name: str) -> None:
    """Nothing is lost."""
    assert hazard_of(replaced(name), scene()) is None


def test_a_queue_of_others_is_not_replaced() -> None:
    """That it is empty now does not make it ours."""
    live = replace(live_of(SHOP), record=None)

    assert hazard_of(replaced("orders.queue"), scene(live=live)) == Hazard(
        "orders.queue",
        "exists with other settings, and delayctl did not make it",
        "list its real arguments in the file, mark it 'existing: true', or replace it with --accept-loss orders.queue",
    )


def test_a_delay_queue_is_ours_by_its_name() -> None:
    """A run over AMQP alone leaves no record, and must not lock out the next."""
    assert hazard_of(replaced("delay.5m.queue"), scene(live=replace(live_of(SHOP), record=None))) is None


def test_a_business_exchange_is_not_replaced() -> None:
    """Its publishers would meet a missing exchange."""
    assert hazard_of(replaced("orders.exchange"), scene()) == Hazard(
        "orders.exchange",
        "its type or arguments differ, and publishers would meet a missing exchange while it is replaced",
        "change the file to match it, mark it 'existing: true', or give --accept-loss orders.exchange",
    )


@pytest.mark.parametrize("name", ["delay.exchange", "delay.unrouted.exchange", "delay.unrouted.queue"])
def test_the_way_out_is_not_replaced_while_messages_wait(name: str) -> None:
    """They could expire in the moment in which it is away."""
    assert hazard_of(replaced(name), scene(_1m=1, _5m=2)) == Hazard(
        name, "3 messages would be lost if they expire while it is away", f"{WAIT} {name}"
    )


@pytest.mark.parametrize("name", ["delay.exchange", "delay.unrouted.exchange", "delay.5m.exchange"])
def test_an_exchange_of_the_delay_is_replaced_while_nothing_waits(name: str) -> None:
    """Nothing can expire meanwhile."""
    assert hazard_of(replaced(name), scene()) is None


@pytest.mark.parametrize(("header", "is_safe"), [("kind", True), ("country", False)])
def test_a_way_on_by_headers_has_no_successor_in_one_by_others(header: str, is_safe: bool) -> None:
    """Ways of a headers exchange behind the exit have one key, and lead different messages."""
    by_kind = Binding("site.exchange", "queue", "site.queue", arguments=(("kind", "order"),))
    beside = by_kind._replace(destination="orders.queue", arguments=((header, "order"),))
    exchanges = {"site.exchange": Exchange("site.exchange", "headers")}
    live = live_of(SHOP)
    into = Binding("delay.exchange", "exchange", "site.exchange", "#")
    live = replace(live, exchanges={**live.exchanges, **exchanges}, bindings=live.bindings | {into, by_kind, beside})
    desired = replace(SHOP, bindings=(*SHOP.bindings, into, beside))

    hazard = hazard_of(Delete(by_kind, 10), scene(desired, live, _5m=3))

    assert (hazard is None) == is_safe


def test_an_entrance_is_replaced_while_messages_wait() -> None:
    """They are past it already."""
    assert hazard_of(replaced("delay.5m.exchange"), scene(_5m=3)) is None


@pytest.mark.parametrize("name", ["delay.exchange", "delay.unrouted.exchange", "delay.unrouted.queue", "orders.queue"])
def test_the_way_out_is_not_removed_while_messages_wait(name: str) -> None:
    """From the exit to where it leads, all may still be needed."""
    assert hazard_of(deleted(name), scene(NOTHING, _5m=3)) == Hazard(
        name, "3 waiting messages may still need it on the way out", f"{WAIT} {name}", passes=True
    )


@pytest.mark.parametrize(("binding", "name"), [(WAY_OUT, "orders.queue"), (SAFETY_NET, "delay.unrouted.queue")])
def test_a_binding_on_the_way_out_is_not_removed_while_messages_wait(binding: Binding, name: str) -> None:
    """Neither the route nor the safety net behind it."""
    assert hazard_of(Delete(binding, 10), scene(NOTHING, _5m=3)) == Hazard(
        name, "3 waiting messages may still need it on the way out", f"{WAIT} {name}", passes=True
    )


def test_a_way_out_of_a_level_that_stays_in_use_can_be_given_up_in_time() -> None:
    """Such a level may never be empty: the advice says when nothing is lost by insisting."""
    hazard = hazard_of(Delete(WAY_OUT, 10), scene(shop("5m", routes=()), _5m=3))

    assert hazard == Hazard(
        "orders.queue",
        "3 waiting messages may still need it on the way out",
        "wait until the messages have left and run it again; where others keep coming, wait for the longest delay and give "
        "--accept-loss orders.queue: what still needs it then is parked, not lost",
    )


def test_the_way_out_goes_on_beyond_the_next_exchange() -> None:
    """A message may leave through a business exchange, whose bindings it then needs."""
    onwards = Binding("site.exchange", "queue", "site.queue", "#")
    live = live_of(SHOP)
    way_out = {Binding("delay.exchange", "exchange", "site.exchange", "#"), onwards}
    live = replace(live, bindings=live.bindings | way_out)

    assert hazard_of(Delete(onwards, 10), scene(NOTHING, live, _5m=3)) == Hazard(
        "site.queue", "3 waiting messages may still need it on the way out", f"{WAIT} site.queue", passes=True
    )


def test_a_way_in_is_removed_while_messages_wait() -> None:
    """They are past it already."""
    way_in = Binding("orders.exchange", "exchange", "delay.5m.exchange", "order.created")

    assert hazard_of(Delete(way_in, 10), scene(NOTHING, _5m=3)) is None


def test_messages_that_may_be_lost_need_no_way_out() -> None:
    """Whoever gives up the queue by name has given up its messages."""
    assert hazard_of(deleted("delay.exchange"), scene(NOTHING, accepted="delay.5m.queue", _5m=3)) is None


def test_messages_of_any_delay_count_as_waiting() -> None:
    """Also those in a level that the file no longer has."""
    assert scene(shop("5m"), _1m=1, _5m=2, orders=4).waiting == 3


@pytest.mark.parametrize("change", [deleted("delay.exchange"), Delete(SAFETY_NET, 10), Delete(WAY_OUT, 10)])
def test_a_delay_queue_that_stays_keeps_its_way_out(change: Delete) -> None:
    """It is empty now, but others are bound to it: what they send must not be lost when it expires."""
    hazard = hazard_of(change, scene(NOTHING, held=deleted("delay.5m.queue")))

    assert hazard is not None
    assert hazard.reason == "delay.5m.queue can't go yet and may still need it"


@pytest.mark.parametrize("change", [deleted("delay.5m.queue"), Delete(INTO_QUEUE, 10)])
def test_an_entrance_that_stays_keeps_its_queue(change: Delete) -> None:
    """Others lead messages into it, which would be lost without the queue behind it."""
    assert hazard_of(change, scene(NOTHING, held=deleted("delay.5m.exchange"))) == Hazard(
        "delay.5m.queue",
        "delay.5m.exchange can't go yet and leads into it",
        "see delay.5m.exchange, or give --accept-loss delay.5m.queue",
    )


@pytest.mark.parametrize("held", [deleted("delay.5m.queue"), replaced("delay.5m.queue")])
def test_a_queue_that_stays_keeps_its_policy(held: Change) -> None:
    """Without its TTL, what enters it would wait for ever."""
    assert hazard_of(Delete(policy(message_ttl=300_000), 10), scene(held=held)) == Hazard(
        "delay.5m.policy",
        "delay.5m.queue can't go yet and has its settings from it",
        "see delay.5m.queue, or give --accept-loss delay.5m.policy",
    )


def test_a_policy_that_governs_nothing_is_removed() -> None:
    """A queue of another level that stays has no claim on it."""
    assert hazard_of(Delete(policy(message_ttl=300_000), 10), scene(held=deleted("delay.1m.queue"))) is None


@pytest.mark.parametrize("binding", [THEIRS, Binding("delay.5m.exchange", "queue", "their.queue")])
def test_an_exchange_goes_with_the_bindings_of_others(binding: Binding) -> None:
    """Whether they begin or end at it."""
    live = live_of(SHOP)
    live = replace(live, bindings=live.bindings | {binding})

    assert hazard_of(deleted("delay.5m.exchange"), scene(NOTHING, live)) == Hazard(
        "delay.5m.exchange",
        "1 binding of others would go with it",
        "remove the bindings first, list it under exchanges: to keep it, or give --accept-loss delay.5m.exchange",
    )


def test_a_queue_goes_with_the_bindings_of_others() -> None:
    """They count, however empty the queue is."""
    live = live_of(SHOP)
    live = replace(live, bindings=live.bindings | {Binding("their.exchange", "queue", "delay.5m.queue", "k")})

    assert hazard_of(deleted("delay.5m.queue"), scene(NOTHING, live)) == Hazard(
        "delay.5m.queue",
        "1 binding of others would go with it",
        "remove the bindings first, list it under queues: to keep it, or give --accept-loss delay.5m.queue",
    )


def test_bindings_of_others_that_wait_to_be_put_back_count() -> None:
    """An interrupted replacement took them away; that must not pass for their owner's wish."""
    live = live_of(SHOP)
    live = replace(live, record=(live.record or Record()).union(Record(restore=frozenset({THEIRS}))))

    hazard = hazard_of(deleted("delay.5m.exchange"), scene(NOTHING, live))

    assert hazard is not None
    assert hazard.reason == "1 binding of others would go with it"


@pytest.mark.parametrize("change", [Create(policy(max_length=5), 0), Update(policy(), policy(max_length=5), (), 0)])
def test_a_shorter_queue_hastens_messages(change: Change) -> None:
    """At the new length the oldest messages would leave before their time."""
    assert hazard_of(change, scene(POLICY_SHOP, _5m=7)) == Hazard(
        "delay.5m.queue",
        "delay.5m.queue holds 7 messages: 2 messages above the new max-length would leave early",
        f"{WAIT} delay.5m.queue",
    )


REFUSES = {"overflow": "reject-publish"}


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, {"max_length": 7}), ({}, {}), (REFUSES, {"max_length": 5, **REFUSES})],
    ids=str,
)
def test_a_queue_that_is_long_enough_keeps_its_messages(before: dict[str, object], after: dict[str, object]) -> None:
    """Nor does a queue that refuses what is new, and did so before, push out what is old."""
    assert (
        hazard_of(Update(policy(**before), policy(**after), (), 0), scene(POLICY_SHOP, as_it_is(before), _5m=7)) is None
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [({"max_length": 9}, {"max_length": 5, **REFUSES}), ({"max_length": 3, **REFUSES}, {"max_length": 5})],
    ids=str,
)
def test_another_overflow_lets_out_what_is_above_the_limit(before: dict[str, object], after: dict[str, object]) -> None:
    """A broker takes the new limit before the new overflow, and enforces it at once on more than it refused."""
    hazard = hazard_of(Update(policy(**before), policy(**after), (), 0), scene(POLICY_SHOP, as_it_is(before), _5m=7))

    assert hazard is not None
    assert "2 messages above the new max-length would leave early" in hazard.reason


def as_it_is(definition: dict[str, object]) -> Live:
    """The shop with this policy in force on its queue."""
    live = live_of(POLICY_SHOP)
    others = (each for each in live.policies if each.name != policy().name)
    return replace(live, policies=(*others, policy(**definition)))


def test_a_replaced_delay_queue_is_warned_about() -> None:
    """For a moment there is no place for what is published."""
    change = replace(replaced("delay.5m.queue"), restore=(INTO_QUEUE,))

    assert list(warnings_of(change, scene())) == [
        "while delay.5m.queue is replaced (a moment), what is published to it has no place: "
        "publishers that set mandatory are told, others lose it. Pause them if that matters."
    ]


def test_a_queue_that_nothing_enters_is_replaced_without_a_word() -> None:
    """Nobody could miss it."""
    assert list(warnings_of(replaced("delay.5m.queue"), scene())) == []


def test_messages_in_a_level_that_stays_hold_up_the_removal_of_a_way_out() -> None:
    """New ones come all the time: that does not pass by itself."""
    hazard = hazard_of(Delete(WAY_OUT, 10), scene(shop(routes=()), _5m=3))

    assert hazard is not None
    assert not hazard.passes


def test_a_replaced_entrance_is_warned_about() -> None:
    """For a moment there is no way in."""
    assert list(warnings_of(replaced("delay.5m.exchange"), scene())) == [
        "while delay.5m.exchange is replaced (a moment), publishers meet a missing exchange, "
        "and what other exchanges pass on to it is lost. Pause them if that matters."
    ]


def test_a_shorter_delay_is_warned_about() -> None:
    """Only the head of a queue expires: the new messages wait behind the old ones."""
    change = Update(policy(message_ttl=300_000), policy(message_ttl=60_000), (), 0)

    assert list(warnings_of(change, scene(POLICY_SHOP, _5m=3))) == [
        "delay.5m.queue holds 3 messages with the old delay of 5m; "
        "what is published now waits behind them, up to 5m instead of 1m."
    ]


@pytest.mark.parametrize(
    "change",
    [
        Update(policy(message_ttl=60_000), policy(message_ttl=300_000), (), 0),
        Create(WAY_OUT, 0),
        deleted("delay.5m.queue"),
    ],
)
def test_what_does_no_harm_is_not_warned_about(change: Change) -> None:
    """A longer delay is harmless."""
    assert list(warnings_of(change, scene(POLICY_SHOP, _5m=3))) == []


def test_what_others_depend_on_is_judged_first() -> None:
    """Entrances, then delay queues, then the way out, then policies."""
    changes: tuple[Change, ...] = (
        Delete(policy(), 0), deleted("delay.exchange"), deleted("delay.5m.queue"), deleted("delay.5m.exchange"),
        replaced("orders.queue"),
    )  # fmt: skip
    delays = delays_on(live_of(SHOP), SHOP)

    assert sorted(changes, key=lambda change: judging_rank(change, delays)) == list(reversed(changes))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Create(QUEUES["orders.queue"], 0), set()),
        (Create(policy(max_length=5), 0), {"delay.5m.queue"}),
        (Update(policy(), policy(max_length=5), (), 0), {"delay.5m.queue"}),
        (Delete(WAY_OUT, 0), {"delay.1m.queue", "delay.5m.queue"}),
        (replaced("delay.exchange"), {"delay.1m.queue", "delay.5m.queue"}),
        (deleted("orders.queue"), {"delay.1m.queue", "delay.5m.queue", "orders.queue"}),
    ],
)
def test_only_queues_that_decide_are_counted(change: Change, expected: set[str]) -> None:
    """Counting takes the broker a while."""
    assert set(queues_to_count([change], POLICY_SHOP, delays_on(live_of(SHOP), SHOP))) == expected


def test_bindings_to_queues_that_are_in_no_definitions_hold_an_exchange() -> None:
    """An exclusive queue is its owner's to bind: a replacement could not put the binding back."""
    live = live_of(SHOP)
    hidden = Binding("delay.5m.exchange", "queue", "amq.gen-1", "")
    exchanges = {**live.exchanges, "delay.5m.exchange": Exchange("delay.5m.exchange", "direct")}
    live = replace(live, exchanges=exchanges, bindings=live.bindings | {hidden})

    plan = diff(SHOP, live)
    insisting = diff(SHOP, live, accept_loss=["delay.5m.exchange"])

    assert [(refusal.subject, refusal.reason) for refusal in plan.refusals] == [
        (
            "exchange delay.5m.exchange",
            "1 binding to exclusive queues would be lost: only their owners can make them again",
        )
    ]
    assert [hidden in change.restore for change in insisting.changes if isinstance(change, Replace)] == [False]


def test_fewer_bytes_than_before_would_let_messages_out_early() -> None:
    """How many bytes wait is not known, so any message counts."""
    desired = shop("5m", settings="policy", max_bytes=3)
    live = live_of(shop("5m", settings="policy"), {"delay.5m.queue": 3})

    # Where the queue can be switched nothing of the kind happens; with a binding of others it can't.
    assert [wait.queue for wait in diff(desired, live).waits] == ["delay.5m.queue"]
    live = replace(live, bindings=live.bindings | {Binding("orders.exchange", "queue", "delay.5m.queue", "straight")})
    assert [refusal.reason for refusal in diff(desired, live).refusals] == [
        "delay.5m.queue holds 3 messages: what is above the new max-length-bytes would leave early"
    ]
    assert diff(live=replace(live, backlog={}), desired=desired).refusals == ()


def test_messages_that_came_without_a_ttl_are_warned_about() -> None:
    """A policy that comes back gives a TTL to what comes then, and to nothing that waits already."""
    live = replace(live_of(POLICY_SHOP, {"delay.5m.queue": 2}), policies=())

    assert [warning.partition(":")[0] for warning in diff(POLICY_SHOP, live).warnings] == [
        "delay.5m.queue holds 2 messages that may have come without a TTL"
    ]


def test_nothing_new_is_led_into_a_queue_that_would_lose_it() -> None:
    """While a queue without dead-lettering can't be replaced, no binding leads into it."""
    live = live_of(SHOP, {"delay.5m.queue": 1})
    queues = {**live.queues, "delay.5m.queue": Queue("delay.5m.queue")}
    live = replace(live, queues=queues, bindings=live.bindings - {INTO_QUEUE})

    plan = diff(SHOP, live)

    assert plan.changes == ()
    assert [(refusal.subject, refusal.reason) for refusal in plan.refusals] == [
        ("queue delay.5m.queue", "holds 1 message that would be lost"),
        (
            "binding delay.5m.exchange → delay.5m.queue",
            "delay.5m.queue is not as it should be: what enters it would be lost, early or late",
        ),
    ]


def test_a_way_out_with_a_successor_can_go_while_messages_wait() -> None:
    """What waits finds the new queue by the same key."""
    moved = shop(
        "1m 5m", routes=(RouteSpec(("order.created",), (Target("queue", "new.queue"),), "orders.exchange", "5m"),)
    )

    plan = diff(moved, live_of(SHOP, {"delay.5m.queue": 1}))

    assert title(plan.changes[-1]) == "way delay.exchange [order.created]: orders.queue ⇒ new.queue"


def test_what_others_let_wait_keeps_the_way_out() -> None:
    """A queue of theirs empties, and fills again: nobody waits for that, so it has to be told."""
    paid = RouteSpec(("order.paid",), (Target("queue", "orders.queue"),), None, "5m")
    live = live_of(shop(routes=(ORDERS_ROUTE, paid)))
    theirs = Queue("their.queue", replace(QUEUES["delay.5m.queue"].settings, max_length=None))
    live = replace(live, queues={**live.queues, theirs.name: theirs}, backlog={theirs.name: Backlog(4)})

    plan = diff(shop(), live)

    assert [refusal.reason for refusal in plan.refusals] == ["4 waiting messages may still need it on the way out"]
    assert not plan.is_empty
