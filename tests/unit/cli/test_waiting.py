"""Waiting for queues: how it is told, and when it ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from delayctl.cli import waiting
from delayctl.cli.waiting import Patience, is_not_yet, progress_text
from delayctl.topology.duration import Duration
from delayctl.topology.errors import Refused, StillHolds
from delayctl.topology.execute import Done, Failed
from delayctl.topology.model import Queue
from delayctl.topology.plan import Delete, Wait

WAIT = Wait("5m", "delay.5m.queue", 3, Duration.parse("5m"), Duration.parse("10m"), "declared anew")
SHORT = Wait("1ms", "delay.1ms.queue", 3, Duration(1), Duration(2), "removed")
DELETE = Delete(Queue("delay.5m.queue"), 13)


@dataclass
class Emptying:
    """A broker whose queue loses a message each time that somebody looks."""

    left: int
    queue: str = WAIT.queue

    def ready(self, queue: str) -> int:
        """One less."""
        assert queue == self.queue
        self.left -= 1
        return self.left

    @contextmanager
    def connect(self) -> Iterator["Emptying"]:
        """It is there already."""
        yield self


@pytest.mark.parametrize(("waited", "left"), [(0.2, "5m"), (61.9, "3m59s"), (999, "0s")])
def test_the_time_that_is_left_is_told(waited: float, left: str) -> None:
    """Never less than nothing."""
    assert progress_text(WAIT, 3, waited) == f"Waiting for delay.5m.queue: 3 messages, at most {left} more"


def test_it_ends_with_the_first_queue_that_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    """The lock is kept all the while; where nobody watches, it is told once."""
    kept: list[int] = []
    broker = Emptying(3)

    Patience(broker.connect, lambda: kept.append(1)).wait_for([WAIT])

    assert (broker.left, len(kept)) == (0, 3)
    assert capsys.readouterr().err == "Waiting for delay.5m.queue: 2 messages, at most 5m more\n"


def test_what_does_not_empty_is_not_waited_for_for_ever() -> None:
    """It says what may be the reason."""
    patience = Patience(Emptying(1_000, SHORT.queue).connect, lambda: None, grace_s=0)
    with pytest.raises(StillHolds, match=r"delay\.1ms\.queue still holds 99. messages after 1ms") as caught:
        patience.wait_for([SHORT])
    assert caught.value.fix


def test_only_a_queue_that_has_to_empty_is_no_failure() -> None:
    """All else is."""
    assert is_not_yet(Failed(DELETE, StillHolds("holds messages")))
    assert not is_not_yet(Failed(DELETE, Refused("no")))
    assert not is_not_yet(Done(DELETE))


class Clock:
    """A time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        """The time as it is."""
        return self.now_s

    def sleep(self, seconds: float) -> None:
        """Let it pass."""
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that waiting looks at."""
    clock = Clock()
    monkeypatch.setattr(waiting, "time", clock)
    return clock


@dataclass
class Counted:
    """A broker of whose queue so many messages are ready, one look after the other; the last number stays."""

    counts: list[int]

    def ready(self, queue: str) -> int:
        """The next number."""
        assert queue == WAIT.queue
        return self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]

    @contextmanager
    def connect(self) -> Iterator["Counted"]:
        """It is there already."""
        yield self


def test_what_is_not_ready_is_not_waited_for_for_ever_either(clock: Clock) -> None:
    """The plan counts what is given out or being dead-lettered, and nobody sees it leave."""
    patience = Patience(Counted([0]).connect, lambda: None)

    def plan_again_and_again() -> None:
        while clock.now_s < 3_600:
            patience.wait_for([WAIT])

    with pytest.raises(StillHolds, match="still holds 3 messages after 5m"):
        plan_again_and_again()
    assert 330 < clock.now_s < 332


def test_a_wait_that_looks_shorter_later_on_keeps_its_time(clock: Clock) -> None:
    """A step of the ladder gets what comes from above; with that gone, only its own wait is told."""
    patience = Patience(Counted([0, 1, 1, 0]).connect, lambda: None)
    patience.wait_for([WAIT])
    clock.now_s = 200

    patience.wait_for([replace(WAIT, longest=Duration.parse("1m"))])

    assert clock.now_s == 201.5
