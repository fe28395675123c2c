"""What the broker's own record says of levels and ladder."""

from dataclasses import replace

import pytest
from delayctl.publishers.known import recorded_ladder, recorded_levels
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.live import Live
from delayctl.topology.model import Topology
from delayctl.topology.parse import read_spec

from tests.support.examples import live_of


def topology(settings: str = "arguments") -> Topology:
    """Two levels and a ladder of three steps."""
    text = f"""
version: 1
prefix: shop.
delay: {{levels: [1m, 5m], any: {{unit: 2s, steps: 3}}, settings: {settings}}}
"""
    return expand(read_spec(text, {}, file="topology.yaml"))


def without(live: Live, *names: str) -> Live:
    """A broker that lacks some exchanges, queues or ways to them."""
    return replace(
        live,
        exchanges={name: each for name, each in live.exchanges.items() if name not in names},
        queues={name: each for name, each in live.queues.items() if name not in names},
        bindings=frozenset(b for b in live.bindings if not {b.source, b.destination} & set(names)),
    )


@pytest.mark.parametrize("settings", ["arguments", "policy"])
def test_what_was_applied_is_read_back(settings: str) -> None:
    """Levels and ladder, wherever the TTL is kept; no step is taken for a level."""
    desired = topology(settings)
    live = live_of(desired)

    assert recorded_ladder(live, "shop.") == desired.ladder
    assert sorted(recorded_levels(live, "shop."), key=lambda level: level.ttl) == list(desired.levels)


@pytest.mark.parametrize(
    ("missing", "steps"),
    [
        ("shop.delay.any.00.queue", 0),
        ("shop.delay.any.exchange", 0),
        ("shop.delay.any.01.exchange", 1),
        ("shop.delay.any.02.gate.exchange", 2),
        ("shop.delay.any.02.queue", 2),
    ],
)
def test_a_ladder_reaches_as_far_up_as_it_is_whole(missing: str, steps: int) -> None:
    """Above what is missing no message would wait as long as it should."""
    ladder = recorded_ladder(without(live_of(topology()), missing), "shop.")

    assert len(ladder.rungs if ladder else ()) == steps


def test_a_step_that_the_door_does_not_lead_to_yet_is_none() -> None:
    """An apply that is under way, or was interrupted."""
    live = live_of(topology())
    open_ways = frozenset(b for b in live.bindings if ("delay-top", "2") not in b.arguments)

    ladder = recorded_ladder(replace(live, bindings=open_ways), "shop.")

    assert ladder is not None
    assert [rung.name for rung in ladder.rungs] == ["any.00", "any.01"]


def test_a_step_that_waits_otherwise_ends_the_ladder() -> None:
    """As where a policy of somebody else shortens it."""
    live = live_of(topology())
    found = live.queues["shop.delay.any.01.queue"]
    other = replace(found, settings=replace(found.settings, ttl=Duration(9)))

    ladder = recorded_ladder(replace(live, queues={**live.queues, found.name: other}), "shop.")

    assert ladder is not None
    assert len(ladder.rungs) == 1


def test_a_broker_without_a_ladder() -> None:
    """Has levels all the same, and without a record nothing at all."""
    live = live_of(expand(read_spec("version: 1\ndelay: {levels: [1m]}\n", {}, file="topology.yaml")))

    assert recorded_ladder(live, "") is None
    with pytest.raises(DelayctlError, match="no record of a topology"):
        recorded_levels(replace(live, record=None), "")
