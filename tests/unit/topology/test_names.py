"""Derived names."""

from delayctl.topology.names import Names


def test_every_name_stands_behind_the_prefix() -> None:
    """One prefix keeps a topology apart from its neighbours on a virtual host."""
    names = Names("shop.")

    assert [
        names.exit(),
        names.entrance("5m"),
        names.delay_queue("5m"),
        names.policy("5m"),
        names.unrouted_exchange(),
        names.unrouted_queue(),
        names.retry_key("orders.queue"),
        names.park_key("orders.dlq"),
        names.lock(),
        names.record("/"),
    ] == [
        "shop.delay.exchange",
        "shop.delay.5m.exchange",
        "shop.delay.5m.queue",
        "shop.delay.5m.policy",
        "shop.delay.unrouted.exchange",
        "shop.delay.unrouted.queue",
        "shop.delay.retry.orders.queue",
        "shop.delay.park.orders.dlq",
        "shop.delay.lock.queue",
        "delayctl:/:shop.",
    ]


def test_no_prefix_is_the_default() -> None:
    """The exit of a single topology is plainly delay.exchange."""
    assert Names().exit() == "delay.exchange"


def test_levels_that_would_collide_are_reserved() -> None:
    """A level 'lock' would share its queue's name with the lock."""
    assert [Names().reserved(level) for level in ("unrouted", "lock", "5m")] == [True, True, False]


def test_records_of_different_topologies_have_different_names() -> None:
    """A colon in a virtual host's name does not make it look like a prefix."""
    assert Names("").record("a:b") != Names("b:").record("a")
