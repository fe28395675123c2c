"""From a file's meaning to objects on the broker."""

import pytest
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.model import (
    Arguments,
    Binding,
    Exchange,
    Level,
    Policy,
    Queue,
    QueueType,
    Reference,
    Settings,
    Topology,
)
from delayctl.topology.spec import (
    BrokerWaits,
    ExchangeSpec,
    LevelSpec,
    QueueSpec,
    RetrySpec,
    RouteSpec,
    Spec,
    Target,
    WaitSpec,
)

MINUTE = LevelSpec("1m", Duration(60_000), WaitSpec(max_length=10, max_bytes=500))
ORDERS = Target("queue", "orders.queue")
KIND: Arguments = (("kind", "order"),)


def test_one_level_is_a_whole_topology() -> None:
    """Entrance, queue and exit, and the parking place for what has no way out."""
    assert expand(Spec(levels=(MINUTE,), prefix="p.")) == Topology(
        prefix="p.",
        exit="p.delay.exchange",
        levels=(Level("1m", Duration(60_000), "p.delay.1m.exchange", "p.delay.1m.queue"),),
        exchanges=(
            Exchange("p.delay.1m.exchange", "fanout"),
            Exchange("p.delay.exchange", "topic", alternate="p.delay.unrouted.exchange"),
            Exchange("p.delay.unrouted.exchange", "fanout"),
        ),
        queues=(
            Queue(
                "p.delay.1m.queue",
                Settings(
                    type="classic",
                    ttl=Duration(60_000),
                    max_length=10,
                    max_bytes=500,
                    overflow="drop-head",
                    dead_letter_exchange="p.delay.exchange",
                ),
            ),
            Queue("p.delay.unrouted.queue"),
        ),
        bindings=(
            Binding("p.delay.1m.exchange", "queue", "p.delay.1m.queue"),
            Binding("p.delay.unrouted.exchange", "queue", "p.delay.unrouted.queue"),
        ),
        policies=(),
        existing=(),
    )


def test_a_policy_carries_what_can_change() -> None:
    """The queue keeps its type and where it dead-letters to; the pattern matches that queue alone."""
    topology = expand(Spec(levels=(MINUTE,), settings="policy", policy_priority=7))

    assert topology.queues[0] == Queue(
        "delay.1m.queue", Settings(type="classic", dead_letter_exchange="delay.exchange")
    )
    assert topology.policies == (
        Policy(
            name="delay.1m.policy",
            pattern=r"^delay\.1m\.queue$",
            apply_to="queues",
            priority=7,
            definition=(
                ("max-length", 10),
                ("max-length-bytes", 500),
                ("message-ttl", 60_000),
                ("overflow", "drop-head"),
            ),
        ),
    )


@pytest.mark.parametrize(("kind", "extra"), [("classic", (("x-queue-mode", "lazy"),)), ("quorum", ())])
def test_a_level_may_be_kept_on_disk_alone(kind: QueueType, extra: Arguments) -> None:
    """Quorum queues, which have no such mode, are not asked."""
    lazy = LevelSpec("1m", Duration(60_000), WaitSpec(kind, lazy=True))

    assert expand(Spec(levels=(lazy,))).queues[0].extra == extra


def test_the_safe_profile_dead_letters_at_least_once() -> None:
    """On a quorum queue that refuses instead of dropping."""
    safe = LevelSpec("1m", Duration(60_000), WaitSpec("quorum", None, None, "reject-publish", at_least_once=True))

    assert expand(Spec(levels=(safe,))).queues[0].settings == Settings(
        type="quorum",
        ttl=Duration(60_000),
        overflow="reject-publish",
        dead_letter_exchange="delay.exchange",
        dead_letter_strategy="at-least-once",
    )


