"""What must be the same in two traces of a scenario, and how far their times may differ."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from tests.conformance.rocketmq_scenarios import SCENARIOS, Start
from tests.conformance.rocketmq_trace import Stored, Trace

SCHEDULE_TOPIC, WHEEL_TOPIC = "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"
# A level is looked at every 100 ms, and the phase of that differs from run to run.
GRID_MS = 100
# What a busy machine may add until a message is stored in the topic that it waited for.
MACHINE_MS = 1_500
# A timer message leaves at the end of the second in which it is due.
TIMER_PRECISION_MS = 1_000
# When the wheel had a message in its hands, which depends on the machine.
TIMES = {"TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS"}


@dataclass(frozen=True, order=True)
class Wait:
    """How a message waited: in which queue, for which topic, and how late it was, negative where early."""

    body: str
    reconsume_times: int
    queue: int
    topic: str
    late_ms: int


def sent(trace: Trace) -> list[tuple[str, str | None]]:
    """What was sent, and what was refused."""
    return [(each.body, each.error) for each in trace.sent]


def stored(trace: Trace) -> dict[str, list[Stored]]:
    """What lies where: by topic and level, since only within a level the order is given."""
    found: dict[str, list[Stored]] = {}
    for message in trace.stored:
        found.setdefault(_place(message), []).append(_timeless(message))
    return found


def seen(trace: Trace) -> dict[str, list[tuple[str, Stored]]]:
    """What a group's listener saw, by group and level, with the topic that it was pulled from."""
    found: dict[str, list[tuple[str, Stored]]] = {}
    for each in trace.seen:
        place = f"{each.group} {_place(each.message)}"
        found.setdefault(place, []).append((each.pulled_from, _timeless(each.message)))
    return found


def batches(trace: Trace) -> dict[str, list[list[str]]]:
    """Which messages came together at first; how many of those that come back are there at once is chance."""
    found: dict[str, dict[int, list[str]]] = {}
    for each in trace.seen:
        if each.message.reconsume_times == 0 and each.pulled_from == each.message.topic:
            found.setdefault(each.group, {}).setdefault(each.call, []).append(each.message.body)
    return {group: sorted(calls.values()) for group, calls in found.items()}


def offsets(trace: Trace) -> list[tuple[str, dict[str, int]]]:
    """What was on disk whenever the broker changed.

    Not when it was told to stop: how long its ten seconds between two writings had run by then, nobody could see.
    """
    return [(change.what, dict(change.offsets)) for change in trace.broker if change.what != "stopping"]


def differing_waits(real: Trace, simulated: Trace) -> list[tuple[Wait | None, Wait | None]]:
    """Pairs of waits that can't be explained by a poll's phase, a restart's length or what a busy machine adds.

    Never is one early and the other not.
    """
    pairs = zip_longest(sorted(_waits(real)), sorted(_waits(simulated)))
    slack = _slack_ms(real)
    return [(theirs, ours) for theirs, ours in pairs if not _is_alike(theirs, ours, slack)]


def _is_alike(theirs: Wait | None, ours: Wait | None, slack: int) -> bool:
    if theirs is None or ours is None or replace(theirs, late_ms=0) != replace(ours, late_ms=0):
        return False
    more = theirs.late_ms - ours.late_ms
    is_one_early = (theirs.late_ms < 0) != (ours.late_ms < 0)
    return not is_one_early and -GRID_MS - slack <= more <= GRID_MS + MACHINE_MS


def _slack_ms(trace: Trace) -> int:
    """How long a restart took: somewhere in that time the schedule service began, and nobody could see when."""
    times = {what: [change.time for change in trace.broker if change.what == what] for what in ("starting", "started")}
    return max((up - down for down, up in zip(times["starting"], times["started"], strict=True)), default=0)


def _waits(trace: Trace) -> Iterator[Wait]:
    levels = _level_strings(trace)
    for waited in trace.in_topic(SCHEDULE_TOPIC):
        due = waited.time + _delay_ms(levels, waited)
        yield from _deliveries(trace, waited, due)
    for waited in trace.in_topic(WHEEL_TOPIC):
        slot = int(waited.properties["TIMER_OUT_MS"]) - trace.began
        yield from _deliveries(trace, waited, slot + TIMER_PRECISION_MS)


def _deliveries(trace: Trace, waited: Stored, due: int) -> Iterator[Wait]:
    for message in trace.stored:
        if _is_same(waited, message):
            yield Wait(waited.body, waited.reconsume_times, waited.queue, message.topic, message.time - due)


def _level_strings(trace: Trace) -> list[tuple[int, str]]:
    scenario = SCENARIOS[trace.scenario]
    started = [change.time for change in trace.broker if change.what == "started"]
    strings = [step.levels or scenario.levels for step in scenario.steps if isinstance(step, Start)]
    return [(-1, scenario.levels), *zip(started, strings, strict=True)]


def _delay_ms(levels: list[tuple[int, str]], waited: Stored) -> int:
    text = next(text for since, text in reversed(levels) if since < waited.time)
    return int(text.split()[waited.queue].removesuffix("s")) * 1000


def _is_same(waited: Stored, message: Stored) -> bool:
    is_target = message.topic == waited.properties["REAL_TOPIC"]
    return is_target and (message.body, message.reconsume_times) == (waited.body, waited.reconsume_times)


def _place(message: Stored) -> str:
    return f"{message.topic} {message.queue} level {message.properties.get('DELAY', '-')}"


def _timeless(message: Stored) -> Stored:
    properties = {name: "a time" if name in TIMES else value for name, value in message.properties.items()}
    return replace(message, time=0, properties=properties)
