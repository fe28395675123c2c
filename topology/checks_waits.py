"""Checks of what waits: that it is there, has room, lets messages go in time, and is left alone."""

from collections.abc import Iterator
from math import ceil

from delayctl.topology.diagnosis import Check, Symptom, enumerated, reasons, symptom_of
from delayctl.topology.examination import Examination
from delayctl.topology.findings import Severity
from delayctl.topology.status import LevelStatus
from delayctl.topology.untaken import obstacles
from delayctl.topology.verdict import (
    consumed_levels,
    filling_levels,
    full_levels,
    gone_early,
    held_messages,
    missing_exits,
    missing_levels,
    stuck_levels,
    untaken_messages,
)
from delayctl.topology.wording import command, plural

_SPARE = 1.25  # How much more room than the rate of the last minute needs.


def wait_missing(examination: Examination) -> Iterator[Symptom]:
    """H201: a queue that messages are sent to is not there."""
    for reason in reasons(missing_levels, examination):
        yield symptom_of(reason, *_apply(examination), fix="declare it again")


def untaken(examination: Examination) -> Iterator[Symptom]:
    """H202: at-least-once keeps what nobody takes, and stops when there is too much of it."""
    for reason in reasons(untaken_messages, examination):
        level = examination.wait(reason.at)
        found = tuple(obstacles(examination, level))
        before = examination.waited_before(reason.at)
        more = level.figures.dead_lettering - before.figures.dead_lettering if before else 0
        growing = [f"{plural(more, 'message')} more within {examination.watched}"] if more > 0 else []
        fix = found[0].fix if found else "see that the queues behind the exit take messages"
        commands = found[0].commands if found else ()
        yield symptom_of(reason, *commands, details=[*(each.text for each in found), *growing], fix=fix)


def exit_missing(examination: Examination) -> Iterator[Symptom]:
    """H203: the dead-letter exchange is not there."""
    for reason in reasons(missing_exits, examination):
        fix = "declare it again" if examination.wait(reason.at).is_own else reason.fix
        yield symptom_of(reason, *_apply(examination), fix=fix)


def full(examination: Examination) -> Iterator[Symptom]:
    """H204: there is no room."""
    for reason in reasons(full_levels, examination):
        yield _roomless(examination, symptom_of(reason))


def nearly_full(examination: Examination) -> Iterator[Symptom]:
    """H205: there is little room."""
    for reason in reasons(filling_levels, examination):
        yield _roomless(examination, symptom_of(reason))


def _roomless(examination: Examination, symptom: Symptom) -> Symptom:
    """The same with how much room the rate of the last minute needs."""
    level = examination.wait(symptom.at)
    needed = _needed(level)
    limit = level.settings.max_length
    details = [f"{plural(level.waiting or 0, 'message')} of {'any number' if limit is None else f'{limit:,}'} wait"]
    fix = symptom.fix
    if needed is not None and limit is not None and needed > limit:
        rate = level.rates.into if level.rates else 0.0
        details.append(f"{rate:,.1f} came in per second of the last minute, and wait {level.settings.ttl}")
        fix = f"write max_length: {needed} for it, and apply"
    commands = (command("delayctl", "plan", examination.source), *_apply(examination))
    return Symptom(symptom.at, symptom.message, fix, commands, tuple(details), symptom.severity)


def _needed(level: LevelStatus) -> int | None:
    if level.rates is None or level.settings.ttl is None or not level.rates.into:
        return None
    return ceil(level.rates.into * level.settings.ttl.ms / 1000 * _SPARE)


def early(examination: Examination) -> Iterator[Symptom]:
    """H206: messages left before their time was up; still doing so is worse than having done so."""
    for reason in reasons(gone_early, examination):
        level, before = examination.wait(reason.at), examination.waited_before(reason.at)
        more = _count(level) - _count(before) if before else 0
        watch = command("delayctl", "doctor", examination.source, "--watch-for", "30s")
        if more > 0:
            details = (f"{plural(more, 'message')} of them within the last {examination.watched}: it goes on",)
            fix = reason.fix or ""
            yield Symptom(reason.at, reason.what, fix, _apply(examination), details, Severity.ERROR)
        else:
            yield symptom_of(reason, *(() if before else (watch,)))


def _count(level: LevelStatus) -> int:
    return level.early.at_least if level.early else 0


def consumed(examination: Examination) -> Iterator[Symptom]:
    """H207: somebody takes messages out of a wait."""
    for reason in reasons(consumed_levels, examination):
        takers = examination.clients.takers.get(reason.at, ())
        details = [f"consumed by {enumerated(map(str, takers))}"] if takers else []
        show = command("rabbitmqctl", "list_consumers", "-p", examination.status.vhost)
        yield symptom_of(reason, show, details=details)


