"""The simulated broker answers clients as real ones do: the same scripts, the same answers."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pika
import pytest
from delayctl.testing import SimulatedBroker

from tests.support.wire_scripts import CASES, Case, observe, prepare, version_of


@pytest.fixture(params=["3.10", "4.3"])
def bare(request: pytest.FixtureRequest) -> Iterator[SimulatedBroker]:
    """A broker with nothing on it but what the scripts begin with; many deliveries at once."""
    with SimulatedBroker(version=request.param, in_turn=False) as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        prepare(connection.channel())
        connection.close()
        yield broker


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_answers_as_real_brokers_do(bare: SimulatedBroker, case: Case) -> None:
    """Code, text, counts and flags."""
    assert observe(bare.url, case.script) == case.answer_of(version_of(bare.url))


def test_a_virtual_host_that_is_not_there(bare: SimulatedBroker) -> None:
    """The connection is not opened."""
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match=r"530.*vhost nowhere not found"):
        pika.BlockingConnection(pika.URLParameters(f"{bare.url.rpartition('/')[0]}/nowhere"))


def test_an_exclusive_queue_goes_with_its_connection(bare: SimulatedBroker) -> None:
    """Named by the broker, closed to others."""
    owner = pika.BlockingConnection(pika.URLParameters(bare.url))
    name = owner.channel().queue_declare("", exclusive=True).method.queue

    def look(channel: pika.adapters.blocking_connection.BlockingChannel) -> None:
        channel.queue_declare(name, passive=True)

    assert observe(bare.url, look)[:2] == ("channel closed", 405)
    owner.close()
    assert observe(bare.url, look)[:2] == ("channel closed", 404)


@pytest.mark.parametrize("hello", [b"GET / HTTP/1.1\r\n\r\n", b"AMQP\x00\x01\x00\x00"])
def test_whoever_speaks_another_protocol_is_told_which_one_is_spoken(bare: SimulatedBroker, hello: bytes) -> None:
    """And the connection ends."""
    with socket.create_connection(("127.0.0.1", urlsplit(bare.url).port or 0), 5) as client:
        client.sendall(hello)
        answer = client.recv(100)
        rest = client.recv(100)

    assert (answer, rest) == (b"AMQP\x00\x00\x09\x01", b"")


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"\x00\x0a\x00\x0b\x00\x00\xff\xff", 502),  # connection.start-ok, cut short.
        (b"\x00\x63\x00\x01", 540),  # A class that there is not.
        (b"\x00", 502),
    ],
)
def test_nonsense_costs_the_client_its_connection_and_nobody_else(
    bare: SimulatedBroker, payload: bytes, code: int
) -> None:
    """It is told so, and the broker goes on."""
    with socket.create_connection(("127.0.0.1", urlsplit(bare.url).port or 0), 5) as client:
        client.sendall(b"AMQP\x00\x00\x09\x01\x01\x00\x00" + len(payload).to_bytes(4, "big") + payload + b"\xce")
        answer = b""
        while b"\x00\x0a\x00\x32" not in answer:  # connection.close
            answer += client.recv(4096)

    assert code.to_bytes(2, "big") == answer.partition(b"\x00\x0a\x00\x32")[2][:2]
    assert observe(bare.url, lambda channel: channel.queue_declare("q").method.queue) == "q"


def test_transactions_are_not_simulated(bare: SimulatedBroker) -> None:
    """Which is said, and not passed over."""
    assert observe(bare.url, lambda channel: channel.tx_select()) == (
        "connection closed",
        540,
        "NOT_IMPLEMENTED - Tx.Select is not simulated",
    )


def test_deliveries_go_out_in_turn() -> None:
    """Unless it is told otherwise, a broker hands out one message at a time, whatever the prefetch."""
    came: list[bytes] = []
    with SimulatedBroker() as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.queue_declare("q")
        channel.confirm_delivery()
        for body in (b"1", b"2", b"3"):
            channel.basic_publish("", "q", body)

        channel.basic_consume("q", lambda _, __, ___, body: came.append(body))
        for expected in ([b"1"], [b"1", b"2"]):
            connection.process_data_events(0.2)
            assert came == expected
            channel.basic_ack(len(came))

        connection.close()
