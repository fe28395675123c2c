"""A service is killed in the middle of its work, or asked to stop."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.faults.account import Account
from tests.faults.traffic import await_arrival, consuming
from tests.support.rabbit import Rabbit

TOPOLOGY = """
version: 1
delay: {levels: [50ms]}
routes:
  - {key: via.50ms, delay: 50ms, to: target}
retry:
  target: {levels: [50ms], max: 3, park: target.dlq}
"""
COUNT = 20


@pytest.fixture
def book(rabbit: Rabbit, topology: TopologyFile, account: Callable[[str], Account]) -> Account:
    """Twenty messages that wait in the queue of a service."""
    assert rabbit.delayctl("apply", topology.write(TOPOLOGY), "--yes").code == 0
    book = account(rabbit.broker.version)
    with DelayPublisher(rabbit.url, topology=topology.path) as publisher:
        for number in range(COUNT):
            book.watch(
                f"m-{number}",
                lambda message_id: publisher.publish(b"", key="via.50ms", level="50ms", message_id=message_id),
            )
    rabbit.await_ready("target", COUNT)
    return book


@contextmanager
def service(rabbit: Rabbit, topology: TopologyFile, handler: str) -> Iterator["subprocess.Popen[str]"]:
    """The service in a process of its own."""
    arguments = [sys.executable, "-m", "tests.faults.service", rabbit.url, str(topology.path), handler]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_killed_inside_the_handler(rabbit: Rabbit, topology: TopologyFile, book: Account) -> None:
    """Nothing it held is lost: another gets it, marked as delivered before."""
    with service(rabbit, topology, "hang") as process:
        assert process.stdout is not None
        begun = {process.stdout.readline().split()[1] for _ in range(2)}
        process.kill()
        process.wait()

    assert len(begun) == 2
    with consuming(rabbit, topology.path, book):
        await_arrival(book)
    book.check()
    assert book.duplicated == 0
    assert rabbit.ready("target") == 0


def test_asked_to_stop(rabbit: Rabbit, topology: TopologyFile, book: Account) -> None:
    """It finishes what it has begun, acknowledges, gives back the rest and closes: each message is handled once."""
    with service(rabbit, topology, "slow") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        lines += process.stdout.readlines()
        assert process.wait(30) == 0

    words = [line.split() for line in lines]
    begun, done = ([name for said, *name in words if said == what] for what in ("begun", "done"))
    assert sorted(begun) == sorted(done)
    assert words[-1] == ["closed"]
    assert 2 <= len(done) < COUNT
    until(lambda: rabbit.ready("target") == COUNT - len(done), 10, what="the return of what was not begun")
    for (name,) in done:
        book.delivered(name)
    with consuming(rabbit, topology.path, book):
        await_arrival(book)
    book.check()
    assert book.duplicated == 0
