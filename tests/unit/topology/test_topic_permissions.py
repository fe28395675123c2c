"""What topic permissions keep the users of a file from."""

from typing import Any

import pytest
from delayctl.topology.expand import expand
from delayctl.topology.parse import read_spec
from delayctl.topology.topic_permissions import TopicLack, refused_topics

SHOP = read_spec(
    """
version: 1
delay: {levels: [1m]}
exchanges:
  orders: {}
  wide: {}
  direct: {type: direct}
  legacy: {existing: true}
routes:
  - {from: orders, key: [order.created, order.paid], delay: 1m, to: work}
  - {from: wide, key: "a.*", to: work}
  - {from: direct, key: d, to: work}
  - {from: legacy, key: l, to: work}
retry: {work: {levels: [1m], max: 2, park: work.dlq}}
permissions:
  shop: publisher
  worker: consumer
  ops: operator
""",
    {},
    file="topology.yaml",
)


def refused(user: str, exchange: str, *, write: str = ".*", read: str = ".*") -> list[tuple[Any, ...]]:
    """What one topic permission keeps users from: verb, keys, and whether it is certain."""
    entry = {"user": user, "vhost": "/", "exchange": exchange, "write": write, "read": read}
    lacks = refused_topics(SHOP, expand(SHOP), [entry], vhost="/")
    assert all((lack.user, lack.exchange) == (user, exchange) for lack in lacks)
    return [(lack.verb, lack.keys, lack.is_certain) for lack in lacks]


def test_a_key_that_is_not_taken() -> None:
    """One Lack per exchange, with the keys and the pattern."""
    entry = {"user": "shop", "vhost": "/", "exchange": "orders", "write": "^order.p", "read": ""}

    assert refused_topics(SHOP, expand(SHOP), [entry], vhost="/") == (
        TopicLack("shop", "publisher", "write", "orders", ("order.created",), "^order.p"),
    )


@pytest.mark.parametrize(
    ("user", "exchange", "patterns", "expected"),
    [
        ("shop", "orders", {"write": "^order"}, []),
        ("shop", "orders", {"write": ""}, [("write", ("order.created", "order.paid"), True)]),
        ("shop", "orders", {"read": ""}, []),  # It binds nothing.
        ("shop", "orders", {"write": "^{username}"}, [("write", ("order.created", "order.paid"), True)]),
        ("shop", "orders", {"write": "^(?<é"}, [("write", ("order.created", "order.paid"), False)]),
        ("shop", "wide", {"write": "^a"}, []),
        ("shop", "wide", {"write": "^a.b$"}, [("write", ("a.*",), False)]),
        ("shop", "direct", {"write": ""}, []),  # Only topic exchanges look at it,
        ("shop", "delay.1m.exchange", {"write": ""}, []),
        ("shop", "legacy", {"write": ""}, [("write", ("l",), True)]),  # and this may be one.
        ("shop", "delay.exchange", {"write": "^order"}, []),  # Retries and parking are for consumers.
        ("worker", "orders", {"write": ""}, []),
        ("ops", "orders", {"write": ""}, []),
        ("ops", "wide", {"read": "^a.b$"}, [("read", ("a.*",), True)]),  # Compared as it is written.
        ("ops", "delay.exchange", {"read": "^order"}, [("read", ("delay.park.work.dlq", "delay.retry.work"), True)]),
        ("worker", "delay.exchange", {"write": "^delay.park"}, []),
        ("worker", "delay.exchange", {"write": "^order"}, [("write", ("delay.park.work.dlq",), True)]),  # It parks.
        ("stranger", "orders", {"write": ""}, []),
    ],
)
def test_who_is_kept_from_what(user: str, exchange: str, patterns: dict[str, str], expected: list[Any]) -> None:
    """By role, type of exchange and pattern."""
    assert refused(user, exchange, **patterns) == expected
