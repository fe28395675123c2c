"""Carrying out a goal by several plans: what is put off and what is a failure, on a broker in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import pytest
from delayctl.cli import carry_out
from delayctl.cli.carry_out import Manner, plan_and_carry_out
from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.live import Backlog
from delayctl.topology.model import Topology
from delayctl.topology.plan import Plan
from delayctl.topology.spec import QueueSpec

from tests.support.examples import live_of, shop
from tests.support.memory_broker import VERSION, MemoryBroker

QUEUE = "delay.15m.queue"
LONGER, SHORTER = shop("1m 5m 15m"), shop("1m 5m")


@dataclass
class MemoryHost:
    """A virtual host in memory; messages come into one of its delays after it was counted, and leave while somebody waits."""

    held: MemoryBroker = field(default_factory=lambda: MemoryBroker.holding(live_of(LONGER)))
    late: int = 0  # How many times one comes.
    empty_after: int = 1  # So many pauses; then nothing waits there any more.
    plans: int = 0
    meanwhile: Callable[[MemoryBroker], object] = lambda _: None  # What others do while somebody waits.

    @contextmanager
    def broker(self) -> Iterator[MemoryBroker]:
        """The one broker there is."""
        yield self.held

    def plan(self, desired: Topology, _accept_loss: tuple[str, ...]) -> tuple[Plan, str]:
        """Count first; then a message may come."""
        self.plans += 1
        plan = diff(desired, self.held.live())
        if self.late:
            self.late -= 1
            self.held.backlog[QUEUE] = Backlog(1)
        return plan, VERSION

    def pass_time(self, _seconds: float) -> None:
        """Let a pause go by."""
        self.empty_after -= 1
        if self.empty_after <= 0:
            self.held.backlog.pop(QUEUE, None)
        self.meanwhile(self.held)


@contextmanager
def nobody_else(*_: object) -> Iterator[object]:
    """The lock, where nobody else wants it."""
    yield lambda: None


def carried_out(host: MemoryHost, desired: Topology = SHORTER, *, wait: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """Take away a level, or do something else; pauses between looks take no time."""
    monkeypatch.setattr(carry_out, "locked", nobody_else)
    manner = Manner(yes=True, lock_timeout=Duration(1), accept_loss=(), output="text", wait=wait)
    with patch("delayctl.cli.waiting.time.sleep", host.pass_time):
        return plan_and_carry_out(host, desired, "topology.yaml", manner)  # type: ignore[arg-type]  # All that is asked of a host.


@pytest.mark.parametrize(("late", "empty_after"), [(0, 1), (1, 1), (1, 5), (5, 1)])
def test_what_comes_late_is_waited_for(late: int, empty_after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again until it can be done; in the end all is as the file says, and so says the exit code."""
    host = MemoryHost(late=late, empty_after=empty_after)

    assert carried_out(host, wait=True, monkeypatch=monkeypatch) == 0
    assert QUEUE not in host.held.queues
    assert host.held.lost == []


def test_it_is_a_failure_where_nobody_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was done before it was done: the exit code says so."""
    assert carried_out(MemoryHost(late=1), wait=False, monkeypatch=monkeypatch) == 3
    assert f"queue {QUEUE} holds messages" in capsys.readouterr().out


def test_what_comes_late_for_ever_is_told_at_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It does not wait for ever, and says for what it waited."""
    host = MemoryHost(late=1_000)

    assert carried_out(host, wait=True, monkeypatch=monkeypatch) == 3
    assert f"queue {QUEUE} holds messages" in capsys.readouterr().out
    assert QUEUE in host.held.queues


def test_a_consumer_in_the_way_ends_the_waiting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is there to be waited for: what is refused has to be put right first."""
    host = MemoryHost()
    host.held.backlog["delay.5m.queue"] = Backlog(0, consumers=1)

    assert carried_out(host, shop("1m 5m 15m", max_length=20), wait=True, monkeypatch=monkeypatch) == 3
    assert "1 consumer would be cut off" in capsys.readouterr().out


def test_what_waits_is_waited_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told, and looked at again and again; a plan is made only when the queue is empty."""
    host = MemoryHost(MemoryBroker.holding(live_of(LONGER, {QUEUE: 1})), empty_after=100)

    assert carried_out(host, wait=True, monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().err == f"Waiting for {QUEUE}: 1 message, at most 15m more\n"
    assert host.plans == 3
    assert QUEUE not in host.held.queues


def test_an_empty_queue_that_something_else_holds_up_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside one that empties: only that is told, and no plan is made before it is empty."""
    host = MemoryHost(MemoryBroker.holding(live_of(LONGER, {QUEUE: 1})), empty_after=100)
    host.held.backlog["delay.5m.queue"] = Backlog(0, consumers=1)

    assert carried_out(host, shop("1m 5m 15m", max_length=20), wait=True, monkeypatch=monkeypatch) == 3
    assert capsys.readouterr().err == f"Waiting for {QUEUE}: 1 message, at most 15m more\n"
    assert host.plans < 10


BILLING = (QueueSpec("orders.queue"), QueueSpec("billing.queue", existing=True))


def test_a_later_plan_that_is_blocked_is_not_carried_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says why, and the exit code that some of it was done."""
    held = MemoryBroker.holding(live_of(shop("1m 5m 15m", queues=BILLING), {QUEUE: 1}))
    host = MemoryHost(held, meanwhile=lambda broker: broker.queues.pop("billing.queue", None))

    assert carried_out(host, shop("1m 5m", queues=BILLING), wait=True, monkeypatch=monkeypatch) == 3
    assert "queue billing.queue: is marked existing and is not on the broker" in capsys.readouterr().out
    assert QUEUE in held.queues
