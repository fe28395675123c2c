"""What a run tells an engineer: whether it fits, what goes wrong where it does not, and what would mend it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from delayctl.simulator.flow import Limit, limits_of
from delayctl.simulator.what_if_answer import Account, Answer
from delayctl.simulator.what_if_scenario import Scenario
from delayctl.topology.capacity import holds, round_up
from delayctl.topology.duration import Duration
from delayctl.topology.journey import Fate
from delayctl.topology.rate import Rate
from delayctl.topology.wording import plural

_GONE: Mapping[Fate, str] = {
    "lost": "are lost on the way out of a queue",
    "dropped": "come back to a queue that they waited in before, and are dropped as a cycle",
    "returned": "find no queue when they are published, and are returned or lost",
    "refused": "can't be published at all",
    "stuck": "can't leave their queue",
    "unknown": "meet an exchange of a plugin's type",
}
_WHOLE_FROM = 100
_MINUTE = 60_000
_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to know; where `is_trouble`, messages are early, refused, lost or too many."""

    what: str
    fix: str | None = None
    is_trouble: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known besides the run: the memory, where what has no route is parked, and who explains an end."""

    memory_each: int
    memory: int | None = None
    unrouted: str | None = None
    explain: Mapping[Fate, str] = field(default_factory=dict)  # The command that shows such an end.


def findings(scenario: Scenario, answer: Answer, needed: Answer | None, setting: Setting) -> tuple[Finding, ...]:
    """Everything worth a sentence, trouble first; `needed` is the same run with room for all."""
    found = [
        *(
            finding
            for name, account in answer.accounts.items()
            for finding in _of_queue(name, account, answer.step, _more_room(name, account, needed, scenario))
        ),
        *_gone(answer, setting.explain),
        *_unrouted(answer, setting),
        *_publishers(answer),
        *_memory(answer, setting.memory_each, setting.memory),
        *(
            finding
            for name, account in answer.accounts.items()
            if name != setting.unrouted
            for finding in _behind(name, account, answer, scenario.consumers_of(name))
        ),
    ]
    return tuple(sorted(found, key=lambda finding: not finding.is_trouble))


def ends_told(answer: Answer, unrouted: str | None) -> frozenset[Fate]:
    """The ends that findings speak of, and that somebody may want explained."""
    told = frozenset(fate for fate in _GONE if answer.ends.get(fate, 0))
    account = answer.accounts.get(unrouted or "")
    return told | {"parked"} if account is not None and account.arrived else told


def fits(found: tuple[Finding, ...]) -> bool:
    """Say whether nothing is early, refused or lost."""
    return not any(finding.is_trouble for finding in found)


def rate_text(rate: Rate) -> str:
    """A rate as people read it: in whole messages where there are many."""
    return f"{int(rate.per_second):,}/s" if rate.per_second >= _WHOLE_FROM else str(rate)


def time_text(ms: int) -> str:
    """A time as exact as it is worth: milliseconds count below a minute alone."""
    return str(Duration(ms if ms < _MINUTE else round(ms / 1000) * 1000))


def bytes_text(size: int) -> str:
    """A size that is an estimate: two digits will do."""
    for unit, name in _UNITS:
        if size >= unit:
            count = size / unit
            return f"{count:.1f} {name}" if count < 10 else f"{count:.0f} {name}"
    return f"{size} B"


def _of_queue(name: str, account: Account, step: int, more_room: str) -> Iterator[Finding]:
    if account.left_early.count:
        yield Finding(
            f"{name} is full{_since(account)}: {_pushed_out(account, step)}",
            more_room,
            is_trouble=True,
        )
    if account.refused.count:
        what = (
            f"{name} is full{_since(account)}: {_part(account.refused.count, account)} are refused to their publishers"
        )
        yield Finding(what, more_room, is_trouble=True)
    if account.lost.count:
        what = f"{name} is full{_since(account)}: {_part(account.lost.count, account)} come out of their wait, are refused and lost"
        yield Finding(what, "remove its limit, or dead-letter at least once (profile: safe)", is_trouble=True)


def _since(account: Account) -> str:
    return f" from {time_text(account.full_from)} on" if account.full_from is not None else ""


def _part(count: int, account: Account) -> str:
    return f"{plural(count, 'message')} ({_percent(count, account.arrived)})"


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} %"


def _pushed_out(account: Account, step: int) -> str:
    count = _part(account.left_early.count, account)
    early = account.early
    if early.median is None or early.least is None or early.most is None:
        is_lost = account.queue.settings.dead_letter_exchange is None
        return f"{count} are {'deleted' if is_lost else 'dead-lettered'} to make room"
    if early.most <= step:
        return f"{count} leave early, by no more than a step; with a shorter --step it is told how many by how much"
    least, median, most = (time_text(value) for value in (early.least, early.median, early.most))
    by = f"by {median}" if least == most else f"by {least} to {most}, half of them by {median} or more"
    return f"{count} leave early, {by}"


def _more_room(name: str, account: Account, needed: Answer | None, scenario: Scenario) -> str:
    """Every limit that stands in the way, as one alone would be raised for nothing."""
    ttl, limits = account.queue.settings.ttl, limits_of(account.queue.settings, scenario.message_bytes)
    most = needed.accounts[name].peak if needed and name in needed.accounts else account.peak
    sizes = {"max_length": 1, "max_bytes": scenario.message_bytes or 1}
    tight = [limit for number, limit in enumerate(limits) if not number or limit.messages < most]
    raised = " and ".join(f"{limit.setting}: {round_up(Fraction(most * sizes[limit.setting]))}" for limit in tight)
    fix = f"set {raised}, as up to {most:,} would wait"
    if ttl is None or not limits or not limits[0].messages:
        return fix
    return f"{fix}, or keep to {rate_text(holds(limits[0].messages, ttl))}, which {_room_text(limits[0], scenario)} at {ttl} hold"


def _room_text(limit: Limit, scenario: Scenario) -> str:
    if limit.setting == "max_length":
        return f"{limit.messages:,}"
    return f"{plural(limit.messages, 'message')} of {bytes_text(scenario.message_bytes or 0)}"


def _gone(answer: Answer, explain: Mapping[Fate, str]) -> Iterator[Finding]:
    for fate, what in _GONE.items():
        if count := answer.ends.get(fate, 0):
            fix = f"{explain[fate]} shows where" if fate in explain else None
            yield Finding(f"{plural(count, 'message')} {what}", fix, is_trouble=True)
    if count := answer.ends.get("handed_over", 0):
        yield Finding(f"{plural(count, 'message')} are handed over to exchanges that the file can't see behind")


def _unrouted(answer: Answer, setting: Setting) -> Iterator[Finding]:
    account = answer.accounts.get(setting.unrouted or "")
    if account is None or not account.arrived:
        return
    what = f"{plural(account.arrived, 'message')} come out of their wait, find no route, and are parked in {account.queue.name}: not delivered"
    shown = f"; {setting.explain['parked']} shows their way" if "parked" in setting.explain else ""
    yield Finding(what, f"add a route with their key, or name a key that has one{shown}", is_trouble=True)


def _publishers(answer: Answer) -> Iterator[Finding]:
    if answer.failed.count:
        what = f"{plural(answer.failed.count, 'message')} are given up by publishers while the broker is away"
        yield Finding(what, "have publishers hold messages until it is back", is_trouble=True)
    if answer.held.count:
        what = f"{plural(answer.held.count, 'message')} are held by publishers while the broker is away, and published when it is back"
        yield Finding(f"{what}: their wait begins then")


def _memory(answer: Answer, each: int, memory: int | None) -> Iterator[Finding]:
    if memory is not None and answer.peak * each > memory:
        what = f"{answer.peak:,} messages wait at {time_text(answer.peak_at)} and take {bytes_text(answer.peak * each)}; the broker has {bytes_text(memory)}"
        yield Finding(what, "lower max_length, or give the broker more memory", is_trouble=True)


def _behind(name: str, account: Account, answer: Answer, rate: Rate | None) -> Iterator[Finding]:
    if account.longest_wait > answer.step and account.queue.settings.ttl is None:
        count, wait = plural(account.peak, "message"), time_text(account.longest_wait)
        what = f"consumers of {name} fall behind by up to {count}, which then wait up to {wait} for them"
        yield Finding(what, _faster(account, answer, rate))
    if account.waiting and not account.consumed and account.queue.settings.ttl is None:
        yield Finding(f"{plural(account.waiting, 'message')} end in {name}, and nobody takes them there")


def _faster(account: Account, answer: Answer, rate: Rate | None) -> str | None:
    if rate is None:
        return None
    usual = Rate(Fraction(account.arrived * 1000, max(answer.traffic_ends, 1)))
    if usual > rate:
        return f"consume {rate_text(usual)} or more: that many come in the mean"
    return f"{rate_text(rate)} are enough in the mean, and they catch up; to do so sooner, consume faster"
