"""Waiting for queues that empty by themselves, and telling how it goes."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import click
from delayctl.topology.duration import Duration
from delayctl.topology.errors import StillHolds
from delayctl.topology.execute import Failed, Outcome
from delayctl.topology.plan import Wait
from delayctl.topology.wording import plural

_LOOK_EVERY_S = 0.5
_TELL_EVERY_S = 30  # Where nobody watches a terminal.
_GRACE_S = 30  # A broker under load lets messages out a little late.


def is_not_yet(outcome: Outcome) -> bool:
    """Say whether a change was not made merely because a queue has to empty first."""
    return isinstance(outcome, Failed) and isinstance(outcome.error, StillHolds)


class Counts(Protocol):
    """All that waiting asks of a broker."""

    def ready(self, queue: str) -> int:
        """How many messages are ready in a queue as of now."""


class Patience:
    """Waits for queues, each for as long as its messages may take, however often it is asked about one."""

    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[Counts]],
        keep_lock: Callable[[], None],
        *,
        grace_s: float = _GRACE_S,
    ) -> None:
        self._connect = connect
        self._keep_lock = keep_lock
        self._grace_s = grace_s
        self._since: dict[str, float] = {}
        self._until: dict[str, float] = {}

    def pause(self) -> None:
        """Let a moment pass before the broker is looked at again."""
        self._keep_lock()
        time.sleep(_LOOK_EVERY_S)

    def wait_for(self, waits: Sequence[Wait]) -> None:
        """Return when one of the queues is empty, not at once; raise StillHolds when one should have been, long since.

        Messages that are not ready leave a queue too, and take no longer; only a new plan counts them.
        """
        began = time.monotonic()
        for wait in waits:
            since = self._since.setdefault(wait.queue, began)
            # What comes by from above makes a step of the ladder take longer than it looks once that is gone.
            self._until[wait.queue] = max(self._until.get(wait.queue, 0), since + wait.longest.ms / 1000)
        progress = _Progress(began)
        self._check(waits, [wait.messages for wait in waits])
        with self._connect() as broker:
            self.pause()
            while all(counts := [broker.ready(wait.queue) for wait in waits]):
                progress.show(waits, counts, self._since)
                self._check(waits, counts)
                self.pause()
        progress.clear()

    def _check(self, waits: Sequence[Wait], counts: Sequence[int]) -> None:
        for wait, count in zip(waits, counts, strict=True):
            if count and time.monotonic() > self._until[wait.queue] + self._grace_s:
                raise StillHolds(
                    f"{wait.queue} still holds {plural(count, 'message')} after {wait.longest}, although nothing leads into it",
                    fix="see who publishes straight to the queue or holds its messages, and whether the queues behind it take them; then run it again",
                )


class _Progress:
    """One line that renews itself on a terminal; elsewhere a line now and then."""

    def __init__(self, began: float) -> None:
        self._is_watched = sys.stderr.isatty()
        self._next = began

    def show(self, waits: Sequence[Wait], counts: Sequence[int], since: dict[str, float]) -> None:
        """Tell how far it is."""
        now = time.monotonic()
        if now < self._next and not self._is_watched:
            return
        self._next = now + _TELL_EVERY_S
        text = "; ".join(
            progress_text(wait, count, now - since[wait.queue]) for wait, count in zip(waits, counts, strict=True)
        )
        click.echo(f"\r\x1b[K{text}" if self._is_watched else text, err=True, nl=not self._is_watched)

    def clear(self) -> None:
        """Take the line away, so that something else can be said."""
        if self._is_watched:
            click.echo("\r\x1b[K", err=True, nl=False)


def progress_text(wait: Wait, count: int, waited_s: float) -> str:
    """How far one queue is."""
    left = Duration(max(0, wait.longest.ms - int(waited_s) * 1000))
    return f"Waiting for {wait.queue}: {plural(count, 'message')}, at most {left} more"
