"""How messages are handed out, answered and given back."""

from collections import deque

import pytest
from delayctl.simulator.rabbitmq import Broker, Delivery
from delayctl.simulator.rabbitmq_events import Acked, DeadLettered, Delivered, Published, Requeued
from delayctl.topology.errors import Refused
from delayctl.topology.model import Queue, Settings

from tests.unit.simulator.rabbitmq_parts import bodies, broker_with


def _taken(broker: Broker, queue: str) -> Delivery:
    delivery = broker.get(queue)
    assert delivery is not None
    return delivery


def _with_messages(queue: Queue, count: int, version: str = "4.3") -> Broker:
    broker = broker_with(queue, version=version)
    for number in range(count):
        broker.publish("", queue.name, f"{number}".encode())
    return broker


def test_a_prefetch_of_one_hands_out_one_at_a_time() -> None:
    """The next one comes with the answer."""
    broker = _with_messages(Queue("q"), 2)
    deliveries: list[Delivery] = []
    broker.consume("q", deliveries.append, prefetch=1, tag="c")
    first = list(deliveries)
    broker.ack(first[0])

    assert (len(first), broker.log[2:]) == (
        1,
        [
            (0, Delivered(1, "q", "c")),
            (0, Acked(1, "q")),
            (0, Delivered(2, "q", "c")),
        ],
    )


def test_consumers_take_turns() -> None:
    """One message each."""
    broker = broker_with(Queue("q"))
    seen: list[str] = []
    for tag in "ab":
        broker.consume("q", lambda _, tag=tag: seen.append(tag), no_ack=True)  # type: ignore[misc]
    for _ in range(4):
        broker.publish("", "q")

    assert "".join(seen) == "abab"


def test_a_consumer_that_is_cancelled_keeps_what_it_has() -> None:
    """And may still answer it."""
    broker = _with_messages(Queue("q"), 1)
    deliveries: list[Delivery] = []
    consumer = broker.consume("q", deliveries.append)
    broker.cancel(consumer)
    broker.publish("", "q")
    broker.ack(deliveries[0])

    assert broker.count("q") == (1, 0, 0)


def test_an_answer_is_given_once() -> None:
    """A second one closes the channel."""
    broker = _with_messages(Queue("q"), 1)
    delivery = _taken(broker, "q")
    broker.ack(delivery)

    with pytest.raises(Refused) as refused:
        broker.reject(delivery, requeue=True)

    assert refused.value.code == 406


def test_what_a_consumer_publishes_in_turn_happens_after_it_returns() -> None:
    """A consumer that rejects what comes straight back is no endless recursion."""
    broker = broker_with(Queue("q", Settings(dead_letter_exchange="")))
    left = [3_000]

    def again(delivery: Delivery) -> None:
        left[0] -= 1
        if left[0]:
            broker.reject(delivery, requeue=False)
        else:
            broker.ack(delivery)

    broker.consume("q", again)
    broker.publish("", "q")

    assert (left, broker.count("q")) == ([0], (0, 0, 0))


def test_a_classic_queue_puts_messages_back_where_they_were() -> None:
    """In whatever order they come back."""
    broker = _with_messages(Queue("q"), 4)
    zero, one, two = (_taken(broker, "q") for _ in range(3))
    for delivery in (two, zero):
        broker.nack(delivery, requeue=True)
    broker.ack(one)

    assert bodies(broker, "q") == [b"0", b"2", b"3"]
    assert [delivery.redelivered for delivery in broker.peek("q")] == [True, True, False]


def test_a_quorum_queue_puts_them_in_front_in_the_order_of_their_return() -> None:
    """Not where they were."""
    broker = _with_messages(Queue("q", Settings(type="quorum")), 4)
    zero, _, two = (_taken(broker, "q") for _ in range(3))
    for delivery in (two, zero):
        broker.nack(delivery, requeue=True)

    assert bodies(broker, "q") == [b"2", b"0", b"3"]


