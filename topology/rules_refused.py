"""A rule about what the broker refuses: arguments that don't go together, or with the type of the queue."""

from collections.abc import Iterator

from delayctl.topology.arguments import queue_arguments
from delayctl.topology.duration import MAX_TTL_MS
from delayctl.topology.findings import Found, Rule, Severity
from delayctl.topology.lint_context import Context
from delayctl.topology.wording import quoted

# Refused by RabbitMQ 3.10 and 4.3 alike.
_FOR_QUORUM_ALONE = ("x-dead-letter-strategy", "x-delivery-limit", "x-quorum-initial-group-size")
_FOR_CLASSIC_ALONE = ("x-max-priority", "x-queue-mode", "x-queue-version")
_CHOICES = {
    "x-overflow": ("drop-head", "reject-publish", "reject-publish-dlx"),
    "x-dead-letter-strategy": ("at-most-once", "at-least-once"),
}
_RANGES = {
    "x-expires": (1, MAX_TTL_MS),
    "x-max-length": (0, None),
    "x-max-length-bytes": (0, None),
    "x-max-priority": (0, 255),
}


def refused(context: Context) -> Iterator[Found]:
    """D213: a queue that can't be declared."""
    for queue in context.topology.queues:
        spec = context.own_queues.get(queue.name)
        arguments = queue_arguments(queue)
        for why, fix in _refusals(arguments) if spec else ():
            message = f"the broker refuses to declare {queue.name}: {why}"
            yield Found(queue.name, message, fix, spec.line if spec else 1)


def _refusals(arguments: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Why, and what to do about it."""
    is_quorum = arguments.get("x-queue-type") == "quorum"
    kind = "quorum" if is_quorum else "classic"
    for name in _FOR_CLASSIC_ALONE if is_quorum else _FOR_QUORUM_ALONE:
        if name in arguments:
            other = "remove type: quorum" if is_quorum else "add type: quorum"
            yield f"a {kind} queue does not take {name}", f"remove {name}, or {other}"
    if "x-dead-letter-routing-key" in arguments and "x-dead-letter-exchange" not in arguments:
        yield "x-dead-letter-routing-key needs x-dead-letter-exchange", "add x-dead-letter-exchange, or remove the key"
    for name, choices in _CHOICES.items():
        if name in arguments and arguments[name] not in choices:
            yield f"it knows no {name} {quoted(str(arguments[name]))}", f"write {' or '.join(choices)}"
    for name, (least, most) in _RANGES.items():
        number = arguments.get(name)
        if isinstance(number, int) and (number < least or (most is not None and number > most)):
            limits = f"{least} or more" if most is None else f"{least} to {most}"
            yield f"{name} must be {limits}, not {number}", f"write {limits}, or remove it"


RULES: tuple[Rule, ...] = (
    Rule(
        "D213",
        "refused",
        Severity.ERROR,
        "The broker refuses to declare a queue.",
        "RabbitMQ checks the arguments of a queue when it is declared, and closes the channel where they don't fit its type or each"
        " other.",
        refused,
    ),
)
