"""Whether a topology is healthy: every reason in words, with what to do about it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from delayctl.topology.duration import Duration
from delayctl.topology.figures import stuck_for
from delayctl.topology.journey import is_at_least_once
from delayctl.topology.status import LevelStatus, Status
from delayctl.topology.wording import argument, plural

Severity = Literal["unhealthy", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("unhealthy", "warning", "note")

_NEARLY_FULL = 0.8
BROKEN_STATES = frozenset({"crashed", "down", "minority", "stopped", "terminated"})
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Reason:
    """Something to know about a topology; only what is unhealthy makes the answer a bad one."""

    severity: Severity
    what: str
    fix: str | None = None
    at: str = field(default="", compare=False)  # The queue or node that it is about, if it is about one.


def is_healthy(reasons: tuple[Reason, ...]) -> bool:
    """Say whether nothing speaks against it."""
    return not any(reason.severity == "unhealthy" for reason in reasons)


def verdict(status: Status, *, source: str) -> tuple[Reason, ...]:
    """Every reason, what is unhealthy first; `source` is the file, as fixes name it."""
    found = [reason for rule in _RULES for reason in rule(status, source)]
    return tuple(sorted(found, key=lambda reason: SEVERITIES.index(reason.severity)))


def drift(status: Status, source: str) -> Iterator[Reason]:
    """What plan would change."""
    if status.is_missing:
        yield Reason("unhealthy", "nothing of the topology is on the broker", f"delayctl apply {argument(source)}")
    elif status.differences:
        what = f"the broker differs from the file in {plural(status.differences, 'place')}"
        yield Reason(
            "unhealthy",
            what,
            f"delayctl plan {argument(source)} shows where, delayctl apply {argument(source)} mends what it can",
        )


def missing_levels(status: Status, source: str) -> Iterator[Reason]:
    """Waits that are not there."""
    for level in () if status.is_missing else status.levels:
        if not level.is_there:
            what = f"{level.queue} is not there: what is meant to wait in it is lost or refused"
            yield Reason("unhealthy", what, f"delayctl apply {argument(source)}", level.queue)


def broken_queues(status: Status, _: str) -> Iterator[Reason]:
    """Waits that are there, and out of order."""
    fix = "bring back the nodes that hold it; the broker's log says more"
    for level in status.levels:
        if level.figures.state in BROKEN_STATES:
            what = f"{level.queue} is {level.figures.state}: it takes nothing and lets nothing go"
            yield Reason("unhealthy", what, fix, level.queue)
        elif not level.figures.has_majority:
            what = f"{level.queue} has lost most of its replicas: it takes nothing and lets nothing go"
            yield Reason("unhealthy", what, fix, level.queue)


def _changed_limits(status: Status, source: str) -> Iterator[Reason]:
    for level in status.levels:
        if not level.is_there or level.wanted is None:
            continue
        told = f" ({' and '.join(level.policies)})" if level.policies else ""
        fix = (
            f"narrow or remove the {' and the '.join(level.policies)}"
            if level.policies
            else f"delayctl plan {argument(source)}"
        )
        wanted, found = level.wanted, level.settings
        if found.ttl != wanted.ttl and _is_ours_to_say(level, wanted.ttl):
            what = f"{level.queue} waits {found.ttl or 'for ever'} instead of {wanted.ttl or 'for ever'}{told}"
            yield Reason("unhealthy", what, fix)
        if found.max_length != wanted.max_length and _is_ours_to_say(level, wanted.max_length):
            what = f"{level.queue} holds {_limit(found.max_length)} instead of {_limit(wanted.max_length)}{told}"
            yield Reason("unhealthy", what, fix)


def _is_ours_to_say(level: LevelStatus, wanted: object) -> bool:
    """Say whether the file decides about a setting: of a business queue what it leaves open is its owner's, as in plan."""
    return level.is_own or wanted is not None or not level.policies


def missing_exits(status: Status, source: str) -> Iterator[Reason]:
    """Waits that lead nowhere."""
    for level in status.levels:
        if level.exit_is_missing:
            exit = level.settings.dead_letter_exchange
            is_kept = is_at_least_once(level.settings)
            fate = "can't leave, and blocks the queue" if is_kept else "is lost"
            what = f"{level.queue} hands on to exchange {exit}, which is not on the broker: what has waited {fate}"
            apply = f"delayctl apply {argument(source)}"
            fix = apply if level.is_own else f"create it: with {exit} under exchanges: in the file, {apply} does"
            yield Reason("unhealthy", what, fix, level.queue)


