"""Rules about room: how much may wait, how much will, and what it takes."""

from collections.abc import Iterator
from fractions import Fraction

from delayctl.topology.duration import Duration
from delayctl.topology.findings import Found, Rule, Severity
from delayctl.topology.journey import is_at_least_once
from delayctl.topology.lint_context import Context
from delayctl.topology.model import Settings
from delayctl.topology.rate import Rate
from delayctl.topology.scene import Wait
from delayctl.topology.wording import plural

FEWEST, MOST = 1_000_000, 5_000_000
BYTES_PER_MESSAGE = 1_000  # With a small body, up to RabbitMQ 3.13; measured at 630 to 770.
BYTES_PER_MESSAGE_4 = 500  # RabbitMQ 4; measured at 160 to 420.
_GIB = 1024**3


def overflow(context: Context) -> Iterator[Found]:
    """D205: more comes than there is room for."""
    for wait in context.waits.values():
        rate, settings = wait.level.wait.expected_rate if wait.level else None, wait.queue.settings
        if 0 in (settings.max_length, settings.max_bytes):
            fate = "is refused" if settings.overflow == "reject-publish" else "leaves at once"
            message = f"{wait.queue.name} has no room at all: every message {fate} instead of waiting {settings.ttl}"
            yield Found(wait.queue.name, message, f"set the argument x-max-length, such as {FEWEST}", wait.line)
        if rate is None or settings.ttl is None:
            continue
        needed = rate.per_second * settings.ttl.ms / 1000
        if settings.max_length is not None and needed > settings.max_length:
            yield _overflowing(wait, rate, needed, settings.max_length, settings.ttl)
        elif settings.max_bytes is not None and needed > settings.max_bytes:
            yield _too_small(wait, rate, needed, settings.max_bytes)


def _too_small(wait: Wait, rate: Rate, needed: Fraction, size: int) -> Found:
    count = f"{rate} for {wait.queue.settings.ttl} are {int(needed):,} messages, and {wait.queue.name} holds {plural(size, 'byte')}"
    is_refusing = wait.queue.settings.overflow == "reject-publish"
    effect = "most of them are refused" if is_refusing else "most of them leave early"
    fix = f"set max_bytes to that many times the size of a message, or max_length: {_round_up(needed)} instead"
    return Found(wait.queue.name, f"{count}: not even bodies of one byte fit, and {effect}", fix, wait.line)


def _overflowing(wait: Wait, rate: Rate, needed: Fraction, room: int, ttl: Duration) -> Found:
    full_after = Duration(int(room * 1000 / rate.per_second))
    count = f"{rate} for {ttl} are {int(needed):,} messages, and {wait.queue.name} holds {room:,}"
    if wait.queue.settings.overflow == "reject-publish":
        refused = 100 * (needed - room) / needed
        effect = f"it is full after {full_after}, and from then on {float(refused):.0f} % of the messages are refused"
    else:
        early = Duration(ttl.ms - full_after.ms)
        effect = f"from {full_after} on the oldest leave early: after {full_after} instead of {ttl}, {early} too soon"
    fix = f"set max_length: {_round_up(needed)}, or split the traffic over more levels"
    return Found(wait.queue.name, f"{count}: {effect}", fix, wait.line)


