"""Messages that are taken and held: no more of them than fit."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from delayctl.consumers.blocks import bytes_of, next_size
from delayctl.consumers.deaths import Delays
from delayctl.consumers.homes import Onward
from delayctl.consumers.inbox import Delivery
from delayctl.consumers.look import look
from delayctl.consumers.mover import Mover
from delayctl.consumers.pull import Pull
from delayctl.publishers.frames import Properties, decode_properties
from delayctl.testing.simulated import SimulatedBroker
from delayctl.topology.access import Access, access_from

MIB = 1 << 20
SMALL, LARGE = [f"s-{number}" for number in range(25)], [f"l-{number}" for number in range(30)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[SimulatedBroker]:
    """Small messages are parked, and large ones behind them."""
    file = tmp_path / "topology.yaml"
    file.write_text("version: 1\ndelay: none\nqueues: {orders: {}, parked: {}}\n")
    with SimulatedBroker(file, in_turn=False) as broker:
        with broker.publisher() as publisher:
            for message_id in (*SMALL, *LARGE):
                body = "" if message_id in SMALL else "x" * MIB
                publisher.publish(body, exchange="", key="parked", message_id=message_id)
        yield broker


@pytest.fixture
def access(broker: SimulatedBroker) -> Access:
    """Where it is."""
    return access_from(broker.url)


def ids(broker: SimulatedBroker, queue: str) -> list[str | None]:
    """What a queue holds."""
    return [message.message_id for message in broker.messages(queue)]


def ids_of(block: list[Delivery]) -> list[str | None]:
    """What was taken."""
    return [decode_properties(delivery.header).message_id for delivery in block]


def test_a_block_is_full_when_its_bodies_are_large_enough(broker: SimulatedBroker, access: Access) -> None:
    """However many were asked for; what was under way goes back, and is next."""
    with Pull(access, "parked", name="test") as pull:
        blocks = [pull.take(500) for _ in range(3)]

        assert [ids_of(block) for block in blocks] == [[*SMALL, *LARGE[:8]], LARGE[8:16], LARGE[16:24]]

    broker.settle()
    assert ids(broker, "parked") == [*SMALL, *LARGE]


def test_what_does_not_fit_is_looked_at_and_put_back_in_its_place(broker: SimulatedBroker, access: Access) -> None:
    """All of it is seen once."""
    found = look(access, "parked", 10_000, None, Delays("", frozenset(), frozenset()))
    broker.settle()

    assert [each.message_id for each in found.seen] == [*SMALL, *LARGE]
    assert ids(broker, "parked") == [*SMALL, *LARGE]


def test_what_does_not_fit_is_moved_in_its_order(
    broker: SimulatedBroker, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Block by block, and no block is larger than that."""
    blocks, take = list[int](), Pull.take

    def taken(pull: Pull, most: int) -> list[Delivery]:
        block = take(pull, most)
        blocks.append(bytes_of(block))
        return block

    def to_orders(delivery: Delivery) -> Onward:
        return Onward("", "orders", "orders", Properties(message_id=decode_properties(delivery.header).message_id))

    monkeypatch.setattr(Pull, "take", taken)
    with broker.publisher() as publisher, Pull(access, "parked", name="test") as pull:
        moved = Mover(pull, to_orders, publisher).run(pull.ready)
    broker.settle()

    assert (moved.sent["orders"], ids(broker, "orders")) == (55, [*SMALL, *LARGE])
    assert max(blocks) == 8 * MIB


@pytest.mark.parametrize(
    ("size", "length", "expected"), [(1, 10, 20), (20, 10, 400), (400, 10, 500), (500, 1 << 22, 2)]
)
def test_the_next_block_is_as_large_as_the_last_one_allows(size: int, length: int, expected: int) -> None:
    """One message at least, and not many more than before."""
    delivery = Delivery(1, "parked", "", "parked", redelivered=False)
    delivery.body = b"x" * length

    assert next_size(size, [delivery], 500) == expected
