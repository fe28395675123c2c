"""Rules about names: that a level is what it is called, and there once."""

from collections.abc import Iterator
from dataclasses import replace

from delayctl.topology.duration import Duration
from delayctl.topology.findings import Found, Rule, Severity
from delayctl.topology.lint_context import Context
from delayctl.topology.spec import LevelSpec


def name_and_ttl(context: Context) -> Iterator[Found]:
    """D301: a level that says one thing and does another."""
    for level in context.spec.levels:
        said = _said(level)
        if said is not None and said != level.ttl:
            message = (
                f"who publishes to {context.names.entrance(level.name)} waits {level.ttl}, not {said} as its name says"
            )
            fix = f"call the level {level.ttl}, or write ttl: {said}"
            yield Found(context.shown_queue(level), message, fix, level.line)


def _said(level: LevelSpec) -> Duration | None:
    try:
        return Duration.parse(level.name)
    except ValueError:
        return None


def same_ttl(context: Context) -> Iterator[Found]:
    """D302: two levels that can't be told apart by what they do."""
    first: dict[object, LevelSpec] = {}
    for level in context.spec.levels:
        other = first.setdefault((level.ttl, replace(level.wait, expected_rate=None)), level)
        if other is not level:
            message = (
                f"the levels {other.name} and {level.name} both wait {level.ttl}, in queues with the same settings"
            )
            fix = f"remove one of them, and let its routes use {other.name}"
            yield Found(context.shown_queue(level), message, fix, level.line)


RULES: tuple[Rule, ...] = (
    Rule(
        "D301",
        "name-and-ttl",
        Severity.WARNING,
        "A level's name is another duration than its TTL.",
        "Publishers choose a level by its name, and read the delay off it.",
        name_and_ttl,
    ),
    Rule(
        "D302",
        "same-ttl",
        Severity.WARNING,
        "Two levels wait equally long, with the same settings.",
        "Two queues do the work of one, and whoever chooses between them has nothing to choose by.",
        same_ttl,
    ),
)
