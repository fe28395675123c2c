"""Who gets the next message, and when."""

from typing import Any

import pytest
from delayctl.simulator.rabbitmq import Broker, Delivery
from delayctl.testing.turns import Push, Turns
from delayctl.topology.model import Queue


def deliveries(count: int) -> list[Delivery]:
    """So many, as a model hands them out."""
    model = Broker()
    model.declare_queue(Queue("q"))
    for number in range(count):
        model.publish("", "q", str(number).encode())
    return [delivery for _ in range(count) if (delivery := model.get("q")) is not None]


@pytest.fixture
def sent() -> list[bytes]:
    """What went out."""
    return []


def offered(turns: Turns, sent: list[bytes], count: int = 3) -> list[Push]:
    """So many pushes, all offered."""

    def note(push: Any) -> None:
        sent.append(push.delivery.body)

    pushes = [Push(delivery, note) for delivery in deliveries(count)]
    for push in pushes:
        turns.offer(push)
    return pushes


def test_the_next_goes_out_when_the_last_is_settled(sent: list[bytes]) -> None:
    """In the order in which they were offered."""
    turns = Turns(in_turn=True)
    first, second, third = offered(turns, sent)
    assert (sent, turns.unsettled) == ([b"0"], [first.delivery])

    turns.settle([first])
    assert (sent, turns.unsettled) == ([b"0", b"1"], [second.delivery])

    turns.settle([second])
    turns.settle([third])
    assert (sent, turns.unsettled) == ([b"0", b"1", b"2"], [])


def test_what_is_settled_before_its_turn_is_not_sent(sent: list[bytes]) -> None:
    """Nobody is there to take it."""
    turns = Turns(in_turn=True)
    first, second, third = offered(turns, sent)

    turns.settle([first, second])

    assert (sent, turns.unsettled) == ([b"0", b"2"], [third.delivery])


def test_without_turns_all_go_out_at_once(sent: list[bytes]) -> None:
    """And are settled in any order."""
    turns = Turns(in_turn=False)
    first, second, third = offered(turns, sent)
    assert sent == [b"0", b"1", b"2"]

    turns.settle([second])

    assert turns.unsettled == [first.delivery, third.delivery]
