"""What a full queue does: lets go of its head, or refuses what comes."""

from dataclasses import replace

import pytest
from delayctl.simulator.rabbitmq import Broker
from delayctl.simulator.rabbitmq_events import DeadLettered, Nacked, Published
from delayctl.topology.duration import Duration
from delayctl.topology.model import Policy, Queue, Settings

from tests.unit.simulator.rabbitmq_parts import bodies, broker_with


def _limited(overflow: str | None, *, type: str = "classic", length: int | None = 2, size: int | None = None) -> Queue:
    return Queue("full", Settings(type=type, max_length=length, max_bytes=size, overflow=overflow, dead_letter_exchange="", dead_letter_key="work"))  # fmt: skip


def _filled(queue: Queue, count: int, version: str = "4.3") -> tuple[Broker, str]:
    """A broker with so many messages published, and a letter for each: taken, or nacked."""
    broker = broker_with(queue, Queue("work"), version=version)
    answers = [broker.publish("", "full", f"{number}".encode()) for number in range(count)]
    return broker, "".join("n" if answer.is_nacked else "t" for answer in answers)


def test_drop_head_is_early_delivery() -> None:
    """In a delay queue overflow loses nothing: the oldest leaves before its time."""
    delay = Queue("wait", Settings(ttl=Duration(60_000), max_length=1, dead_letter_exchange="", dead_letter_key="work"))
    broker = broker_with(delay, Queue("work"))
    for _ in range(2):
        broker.publish("", "wait")
        broker.clock.advance(1_000)
    broker.clock.run()

    assert broker.log == [
        (0, Published(1, "", "wait", ("wait",))),
        (1_000, Published(2, "", "wait", ("wait",))),
        (1_000, DeadLettered(1, "wait", "maxlen", "", "work", ("work",))),
        (61_000, DeadLettered(2, "wait", "expired", "", "work", ("work",))),
    ]


def test_drop_head_is_what_a_queue_does_that_says_nothing() -> None:
    """The oldest make room."""
    broker, answers = _filled(_limited(None), 4)

    assert (answers, bodies(broker, "full"), bodies(broker, "work")) == ("tttt", [b"2", b"3"], [b"0", b"1"])


def test_reject_publish_tells_the_publisher() -> None:
    """The newest are refused."""
    broker, answers = _filled(_limited("reject-publish"), 4)

    assert (answers, bodies(broker, "full"), bodies(broker, "work")) == ("ttnn", [b"0", b"1"], [])
    assert [event for _, event in broker.log if isinstance(event, Nacked)] == [Nacked(3, "full"), Nacked(4, "full")]


def test_reject_publish_dlx_tells_the_publisher_and_dead_letters() -> None:
    """The newest are refused, and not lost."""
    broker, answers = _filled(_limited("reject-publish-dlx"), 3)

    assert (answers, bodies(broker, "full"), bodies(broker, "work")) == ("ttn", [b"0", b"1"], [b"2"])


def test_in_a_quorum_queue_limits_come_before_expiry() -> None:
    """A message with no time to live that is one too many dies of the limit; in a classic queue too, since that is asked first."""
    reasons = {}
    for type in ("classic", "quorum"):
        settings = Settings(type=type, ttl=Duration(0), max_length=0, dead_letter_exchange="", dead_letter_key="work")
        broker = broker_with(Queue("q", settings), Queue("work"))
        broker.publish("", "q")
        reasons[type] = [event.reason for _, event in broker.log if isinstance(event, DeadLettered)]

    assert reasons == {"classic": ["maxlen"], "quorum": ["maxlen"]}


def test_a_quorum_queue_takes_one_more_and_opens_again_late() -> None:
    """It refuses only once it is over its limit, and then until no more than four fifths of it are left."""
    broker, answers = _filled(_limited("reject-publish", type="quorum", length=5), 8)
    after = []
    for _ in range(3):
        broker.get("full", no_ack=True)
        after.append(broker.publish("", "full").is_nacked)

    assert (answers, after) == ("ttttttnn", [True, False, False])


def test_what_is_with_consumers_does_not_count() -> None:
    """A limit is one of what is ready."""
    broker, _ = _filled(_limited("drop-head", length=1), 1)
    broker.get("full")
    broker.publish("", "full", b"second")

    assert (broker.count("full"), broker.count("work").ready) == ((1, 1, 0), 0)


