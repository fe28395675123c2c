"""Messages that are moved from queue to queue, whatever comes between."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from delayctl.consumers.homes import Onward
from delayctl.consumers.inbox import Delivery
from delayctl.consumers.mover import Mover
from delayctl.consumers.pull import Pull
from delayctl.publishers.engine import Engine
from delayctl.publishers.frames import Properties, decode_properties
from delayctl.publishers.window import Entry
from delayctl.testing.simulated import SimulatedBroker
from delayctl.topology.access import access_from

IDS = [f"m-{number}" for number in range(5)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[SimulatedBroker]:
    """Five messages are parked."""
    file = tmp_path / "topology.yaml"
    file.write_text("version: 1\ndelay: none\nqueues: {orders: {}, parked: {}}\n")
    with SimulatedBroker(file, in_turn=False) as broker:
        with broker.publisher() as publisher:
            for message_id in IDS:
                publisher.publish("", exchange="", key="parked", message_id=message_id)
        yield broker


def to_orders(delivery: Delivery) -> Onward:
    """All go there."""
    return Onward("", "orders", "orders", Properties(message_id=decode_properties(delivery.header).message_id))


def ids(broker: SimulatedBroker, queue: str) -> list[str]:
    """What a queue holds."""
    return sorted(message.message_id or "" for message in broker.messages(queue))


def test_ctrl_c_doubles_no_message_that_was_just_handed_over(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It arrives, is acknowledged and counted; what comes behind it stays."""
    hand_over, handed_over = Engine.hand_over, list[str]()

    def interrupted(engine: Engine, entry: Entry) -> None:
        hand_over(engine, entry)
        handed_over.append(entry.message_id)
        if len(handed_over) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Engine, "hand_over", interrupted)
    with broker.publisher() as publisher, Pull(access_from(broker.url), "parked", name="test") as pull:
        moved = Mover(pull, to_orders, publisher).run(5)
    broker.settle()

    assert (moved.is_stopped, moved.sent["orders"], moved.on_the_way) == (True, 3, 0)
    assert (ids(broker, "orders"), ids(broker, "parked")) == (IDS[:3], IDS[3:])