def _round_up(needed: Fraction) -> int:
    """A tenth more than is needed, in two digits."""
    wanted = int(needed * 11 / 10) + 1
    step = int("1".ljust(max(len(str(wanted)) - 1, 1), "0"))
    return -(-wanted // step) * step


def unusual_length(context: Context) -> Iterator[Found]:
    """D206: room for unusually few or many."""
    for wait in context.waits.values():
        length = wait.queue.settings.max_length
        if length is not None and not FEWEST <= length <= MOST:
            effect = (
                "at that many it overflows" if length < FEWEST else "that many take long to recover after a restart"
            )
            message = f"{wait.queue.name} has room for {plural(length, 'message')}: {effect}"
            yield Found(wait.queue.name, message, f"choose {FEWEST:,} to {MOST:,}, unless you know better", wait.line)


def unlimited(context: Context) -> Iterator[Found]:
    """D207: room without end."""
    for wait in context.waits.values():
        if wait.queue.settings.max_length is None and wait.queue.settings.max_bytes is None:
            message = f"{wait.queue.name} grows until the broker's memory or disk alarm stops every publisher"
            where, severity = "max_length", None
            if wait.level is None:  # It may be a queue to work on, with a TTL for what nobody gets to.
                message += ", if nobody consumes from it"
                where, severity = "the argument x-max-length", Severity.INFO
            yield Found(
                wait.queue.name, message, f"set {where}, such as {FEWEST}, and an overflow", wait.line, severity
            )


def full_target(context: Context) -> Iterator[Found]:
    """D212: the end of the way has no room for what comes."""
    _, queues = context.on_delayed_ways
    for spec in context.spec.queues:
        if spec.name in queues and spec.name not in context.waits and spec.name in context.in_force:
            settings = context.in_force[spec.name].settings
            fate = _fate_when_full(context, settings)
            if fate:
                message = f"{spec.name} has room for {_room(settings)}: {fate}"
                fix = "remove the limit, or add x-dead-letter-exchange with the overflow drop-head"
                yield Found(spec.name, message, fix, spec.line)


def _fate_when_full(context: Context, settings: Settings) -> str | None:
    if settings.max_length is None and settings.max_bytes is None:
        return None
    if settings.overflow == "reject-publish":
        # What is dead-lettered at least once is tried again until there is room.
        is_kept = all(is_at_least_once(wait.queue.settings) for wait in context.waits.values())
        return None if is_kept else "what comes out of a delay while it is full is lost"
    return "when it is full, its oldest messages are deleted" if settings.dead_letter_exchange is None else None


def _room(settings: Settings) -> str:
    limits = ((settings.max_length, "message"), (settings.max_bytes, "byte"))
    return " and ".join(plural(limit, word) for limit, word in limits if limit is not None)


def memory(context: Context) -> Iterator[Found]:
    """D208: more than the broker's memory can hold."""
    room = context.spec.memory if context.spec.memory is not None else context.facts and context.facts.memory
    if not room:
        return
    each = _bytes_per_message(context)
    needs = {name: need for name, wait in context.waits.items() if (need := _need(wait, each))}
    alone = [name for name, need in needs.items() if need > room]
    for name in alone:
        wait = context.waits[name]
        message = f"{name} full takes {_gib(needs[name])} at {each:,} bytes a message; the broker has {_gib(room)}"
        yield Found(name, message, f"set max_length to {room // each:,} or less", wait.line)
    if not alone and sum(needs.values()) > room:
        largest = context.waits[max(needs, key=lambda name: needs[name])]
        message = (
            f"{len(needs)} full waits take {_gib(sum(needs.values()))} together at {each:,} bytes a message;"
            f" the broker has {_gib(room)}"
        )
        yield Found(largest.queue.name, message, "lower max_length, or give the broker more memory", largest.line)


def _bytes_per_message(context: Context) -> int:
    is_4 = context.live is not None and context.live.version.startswith("4.")
    return BYTES_PER_MESSAGE_4 if is_4 else BYTES_PER_MESSAGE


def _need(wait: Wait, each: int) -> int:
    """The bytes of a full queue; nothing where there is no limit, which is another rule's."""
    length, size = wait.queue.settings.max_length, wait.queue.settings.max_bytes
    limits = [limit for limit in (None if length is None else length * each, size) if limit is not None]
    return min(limits, default=0)


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"


RULES: tuple[Rule, ...] = (
    Rule(
        "D205",
        "overflow",
        Severity.WARNING,
        "More messages are expected than a level has room for.",
        "At max_length a queue with drop-head dead-letters its head at once, which in a wait means early; with reject-publish it refuses"
        " new messages, which publishers hear of with confirms alone.",
        overflow,
    ),
    Rule(
        "D206",
        "unusual-length",
        Severity.INFO,
        "Room for fewer than a million messages, or more than five.",
        "Below a million a short burst overflows; above five million a classic queue takes long to recover after a restart.",
        unusual_length,
    ),
    Rule(
        "D207",
        "unlimited",
        Severity.WARNING,
        "A wait without a limit.",
        "What waits takes memory and disk. At the broker's alarm every publisher on it is blocked, not just those of this queue.",
        unlimited,
    ),
    Rule(
        "D212",
        "full-target",
        Severity.WARNING,
        "A queue at the end of a delay loses messages when it is full.",
        "Publishers are told that a full queue refuses a message; dead-lettering is not, unless it is at-least-once, and the message is"
        " gone. With drop-head the oldest make room, and are deleted where there is no dead-letter exchange.",
        full_target,
    ),
    Rule(
        "D208",
        "memory",
        Severity.WARNING,
        "Full waits take more memory than the broker has.",
        "A waiting message takes about 1,000 bytes of memory besides its body up to RabbitMQ 3.13, and about 500 with RabbitMQ 4;"
        " the memory is that of lint.memory in the file, or with --live the limit of the node that has least.",
        memory,
    ),
)
