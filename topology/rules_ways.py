"""Rules about the ways of messages: that they lead out, and not around."""

from collections.abc import Iterator
from dataclasses import replace

from delayctl.topology.duration import Duration
from delayctl.topology.findings import Found, Rule, Severity
from delayctl.topology.journey import Passage, is_at_least_once
from delayctl.topology.key_index import common_key
from delayctl.topology.lint_context import Context
from delayctl.topology.model import Settings
from delayctl.topology.routing import DEFAULT_EXCHANGE, Hop
from delayctl.topology.spec import Target
from delayctl.topology.trails import Trail
from delayctl.topology.wording import quoted


def no_way_out(context: Context) -> Iterator[Found]:
    """D101: nothing takes the message where it comes out."""
    for trail, number, hop in _dead_ends(context):
        passage, is_bare = trail.journey.passages[number], _is_bare(context, hop)
        is_known = context.trails.is_key_known(trail, number)
        # Where any key may come, all is lost only where nothing is bound at all.
        if (is_bare or is_known) and (hop.exchange == passage.exchange or not is_bare):
            found = _lost(context, _told(trail, passage, is_known=is_known), trail, passage, hop)
            yield replace(found, severity=Severity.WARNING) if _is_one_of_many(context, trail, hop) else found


def _is_one_of_many(context: Context, trail: Trail, hop: Hop) -> bool:
    """Say whether other keys of the same pattern are let out: the file can't tell which of them really come."""
    ways_out = [binding.key for binding in context.network.bindings if binding.source == hop.exchange]
    return any(common_key(pattern, key) is not None for pattern in trail.sample.patterns for key in ways_out)


def _dead_ends(context: Context) -> Iterator[tuple[Trail, int, Hop]]:
    """Every exchange that matches nothing and has no alternate, in a passage of a message that it should lead on."""
    for trail in context.trails.all:
        for number, passage in enumerate(trail.journey.passages):
            for hop in passage.routed.hops:
                is_end = not (hop.matched or hop.alternate is not None or hop.is_missing or hop.is_unknown)
                is_publish = passage.out_of is None and hop.exchange == passage.exchange
                if (
                    is_end
                    and not is_publish
                    and hop.exchange != DEFAULT_EXCHANGE
                    and hop.exchange not in context.open_ended
                ):
                    yield trail, number, hop


def _is_bare(context: Context, hop: Hop) -> bool:
    """Say whether an exchange has no bindings at all, so that those who listen may bind their own."""
    return hop.exchange not in context.network.indexes


def _told(trail: Trail, passage: Passage, *, is_known: bool) -> str:
    """What a finding calls a message."""
    if not is_known:
        return "every message"
    rejected = f", rejected from {trail.sample.rejected}," if trail.sample.rejected else ""
    return f"a message with key {_shown_key(trail, passage)}{rejected}"


def _lost(context: Context, told: str, trail: Trail, passage: Passage, hop: Hop) -> Found:
    fix = f"add a route from {hop.exchange} that takes this key, or give it an alternate"
    where = f"nothing at {hop.exchange} takes it"
    line = trail.sample.line
    if passage.out_of is None:
        message = f"{told} to {trail.sample.exchange} gets lost on its way: {where}"
        return Found(hop.exchange, message, fix, line)
    wait = context.network.queues[passage.out_of]
    if passage.routed.queues:
        message = f"{told} that waited in {wait.name} does not get past {hop.exchange}: {where}"
        return Found(hop.exchange, message, fix, line)
    fate = "is lost without a trace"
    if is_at_least_once(wait.settings):
        fate = "stays and is tried again every 3 minutes; 32 of them block the queue"
    message = f"{told} waits {wait.settings.ttl} in {wait.name}, then {fate}: {where}"
    return Found(wait.name, message, fix, line)


def _shown_key(trail: Trail, passage: Passage) -> str:
    """The key, with the patterns that it stands for unless a queue has put another in its place."""
    is_own = passage.message.key == trail.sample.message.key
    return trail.sample.shown if is_own else quoted(passage.message.key)


def unknown_exit(context: Context) -> Iterator[Found]:
    """D102: what has waited leaves for an exchange or a queue that nobody knows of."""
    place = "the file does not have" if context.live is None else "neither the file nor the broker has"
    # A broker that does not have it either loses every message, from the first one on.
    severity = None if context.live is None else Severity.ERROR
    for wait in context.waits.values():
        if target := _unknown_target(context, wait.queue.settings):
            way = f"is dead-lettered to {target.kind} {target.name}, which {place}"
            message = f"what has waited {wait.queue.settings.ttl} in {wait.queue.name} {way}"
            yield Found(wait.queue.name, message, _declare(target.kind, target.name), wait.line, severity)
    for queue in context.consumed:
        if target := _unknown_target(context, queue.settings):
            message = (
                f"what is rejected from {queue.name} is dead-lettered to {target.kind} {target.name}, which {place}"
            )
            line = context.own_queues[queue.name].line
            yield Found(queue.name, message, _declare(target.kind, target.name), line)
    yield from _unknown_by_key(context, place, severity)
    for exchange in context.spec.exchanges:
        if exchange.alternate is not None and exchange.alternate not in context.network.exchanges:
            message = f"what {exchange.name} can't route goes to its alternate {exchange.alternate}, which {place}"
            yield Found(exchange.name, message, _declare("exchange", exchange.alternate), exchange.line)


