"""A redrive is killed in the middle of its work, twice: all arrive, and what comes twice carries the same id."""

import os
import signal
import subprocess
from collections.abc import Callable

from delayctl.consumers.mover import BLOCK

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.faults.account import Account
from tests.support.commands import delayctl_process
from tests.support.parked import park
from tests.support.rabbit import Rabbit

COUNT = int(os.environ.get("DELAYCTL_REDRIVE_MESSAGES", "5000"))
KILLS = 2
# So many are over too soon to be caught in the act; more are moved as fast as it goes.
PACE = ("--rate", "2500/s") if COUNT < 20_000 else ()
TOPOLOGY = """
version: 1
delay: {levels: [50ms]}
routes:
  - {key: order.created, delay: 50ms, to: target}
retry:
  target: {levels: [50ms], max: 3, park: target.dlq}
"""


def killed_at(rabbit: Rabbit, file: str, arrived: int) -> None:
    """Start a redrive, and kill it once so many messages have arrived in all."""
    process = delayctl_process("redrive", file, *PACE, *rabbit.options, stdout=subprocess.DEVNULL)
    try:
        until(lambda: rabbit.ready("target") >= arrived, 120, what=f"the return of {arrived:,} messages", every=0.02)
    finally:
        process.kill()
    assert process.wait(30) == -signal.SIGKILL  # It was not over yet.


def take_all(rabbit: Rabbit, book: Account) -> list[tuple[str, str]]:
    """Take what has arrived: body and message id of each."""
    found: list[tuple[str, str]] = []
    with rabbit.channel() as channel:
        channel.basic_qos(prefetch_count=1_000)
        for method, properties, body in channel.consume("target", inactivity_timeout=2):
            if method is None or properties is None or body is None:
                channel.basic_ack(0, multiple=True)
                return found
            found.append((body.decode(), str(properties.message_id)))
            book.delivered(str(properties.message_id))
            if len(found) % 500 == 0:
                channel.basic_ack(0, multiple=True)
    return found


def test_killed_redrive(rabbit: Rabbit, topology: TopologyFile, account: Callable[[str], Account]) -> None:
    """Run again until it ends, it leaves nothing behind and loses nothing."""
    file = topology.write(TOPOLOGY)
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    book = account(rabbit.broker.version)
    ids = [f"m-{number}" for number in range(COUNT)]
    park(rabbit, topology.path, ids, key="order.created", queue="target", parking="target.dlq")
    book.sent.update(ids)
    book.confirmed.update(ids)

    for kill in range(KILLS):
        killed_at(rabbit, file, COUNT * (kill + 1) // (KILLS + 1))
    until(lambda: rabbit.queue("target.dlq").get("messages_unacknowledged") == 0, 30, what="the end of what was killed")
    last = rabbit.delayctl("redrive", file)

    assert last.code == 0, last.err
    assert rabbit.ready("target.dlq") == 0
    found = take_all(rabbit, book)
    book.check()
    assert all(body == message_id for body, message_id in found)
    assert book.duplicated <= KILLS * 2 * BLOCK  # What was on its way when it was killed.
    assert rabbit.ready("target") == rabbit.ready("delay.unrouted.queue") == 0
