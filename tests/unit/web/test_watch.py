"""One thread looks, and goes on whatever happens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from delayctl.topology.errors import Unreachable
from delayctl.web.stage import Snapshot
from delayctl.web.watch import Watch

from testbed.wait import until
from tests.support.stage import ToldStage

SOON_S = 30


@contextmanager
def watching(stage: ToldStage) -> Iterator[Watch]:
    """A watch that looks very often."""
    watch = Watch(stage, 0.01)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def await_snapshot(watch: Watch, condition: Callable[[Snapshot], bool]) -> Snapshot:
    """The first snapshot of which something is true."""
    return until(lambda: found if condition(found := watch.latest) else None, SOON_S, every=0.005) or watch.latest


def test_counts_between_two_looks() -> None:
    """Messages are counted on every beat."""
    stage = ToldStage()
    with watching(stage) as watch:
        first = await_snapshot(watch, lambda s: s.observation is not None)
        stage.counts = {"delay.1m.queue": 7}
        second = await_snapshot(watch, lambda s: s.counts == {"delay.1m.queue": 7})

    assert (first.counts, first.version) == ({"delay.1m.queue": 3}, 1)
    assert second.at_ms >= first.at_ms


def test_another_state_has_another_number() -> None:
    """And is found soon, where somebody says that something was changed."""
    stage = ToldStage()
    with watching(stage) as watch:
        await_snapshot(watch, lambda s: s.version == 1)
        stage.state = {"title": "other.yaml"}
        watch.look_soon()
        found = await_snapshot(watch, lambda s: s.version == 2)

    assert found.observation is not None
    assert found.observation.state == {"title": "other.yaml"}


@pytest.mark.parametrize(
    ("trouble", "what"),
    [
        (Unreachable("nothing answers", fix="start it"), "nothing answers"),
        (KeyError("x"), "delayctl met something it did not foresee: KeyError"),
    ],
)
def test_a_broker_that_goes_and_comes_back(trouble: Exception, what: str) -> None:
    """What was seen last stays, it is said since when, and the rest goes on by itself."""
    stage = ToldStage()
    with watching(stage) as watch:
        before = await_snapshot(watch, lambda s: s.observation is not None)
        stage.trouble = trouble
        gone = await_snapshot(watch, lambda s: s.away is not None)
        later = await_snapshot(watch, lambda s: s.at_ms > gone.at_ms)
        stage.trouble = None
        back = await_snapshot(watch, lambda s: s.away is None)

    assert gone.away is not None
    assert later.away is not None
    assert (gone.away.what, later.away.since_ms) == (what, gone.away.since_ms)
    assert (gone.observation, gone.counts) == (before.observation, before.counts)
    assert back.counts == {"delay.1m.queue": 3}


def test_away_from_the_beginning() -> None:
    """There is nothing to show yet, and that is said."""
    stage = ToldStage(trouble=Unreachable("nothing answers", fix="start it"))
    with watching(stage) as watch:
        gone = await_snapshot(watch, lambda s: s.away is not None)

    assert (gone.observation, gone.seen_ms, gone.away and gone.away.fix) == (None, None, "start it")


def test_history_goes_on_where_the_broker_s_ends() -> None:
    """Its clock is not ours: its last sample counts as of now."""
    stage = ToldStage(history={"delay.1m.queue": ((1_000, 1), (6_000, 2))})
    with watching(stage) as watch:
        await_snapshot(watch, lambda s: s.observation is not None)
        samples = until(lambda: watch.history().get("delay.1m.queue", ()), SOON_S, every=0.005)

    assert [count for _, count in samples[:3]] == [1, 2, 3]
    assert samples[1][0] - samples[0][0] == 5_000
    assert samples[2][0] == samples[1][0]


def test_the_end() -> None:
    """Whoever counts lets go of the connection."""
    stage = ToldStage()
    with watching(stage):
        pass

    assert stage.is_closed