def _unknown_by_key(context: Context, place: str, severity: Severity | None) -> Iterator[Found]:
    """Messages that the default exchange takes by their own key, and has no queue for."""
    for trail in context.trails.all:
        for number, passage in enumerate(trail.journey.passages):
            wait = context.waits.get(passage.out_of or "")
            is_own_key = wait is not None and wait.queue.settings.dead_letter_key is None
            is_told = is_own_key and context.trails.is_key_known(trail, number)
            if wait and is_told and passage.exchange == DEFAULT_EXCHANGE and not passage.routed.queues:
                key = passage.message.key
                way = f"goes to the queue of the name {quoted(key)}, which {place}"
                message = f"a message that has waited {wait.queue.settings.ttl} in {wait.queue.name} {way}"
                # Of a pattern this is one key among many, for which there may be queues.
                weight = None if trail.sample.patterns else severity
                yield Found(wait.queue.name, message, _declare("queue", key), trail.sample.line, weight)


def _unknown_target(context: Context, settings: Settings) -> Target | None:
    """What a queue dead-letters to, if nobody knows of it: by the default exchange, a queue."""
    exchange, key = settings.dead_letter_exchange, settings.dead_letter_key
    if exchange == DEFAULT_EXCHANGE and key is not None:
        return None if key in context.network.queues else Target("queue", key)
    is_known = exchange is None or exchange in context.network.exchanges
    return None if is_known else Target("exchange", exchange or "")


def _declare(kind: str, name: str) -> str:
    as_existing = f"{name}: {{existing: true}}"
    return f"list it under {kind}s:, as {as_existing} where it belongs to others; or correct the name"


def dead_letter_cycle(context: Context) -> Iterator[Found]:
    """D103: a message expires back into a queue that it has expired in before."""
    seen: set[tuple[str, ...]] = set()
    for trail in context.trails.all:
        for passage, waited in zip(trail.journey.passages, trail.waited, strict=True):
            for queue in passage.routed.queues:
                around = waited[waited.index(queue) :] if queue in waited else ()
                if around and around not in seen:
                    seen.add(around)
                    yield _circling(context, trail, passage, queue, around)


def _circling(context: Context, trail: Trail, passage: Passage, queue: str, around: tuple[str, ...]) -> Found:
    milliseconds = sum(ttl.ms for name in around if (ttl := context.network.queues[name].settings.ttl))
    message = (
        f"a message with key {_shown_key(trail, passage)} comes back to {queue} after {Duration(milliseconds)}"
        f" ({' → '.join((*around, *_way_to(passage, queue)))}) and is dropped"
    )
    fix = "lead it to a queue that somebody consumes from, or give the way back another key"
    return Found(queue, message, fix, trail.sample.line)


def _way_to(passage: Passage, queue: str) -> list[str]:
    """The exchanges that lead to a queue, and the queue."""
    before: dict[tuple[str, str], str] = {}
    for hop in passage.routed.hops:
        if hop.alternate is not None:
            before.setdefault(("exchange", hop.alternate), hop.exchange)
        for binding in hop.matched:
            before.setdefault((binding.kind, binding.destination), hop.exchange)
    way, exchange = [queue], before.get(("queue", queue), passage.exchange)
    while exchange != passage.exchange:
        way.insert(0, exchange)
        exchange = before["exchange", exchange]
    return [exchange or "the default exchange", *way]


def internal_exit(context: Context) -> Iterator[Found]:
    """D106: nobody can publish to where messages come out."""
    for wait in context.waits.values():
        exchange = context.network.exchanges.get(wait.exit)
        if exchange is not None and exchange.internal:
            line = context.exchange_lines.get(exchange.name, wait.line)
            message = f"nothing can be published to {exchange.name}, where what waited in {wait.queue.name} comes out"
            yield Found(exchange.name, message, "remove internal: true", line)


def ends_at_exchange(context: Context) -> Iterator[Found]:
    """D109: a way ends at an exchange that the file leads nowhere from."""
    seen: set[str] = set()
    for trail, number, hop in _dead_ends(context):
        passage = trail.journey.passages[number]
        if _is_bare(context, hop) and hop.exchange != passage.exchange and hop.exchange not in seen:
            seen.add(hop.exchange)
            message = (
                f"messages with key {_shown_key(trail, passage)} end at {hop.exchange}, which the file binds nothing to"
            )
            fix = "add a route from it, or give it an alternate; fine where those who listen bind their own queues"
            yield Found(hop.exchange, message, fix, trail.sample.line)


RULES: tuple[Rule, ...] = (
    Rule(
        "D101",
        "no-way-out",
        Severity.ERROR,
        "A message that is let in is let out nowhere.",
        "Confirms and mandatory speak of the way in. What expires and finds no binding is dropped by the broker, and nobody is told.",
        no_way_out,
    ),
    Rule(
        "D102",
        "unknown-exit",
        Severity.WARNING,
        "What has waited, or was rejected, leaves for an exchange or a queue that is not known.",
        "RabbitMQ does not check that a dead-letter or alternate exchange exists; what is sent to a missing one is dropped.",
        unknown_exit,
    ),
    Rule(
        "D103",
        "dead-letter-cycle",
        Severity.ERROR,
        "A message expires back into a queue that it has expired in before.",
        "RabbitMQ drops a message that reaches the same queue twice by expiry alone, without a consumer's rejection in between.",
        dead_letter_cycle,
    ),
    Rule(
        "D106",
        "internal-exit",
        Severity.WARNING,
        "Messages come out of an internal exchange.",
        "Publishing to an internal exchange closes the channel, so nothing can be sent again by hand; and newer brokers leave internal"
        " exchanges out of exported definitions, so that a restored broker has no exit.",
        internal_exit,
    ),
    Rule(
        "D109",
        "ends-at-exchange",
        Severity.INFO,
        "A way ends at an exchange that the file binds nothing to.",
        "Whether anybody gets these messages is decided elsewhere; while nothing is bound, they are dropped.",
        ends_at_exchange,
    ),
)
