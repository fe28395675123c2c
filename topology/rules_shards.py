"""Rules about levels that are spread over several queues: what that costs, what it needs, and where it is of use."""

from collections.abc import Iterator

from delayctl.topology.expand_shards import HASHED_BY
from delayctl.topology.findings import Found, Rule, Severity
from delayctl.topology.lint_context import Context
from delayctl.topology.model import CONSISTENT_HASH, ENABLE_CONSISTENT_HASH
from delayctl.topology.spec import LevelSpec


def other_order(context: Context) -> Iterator[Found]:
    """D215: what was published first may come out second."""
    for level in _spread(context):
        message = (
            f"messages of {level.name} wait in one of {level.wait.shards} queues, by their {HASHED_BY}:"
            " two that wait in different ones may come out the other way round"
        )
        fix = "leave out shards where the order matters; otherwise silence this with the reason"
        yield Found(context.shown_queue(level), message, fix, level.line)


def no_spread(context: Context) -> Iterator[Found]:
    """D405: the broker lacks the plugin."""
    known = context.facts.exchange_types if context.facts else None
    for level in _spread(context) if known is not None else ():
        if known is not None and CONSISTENT_HASH not in known:
            message = (
                f"the declaration of {context.names.spread(level.name)} is refused:"
                f" the broker has no exchanges of the type {CONSISTENT_HASH}"
            )
            yield Found(context.names.spread(level.name), message, ENABLE_CONSISTENT_HASH, level.line)


def one_node(context: Context) -> Iterator[Found]:
    """D406: there is nothing to spread over."""
    for level in _spread(context) if context.facts and context.facts.nodes == 1 else ():
        message = f"the {level.wait.shards} shards of {level.name} are all on one node, which does all the work"
        fix = "leave out shards, unless one queue is too slow by itself and the node has cores to spare"
        yield Found(context.shown_queue(level), message, fix, level.line)


def _spread(context: Context) -> Iterator[LevelSpec]:
    return (level for level in context.spec.levels if level.wait.shards > 1)


RULES: tuple[Rule, ...] = (
    Rule(
        "D215",
        "other-order",
        Severity.INFO,
        "A level is spread over several queues, which keep no order among each other.",
        "Each queue lets its messages go in the order in which they came; between two queues nothing decides who is first.",
        other_order,
    ),
    Rule(
        "D405",
        "no-spread",
        Severity.ERROR,
        "The broker lacks the plugin that a level with shards needs.",
        "RabbitMQ ships with it, but does not switch it on by itself.",
        no_spread,
        needs_live=True,
    ),
    Rule(
        "D406",
        "one-node",
        Severity.INFO,
        "A level is spread over the queues of a single node.",
        "A queue is one process on one node. Several of them help where there are several nodes, or cores that one queue leaves idle.",
        one_node,
        needs_live=True,
    ),
)