def test_an_old_quorum_queue_without_a_delivery_limit_appends_them() -> None:
    """Behind all that waits."""
    broker = _with_messages(Queue("q", Settings(type="quorum")), 3, version="3.10")
    for delivery in [_taken(broker, "q") for _ in range(2)]:
        broker.nack(delivery, requeue=True)

    assert bodies(broker, "q") == [b"2", b"0", b"1"]


def test_a_quorum_queue_gives_up_after_so_many_failures() -> None:
    """A limit of one means two deliveries."""
    limited = Queue("q", Settings(type="quorum", delivery_limit=1, dead_letter_exchange="", dead_letter_key="dead"))
    broker = broker_with(limited, Queue("dead"))
    broker.publish("", "q")
    for _ in range(2):
        broker.reject(_taken(broker, "q"), requeue=True)

    assert broker.log == [
        (0, Published(1, "", "q", ("q",))),
        (0, Delivered(1, "q", "")),
        (0, Requeued(1, "q")),
        (0, Delivered(1, "q", "", is_redelivered=True)),
        (0, Requeued(1, "q")),
        (0, DeadLettered(1, "q", "delivery_limit", "", "dead", ("dead",))),
    ]


def test_new_brokers_count_what_is_rejected_and_not_what_is_nacked() -> None:
    """Both are told apart in the headers."""
    broker = _with_messages(Queue("q", Settings(type="quorum")), 1)
    broker.nack(_taken(broker, "q"), requeue=True)
    nacked = _taken(broker, "q")
    broker.reject(nacked, requeue=True)

    assert [nacked.headers, _taken(broker, "q").headers] == [
        {"x-acquired-count": 1},
        {"x-acquired-count": 2, "x-delivery-count": 1},
    ]


def test_new_brokers_remember_a_rejection_beyond_death() -> None:
    """What was rejected once is redelivered from then on, also out of another queue."""
    found = {}
    for version in ("3.10", "4.3"):
        broker = broker_with(
            Queue("q", Settings(dead_letter_exchange="", dead_letter_key="dead")), Queue("dead"), version=version
        )
        broker.publish("", "q")
        broker.reject(_taken(broker, "q"), requeue=False)
        found[version] = _taken(broker, "dead").redelivered

    assert found == {"3.10": False, "4.3": True}


def test_new_quorum_queues_go_on_counting_the_failures_of_other_queues() -> None:
    """And count anew how often a message was handed out here."""
    broker = broker_with(
        Queue("q", Settings(dead_letter_exchange="", dead_letter_key="dead")), Queue("dead", Settings(type="quorum"))
    )
    broker.publish("", "q")
    broker.reject(_taken(broker, "q"), requeue=False)
    counts = []
    for _ in range(2):
        delivery = _taken(broker, "dead")
        counts.append((delivery.headers["x-acquired-count"], delivery.headers["x-delivery-count"]))
        broker.reject(delivery, requeue=True)

    assert counts == [(1, 1), (1, 2)]


@pytest.mark.parametrize(("version", "held"), [("3.10", [1, 2, 2, 3]), ("4.3", [1, 1, 1, 1])])
def test_old_brokers_let_a_consumer_hold_one_more_for_each_message_that_it_failed_too_often(
    version: str, held: list[int]
) -> None:
    """They count such an answer twice (seen on 3.10.8): a prefetch of one is one no longer, whatever is acknowledged later."""
    broker = _with_messages(Queue("q", Settings(type="quorum", delivery_limit=0)), 8, version)
    waiting: deque[Delivery] = deque()
    broker.consume("q", waiting.append, prefetch=1)
    counts = [len(waiting)]
    for is_failed in (True, False, True):
        if is_failed:
            broker.reject(waiting.popleft(), requeue=True)
        else:
            broker.ack(waiting.popleft())
        counts.append(len(waiting))

    assert counts == held


def test_a_failure_of_what_was_taken_with_get_gives_no_consumer_more() -> None:
    """Seen on 3.10.8."""
    broker = _with_messages(Queue("q", Settings(type="quorum", delivery_limit=0)), 4, "3.10")
    waiting: list[Delivery] = []
    broker.consume("q", waiting.append, prefetch=1)
    broker.reject(_taken(broker, "q"), requeue=True)

    assert (len(waiting), broker.count("q")) == (1, (2, 1, 0))