def held(examination: Examination) -> Iterator[Symptom]:
    """H208: somebody has taken a message out of a wait, and keeps it."""
    for reason in reasons(held_messages, examination):
        show = command("rabbitmqctl", "list_channels", "connection", "number", "user", "messages_unacknowledged")
        yield symptom_of(reason, show)


def overdue(examination: Examination) -> Iterator[Symptom]:
    """H209: the first message is older than the TTL."""
    for reason in reasons(stuck_levels, examination):
        level = examination.wait(reason.at)
        if level.figures.dead_lettering or level.figures.unacknowledged:
            continue  # Which are reasons of their own.
        hasten = ("delayctl", "expedite", examination.source, "--level", level.name, "--all", "--dry-run")
        fix = "wait until its first message has had its own, longer time"
        fix += ", or send all that waits there on its way" if level.is_own else ""
        commands = (*_looks_at_policies(examination), *([command(*hasten)] if level.is_own else []))
        yield symptom_of(reason, *commands, details=_longer(examination, level), fix=fix)


def _longer(examination: Examination, level: LevelStatus) -> Iterator[str]:
    """Where a longer TTL may come from."""
    declared = examination.live.queues[level.queue].settings.ttl
    told = f"its TTL in force is {level.settings.ttl}"
    if declared is not None and level.settings.ttl is not None and declared > level.settings.ttl:
        by = f" by {' and '.join(level.policies)}" if level.policies else ""
        yield f"{told}{by}; what came before that has the queue's own, {declared}, and leaves by then"
    else:
        yield f"{told}; what is in front came when a longer one was"


def _looks_at_policies(examination: Examination) -> Iterator[str]:
    vhost = examination.status.vhost
    yield command("rabbitmqctl", "list_queues", "-p", vhost, "name", "messages", "policy")


def transient_messages(examination: Examination) -> Iterator[Symptom]:
    """H210: what lint says of messages that a restart loses."""
    for finding in examination.lint:
        if finding.code == "D402":
            show = command(
                "rabbitmqctl", "list_queues", "-p", examination.status.vhost, "name", "messages", "messages_persistent"
            )
            yield Symptom(finding.at, finding.message, finding.fix, (show,))


def _apply(examination: Examination) -> tuple[str, ...]:
    return (command("delayctl", "apply", examination.source),)


CHECKS: tuple[Check, ...] = (
    Check(
        "H201",
        "wait-missing",
        Severity.ERROR,
        "A queue that messages wait in is not there.",
        "What is published to its entrance has nowhere to go: returned where publishers ask for that, lost where not.",
        wait_missing,
    ),
    Check(
        "H202",
        "untaken",
        Severity.WARNING,
        "Messages have expired, and nobody takes them.",
        "An at-least-once queue keeps what it can't hand on and tries again every three minutes; 32 such messages block it.",
        untaken,
    ),
    Check(
        "H203",
        "exit-missing",
        Severity.ERROR,
        "The exchange that a wait hands on to is not there.",
        "What expires into nothing is lost without a word; with at-least-once it stays, and blocks the queue.",
        exit_missing,
    ),
    Check(
        "H204",
        "full",
        Severity.ERROR,
        "A wait is full.",
        "At its limit a queue lets the oldest go before its time (drop-head), or refuses what comes (reject-publish).",
        full,
    ),
    Check(
        "H205",
        "nearly-full",
        Severity.WARNING,
        "A wait is 80 % full, or more.",
        "At its limit a queue lets the oldest go before its time (drop-head), or refuses what comes (reject-publish).",
        nearly_full,
    ),
    Check(
        "H206",
        "early",
        Severity.WARNING,
        "Messages left before their time was up.",
        "What came in within the last TTL must still be there. An overflow, a purge and a consumer take it away, and verify hastens canaries.",
        early,
    ),
    Check(
        "H207",
        "consumed",
        Severity.ERROR,
        "Somebody consumes from a wait.",
        "A consumer gets messages at once: for them there is no delay.",
        consumed,
    ),
    Check(
        "H208",
        "held",
        Severity.ERROR,
        "A client holds messages of a wait.",
        "Only what is ready expires. What is held comes back when the client's channel closes.",
        held,
    ),
    Check(
        "H209",
        "overdue",
        Severity.ERROR,
        "The first message of a wait is older than its TTL.",
        "Only the head of a queue expires: one message with a longer time keeps all others behind it.",
        overdue,
    ),
    Check(
        "H210",
        "transient-messages",
        Severity.WARNING,
        "Transient messages wait in a durable queue.",
        "A durable queue outlives a restart, but of its messages only those that were published as persistent do.",
        transient_messages,
    ),
)
