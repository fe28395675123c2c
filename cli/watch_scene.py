"""What `delayctl watch` knows at a moment: the last look, what came before it, and since when nobody answers. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from delayctl.cli.verify_views import Report
from delayctl.cli.views import change_symbol
from delayctl.topology.duration import Duration
from delayctl.topology.plan import Plan, Wait, title
from delayctl.topology.status import Facts, Status, status_of, waits_begun
from delayctl.topology.verdict import Reason, is_healthy, verdict

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Switch:
    """The change of a delay queue, as far as it has come."""

    wait: Wait
    is_begun: bool  # Messages go round the queue already; else the change is only due.


@dataclass(frozen=True)
class Sight:
    """What one look at the broker found; `at_ms` is milliseconds since 1970."""

    at_ms: int
    status: Status
    is_healthy: bool
    reasons: tuple[Reason, ...]  # But for drift and idle targets, which have lines of their own.
    drift: tuple[str, ...] = ()  # What plan would change or refuse, a line for each.
    switches: tuple[Switch, ...] = ()
    unread: str = ""  # Why the file, which has changed, can't be read again.


@dataclass(frozen=True, slots=True)
class Away:
    """Since when the broker has not answered, and what is heard instead."""

    since_ms: int
    what: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A switch when it was first seen, and the most messages that it was seen with."""

    since_ms: int
    most: int


@dataclass(frozen=True)
class Verified:
    """What the last canaries have proved, or why none could be sent."""

    at_ms: int
    report: Report | None
    trouble: str = ""


@dataclass(frozen=True)
class Scene:
    """All that a frame shows."""

    source: str
    every: Duration
    sight: Sight
    away: Away | None = None
    verify_every: Duration | None = None
    verified: Verified | None = None
    marks: Mapping[str, Mark] = field(default_factory=dict)
    is_paused: bool = False
    has_keys: bool = False

    def after(self, sight: Sight) -> "Scene":
        """The scene after another look; whoever was away is back."""
        return replace(self, sight=sight, away=None, marks=_marks(self.marks, sight))

    def without(self, what: str, fix: str | None, now_ms: int) -> "Scene":
        """The scene after a look that found nobody: the last figures stay."""
        return replace(self, away=Away(self.away.since_ms if self.away else now_ms, what, fix))


def _marks(before: Mapping[str, Mark], sight: Sight) -> dict[str, Mark]:
    marks = {}
    for switch in (each for each in sight.switches if each.is_begun):
        queue, messages = switch.wait.queue, switch.wait.messages
        mark = before.get(queue, Mark(sight.at_ms, messages))
        marks[queue] = replace(mark, most=max(mark.most, messages))
    return marks


def sight_of(facts: Facts, *, source: str, now_ms: int, unread: str = "") -> Sight:
    """Put together what one look has read."""
    status, plan = status_of(facts), facts.plan
    untold = replace(status, differences=0, targets=(), warnings=plan.warnings)
    return Sight(
        now_ms,
        status,
        is_healthy(verdict(status, source=source)),
        verdict(untold, source=source),
        tuple(_drift(plan)),
        tuple(_switches(facts)),
        unread,
    )


def _switches(facts: Facts) -> Iterator[Switch]:
    """What is waited for, and whether an apply has begun with it."""
    for wait, is_begun in waits_begun(facts):
        yield Switch(wait, is_begun)


def _drift(plan: Plan) -> list[str]:
    changes = [f"{change_symbol(change)} {title(change)}" for change in plan.changes]
    return [*changes, *(f"! {refusal.subject}: {refusal.reason}" for refusal in plan.refusals)]


def clock(at_ms: int) -> str:
    """The time of day of a moment, in UTC."""
    minutes, seconds = divmod(at_ms % _DAY_MS // 1000, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02} UTC"


def ago(at_ms: int, now_ms: int) -> Duration:
    """How long ago something was, in whole seconds; in minutes where it is more than ten."""
    grain = 1000 if now_ms - at_ms < 600_000 else 60_000
    return Duration(max(0, now_ms - at_ms) // grain * grain)