def bindings_of(route: RouteSpec, source_type: str | None = "topic") -> set[Binding]:
    """The bindings that a route adds."""
    exchanges = (ExchangeSpec("orders.exchange", source_type),)
    spec = Spec(levels=(MINUTE,), exchanges=exchanges, queues=(QueueSpec("orders.queue"),))
    with_route = Spec(levels=(MINUTE,), exchanges=exchanges, queues=(QueueSpec("orders.queue"),), routes=(route,))
    return set(expand(with_route).bindings) - set(expand(spec).bindings)


def test_a_delayed_route_leads_in_and_out() -> None:
    """From the business exchange to the entrance, and from the exit to the target, by every key."""
    route = RouteSpec(("a", "b"), (ORDERS, Target("exchange", "site")), "orders.exchange", "1m")

    assert bindings_of(route) == {
        Binding("orders.exchange", "exchange", "delay.1m.exchange", "a"),
        Binding("orders.exchange", "exchange", "delay.1m.exchange", "b"),
        Binding("delay.exchange", "queue", "orders.queue", "a"),
        Binding("delay.exchange", "queue", "orders.queue", "b"),
        Binding("delay.exchange", "exchange", "site", "a"),
        Binding("delay.exchange", "exchange", "site", "b"),
    }


def test_a_route_without_source_leads_out_only() -> None:
    """Publishers send straight to the entrance."""
    assert bindings_of(RouteSpec(("a",), (ORDERS,), None, "1m")) == {
        Binding("delay.exchange", "queue", "orders.queue", "a")
    }


def test_a_route_without_delay_is_a_plain_binding() -> None:
    """It does not touch the delay at all."""
    assert bindings_of(RouteSpec(("a",), (ORDERS,), "orders.exchange")) == {
        Binding("orders.exchange", "queue", "orders.queue", "a")
    }


def test_a_fanout_source_is_bound_once() -> None:
    """It takes every key; the way out still goes by keys."""
    assert bindings_of(RouteSpec(("a", "b"), (ORDERS,), "orders.exchange", "1m"), "fanout") == {
        Binding("orders.exchange", "exchange", "delay.1m.exchange"),
        Binding("delay.exchange", "queue", "orders.queue", "a"),
        Binding("delay.exchange", "queue", "orders.queue", "b"),
    }


@pytest.mark.parametrize(
    ("route", "source_type", "bindings"),
    [
        (RouteSpec((), (ORDERS,), "orders.exchange"), "fanout", {("", ())}),
        (RouteSpec(("k",), (ORDERS,), "orders.exchange"), "fanout", {("", ())}),
        (RouteSpec((), (ORDERS,), "orders.exchange", headers=KIND), "headers", {("", KIND)}),
        (RouteSpec((), (ORDERS,), "orders.exchange"), "headers", {("", ())}),
        (RouteSpec(("a", "b"), (ORDERS,), "orders.exchange", headers=KIND), "headers", {("", KIND)}),
        (RouteSpec((), (ORDERS,), "orders.exchange", headers=KIND), None, {("", KIND)}),
    ],
)
def test_a_source_that_looks_at_no_keys_is_bound_all_the_same(
    route: RouteSpec, source_type: str | None, bindings: set[tuple[str, Arguments]]
) -> None:
    """By its headers, or with nothing at all."""
    assert bindings_of(route, source_type) == {
        Binding("orders.exchange", "queue", "orders.queue", key, headers) for key, headers in bindings
    }


def test_a_delayed_route_from_headers_comes_out_by_its_keys() -> None:
    """Headers lead into the delay; the exit goes by keys alone."""
    route = RouteSpec(("a", "b"), (ORDERS,), "orders.exchange", "1m", KIND)

    assert bindings_of(route, "headers") == {
        Binding("orders.exchange", "exchange", "delay.1m.exchange", "", KIND),
        Binding("delay.exchange", "queue", "orders.queue", "a"),
        Binding("delay.exchange", "queue", "orders.queue", "b"),
    }