def _limit(length: int | None) -> str:
    return "any number of messages" if length is None else plural(length, "message")


def full_levels(status: Status, _: str) -> Iterator[Reason]:
    """What can take nothing more without letting something go."""
    for level in status.levels:
        if level.fullness is None or level.fullness < 1:
            continue
        if level.rejects:
            what = f"{level.queue} is full: publishers are refused"
            yield Reason("unhealthy", what, "raise max_length, or publish less", level.queue)
        else:
            what = f"{level.queue} is full: what comes in pushes the oldest out early{_how_early(level)}"
            fix = "raise max_length, or set overflow: reject-publish to refuse instead"
            yield Reason("unhealthy", what, fix, level.queue)


def filling_levels(status: Status, _: str) -> Iterator[Reason]:
    """What will soon be full."""
    for level in status.levels:
        if level.fullness is not None and _NEARLY_FULL <= level.fullness < 1:
            what = f"{level.queue} is {level.fullness:.0%} full"
            yield Reason("warning", what, f"raise max_length before {_what_happens(level)}", level.queue)


def _what_happens(level: LevelStatus) -> str:
    return "publishers are refused" if level.rejects else "messages leave early"


def _how_early(level: LevelStatus) -> str:
    into = level.rates.into if level.rates else 0.0
    if not into or not level.waiting or not level.settings.ttl:
        return ""
    after = Duration(round(level.waiting / into) * 1000)
    if after >= level.settings.ttl:
        return ""
    return f", at this rate after {after} instead of {level.settings.ttl}"


def gone_early(status: Status, _: str) -> Iterator[Reason]:
    """What has left before its time was up."""
    for level in status.levels:
        if level.early and level.early.at_least:
            count = plural(level.early.at_least, "message")
            what = f"at least {count} of the last {level.early.window} left {level.queue} before the time was up"
            fix = "raise max_length if it was full; look for consumers, purges and hastened canaries (delayctl verify) if it was not"
            yield Reason("warning", what, fix, level.queue)


def consumed_levels(status: Status, _: str) -> Iterator[Reason]:
    """Who consumes from a wait takes messages before their time."""
    for level in status.levels:
        if level.figures.consumers and not level.is_own:
            yield _consumed_wait(level)
        elif level.figures.consumers:
            what = (
                f"{plural(level.figures.consumers, 'consumer')} on {level.queue}: messages are taken before their time"
            )
            yield Reason("unhealthy", what, "let them consume from the queue behind the delay", level.queue)


def held_messages(status: Status, _: str) -> Iterator[Reason]:
    """What a client has taken and not answered."""
    for level in status.levels:
        held = level.figures.unacknowledged
        if held and level.is_own and not level.figures.consumers:
            what = f"{plural(held, 'message')} of {level.queue} {'is' if held == 1 else 'are'} held by a client, and can't expire"
            fix = "close the client's channel, and let it take from the queue behind the delay"
            yield Reason("unhealthy", what, fix, level.queue)


def _consumed_wait(level: LevelStatus) -> Reason:
    """A queue of the user's own with a TTL may be a wait, or one whose messages are worth something for a while only."""
    what = (
        f"{plural(level.figures.consumers or 0, 'consumer')} on {level.queue}, which has a TTL of {level.settings.ttl}"
    )
    fix = "fine where messages are to be taken within that time; else let them consume from the queue behind the wait"
    return Reason("warning", what, fix, level.queue)


def stuck_levels(status: Status, _: str) -> Iterator[Reason]:
    """What holds its first message for longer than its TTL."""
    for level in status.levels:
        stuck = stuck_for(level.figures, level.settings.ttl) if level.settings.ttl else None
        if stuck and stuck.ms:
            what = f"{level.queue} is stuck: nothing has left it for {stuck}, and its TTL is {level.settings.ttl}"
            fix = "its first message was given a longer TTL (by an earlier policy, perhaps): wait for it, or purge"
            yield Reason("unhealthy", what, fix, level.queue)


