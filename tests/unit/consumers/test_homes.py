"""Where a parked message belongs."""

from typing import Any

import pytest
from delayctl.consumers.homes import Homes, Known, Onward, Stays
from delayctl.consumers.inbox import Delivery
from delayctl.consumers.sighting import sighted
from delayctl.publishers.frames import Properties, encode_properties
from delayctl.topology.expand import expand
from delayctl.topology.parse import read_spec
from delayctl.topology.routing import Network

FILE = """
version: 1
delay: {levels: [1m]}
exchanges: {shop.exchange: {}}
queues: {stubborn.queue: {type: quorum}}
routes:
  - {from: shop.exchange, key: order.created, delay: 1m, to: orders.queue}
  - {key: "order.#", delay: 1m, to: orders.queue}
retry:
  orders.queue: {levels: [1m], max: 2, park: orders.dlq}
  mails.queue: {levels: [1m], max: 2, park: shared.dlq}
  bills.queue: {levels: [1m], max: 2, park: shared.dlq}
  stubborn.queue: {by: broker, step: 1m, max: 3, park: stubborn.dlq}
"""
SPEC = read_spec(FILE, {}, file="topology.yaml")
KNOWN = Known.of(SPEC)
NOW_MS = 1_000_000
ORIGIN = {"exchange": "shop.exchange", "key": "order.created"}


def parked(queue: str, headers: dict[str, Any], *, exchange: str = "delay.exchange", key: str = "some.key") -> Delivery:
    """A message as it lies there."""
    found = Delivery(1, queue, exchange, key, redelivered=False)
    properties = Properties(
        headers=headers, message_id="m", expiration="1000", user_id="somebody", content_type="text/plain"
    )
    found.header = b"\0" * 12 + encode_properties(properties)
    found.body = b"body"
    return found


def home(came: Delivery, **options: Any) -> Onward | Stays:
    """Where it goes."""
    return Homes(KNOWN, Network.of_topology(expand(SPEC)), **options).of(came, sighted(came, KNOWN.delays), NOW_MS)


def died(queue: str, reason: str = "rejected", **more: Any) -> dict[str, Any]:
    """What the broker notes."""
    return {
        "queue": queue,
        "reason": reason,
        "count": 1,
        "exchange": "shop.exchange",
        "routing-keys": ["a.key"],
        **more,
    }


def test_back_to_its_queue_alone() -> None:
    """By the key that leads there from the exit, with id and headers, and without what belonged to the parking."""
    headers = {
        "shop": "eu",
        "delay-parked": "no luck",
        "delay-queue": "orders.queue",
        "delay-attempt": 2,
        "delay-origin": ORIGIN,
        "delay-history": [{"attempt": 2, "at": 7, "reason": "no luck"}],
        "CC": ["other"],
        "delay-3": True,
    }

    found = home(parked("orders.dlq", headers))

    expected = {
        "shop": "eu",
        "delay-origin": ORIGIN,
        "delay-history": [
            {"attempt": 2, "at": 7, "reason": "no luck"},
            {"attempt": 2, "at": NOW_MS, "reason": "redriven from orders.dlq"},
        ],
    }
    properties = Properties(content_type="text/plain", headers=expected, message_id="m", delivery_mode=2)
    assert found == Onward("delay.exchange", "delay.retry.orders.queue", "orders.queue", properties)


@pytest.mark.parametrize(
    ("queue", "headers", "expected"),
    [
        ("orders.dlq", {"delay-parked": "x"}, ("delay.exchange", "delay.retry.orders.queue")),
        ("shared.dlq", {"delay-queue": "bills.queue"}, ("delay.exchange", "delay.retry.bills.queue")),
        ("shared.dlq", {"x-death": [died("mails.queue")]}, ("delay.exchange", "delay.retry.mails.queue")),
        ("stubborn.dlq", {"x-death": [died("stubborn.queue", "delivery_limit")]}, ("", "stubborn.queue")),
        ("any.dlq", {"x-death": [died("theirs.queue")]}, ("", "theirs.queue")),
        ("any.dlq", {"x-death": [died("delay.1m.queue", "expired"), died("theirs.queue")]}, ("", "theirs.queue")),
        ("any.dlq", {"x-death": [{"queue": ["a"]}, {"queue": {}}, {}, died("theirs.queue")]}, ("", "theirs.queue")),
    ],
)
def test_what_tells_the_queue(queue: str, headers: dict[str, Any], expected: tuple[str, str]) -> None:
    """Its consumer, the broker, or that only one queue parks there."""
    found = home(parked(queue, headers))

    assert isinstance(found, Onward)
    assert (found.exchange, found.key) == expected


