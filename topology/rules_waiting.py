"""Rules about waiting: that a queue keeps what it gets as long as it says, and lets it go."""

from collections.abc import Iterator

from delayctl.topology.duration import MAX_TTL_MS, Duration
from delayctl.topology.findings import Found, Rule, Severity
from delayctl.topology.lint_context import Context
from delayctl.topology.routing import DEFAULT_EXCHANGE
from delayctl.topology.spec import ExchangeSpec, QueueSpec
from delayctl.topology.wording import quoted


def ttl_without_exit(context: Context) -> Iterator[Found]:
    """D201: what expires has nowhere to go."""
    for spec in context.spec.queues:
        queue = context.network.queues.get(spec.name)
        if queue and queue.settings.ttl is not None and queue.settings.dead_letter_exchange is None:
            message = f"what nobody takes from {spec.name} within {queue.settings.ttl} is deleted: it has a TTL and no dead-letter exchange"
            fix = "add the argument x-dead-letter-exchange, or remove x-message-ttl"
            yield Found(spec.name, message, fix, spec.line)


def dead_letter_key(context: Context) -> Iterator[Found]:
    """D202: every message leaves with the same key."""
    for wait in context.waits.values():
        key = wait.queue.settings.dead_letter_key
        # By the default exchange the key is the address.
        if key is not None and wait.exit != DEFAULT_EXCHANGE:
            message = f"every message leaves {wait.queue.name} with the key {quoted(key)}: its own is overwritten"
            fix = f"remove x-dead-letter-routing-key, and bind what is behind {wait.exit} by the messages' own keys"
            yield Found(wait.queue.name, message, fix, wait.line)


def queue_expires(context: Context) -> Iterator[Found]:
    """D203: the queue goes, and takes along what waits in it."""
    for wait in context.waits.values():
        expires = wait.queue.settings.expires
        if expires is not None:
            message = f"{wait.queue.name} is deleted {expires} after its last use, together with all that waits in it"
            fix = "remove x-expires: nobody consumes from a queue that messages wait in, so it always counts as unused"
            yield Found(wait.queue.name, message, fix, wait.line)


def not_at_least_once(context: Context) -> Iterator[Found]:
    """D204: a strategy that the broker does not follow."""
    for wait in context.waits.values():
        settings = wait.queue.settings
        is_asked_for = wait.is_quorum and settings.dead_letter_strategy == "at-least-once"
        if is_asked_for and settings.overflow != "reject-publish":
            overflow = settings.overflow or "drop-head, the default"
            message = f"{wait.queue.name} asks for at-least-once dead-lettering and gets at-most-once, since its overflow is {overflow}"
            yield Found(wait.queue.name, message, "set x-overflow: reject-publish as well", wait.line)


def ttl_too_long(context: Context) -> Iterator[Found]:
    """D209: a TTL that the broker refuses."""
    longest = f"{Duration(MAX_TTL_MS)} ({MAX_TTL_MS} ms)"
    for spec in context.spec.queues:
        queue = context.network.queues.get(spec.name)
        if queue and queue.settings.ttl is not None and queue.settings.ttl.ms > MAX_TTL_MS:
            message = f"the declaration of {spec.name} is refused: its TTL of {queue.settings.ttl} is above the broker's longest, {longest}"
            yield Found(spec.name, message, f"write x-message-ttl: {MAX_TTL_MS} or less", spec.line)


def classic_before_quorum(context: Context) -> Iterator[Found]:
    """D210: replicated at the end of the way, and not before."""
    targets = _quorum_targets(context)
    for wait in context.waits.values():
        behind = sorted(targets.get(wait.queue.name, ()))
        if behind and not wait.is_quorum:
            more = f" and {len(behind) - 1} more" if len(behind) > 1 else ""
            where = "at the ladder" if wait.is_step else f"{wait.queue.settings.ttl} in {wait.queue.name}"
            message = f"messages wait {where} on one node before they reach {behind[0]}{more}, which is replicated"
            fix = "make the wait quorum too (type: quorum, or profile: safe)"
            yield Found(wait.queue.name, message, fix, wait.line)


