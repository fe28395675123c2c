"""Bugs of RabbitMQ's releases that touch delays, each with its source."""

from collections.abc import Callable
from dataclasses import dataclass

from delayctl.topology.lint_context import Context
from delayctl.topology.routing import DEFAULT_EXCHANGE
from delayctl.topology.version import DELAYED_RETRY_SINCE, Version, version_text

_ISSUES = "https://github.com/rabbitmq/rabbitmq-server"


@dataclass(frozen=True, slots=True)
class Bug:
    """What a release does wrong, from which version on, mended in which versions, and what it touches in a file."""

    since: Version
    mended: tuple[
        Version, ...
    ]  # The first release of each series that has the fix; the last one also ends it for all later.
    effect: str
    source: str
    touched: Callable[[Context], list[str]]

    def is_in(self, version: Version) -> bool:
        """Say whether a release has the bug."""
        same_series = [fix for fix in self.mended if fix[:2] == version[:2]]
        if same_series:
            return self.since <= version < same_series[0]
        return self.since <= version < self.mended[-1]

    @property
    def fixed_in(self) -> str:
        """The releases to upgrade to."""
        return " or ".join(map(version_text, self.mended))


def _quorum_waits(context: Context) -> list[str]:
    return [name for name, wait in context.waits.items() if wait.is_quorum]


def _at_least_once(context: Context) -> list[str]:
    return [name for name, wait in context.waits.items() if wait.queue.settings.dead_letter_strategy == "at-least-once"]


def _at_least_once_in_cluster(context: Context) -> list[str]:
    return _at_least_once(context) if context.facts and context.facts.nodes > 1 else []


def _at_least_once_to_itself(context: Context) -> list[str]:
    keeping = set(_at_least_once(context))
    return sorted(
        {
            passage.out_of
            for trail in context.trails.all
            for passage in trail.journey.passages
            if passage.out_of in keeping and passage.out_of in passage.routed.queues
        }
    )


def _retries_by_broker(context: Context) -> list[str]:
    return [queue.name for queue in context.topology.queues if queue.settings.waits_between_retries]


def _quorum_overflow(context: Context) -> list[str]:
    return [
        name
        for name in _quorum_waits(context)
        if (settings := context.waits[name].queue.settings).overflow != "reject-publish"
        and settings.max_length is not None
    ]


def _rejecting_loops(context: Context) -> list[str]:
    """Queues without a TTL that dead-letter into a wait: what a consumer rejects there comes back."""
    into_waits = {
        binding.source
        for binding in context.topology.bindings
        if binding.kind == "queue" and binding.destination in context.waits
    }
    by_name = {DEFAULT_EXCHANGE} if context.waits else set()
    return [
        name
        for name in context.own_queues
        if (queue := context.network.queues.get(name)) is not None
        and queue.settings.ttl is None
        and (
            queue.settings.dead_letter_exchange in into_waits
            or (queue.settings.dead_letter_exchange in by_name and queue.settings.dead_letter_key in context.waits)
        )
    ]


def _empty_topic_keys(context: Context) -> list[str]:
    exchanges = context.network.exchanges
    return sorted(
        {
            binding.source
            for binding in context.topology.bindings
            if not binding.key and (source := exchanges.get(binding.source)) and source.type == "topic"
        }
    )


BUGS = (
    Bug(
        (0, 0, 0),
        ((3, 10, 0),),
        "quorum queues know no message TTL: what should wait there never leaves, or the declaration is refused",
        f"{_ISSUES}/releases/tag/v3.10.0",
        _quorum_waits,
    ),
    Bug(
        (3, 10, 0),
        ((3, 10, 5),),
        "a quorum queue crashes when it dead-letters a message that was rejected with requeue before",
        f"{_ISSUES}/pull/4947",
        _quorum_waits,
    ),
    Bug(
        (3, 10, 0),
        ((3, 11, 20), (3, 12, 2)),
        "what a consumer rejects is dead-lettered at least once back to the same queue and never done with, which blocks the queue",
        f"{_ISSUES}/pull/8799",
        _at_least_once_to_itself,
    ),
    Bug(
        (3, 13, 0),
        ((3, 13, 3),),
        "messages that a consumer rejected on their round through a wait are dropped as a cycle all the same",
        f"{_ISSUES}/issues/11159",
        _rejecting_loops,
    ),
    Bug(
        (3, 10, 0),
        ((4, 2, 1),),
        "a quorum queue with drop-head that loses several messages at once to its limit lets them out in the wrong order",
        f"{_ISSUES}/pull/14926",
        _quorum_overflow,
    ),
    Bug(
        (4, 3, 0),
        ((4, 3, 1),),
        "a message with an empty key reaches every queue that any topic exchange has bound with an empty key",
        f"{_ISSUES}/pull/16271",
        _empty_topic_keys,
    ),
    Bug(
        (0, 0, 0),
        (DELAYED_RETRY_SINCE,),
        "its quorum queues do not make a message wait before it is tried again: what failed comes back at once",
        "https://github.com/rabbitmq/rabbitmq-website/pull/2508",
        _retries_by_broker,
    ),
    Bug(
        (3, 10, 0),
        ((4, 3, 3),),
        "at-least-once dead-lettering can stop for good after nodes have left and joined",
        f"{_ISSUES}/issues/16652",
        _at_least_once_in_cluster,
    ),
)
