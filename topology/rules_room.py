"""Rules about room: how much may wait, how much will, and what it takes."""

from collections.abc import Iterator
from fractions import Fraction

from delayctl.topology.capacity import Capacity, Need, messages_in, round_up
from delayctl.topology.duration import Duration
from delayctl.topology.findings import Found, Rule, Severity
from delayctl.topology.footprint import footprint_of, shape_of
from delayctl.topology.journey import is_at_least_once
from delayctl.topology.lint_context import Context
from delayctl.topology.model import Settings
from delayctl.topology.rate import Rate
from delayctl.topology.scene import Wait
from delayctl.topology.wording import plural

FEWEST, MOST = 1_000_000, 5_000_000
_GIB = 1024**3
_OLD, _NEW = footprint_of("classic").memory, footprint_of("classic", "4.0.0").memory


def overflow(context: Context) -> Iterator[Found]:
    """D205: more comes than there is room for."""
    for wait in context.whole_waits:
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
    fix = f"set max_bytes to that many times the size of a message, or max_length: {round_up(needed)} instead"
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
    fix = f"set max_length: {round_up(needed)}, or split the traffic over more levels"
    return Found(wait.queue.name, f"{count}: {effect}", fix, wait.line)


def unusual_length(context: Context) -> Iterator[Found]:
    """D206: room for unusually few or many."""
    for wait in context.kinds_of_waits:
        length = wait.queue.settings.max_length
        if length is not None and not FEWEST <= length <= MOST:
            effect = (
                "at that many it overflows" if length < FEWEST else "that many take long to recover after a restart"
            )
            message = f"{wait.queue.name} has room for {plural(length, 'message')}: {effect}"
            yield Found(wait.queue.name, message, f"choose {FEWEST:,} to {MOST:,}, unless you know better", wait.line)


def unlimited(context: Context) -> Iterator[Found]:
    """D207: room without end."""
    for wait in context.kinds_of_waits:
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


def refusing_step(context: Context) -> Iterator[Found]:
    """D214: a step of the ladder has no room for what comes from the one above."""
    for wait in context.kinds_of_waits:
        settings = wait.queue.settings
        is_refusing = settings.overflow == "reject-publish" and not is_at_least_once(settings)
        if wait.is_step and is_refusing and (settings.max_length or settings.max_bytes) is not None:
            message = f"{wait.queue.name} has room for {_room(settings)}: what comes from a longer step while it is full is lost"
            fix = "set profile: safe for the ladder, or overflow: drop-head"
            yield Found(wait.queue.name, message, fix, wait.line)


def memory(context: Context) -> Iterator[Found]:
    """D208: more than the broker's memory can hold."""
    room = context.spec.memory if context.spec.memory is not None else context.facts and context.facts.memory
    if not room:
        return
    waits = {wait.queue.name: wait for wait in context.whole_waits}
    needs = {name: need for name, wait in waits.items() if (need := _need(wait, context)).room}
    alone = [name for name, need in needs.items() if Capacity((need,)).memory > room]
    for name in alone:
        message = f"{name} full takes {_takes((needs[name],))}; the broker has {_gib(room)}"
        fix = f"set max_length to {messages_in(room, needs[name]):,} or less"
        yield Found(name, message, fix, waits[name].line)
    if not alone and Capacity(tuple(needs.values())).memory > room:
        largest = waits[max(needs, key=lambda name: needs[name].memory)]
        message = (
            f"{len(needs)} full waits take {_takes(tuple(needs.values()), 'together ')}; the broker has {_gib(room)}"
        )
        yield Found(largest.queue.name, message, "lower max_length, or give the broker more memory", largest.line)


def _need(wait: Wait, context: Context) -> Need:
    """A wait that is full; nothing where there is no limit, which is another rule's."""
    shape, settings = shape_of(wait.queue), wait.queue.settings
    footprint = footprint_of(shape, context.live.version if context.live else "")
    # A limit in bytes counts as so much memory: how large bodies are is not known here.
    limits = (settings.max_length, None if settings.max_bytes is None else settings.max_bytes // footprint.memory)
    return Need(wait.queue.name, shape, footprint, max_length=min((n for n in limits if n is not None), default=None))


def _takes(needs: tuple[Need, ...], together: str = "") -> str:
    """What full waits take, and what was reckoned with."""
    each, capacity = sorted({need.memory_each for need in needs}), Capacity(needs)
    figures = f"{each[0]:,}" if len(each) == 1 else f"{each[0]:,} to {each[-1]:,}"
    log = f" and {_gib(capacity.log)} for the log of quorum queues" if capacity.log else ""
    return f"{_gib(capacity.memory)} {together}at {figures} bytes a message{log}"


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
        "D214",
        "refusing-step",
        Severity.WARNING,
        "A full step of the ladder loses what comes from a longer one.",
        "A queue that refuses tells a publisher; what another queue hands on is gone, unless that one dead-letters at least once and"
        " keeps it until there is room.",
        refusing_step,
    ),
    Rule(
        "D208",
        "memory",
        Severity.WARNING,
        "Full waits take more memory than the broker has.",
        f"A message that waits in a classic queue takes about {_OLD:,} bytes of memory besides its body up to RabbitMQ 3.13, and about {_NEW:,}"
        " with RabbitMQ 4; docs/capacity.md has the other queues, and how to measure your own; the memory is that of lint.memory in the file, or with --live the limit of the node that has least.",
        memory,
    ),
)
