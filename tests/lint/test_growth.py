"""Lint of a large file: twice the objects are twice the work, whatever the routes look like."""

import pytest
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.findings import Severity
from delayctl.topology.lint import lint
from delayctl.topology.lint_context import Context
from delayctl.topology.spec import ExchangeSpec, LevelSpec, QueueSpec, RouteSpec, Spec, Target, WaitSpec

LEVELS = tuple(LevelSpec(name, Duration.parse(name), WaitSpec()) for name in ("1m", "5m", "15m"))
SHAPES = {
    "literal keys": ("topic", "orders.exchange", "svc{n}.created"),
    "direct keys": ("direct", "orders.exchange", "svc{n}.created"),
    "patterns": ("topic", "orders.exchange", "svc{n}.*.created"),
    "open first words": ("topic", "orders.exchange", "*.svc{n}.created"),
    "open ends": ("topic", "orders.exchange", "#.svc{n}"),
    "headers": ("headers", "orders.exchange", "svc{n}.created"),
    "an exchange each": ("topic", "exchange.{n}", "svc{n}.created"),
    "one key": ("topic", "orders.exchange", "created"),
    "one key, an exchange each": ("topic", "exchange.{n}", "created"),
    "everything": ("topic", "orders.exchange", "#"),
}


def large(shape: str, count: int) -> Spec:
    """A file with so many routes, each to a queue of its own."""
    kind, source, key = SHAPES[shape]
    routes = tuple(
        RouteSpec(
            (key.format(n=n),),
            (Target("queue", f"queue.{n}"),),
            source.format(n=n),
            LEVELS[n % 3].name,
            (("kind", "order"), ("tenant", f"t{n}")) if kind == "headers" else (),
        )
        for n in range(count)
    )
    exchanges = tuple(ExchangeSpec(name, kind) for name in dict.fromkeys(source.format(n=n) for n in range(count)))
    return Spec(LEVELS, exchanges=exchanges, queues=tuple(QueueSpec(f"queue.{n}") for n in range(count)), routes=routes)


def work(shape: str, count: int) -> int:
    """Steps of looking up bindings, copies of messages followed, and findings made."""
    spec = large(shape, count)
    topology = expand(spec)
    context = Context(spec, topology)
    passages = [passage for trail in context.trails.all for passage in trail.journey.passages]
    copies = sum(1 + len(passage.stays) for passage in passages)
    return context.network.steps + copies + len(lint(spec, topology).findings)


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_with_the_file_and_not_with_its_square(shape: str) -> None:
    """Four times the routes are about four times the work."""
    small, big = work(shape, 250), work(shape, 1000)

    assert big < 6 * small
    assert big < 60_000


def test_a_file_of_4000_objects_has_no_findings_where_nothing_is_wrong() -> None:
    """Not for its size alone."""
    spec = large("literal keys", 1330)
    topology = expand(spec)

    assert len(list(topology)) > 4000
    assert lint(spec, topology).of(Severity.ERROR, Severity.WARNING) == ()
