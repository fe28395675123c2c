"""Checks of what went no further: which messages, and why."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from delayctl.topology.diagnosis import Check, Symptom, reasons, symptom_of
from delayctl.topology.examination import Examination, Look, Seen
from delayctl.topology.findings import Severity
from delayctl.topology.names import Names
from delayctl.topology.status import Status
from delayctl.topology.verdict import Reason, parked_messages
from delayctl.topology.way_out import ADD_A_ROUTE, NoWay, Stranded, Way, way_out
from delayctl.topology.wording import command, near, plural, quoted, shorten

_NAMED = 5
_REASON_WIDTH = 100
_NO_LOOK = Look()
_NO_ROUTE = ": no route"
_WHY_CANARIES = "delayctl verify had given them up, and what catches them was gone when they came out."


def unrouted(examination: Examination) -> Iterator[Symptom]:
    """H301: what came out of a wait and had no way to go."""
    for reason in _parked(examination, "unrouted"):
        if _are_canaries(examination, reason.at):
            yield _of_canaries(examination, reason)
            continue
        seen = [(message, _way(message, reason.at, examination)) for message in _look(examination, reason.at).seen]
        told = [_told_way(message, way, examination) for message, way in seen]
        # Of kinds that are as frequent those are named that tell what to do, such as a slip.
        lines = _counted(sorted(told, key=lambda line: line.endswith(_NO_ROUTE)))
        others = [way for message, way in seen if not message.is_canary]
        homeless = [way for way in others if isinstance(way, NoWay)]
        apply = (command("delayctl", "apply", examination.source),) if homeless or not others else ()
        yield symptom_of(
            reason,
            *apply,
            *_redrive(examination, reason),
            details=_told(examination, reason, lines),
            fix=_fix(homeless, is_looked_into=bool(others)),
        )


def _are_canaries(examination: Examination, queue: str) -> bool:
    """Whether all that is parked there was looked at, and nothing of it is anybody's."""
    seen = _look(examination, queue).seen
    return len(seen) >= _messages(examination.status, queue) and all(message.is_canary for message in seen)


def _of_canaries(examination: Examination, reason: Reason) -> Symptom:
    """Nobody misses them, and no route is meant for them."""
    lines = _counted(
        [
            _told_way(message, _way(message, reason.at, examination), examination)
            for message in _look(examination, reason.at).seen
        ]
    )
    found = symptom_of(
        reason,
        command("rabbitmqctl", "purge_queue", "-p", examination.status.vhost, reason.at),
        details=_told(examination, reason, lines),
        fix="they need no route: purge the queue, nothing else is in it",
    )
    return replace(found, severity=Severity.WARNING, reason=_WHY_CANARIES)


def _fix(homeless: Sequence[NoWay], *, is_looked_into: bool) -> str:
    others = [way.fix for way in homeless if way.fix != ADD_A_ROUTE]
    if is_looked_into and not homeless:
        return "they have a route by now: move them back"
    if others and len(others) == len(homeless):
        return others[0]
    return "add routes for their keys to the file and apply it, then move them back"


def _way(message: Seen, queue: str, examination: Examination) -> Way | NoWay:
    """Where it would go by now: as redrive decides it."""
    desired = examination.desired
    exchange = desired.exit if message.exchange is None else message.exchange
    lost = Stranded(queue, exchange, message.key, message.headers, message.is_due)
    return way_out(examination.network, Names(desired.prefix), lost)


def _told_way(message: Seen, way: Way | NoWay, examination: Examination) -> str:
    """A key, what speaks against it, and where it waited."""
    waited = f", waited in {message.waited_in}" if message.waited_in else ""
    if message.is_canary:
        return f"a canary of delayctl verify{waited}: needs no route"
    begin = f"key {quoted(message.key)}{waited}"
    if isinstance(way, Way):
        return f"{begin}: has a route by now"
    if way.fix != ADD_A_ROUTE:
        return f"{begin}: {way.why}"
    known = sorted({b.key for b in examination.network.bindings_from.get(examination.desired.exit, ())})
    close = near(message.key, known)
    hint = f"; {quoted(close)} has one" if close else ""
    return f"{begin}{_NO_ROUTE}{hint}"


def given_up(examination: Examination) -> Iterator[Symptom]:
    """H302: what failed every retry."""
    for reason in _parked(examination, "retry"):
        seen = _look(examination, reason.at).seen
        lines = _counted(
            [
                f"key {quoted(m.first_key or m.key)}: {shorten(m.reason or 'no reason given', _REASON_WIDTH)}"
                for m in seen
            ]
        )
        fix = "find out why they fail, then move them back to the queue where they failed"
        yield symptom_of(reason, *_redrive(examination, reason), details=_told(examination, reason, lines), fix=fix)


def _parked(examination: Examination, kind: str) -> Iterator[Reason]:
    queues = {parked.queue for parked in examination.status.parked if parked.kind == kind}
    return (reason for reason in reasons(parked_messages, examination) if reason.at in queues)


def _look(examination: Examination, queue: str) -> Look:
    return examination.looks.get(queue, _NO_LOOK)


def _told(examination: Examination, reason: Reason, lines: Sequence[str]) -> Iterator[str]:
    """What was seen, how much of it that is, and whether it grows."""
    yield from lines
    look = _look(examination, reason.at)
    count = _messages(examination.status, reason.at)
    if look.obstacle:
        yield f"not looked into: {look.obstacle}"
    elif len(look.seen) < count:
        yield f"that is the first {len(look.seen):,} of {count:,}"
    if examination.earlier and (more := count - _messages(examination.earlier, reason.at)) > 0:
        yield f"{plural(more, 'message')} more within {examination.watched}"


def _messages(status: Status, queue: str) -> int:
    return next((parked.messages or 0 for parked in status.parked if parked.queue == queue), 0)


def _counted(lines: Sequence[str]) -> list[str]:
    counts = Counter(lines).most_common()
    more = [f"and {plural(len(counts) - _NAMED, 'other kind')}"] if len(counts) > _NAMED else []
    return [f"{count:,} × {line}" for line, count in counts[:_NAMED]] + more


def _redrive(examination: Examination, reason: Reason) -> Iterator[str]:
    words = ("delayctl", "redrive", examination.source, "--queue", reason.at)
    yield command(*words, "--dry-run")
    yield command(*words)


CHECKS: tuple[Check, ...] = (
    Check(
        "H301",
        "unrouted",
        Severity.ERROR,
        "Messages had no way out of their wait.",
        "They came out with a key that no route takes, and were caught by the net under the exit.",
        unrouted,
    ),
    Check(
        "H302",
        "given-up",
        Severity.WARNING,
        "Messages failed every retry.",
        "Nobody tries them again until they are moved back.",
        given_up,
    ),
)