def test_what_comes_back_may_be_one_too_many() -> None:
    """It is the head again, and so it is the one that leaves."""
    broker, _ = _filled(_limited("drop-head", length=1), 1)
    delivery = broker.get("full")
    assert delivery is not None
    broker.publish("", "full", b"second")
    broker.reject(delivery, requeue=True)

    assert (bodies(broker, "full"), bodies(broker, "work")) == ([b"second"], [b"0"])


def test_bytes_are_limited_too() -> None:
    """Of the bodies, in a classic queue."""
    broker = broker_with(_limited(None, length=None, size=10), Queue("work"))
    for body in (b"123456", b"1234", b"1"):
        broker.publish("", "full", body)

    assert (bodies(broker, "full"), bodies(broker, "work")) == ([b"1234", b"1"], [b"123456"])


def test_new_quorum_queues_count_properties_as_bytes() -> None:
    """As AMQP encodes them: two bytes of flags for none at all."""
    found = {}
    for version in ("3.10", "4.3"):
        broker = broker_with(_limited(None, type="quorum", length=None, size=5), Queue("work"), version=version)
        broker.publish("", "full", b"1234")
        found[version] = broker.count("full").ready

    assert found == {"3.10": 1, "4.3": 0}


def test_old_quorum_queues_count_the_bytes_of_what_comes_back() -> None:
    """Appended or not."""
    broker = broker_with(_limited(None, type="quorum", length=None, size=10), Queue("work"), version="3.10")
    broker.publish("", "full", b"123456")
    delivery = broker.get("full")
    assert delivery is not None
    broker.reject(delivery, requeue=True)
    broker.publish("", "full", b"12345")

    assert (bodies(broker, "full"), bodies(broker, "work")) == ([b"12345"], [b"123456"])


def test_a_lower_limit_by_policy_counts_at_once() -> None:
    """What is too much now leaves now."""
    broker, _ = _filled(_limited("drop-head", length=9), 3)
    broker.set_policy(Policy("less", "full", "queues", 0, (("max-length", 1),)))

    assert (bodies(broker, "full"), bodies(broker, "work")) == ([b"2"], [b"0", b"1"])


def test_an_operator_limits_what_users_may_keep() -> None:
    """The smaller number counts."""
    broker, _ = _filled(_limited("drop-head", length=9), 3)
    broker.set_policy(Policy("less", ".*", "queues", 0, (("max-length", 2),)), is_operator=True)

    assert bodies(broker, "full") == [b"1", b"2"]


def test_a_dead_letter_for_a_full_queue_is_gone_without_a_word() -> None:
    """The publisher had its confirm long before."""
    target = Queue("work", Settings(max_length=0, overflow="reject-publish"))
    broker = broker_with(_limited("drop-head", length=0), target)
    publication = broker.publish("", "full")

    assert (publication.is_confirmed, broker.count("work").ready) == (True, 0)


@pytest.mark.parametrize("type", ["classic", "quorum"])
@pytest.mark.parametrize("version", ["3.10", "4.3"])
def test_what_leaves_a_full_queue_at_once_leaves_in_order_but_for_old_quorum_queues(type: str, version: str) -> None:
    """One large message takes the room of three (seen on 3.10.8 and 4.3.6)."""
    large = b"x" * (7 if (type, version) == ("quorum", "4.3") else 9)  # Where properties count, these are two bytes.
    broker, _ = _filled(_limited("drop-head", type=type, length=None, size=9), 3, version)
    broker.publish("", "full", large)
    order = [b"2", b"1", b"0"] if (type, version) == ("quorum", "3.10") else [b"0", b"1", b"2"]

    assert (bodies(broker, "full"), bodies(broker, "work")) == ([large], order)


def test_what_comes_back_at_least_once_takes_room_twice_for_a_moment() -> None:
    """It leaves a quorum queue when its target has it, also where that is the same: this one is full then (seen on 3.10.8)."""
    settings = Settings(type="quorum", max_length=1, overflow="reject-publish", dead_letter_exchange="")
    broker, answers = _filled(Queue("full", replace(settings, dead_letter_strategy="at-least-once")), 3, "3.10")
    first, _ = broker.get("full"), broker.get("full")
    assert first is not None

    broker.reject(first, requeue=False)

    assert (answers, broker.publish("", "full").is_nacked) == ("ttn", True)
    assert (bodies(broker, "full"), broker.count("full")) == ([b"0"], (1, 1, 0))
