"""The suite is tested, too: a broker that is only slightly wrong must fail it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
from delayctl.simulator.rocketmq_profiles import P6

from tests.conformance.behaviours import BEHAVIOURS
from tests.conformance.stage import Attempt, DeadLetter, Group, Sent, Stage, Theatre
from tests.conformance.stage_rabbitmq_simulated import SimulatedRabbitMq
from tests.conformance.stage_rocketmq import SimulatedRocketMq

ROCKETMQ = SimulatedRocketMq(P6)
Damage = Callable[[list[Attempt]], list[Attempt]]


def early(attempts: list[Attempt]) -> list[Attempt]:
    """All that waited comes a millisecond before its time."""
    return [replace(attempt, time=attempt.time - 1) if attempt.level else attempt for attempt in attempts]


def late(attempts: list[Attempt]) -> list[Attempt]:
    """All that waited comes one poll late."""
    return [replace(attempt, time=attempt.time + 100) if attempt.level else attempt for attempt in attempts]


def loses_one(attempts: list[Attempt]) -> list[Attempt]:
    """The last is never seen."""
    return attempts[:-1]


def repeats_one(attempts: list[Attempt]) -> list[Attempt]:
    """The last is seen twice."""
    return [*attempts, *attempts[-1:]]


def swaps_two(attempts: list[Attempt]) -> list[Attempt]:
    """The first two change places."""
    return [*attempts[1::-1], *attempts[2:]]


def forgets_the_topic(attempts: list[Attempt]) -> list[Attempt]:
    """A retry shows the topic in which it waited."""
    return [replace(each, topic=f"%RETRY%{each.group}") if each.attempt else each for each in attempts]


def renames(attempts: list[Attempt]) -> list[Attempt]:
    """A retry has an id of its own."""
    return [
        replace(each, message_id=f"{each.message_id}-{each.attempt}") if each.attempt else each for each in attempts
    ]


def does_not_count(attempts: list[Attempt]) -> list[Attempt]:
    """Every attempt is the first."""
    return [replace(attempt, attempt=0) for attempt in attempts]


def takes_the_next_level(attempts: list[Attempt]) -> list[Attempt]:
    """A retry waits one level further up."""
    return [replace(each, level=min(each.level + 1, 18)) if each.attempt else each for each in attempts]


def tells_others(attempts: list[Attempt]) -> list[Attempt]:
    """A retry is seen by the other group."""
    return [replace(attempt, group="calm") if attempt.attempt else attempt for attempt in attempts]


def nothing(attempts: list[Attempt]) -> list[Attempt]:
    """All is well."""
    return attempts


class DamagedStage:
    """A stage whose deliveries are damaged."""

    def __init__(self, stage: Stage, damage: Damage, *, buries: bool) -> None:
        self._stage, self._damage, self._buries = stage, damage, buries

    @property
    def attempts(self) -> Sequence[Attempt]:
        """What handlers would have seen."""
        return self._damage(list(self._stage.attempts))

    def send(self, topic: str, body: str, *, level: int = 0) -> Sent:
        """As ever."""
        return self._stage.send(topic, body, level=level)

    def rest(self) -> None:
        """As ever."""
        self._stage.rest()

    def dead_letters(self, group: str) -> list[DeadLetter]:
        """All of them, or none."""
        return self._stage.dead_letters(group) if self._buries else []

    def restart(self) -> None:
        """As ever."""
        self._stage.restart()

    def send_seen_twice(self, topic: str, body: str) -> Sent:
        """As ever."""
        return self._stage.send_seen_twice(topic, body)


class DamagedTheatre:
    """A kind of broker with something wrong."""

    def __init__(self, theatre: Theatre, damage: Damage, *, buries: bool = True) -> None:
        self.name, self.can, self.levels_ms, self.late_ms = "damaged", theatre.can, theatre.levels_ms, theatre.late_ms
        self._theatre, self._damage, self._buries = theatre, damage, buries

    @contextmanager
    def open(self, *groups: Group, max_length: int | None = None) -> Iterator[DamagedStage]:
        """A broker of its own."""
        with self._theatre.open(*groups, max_length=max_length) as stage:
            yield DamagedStage(stage, self._damage, buries=self._buries)


def failures(theatre: Theatre) -> set[str]:
    """The behaviours that a kind of broker fails."""
    failed = set()
    for behaviour in BEHAVIOURS:
        if behaviour.needs is None or behaviour.needs in theatre.can:
            try:
                behaviour.check(theatre)
            except (AssertionError, ValueError):
                failed.add(behaviour.name)
    return failed


@pytest.mark.parametrize(
    ("damage", "behaviour"),
    [
        (early, "a message comes after its level and not before"),
        (early, "seventeen attempts and then the dead letter queue"),
        (late, "a message comes after its level and not before"),
        (late, "a level above the last is the last"),
        (loses_one, "what is done does not come again"),
        (loses_one, "what waits outlives the broker"),
        (repeats_one, "what is done does not come again"),
        (repeats_one, "a message seen twice has the same id"),
        (swaps_two, "messages of a level keep their order"),
        (swaps_two, "levels do not block one another"),
        (swaps_two, "level 0 is at once"),
        (forgets_the_topic, "a retry looks like the first attempt"),
        (renames, "a retry looks like the first attempt"),
        (does_not_count, "seventeen attempts and then the dead letter queue"),
        (takes_the_next_level, "an exception is a retry"),
        (takes_the_next_level, "a handler may choose the level"),
        (tells_others, "another group is not disturbed"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_slightly_wrong_broker_fails(damage: Damage, behaviour: str) -> None:
    """Each kind of damage is found by the behaviour that is about it."""
    assert behaviour in failures(DamagedTheatre(ROCKETMQ, damage))


def test_a_broker_that_buries_nothing_fails() -> None:
    """What was given up is looked for."""
    assert failures(DamagedTheatre(ROCKETMQ, nothing, buries=False)) == {
        "seventeen attempts and then the dead letter queue",
        "a retry looks like the first attempt",
        "fewer retries than sixteen",
        "a handler may give up at once",
        "another group is not disturbed",
    }


def test_every_behaviour_can_fail() -> None:
    """A behaviour that holds of every damaged broker says nothing."""
    damages = (early, late, loses_one, repeats_one, swaps_two, forgets_the_topic, renames, takes_the_next_level)

    found = failures(DamagedTheatre(SimulatedRabbitMq("4.3"), loses_one))
    for damage in (*damages, does_not_count, tells_others):
        found |= failures(DamagedTheatre(ROCKETMQ, damage))

    assert found == {behaviour.name for behaviour in BEHAVIOURS}