@pytest.mark.parametrize(
    ("queue", "headers", "options", "why"),
    [
        ("shared.dlq", {"delay-parked": "x"}, {}, "nothing says where it belongs"),
        ("any.dlq", {"x-death": [died("delay.1m.queue", "expired")]}, {}, "nothing says where it belongs"),
        ("any.dlq", {"x-death": "nonsense"}, {}, "nothing says where it belongs"),
        ("any.dlq", {"x-death": [{"queue": ["a"]}, {"queue": None}]}, {}, "nothing says where it belongs"),
        ("any.dlq", {}, {"by_origin": True}, "nothing says where it came from"),
        ("any.dlq", {"x-death": [{"queue": ["a"]}]}, {"by_origin": True}, "nothing says where it came from"),
        ("any.dlq", {}, {"to": "any.dlq"}, "it would go where it is"),
        (
            "orders.dlq",
            {"delay-queue": "delay.1m.queue"},
            {},
            "its header delay-queue names delay.1m.queue, a delay queue, from which it would go astray",
        ),
        (
            "orders.dlq",
            {"delay-queue": "delay.5m.queue"},
            {},
            "its header delay-queue names delay.5m.queue, a delay queue, from which it would go astray",
        ),
        (
            "orders.dlq",
            {"delay-origin": {"exchange": "", "key": "delay.1m.queue"}},
            {"by_origin": True},
            "delay.1m.queue is a delay queue, from which it would go astray",
        ),
        (
            "orders.dlq",
            {"delay-origin": {"exchange": "gone.exchange", "key": "a"}},
            {"by_origin": True},
            "gone.exchange is not there",
        ),
        (
            "orders.dlq",
            {"delay-origin": {"exchange": "delay.exchange", "key": "delay.park.orders.dlq"}},
            {"by_origin": True},
            "it would come back to where it is",
        ),
    ],
)
def test_what_stays(queue: str, headers: dict[str, Any], options: dict[str, Any], why: str) -> None:
    """With the reason, and what would help."""
    found = home(parked(queue, headers), **options)

    assert isinstance(found, Stays)
    assert (found.why, bool(found.fix)) == (why, True)


def test_a_queue_that_no_binding_leads_to_has_to_be_there() -> None:
    """Of the default exchange nothing else says so; what the exit leads to is known by its binding."""
    failed = parked("shared.dlq", {"delay-queue": "foreign.queue"})

    assert isinstance(home(failed), Onward)
    assert isinstance(home(parked("orders.dlq", {"delay-queue": "orders.queue"}), is_there=lambda _: False), Onward)
    assert home(failed, is_there=lambda _: False) == Stays(
        "there is no queue 'foreign.queue'", "name one that is there with --to, or declare it"
    )


def test_first_key_of_what_the_broker_parked() -> None:
    """A handler sees it as the key, and not the name of the queue."""
    found = home(parked("any.dlq", {"x-death": [died("theirs.queue")]}, key="any.dlq"))

    assert isinstance(found, Onward)
    assert (found.properties.headers or {})["delay-origin"] == {"exchange": "shop.exchange", "key": "a.key"}


def test_to_where_it_came_from() -> None:
    """With its further keys; it is no retry any more."""
    found = home(parked("orders.dlq", {"delay-origin": {**ORIGIN, "cc": ["order.audit"]}}), by_origin=True)

    assert isinstance(found, Onward)
    assert (found.exchange, found.key) == ("shop.exchange", "order.created")
    assert (found.properties.headers or {})["CC"] == ["order.audit"]
    assert "delay-origin" not in (found.properties.headers or {})


def test_unrouted_messages_go_the_same_way_once_it_leads_somewhere() -> None:
    """Mandatory would not tell: behind the alternate exchange there always is a queue."""
    lost = home(parked("delay.unrouted.queue", {"x-death": [died("delay.1m.queue", "expired")]}, key="lost.key"))
    found = home(parked("delay.unrouted.queue", {}, key="order.created"))

    assert lost == Stays(
        "no route for key 'lost.key' at delay.exchange",
        "add the route to the file and apply it, or name a queue with --to",
    )
    assert isinstance(found, Onward)
    assert (found.exchange, found.key, found.to) == ("delay.exchange", "order.created", "orders.queue")


def test_why_the_broker_parked_it_is_kept_where_it_goes_on_being_parked() -> None:
    """Its x-death can't be sent on, so that what it said is told in other headers."""
    lost = parked(
        "delay.unrouted.queue", {"x-death": [died("mails.queue")], "delay-attempt": 1}, key="delay.park.shared.dlq"
    )

    found = home(lost)

    assert isinstance(found, Onward)
    assert found.to == "shared.dlq"
    assert found.properties.headers == {
        "delay-parked": "rejected in mails.queue",
        "delay-queue": "mails.queue",
        "delay-origin": {"exchange": "shop.exchange", "key": "a.key"},
        "delay-attempt": 1,
        "delay-history": [{"attempt": 1, "at": NOW_MS, "reason": "redriven from delay.unrouted.queue"}],
    }


def test_without_a_look_at_the_broker_each_message_goes_where_it_says() -> None:
    """Where the management API can't be asked; the broker has the last word."""
    came = parked("orders.dlq", {"delay-queue": "orders.queue", "delay-origin": {"exchange": "gone", "key": "a"}})

    found = [Homes(KNOWN, by_origin=origin).of(came, sighted(came, KNOWN.delays), NOW_MS) for origin in (False, True)]

    assert [each.exchange for each in found if isinstance(each, Onward)] == ["delay.exchange", "gone"]


def test_attempts_are_counted_anew_unless_told_otherwise() -> None:
    """With --keep-attempts the next failure parks it again."""
    came = parked("orders.dlq", {"delay-attempt": 2})

    counts = [
        (onward.properties.headers or {}).get("delay-attempt")
        for onward in (home(came), home(came, keep_attempts=True))
        if isinstance(onward, Onward)
    ]

    assert counts == [None, 2]
