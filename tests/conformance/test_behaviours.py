"""The same behaviours on simulated and on real brokers."""

import os
from collections.abc import Iterator

import pytest
from delayctl.simulator.rocketmq_profiles import P4, P6

from testbed import RunningBroker
from testbed.needs import needed
from testbed.rocketmq import rocketmq
from testbed.rocketmq_driver import driver
from testbed.rocketmq_jars import VERSIONS
from tests.conformance.behaviours import BEHAVIOURS, Behaviour
from tests.conformance.stage import Ability, Theatre
from tests.conformance.stage_rabbitmq_real import RealRabbitMq
from tests.conformance.stage_rabbitmq_simulated import SimulatedRabbitMq
from tests.conformance.stage_rocketmq import SimulatedRocketMq
from tests.conformance.stage_rocketmq_real import LEVELS, RealRocketMq
from tests.faults.killable import Killable, killable_container, killable_node

SIMULATED: tuple[Theatre, ...] = (
    SimulatedRocketMq(P4),
    SimulatedRocketMq(P6),
    SimulatedRabbitMq("3.10"),
    SimulatedRabbitMq("4.3"),
)
KILLABLE = {"native": killable_node, "container": killable_container}
# A real RocketMQ is asked only by `make conformance-rocketmq`, which says so here.
IS_ROCKETMQ_ASKED = bool(os.environ.get("DELAYCTL_ROCKETMQ"))


def asked(can: frozenset[Ability]) -> list[Behaviour]:
    """The behaviours that a broker with these abilities can be asked for."""
    return [each for each in BEHAVIOURS if each.needs is None or each.needs in can]


@pytest.mark.parametrize(
    ("theatre", "behaviour"),
    [
        pytest.param(theatre, each, id=f"{theatre.name}: {each.name}")
        for theatre in SIMULATED
        for each in asked(theatre.can)
    ],
)
def test_simulated(theatre: Theatre, behaviour: Behaviour) -> None:
    """In virtual time."""
    behaviour.check(theatre)


@pytest.mark.parametrize("behaviour", asked(frozenset({Ability.BOUNDED_LEVELS})), ids=lambda each: each.name)
def test_rabbitmq(broker: RunningBroker, behaviour: Behaviour) -> None:
    """On both ends of the range."""
    behaviour.check(RealRabbitMq(broker))


@pytest.fixture(params=sorted(KILLABLE, reverse=True))
def killable(request: pytest.FixtureRequest) -> Iterator[Killable]:
    """A RabbitMQ of the test's own."""
    with needed(KILLABLE[request.param]()) as mortal:
        yield mortal


def test_rabbitmq_restarted(killable: Killable) -> None:
    """What only a broker of one's own can be asked for."""
    theatre = RealRabbitMq(killable.broker, mortal=killable)
    for behaviour in BEHAVIOURS:
        if behaviour.needs is Ability.RESTART:
            behaviour.check(theatre)


@pytest.fixture(scope="module", params=VERSIONS if IS_ROCKETMQ_ASKED else ())
def real_rocketmq(request: pytest.FixtureRequest) -> Iterator[Theatre]:
    """A RocketMQ of this run's own."""
    with rocketmq(request.param, LEVELS) as running, driver(running) as client:
        yield RealRocketMq(running, client)


@pytest.mark.skipif(not IS_ROCKETMQ_ASKED, reason="run by make conformance-rocketmq")
@pytest.mark.parametrize("behaviour", asked(RealRocketMq.can), ids=lambda each: each.name)
def test_rocketmq(real_rocketmq: Theatre, behaviour: Behaviour) -> None:
    """On RocketMQ itself."""
    behaviour.check(real_rocketmq)


def test_nothing_else_is_left_out() -> None:
    """What a broker is not asked for, by name: a new exception is made here or not at all."""
    left_out = {
        (theatre.name.rpartition(" ")[0], behaviour.name)
        for theatre in SIMULATED
        for behaviour in BEHAVIOURS
        if behaviour not in asked(theatre.can)
    }

    assert left_out == {
        ("simulated RocketMQ", "what is too much for a level is early and not lost"),
        ("simulated RabbitMQ", "a chosen level above the last is the last"),
    }
    assert RealRocketMq.can == SIMULATED[0].can
    assert {Ability.BOUNDED_LEVELS, Ability.RESTART} == SIMULATED[-1].can