def _quorum_targets(context: Context) -> dict[str, set[str]]:
    """The quorum queues right behind each wait."""
    replicated = {spec.name for spec in context.spec.queues if spec.type == "quorum"}
    found: dict[str, set[str]] = {}
    for route in context.spec.routes:
        level_queue = context.wait_behind(route.level) if route.level else ""
        found.setdefault(level_queue, set()).update(
            target.name for target in route.targets if target.name in replicated
        )
    for retry in context.spec.retries if replicated else ():
        for level in dict.fromkeys(retry.waits):
            found.setdefault(context.wait_behind(level), set()).update({retry.queue} & replicated)
    exits: dict[str, list[str]] = {}
    for wait in context.waits.values():
        if wait.level is None:
            exits.setdefault(wait.exit, []).append(wait.queue.name)
    for binding in context.topology.bindings:
        for name in exits.get(binding.source, ()) if binding.destination in replicated else ():
            found.setdefault(name, set()).add(binding.destination)
    return found


def not_durable(context: Context) -> Iterator[Found]:
    """D211: an object on the way of delayed messages that may be gone when they come."""
    exchanges, queues = context.on_delayed_ways
    specs: list[tuple[str, ExchangeSpec | QueueSpec]] = [
        *(("exchange", exchange) for exchange in context.spec.exchanges if exchange.name in exchanges),
        *(("queue", queue) for queue in context.spec.queues if queue.name in queues),
    ]
    for kind, spec in specs:
        if not spec.durable:
            message = f"{spec.name} is gone after a restart of the broker, while delayed messages still come"
            yield Found(spec.name, message, f"remove durable: false from the {kind}", spec.line)
        if spec.auto_delete:
            last = "the last consumer has left" if kind == "queue" else "its last binding is removed"
            message = f"{spec.name} is deleted when {last}, while delayed messages still come"
            yield Found(spec.name, message, f"remove auto_delete: true from the {kind}", spec.line)
    for spec in context.spec.queues:
        expires = context.network.queues[spec.name].settings.expires if spec.name in context.network.queues else None
        # For a queue that messages wait in, this is another rule's.
        if expires is not None and spec.name in queues and spec.name not in context.waits:
            message = f"{spec.name} is deleted when nobody has used it for {expires}, while delayed messages still come"
            yield Found(spec.name, message, "remove x-expires from the queue", spec.line)


RULES: tuple[Rule, ...] = (
    Rule(
        "D201",
        "ttl-without-exit",
        Severity.WARNING,
        "A queue has a TTL and no dead-letter exchange.",
        "What expires is dead-lettered where there is a dead-letter exchange, and deleted where there is none.",
        ttl_without_exit,
    ),
    Rule(
        "D202",
        "dead-letter-key",
        Severity.WARNING,
        "A queue overwrites the keys of what has waited in it.",
        "With x-dead-letter-routing-key the broker puts that key in the place of the message's own, CC keys included; behind the exit"
        " nothing can tell the messages apart.",
        dead_letter_key,
    ),
    Rule(
        "D203",
        "queue-expires",
        Severity.ERROR,
        "A queue that messages wait in expires itself.",
        "x-expires counts consumers, declarations and gets as use, but not publishing. The messages of a queue that expires are"
        " deleted, not dead-lettered.",
        queue_expires,
    ),
    Rule(
        "D204",
        "not-at-least-once",
        Severity.WARNING,
        "At-least-once dead-lettering that is not in force.",
        "It takes a quorum queue, the strategy and an effective overflow of reject-publish. With drop-head the broker falls back to"
        " at-most-once and says so only in its log.",
        not_at_least_once,
    ),
    Rule(
        "D209",
        "ttl-too-long",
        Severity.ERROR,
        "A TTL is above what the broker takes.",
        "RabbitMQ refuses to declare a queue whose x-message-ttl is above ten years.",
        ttl_too_long,
    ),
    Rule(
        "D210",
        "classic-before-quorum",
        Severity.WARNING,
        "Messages for a replicated queue wait in one that is not.",
        "A classic queue lives on one node. While that node is down its messages don't leave, and if its disk is lost they are.",
        classic_before_quorum,
    ),
    Rule(
        "D211",
        "not-durable",
        Severity.WARNING,
        "An object on the way of delayed messages may be gone when they come.",
        "Delayed messages outlive restarts and consumers; an exchange or a queue that does not leaves them without a way.",
        not_durable,
    ),
)
