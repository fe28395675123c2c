"""Moving messages out of a queue, as the commands do it: connect, move, show how far it is, answer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
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
from delayctl.topology.errors import BadOption, BrokerError
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
    tell: Callable[[str], None] = lambda text: click.echo(text, err=True)  # Hears what was done before trouble came.


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an order."""

    moved: Moved
    errand: Errand
    seconds: float


def carry_out(order: Order) -> Result:
    """Move the messages; what was done before trouble came is told, too."""
    command = f"delayctl {order.would.split()[-1]}"
    given_back = order.returning or returning(order.host, order.queue)
    with _publisher(order, command) as publisher, Pull(order.host.access, order.queue, name=command) as pull:
        errand = Errand(
            order.queue,
            order.done,
            order.would,
            order.is_dry,
            pull.ready,
            order.limit,
            order.scan,
            order.is_search,
            given_back.keeps_place,
        )
        mover = Mover(
            pull,
            order.decide,
            publisher,
            rate=order.rate,
            limit=order.limit,
            most_returns=given_back.most,
            on_progress=lambda moved: bar.progress(moved.seen, pull.ready),
            is_over=order.is_over,
        )
        bar, started = Bar(), time.monotonic()
        try:
            moved = mover.run(pull.ready if order.scan is None else min(order.scan, pull.ready))
        except BrokerError:
            bar.clear()
            mover.moved.is_stopped = True
            order.tell(moved_text(mover.moved, errand, time.monotonic() - started))
            raise
        finally:
            bar.clear()
    return Result(moved, errand, time.monotonic() - started)


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
        try:
            publisher.close(0)
        except NotConfirmed as error:
            click.echo(f"Warning: {error.what}; they are still in {order.queue}, too.", err=True)


def rate_from(text: str | None) -> Rate | None:
    """--rate."""
    try:
        return None if text is None else Rate.parse(text)
    except ValueError as error:
        raise BadOption(f"--rate: {error}", fix="write it as 200/s, 5000/m or 100000/h") from error