def test_without_levels_there_is_nothing_but_what_is_listed() -> None:
    """No exit and no safety net; objects are declared just as they are described."""
    spec = Spec(
        levels=(),
        exchanges=(
            ExchangeSpec(
                "e", "direct", "a", durable=False, auto_delete=True, internal=True, arguments=(("x-owner", "shop"),)
            ),
        ),
        queues=(
            QueueSpec("q", arguments=(("x-message-ttl", 5),), durable=False, auto_delete=True),
            QueueSpec("r", durable=False),
        ),
        routes=(RouteSpec(("k",), (Target("queue", "q"),), "e"),),
    )

    assert expand(spec) == Topology(
        prefix="",
        exit="delay.exchange",
        levels=(),
        exchanges=(Exchange("e", "direct", "a", False, True, True, (("x-owner", "shop"),)),),
        queues=(
            Queue("q", Settings(ttl=Duration(5)), durable=False, auto_delete=True),
            Queue("r", durable=False),
        ),
        bindings=(Binding("e", "queue", "q", "k"),),
        policies=(),
        existing=(),
    )


def test_a_retry_leads_back_to_its_queue_alone() -> None:
    """By a routing key that no one else uses."""
    spec = Spec(
        levels=(MINUTE,),
        queues=(QueueSpec("orders.dlq"), QueueSpec("orders.queue")),
        retries=(RetrySpec("orders.queue", ("1m",), "orders.dlq"),),
    )

    assert [b for b in expand(spec).bindings if b.source == "delay.exchange"] == [
        Binding("delay.exchange", "queue", "orders.dlq", "delay.park.orders.dlq"),
        Binding("delay.exchange", "queue", "orders.queue", "delay.retry.orders.queue"),
    ]


def test_retries_by_broker_are_arguments_of_the_queue() -> None:
    """They need no way back, and the broker parks what fails every time, at least once."""
    spec = Spec(
        levels=(MINUTE,),
        prefix="p.",
        queues=(QueueSpec("orders.dlq"), QueueSpec("orders.queue", "quorum", arguments=(("x-max-length", 9),))),
        retries=(RetrySpec("orders.queue", (), "orders.dlq", BrokerWaits(Duration(10), Duration(30), 16)),),
    )

    topology = expand(spec)

    assert next(queue for queue in topology.queues if queue.name == "orders.queue") == Queue(
        "orders.queue",
        Settings(
            type="quorum",
            max_length=9,
            overflow="reject-publish",
            dead_letter_exchange="p.delay.exchange",
            dead_letter_key="p.delay.park.orders.dlq",
            dead_letter_strategy="at-least-once",
            delivery_limit=16,
            retry_type="failed",
            retry_min=Duration(10),
            retry_max=Duration(30),
        ),
    )
    assert [b for b in topology.bindings if b.source == "p.delay.exchange"] == [
        Binding("p.delay.exchange", "queue", "orders.dlq", "p.delay.park.orders.dlq")
    ]


def test_existing_objects_are_only_referred_to() -> None:
    """They are checked, and never declared."""
    spec = Spec(
        levels=(MINUTE,),
        exchanges=(ExchangeSpec("b", None, existing=True), ExchangeSpec("c", "direct")),
        queues=(QueueSpec("a", "quorum", existing=True),),
    )

    topology = expand(spec)

    assert topology.existing == (Reference("exchange", "b"), Reference("queue", "a", "quorum"))
    assert [exchange.name for exchange in topology.exchanges if not exchange.name.startswith("delay.")] == ["c"]
    assert [queue.name for queue in topology.queues if not queue.name.startswith("delay.")] == []


def test_arguments_of_a_business_queue_become_settings() -> None:
    """Where there is a word for them."""
    queue = QueueSpec("q", "quorum", arguments=(("x-max-priority", 5), ("x-message-ttl", 1_000)))

    assert expand(Spec(levels=(MINUTE,), queues=(queue,))).queues[-1] == Queue(
        "q", Settings(type="quorum", ttl=Duration(1_000)), extra=(("x-max-priority", 5),)
    )