def untaken_messages(status: Status, _: str) -> Iterator[Reason]:
    """What has expired in an at-least-once queue, and was not taken by whatever it was sent to."""
    for level in status.levels:
        if count := level.figures.dead_lettering:
            what = f"{plural(count, 'message')} of {level.queue} expired and found no taker yet"
            fix = "see that the exit leads somewhere and that the queues behind it take messages"
            yield Reason("unhealthy" if level.figures.is_blocked else "warning", what, fix, level.queue)


def parked_messages(status: Status, _: str) -> Iterator[Reason]:
    """What went no further."""
    for parked in status.parked:
        count = parked.messages or 0
        if count and parked.kind == "unrouted":
            what = f"{plural(count, 'message')} had no way out and {'is' if count == 1 else 'are'} parked in {parked.queue}"
            fix = "see which they are: delayctl doctor; add routes for their keys and apply, then send them on: delayctl redrive"
            yield Reason("unhealthy", what, fix, parked.queue)
        elif count:
            what = f"{plural(count, 'message')} failed every retry and {'is' if count == 1 else 'are'} parked in {parked.queue}"
            yield Reason("warning", what, "find out why they fail, then move them back or purge them", parked.queue)


def unseen_nodes(status: Status, _: str) -> Iterator[Reason]:
    """Whether there are alarms can't be said of nodes that can't be seen."""
    if status.nodes is None:
        what = "alarms are not known: the user may not see the nodes"
        yield Reason("note", what, "let an administrator add the tag monitoring")


def lost_nodes(status: Status, _: str) -> Iterator[Reason]:
    """Nodes that are not there."""
    for node in status.nodes or ():
        if not node.is_running:
            yield Reason("unhealthy", f"node {node.name} is down", "start it again", node.name)


def partitions(status: Status, _: str) -> Iterator[Reason]:
    """Nodes that are there, and don't see each other."""
    for node in status.nodes or ():
        if node.is_partitioned:
            what = f"node {node.name} has lost sight of others (partition)"
            yield Reason("unhealthy", what, "mend the network", node.name)


def memory_alarms(status: Status, _: str) -> Iterator[Reason]:
    """Nodes whose memory is used up to the limit."""
    for node in status.nodes or ():
        if node.memory_alarm:
            fix = "let consumers catch up, or give it more memory"
            what = f"node {node.name} is short of memory: publishers are blocked"
            yield Reason("unhealthy", what, fix, node.name)


def disk_alarms(status: Status, _: str) -> Iterator[Reason]:
    """Nodes whose disk is full up to the limit."""
    for node in status.nodes or ():
        if node.disk_alarm:
            what = f"node {node.name} is short of disk: publishers are blocked"
            yield Reason("unhealthy", what, "free some of it", node.name)


def silent_figures(status: Status, _: str) -> Iterator[Reason]:
    """Waits that the broker says nothing of."""
    silent = [level.queue for level in status.levels if level.is_there and level.waiting is None]
    if silent:
        what = f"the broker has not said yet what waits in {_names(silent)}"
        fix = (
            "ask again in some seconds; if it stays so, statistics are off (management_agent.disable_metrics_collector)"
        )
        yield Reason("warning", what, fix)


def unread_targets(status: Status, _: str) -> Iterator[Reason]:
    """Queues behind the waits that nobody reads."""
    unread = [target.queue for target in status.targets if target.consumers == 0]
    if unread:
        yield Reason("note", f"nobody consumes {_names(unread)}")


def plan_warnings(status: Status, _: str) -> Iterator[Reason]:
    """What plan has to say besides."""
    for text in status.warnings:
        yield Reason("note", f"plan says: {text}")


def _names(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


_RULES: tuple[Callable[[Status, str], Iterator[Reason]], ...] = (
    drift,
    missing_levels,
    broken_queues,
    _changed_limits,
    missing_exits,
    full_levels,
    filling_levels,
    gone_early,
    consumed_levels,
    held_messages,
    stuck_levels,
    untaken_messages,
    parked_messages,
    unseen_nodes,
    memory_alarms,
    disk_alarms,
    lost_nodes,
    partitions,
    silent_figures,
    unread_targets,
    plan_warnings,
)
