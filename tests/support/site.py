"""A site that lives without delayctl: exchanges of every type, a queue behind each, programs that publish and consume."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testbed.wait import until
from tests.support.rabbit import Rabbit

TYPES = ("topic", "direct", "fanout", "headers")
PUBLISHERS = 4
EARLY_MS = 5  # Below what two clocks on one machine may disagree by.
_HEADERS = {"x-match": "all", "kind": "order"}


def exchange_of(type: str) -> str:
    """What the site calls its exchange of this type."""
    return f"site-{type}"


def queue_of(type: str) -> str:
    """What the site calls the queue behind it."""
    return f"site-{type}.queue"


def build(rabbit: Rabbit) -> None:
    """Make the exchanges and queues, and bind them directly."""
    with rabbit.channel() as channel:
        for type in TYPES:
            exchange, queue = exchange_of(type), queue_of(type)
            channel.exchange_declare(exchange, type, durable=True)
            channel.queue_declare(queue, durable=True)
            channel.queue_bind(queue, exchange, f"{exchange}.created", _HEADERS if type == "headers" else {})


@dataclass
class Traffic:
    """What was sent and received. `phases` says when messages had to wait: times, and whether they did from then on."""

    delay_ms: int
    received_in: Path
    sent: dict[str, tuple[int, int]] = field(default_factory=dict)  # When it was sent, and when that was confirmed.
    phases: list[tuple[int, bool | None]] = field(default_factory=list)  # None while it is being changed.

    def now(self, *, waits: bool | None) -> None:
        """Note what holds from now on."""
        self.phases.append((time.time_ns() // 1_000_000, waits))

    def lines(self) -> list[list[str]]:
        """What the consumer has written so far."""
        text = self.received_in.read_text() if self.received_in.exists() else ""
        return [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]

    @property
    def received(self) -> Counter[str]:
        """How often each message came."""
        return Counter(line[0] for line in self.lines())

    def await_more(self, count: int) -> None:
        """Wait until so many more have come."""
        wanted = len(self.lines()) + count
        until(lambda: len(self.lines()) >= wanted, 60, what=f"{count} more messages")

    def check(self) -> str:
        """Say what became of all messages; each came once, by the right way, and none that waited was early."""
        lines, received = self.lines(), self.received
        lost = self.sent.keys() - received.keys()
        duplicated = sum(received.values()) - len(received)
        delayed = sum(way == "waited" for *_, way in lines)
        early = [
            line for line in lines if line[3] == "waited" and int(line[2]) - int(line[1]) < self.delay_ms - EARLY_MS
        ]
        strayed = [line for line in lines if self._expected(line[0]) not in (None, line[3] == "waited")]
        account = (
            f"sent {len(self.sent):,}, delivered {len(received):,} ({len(received) - delayed:,} at once, "
            f"{delayed:,} after the delay), lost {len(lost):,}, duplicated {duplicated:,}"
        )
        assert (len(lost), duplicated, early, strayed) == (0, 0, [], []), f"{account}: {self.phases} {strayed}"
        assert received.keys() == self.sent.keys(), account
        return account

    def _expected(self, message_id: str) -> bool | None:
        """Whether it had to wait; None where that changed between its sending and the confirm, as it may go either way."""
        sent, confirmed = self.sent[message_id]
        held = [self._phase_at(sent), self._phase_at(confirmed)]
        return self.phases[held[0]][1] if held[0] == held[1] else None

    def _phase_at(self, moment: int) -> int:
        return sum(since <= moment for since, _ in self.phases) - 1


@contextmanager
def traffic(rabbit: Rabbit, folder: Path, *, delay_ms: int) -> Iterator[Traffic]:
    """Let the programs run until the block ends; then the publishers stop, and all that they sent is awaited."""
    book = Traffic(delay_ms, folder / "received")
    book.now(waits=False)
    queues, exchanges = map(queue_of, TYPES), map(exchange_of, TYPES)
    with (
        _program("plain_consumer", rabbit.url, str(book.received_in), *queues),
        _program("plain_producer", rabbit.url, str(PUBLISHERS), *exchanges) as producer,
    ):
        yield book
        told, _ = producer.communicate("", timeout=60)
        assert producer.returncode == 0
        book.sent |= {each: (int(sent), int(confirmed)) for each, sent, confirmed in map(str.split, told.splitlines())}
        until(lambda: book.received.keys() >= book.sent.keys(), 30, what="the arrival of all that was confirmed")


@contextmanager
def _program(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", f"tests.support.{name}", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            yield program
        finally:
            program.kill()
