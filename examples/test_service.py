"""Tests of the example service, without a server and without waiting: `pytest examples/test_service.py`."""

from pathlib import Path

import pytest
from delayctl.publishers import Unroutable
from delayctl.testing import SimulatedBroker

from examples import consume_service


@pytest.fixture
def delay_topology() -> Path:
    """What the broker of these tests holds."""
    return Path(__file__).with_name("service.yaml")


@pytest.fixture
def service(delay_broker: SimulatedBroker) -> SimulatedBroker:
    """The broker, with the service at work on it."""
    delay_broker.consumer({"orders.timeout.queue": consume_service.handle})
    return delay_broker


def create(broker: SimulatedBroker, order: str) -> None:
    """Do what the shop does when an order is created."""
    broker.publish(order, key="order.created", exchange="orders.exchange")


def test_an_order_is_handled_three_seconds_later(service: SimulatedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    """Not a millisecond before."""
    create(service, "order 4711")

    service.advance("2s999ms")
    assert capsys.readouterr().out == ""

    service.advance("1ms")
    assert capsys.readouterr().out == "handled 'order 4711' with key order.created, attempt 0\n"


def test_a_bank_that_is_down_is_asked_again(service: SimulatedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    """After one second, and after two more."""
    create(service, "bank is down")

    service.advance("5s999ms")
    assert capsys.readouterr().out == ""

    service.advance("1ms")
    assert capsys.readouterr().out == "handled 'bank is down' with key order.created, attempt 2\n"


def test_an_empty_order_is_parked(service: SimulatedBroker) -> None:
    """With the reason."""
    create(service, " ")

    service.advance("3s")

    (parked,) = service.messages("orders.timeout.dlq")
    assert parked.headers["delay-parked"] == "the body is empty"


def test_an_order_that_comes_twice_is_handled_once(
    service: SimulatedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker delivers at least once; the service looks at the message id."""
    for _ in range(2):
        service.publish("order 1", key="order.created", exchange="orders.exchange", message_id="order-1")

    service.advance("3s")

    said = capsys.readouterr().out.splitlines()  # Two workers speak, in either order.
    assert sorted(said) == ["handled 'order 1' with key order.created, attempt 0", "seen before: order-1"]


def test_a_key_that_nobody_takes_is_no_silent_loss(delay_broker: SimulatedBroker) -> None:
    """The publisher is told."""
    with pytest.raises(Unroutable):
        delay_broker.publish("order 4711", key="order.creatd", exchange="orders.exchange")
