"""The simulated RocketMQ is held to what was recorded of real ones, and, where they are to be had, to real ones themselves."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from testbed.rocketmq_jars import VERSIONS
from tests.conformance import rocketmq_facts as facts
from tests.conformance.rocketmq_record import known, recorded, recorded_alone, recorded_together
from tests.conformance.rocketmq_replay import replayed
from tests.conformance.rocketmq_scenarios import SCENARIOS
from tests.conformance.rocketmq_trace import TRACES, Trace, load, save, versions

# "play" asks a real RocketMQ again; "record" keeps what it answered.
REAL = os.environ.get("DELAYCTL_ROCKETMQ", "")
NAMES = [(version, scenario.name) for version in VERSIONS for scenario in known(version)]


@cache
def kept_traces(version: str) -> dict[str, Trace]:
    """The traces that were kept of a version; they are made anew first where that is wanted."""
    if REAL == "record":
        save(version, recorded(version))
    return load(version)


@cache
def played_together(version: str) -> dict[str, Trace]:
    """The scenarios that share a broker."""
    return {trace.scenario: trace for trace in recorded_together(version)}


@cache
def trace_of(version: str, name: str) -> Trace:
    """What a real broker did in a scenario: once, or just now."""
    if REAL != "play":
        return kept_traces(version)[name]
    scenario = SCENARIOS[name]
    return recorded_alone(version, scenario) if scenario.has_own_broker else played_together(version)[name]


@pytest.fixture(params=NAMES, ids=lambda pair: f"{pair[0]}-{pair[1].replace(' ', '-')}")
def pair(request: pytest.FixtureRequest) -> tuple[Trace, Trace]:
    """A scenario as a real broker played it, and as the simulated one does."""
    real = trace_of(*request.param)
    return real, replayed(real)


def test_the_same_is_sent_and_refused(pair: tuple[Trace, Trace]) -> None:
    """A sender hears the same."""
    real, simulated = pair

    assert facts.sent(simulated) == facts.sent(real)


def test_the_same_lies_in_every_topic(pair: tuple[Trace, Trace]) -> None:
    """Queue, order within a level, counter, id and every property of every stored message, dead letters included."""
    real, simulated = pair

    assert facts.stored(simulated) == facts.stored(real)


def test_listeners_see_the_same(pair: tuple[Trace, Trace]) -> None:
    """Topic, order within a level, counter, id, properties, and which came together at first."""
    real, simulated = pair

    assert facts.seen(simulated) == facts.seen(real)
    assert facts.batches(simulated) == facts.batches(real)


def test_the_same_offsets_are_on_disk(pair: tuple[Trace, Trace]) -> None:
    """Whenever the broker stops, is killed or starts."""
    real, simulated = pair

    assert facts.offsets(simulated) == facts.offsets(real)


def test_every_wait_is_as_long(pair: tuple[Trace, Trace]) -> None:
    """Never early where the other is not, and as late but for the poll's phase and what a busy machine adds."""
    real, simulated = pair

    assert facts.differing_waits(real, simulated) == []


def test_every_version_and_scenario_is_recorded() -> None:
    """No file is missing, none is left over."""
    assert versions(TRACES) == sorted(VERSIONS)
    assert [(version, name) for version in VERSIONS for name in load(version)] == sorted(
        NAMES, key=lambda pair: (VERSIONS.index(pair[0]), SCENARIOS[pair[1]].has_own_broker)
    )


def _lost(trace: Trace) -> Trace:
    return replace(trace, stored=trace.stored[:-1], seen=trace.seen[:-1])


def _early(trace: Trace) -> Trace:
    """What waited was stored so much later that it came a millisecond before its time."""
    came = {(m.body, m.reconsume_times): m.time for m in trace.stored if m.topic != facts.SCHEDULE_TOPIC}
    return replace(
        trace,
        stored=tuple(
            replace(m, time=came[m.body, m.reconsume_times] - 999 if m.topic == facts.SCHEDULE_TOPIC else m.time)
            for m in trace.stored
        ),
    )


def _late(trace: Trace) -> Trace:
    return replace(
        trace,
        stored=tuple(replace(m, time=m.time + 2_000) if m.topic != facts.SCHEDULE_TOPIC else m for m in trace.stored),
    )


def _swapped(trace: Trace) -> Trace:
    return replace(trace, stored=trace.stored[2::-1] + trace.stored[3:], seen=trace.seen[2::-1] + trace.seen[3:])


@pytest.mark.parametrize(
    ("scenario", "change", "noticed"),
    [
        ("fifo", _lost, {"stored", "seen", "batches", "waits"}),
        ("fifo", _swapped, {"stored", "seen"}),
        ("failures", _lost, {"stored", "seen", "waits"}),
        ("broadcasting", _early, {"waits"}),
        ("chain", _late, {"waits"}),
    ],
)
def test_a_trace_that_is_not_true_is_noticed(
    scenario: str, change: Callable[[Trace], Trace], noticed: set[str]
) -> None:
    """What is compared is enough to tell a wrong simulator."""
    real = load(VERSIONS[0])[scenario]
    wrong = change(real)

    found = {
        name
        for name, fact in {"stored": facts.stored, "seen": facts.seen, "batches": facts.batches}.items()
        if fact(real) != fact(wrong)
    }
    assert found | ({"waits"} if facts.differing_waits(wrong, real) else set()) == noticed
