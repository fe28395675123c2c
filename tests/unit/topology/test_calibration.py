"""From what was read while a queue was filled to what a message takes."""

from dataclasses import replace

import pytest
from delayctl.topology.calibration import Budget, Calibration, Reading, slope
from delayctl.topology.footprint import SHAPES, Footprint, Shape, dearest, footprint_of, shape_of
from delayctl.topology.model import Queue, Settings

EMPTY = Reading(0, queue=20_000, held=50_000_000, used=140_000_000, disk_free=10_000_000_000)


def reading(messages: int) -> Reading:
    """A broker on which a message takes 700 bytes of the queue, 1,000 of the node and 600 of disk."""
    return Reading(
        messages,
        EMPTY.queue + 700 * messages,
        EMPTY.held + 1_000 * messages,
        EMPTY.used + 1_200 * messages,
        10_000_000_000 - 600 * messages,
    )


SEEN = Calibration("classic", "3.10.8", "rabbit@here", 40, tuple(map(reading, (0, 25_000, 50_000))), filling_s=5.0)


def test_figures_grow_with_the_messages() -> None:
    """What a broker takes without any message is left out."""
    assert (SEEN.queue_each, SEEN.held_each, SEEN.used_each) == pytest.approx((700, 1_000, 1_200))
    assert (SEEN.disk_each, SEEN.per_second) == (600, 10_000)


def test_a_footprint_is_what_was_measured() -> None:
    """Bodies are part of it in memory, and come on top on disk."""
    assert SEEN.footprint == Footprint(1_000, False, 560, "a calibration on RabbitMQ 3.10.8")


def test_a_quorum_queue_counts_by_its_process() -> None:
    """What its log holds in memory does not grow for ever."""
    found = replace(SEEN, shape="quorum").footprint

    assert (found.memory, found.log, found.log_of(40)) == (700, 260, 300)
    assert found.log_most == footprint_of("quorum", "3.10.8").log_most


def test_a_log_that_was_written_out_meanwhile_says_nothing() -> None:
    """The assumption stays: it would be taken for a log that takes nothing."""
    readings = (*SEEN.readings[:-1], replace(SEEN.readings[-1], held=1_000_000))

    found = replace(SEEN, shape="quorum", readings=readings).footprint

    assert found.log == footprint_of("quorum", "3.10.8").log


@pytest.mark.parametrize("disk_free", [None, 10_000_000_001, 10_000_000_000 - 39 * 50_000, 5_000_000_000])
def test_disk_that_did_not_shrink_by_the_bodies_says_nothing(disk_free: int | None) -> None:
    """Somebody else has freed some meanwhile, or taken much more, or the broker does not say; the assumption stays."""
    readings = (*SEEN.readings[:-1], replace(SEEN.readings[-1], disk_free=disk_free))
    found = replace(SEEN, readings=readings)

    assert found.disk_each is None
    assert found.footprint.disk == footprint_of("classic", "3.10.8").disk


def test_figures_are_at_rest_when_they_move_no_more_than_usual() -> None:
    """A little always moves."""
    full = reading(50_000)

    assert replace(full, held=full.held + 200_000).is_steady_after(full)
    assert not replace(full, held=full.held + 2_000_000).is_steady_after(full)
    assert not replace(full, queue=full.queue - 2_000_000).is_steady_after(full)


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        (40, (50_000, 100_000)),
        (1_000_000, (128, 256)),
        (100_000_000, ()),
    ],
)
def test_a_calibration_is_bounded_in_count_and_bytes(body: int, steps: tuple[int, ...]) -> None:
    """Large bodies are fewer; where too few are left, none are tried."""
    assert Budget().steps(body) == steps


def test_one_reading_has_no_slope() -> None:
    """It is not divided by nothing."""
    assert slope([0], [5]) == 0.0


@pytest.mark.parametrize("shape", SHAPES)
def test_an_unknown_broker_is_taken_for_the_dearest(shape: Shape) -> None:
    """So that an answer without a broker errs to the safe side."""
    old, new, unknown = (footprint_of(shape, version) for version in ("3.13.7", "4.0.5", ""))

    assert unknown == old
    if shape != "lazy":
        assert old.memory >= new.memory


def test_the_shape_of_a_queue() -> None:
    """By type and mode; together the dearest counts."""
    queues = (
        Queue("a", Settings(type="quorum")),
        Queue("b", extra=(("x-queue-mode", "lazy"),)),
        Queue("c"),
    )

    assert [shape_of(queue) for queue in queues] == ["quorum", "lazy", "classic"]
    assert dearest(map(shape_of, queues)) == footprint_of("classic")
    assert dearest(()) == footprint_of("classic")
