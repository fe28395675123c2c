"""Rules about room: how much may wait, how much will, and what it takes."""

from collections.abc import Iterator
from fractions import Fraction

from delayctl.topology.duration import Duration
from delayctl.topology.findings import Found, Rule, Severity
from delayctl.topology.lint_context import Context
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
        if rate is None or settings.max_length is None or settings.ttl is None:
            continue
        needed = rate.per_second * settings.ttl.ms / 1000
        if needed > settings.max_length:
            yield _overflowing(wait, rate, needed, settings.max_length, settings.ttl)


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
            where = "max_length" if wait.level else "the argument x-max-length"
            yield Found(wait.queue.name, message, f"set {where}, such as {FEWEST}, and an overflow", wait.line)


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
        "D208",
        "memory",
        Severity.WARNING,
        "Full waits take more memory than the broker has.",
        "A waiting message takes about 1,000 bytes of memory besides its body up to RabbitMQ 3.13, and about 500 with RabbitMQ 4;"
        " the memory is that of lint.memory in the file, or with --live the limit of the node that has least.",
        memory,
    ),
)
