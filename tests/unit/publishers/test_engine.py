"""A publisher whose connection does not last, does not come, or was left behind."""

import os
import socket
import time
from collections.abc import Iterator

import pytest
from delayctl.publishers import ConnectionLost, DelayPublisher
from delayctl.publishers.errors import PublisherClosed
from delayctl.testing import SimulatedBroker
from delayctl.topology.access import access_from
from delayctl.topology.errors import DelayctlError
from delayctl.topology.parse import read_spec

from testbed.wait import until

TOPOLOGY = read_spec("version: 1\ndelay: {levels: [10s]}\nqueues: {work: {}}\n", {}, file="topology.yaml")


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    """A broker with a level."""
    with SimulatedBroker(TOPOLOGY) as running:
        yield running


def cut_after_each_copy(broker: SimulatedBroker, publisher: DelayPublisher) -> None:
    """Cut the connection whenever a message came over it, and before it is confirmed."""
    copies = 0

    def is_over() -> bool:
        nonlocal copies
        if (found := len(broker.waiting("10s"))) > copies:
            copies = found
            broker.drop_connections()
        return not publisher.unanswered

    until(is_over, 5, what="the end of patience", every=0.002)


def test_a_connection_that_breaks_again_and_again_is_given_up(broker: SimulatedBroker) -> None:
    """Where nothing is answered in between: with pauses, so that there are few copies, and in time."""
    publisher = broker.publisher(give_up_after_s=0.6)
    with broker.silent():
        sent = publisher.publish("order", key="work", delay="10s")
        cut_after_each_copy(broker, publisher)

    assert type(sent.exception(0)) is ConnectionLost
    assert 2 <= len(broker.waiting("10s")) <= 8


def test_after_an_answer_it_connects_at_once(broker: SimulatedBroker) -> None:
    """Each loss is then the first."""
    publisher = broker.publisher(give_up_after_s=0)

    for _ in range(5):
        publisher.publish("order", key="work", delay="10s").result(10)
        broker.drop_connections()

    publisher.publish("order", key="work", delay="10s").result(10)


def test_what_is_published_after_a_loss_has_its_own_time(broker: SimulatedBroker) -> None:
    """A publisher that had nothing to say is not out of patience when the connection breaks again."""
    publisher = broker.publisher(give_up_after_s=0.3)
    connected = publisher._engine._since
    broker.drop_connections()
    until(lambda: publisher._engine._since > connected, 10, every=0.01)
    time.sleep(0.4)
    with broker.silent():
        sent = publisher.publish("order", key="work", delay="10s")
        until(lambda: broker.waiting("10s"), 10, every=0.01)
        broker.drop_connections()

    assert sent.exception(10) is None


def silent_listener() -> socket.socket:
    """Somebody who accepts connections and says nothing."""
    return socket.create_server(("127.0.0.1", 0))


def test_closing_does_not_wait_for_brokers_that_do_not_answer() -> None:
    """What is unanswered has failed then."""
    with silent_listener() as first, silent_listener() as second:
        urls = [f"amqp://guest:guest@127.0.0.1:{each.getsockname()[1]}/" for each in (first, second)]
        with SimulatedBroker(TOPOLOGY) as broker:
            publisher = DelayPublisher(broker.url, topology=TOPOLOGY)
            publisher._engine._brokers = [access_from(url) for url in urls]
            silence = broker.silent()
            silence.__enter__()
            sent = publisher.publish("order", key="work", delay="10s")
            broker.drop_connections()
        time.sleep(0.1)
        started = time.monotonic()

        publisher._engine.close()

        assert time.monotonic() - started < 5
        assert type(sent.exception(0)) is PublisherClosed


def answers_of_a_fork(publisher: DelayPublisher) -> list[str]:
    """What a publisher says in a process that got it by a fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        answers = []
        try:
            for call in (
                lambda: publisher.publish("order", key="work", delay="10s"),
                lambda: publisher.flush(0),
                lambda: publisher.close(0),
            ):
                try:
                    answers.append(type(call()).__name__)
                except DelayctlError as error:
                    answers.append(str(error))
        finally:
            os.write(writing, "\n\n".join(answers).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text.split("\n\n")


def test_a_publisher_that_a_fork_inherited_says_so(broker: SimulatedBroker) -> None:
    """It has no thread that would send: nothing is taken to be lost, and what the other process sends is not its business."""
    publisher = broker.publisher()
    with broker.silent():
        sent = publisher.publish("order", key="work", delay="10s")

        answers = answers_of_a_fork(publisher)

    sent.result(10)
    refusal = (
        "Error: the publisher was made before a fork: the thread that sends is in the process that made it\n"
        "  fix: make a publisher in each process, after forking"
    )
    assert (answers, len(broker.waiting("10s"))) == ([refusal, "NoneType", "NoneType"], 1)
