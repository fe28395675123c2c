"""Moving messages out of a queue, as the commands do it: connect, move, show how far it is, answer."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from delayctl.cli.backfill_bar import Bar
from delayctl.cli.host import Host
from delayctl.cli.moved_views import Errand, moved_json, moved_text
from delayctl.cli.returning import Returning, returning
from delayctl.consumers.moved import Moved
from delayctl.consumers.mover import Decide, Mover
from delayctl.consumers.pull import Pull
from delayctl.publishers.choice import Ways
from delayctl.publishers.errors import NotConfirmed
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.errors import BadOption, DelayctlError, Partly
from delayctl.topology.rate import Rate


@dataclass(frozen=True, slots=True)
class Order:
    """A queue, what is decided about each of its messages, and how fast and how far it goes."""

    host: Host
    queue: str
    decide: Decide
    exit: str
    is_dry: bool
    rate: Rate | None
    limit: int | None
    done: str
    would: str
    scan: int | None = None  # Messages to look at, at most.
    is_search: bool = False  # It ends when `is_over` says that all is found.
    is_over: Callable[[], bool] = lambda: False
    returning: Returning | None = None  # Where it is known already.
    moved_before: int = 0  # By the same command, from other queues: the limit is of all.


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an order, and what broke it off."""

    moved: Moved
    errand: Errand
    seconds: float
    trouble: DelayctlError | None = None


def carry_out(order: Order) -> Result:
    """Move the messages; once that has begun, what was done is told whatever ends it."""
    command = f"delayctl {order.would.split()[-1]}"
    given_back = order.returning or returning(order.host, order.queue)
    run: _Run | None = None
    try:
        with _publisher(order, command) as publisher, Pull(order.host.access, order.queue, name=command) as pull:
            run = _Run(order, pull, publisher, given_back)
            run.move()
    except (DelayctlError, KeyboardInterrupt) as error:
        if run is None:
            raise
        run.mover.moved.is_stopped = True
        return run.result(error if isinstance(error, DelayctlError) else None)
    return run.result()


class _Run:
    """An order that is being carried out."""

    def __init__(self, order: Order, pull: Pull, publisher: DelayPublisher | None, given_back: Returning) -> None:
        self._errand = Errand(
            order.queue,
            order.done,
            order.would,
            order.is_dry,
            pull.ready,
            order.limit,
            order.scan,
            order.is_search,
            given_back.keeps_place,
            order.moved_before,
        )
        self._bar, self._started = Bar(), time.monotonic()
        self.mover = Mover(
            pull,
            order.decide,
            publisher,
            rate=order.rate,
            limit=None if order.limit is None else order.limit - order.moved_before,
            most_returns=given_back.most,
            on_progress=lambda moved: self._bar.progress(moved.seen, pull.ready),
            is_over=order.is_over,
        )

    def move(self) -> None:
        """Look at all that was there when it began, or at as many as were asked for."""
        ready, scan = self._errand.ready, self._errand.scan
        try:
            self.mover.run(ready if scan is None else min(scan, ready))
        finally:
            self._bar.clear()

    def result(self, trouble: DelayctlError | None = None) -> Result:
        """What has become of it so far."""
        return Result(self.mover.moved, self._errand, time.monotonic() - self._started, trouble)


def raise_trouble(trouble: DelayctlError | None, moved: Iterable[Moved]) -> None:
    """Raise what broke it off, once all that was done has been told."""
    if trouble is not None and any(each.is_any for each in moved):
        raise Partly.by(trouble) from trouble
    if trouble is not None:
        raise trouble


def result_json(result: Result) -> dict[str, Any]:
    """A result as programs read it."""
    return moved_json(result.moved, result.errand, result.seconds)


def result_text(result: Result) -> str:
    """A result as people read it."""
    return moved_text(result.moved, result.errand, result.seconds)


@contextmanager
def _publisher(order: Order, name: str) -> Iterator[DelayPublisher | None]:
    """Who publishes; nobody does in a dry run. Only the exit is looked for: the levels are not what it is about."""
    if order.is_dry:
        yield None
        return
    publisher = DelayPublisher(order.host.access, topology=Ways(order.exit, ()), name=name)
    try:
        yield publisher
    finally:
        with suppress(NotConfirmed):  # Which is counted as being on its way.
            publisher.close(0)


def rate_from(text: str | None) -> Rate | None:
    """--rate."""
    try:
        return None if text is None else Rate.parse(text)
    except ValueError as error:
        raise BadOption(f"--rate: {error}", fix="write it as 200/s, 5000/m or 100000/h") from error
