"""LadderSpec to the objects of a ladder: gates, entrances and queues, one of each per step, and the door to all."""

from collections.abc import Iterator

from delayctl.topology.ladder import TOP, step_header, top_value, wait_of
from delayctl.topology.model import Arguments, Binding, Exchange, Ladder, Rung
from delayctl.topology.names import ANY, Names, rung_name
from delayctl.topology.spec import LadderSpec, LevelSpec


def ladder_of(spec: LadderSpec, names: Names) -> Ladder:
    """The ladder on the broker."""
    return Ladder(spec.unit, tuple(_rung(step, spec, names) for step in range(spec.steps)), names.entrance(ANY))


def _rung(step: int, spec: LadderSpec, names: Names) -> Rung:
    name = rung_name(step)
    return Rung(name, wait_of(step, spec.unit), names.entrance(name), names.delay_queue(name), names.gate(step))


def rung_specs(spec: LadderSpec, names: Names) -> Iterator[tuple[LevelSpec, str]]:
    """How each step waits, as a level does, and where what has waited comes out."""
    for step in range(spec.steps):
        yield LevelSpec(rung_name(step), wait_of(step, spec.unit), spec.wait, spec.line), _below(step, names)


def ladder_exchanges(ladder: Ladder, names: Names) -> Iterator[Exchange]:
    """The gates, and the door."""
    for step, rung in enumerate(ladder.rungs):
        # What is not meant for this step goes on to the next by the alternate.
        yield Exchange(rung.gate, "headers", alternate=_below(step, names))
    # What has no step to go to would be lost, if its publisher does not ask to be told.
    yield Exchange(ladder.entrance, "headers", alternate=names.unrouted_exchange())


def ladder_bindings(ladder: Ladder) -> Iterator[Binding]:
    """The ways through the gates, and those from the door to the step that a message waits at first."""
    for step, rung in enumerate(ladder.rungs):
        yield from rung_bindings(step, rung, ladder.entrance)


def rung_bindings(step: int, rung: Rung, door: str) -> Iterator[Binding]:
    """The two ways to one step: from above through its gate, and straight from the door."""
    yield Binding(rung.gate, "exchange", rung.entrance, "", _all((step_header(step), True)))
    yield Binding(door, "exchange", rung.entrance, "", _all((TOP, top_value(step))))


def _all(header: tuple[str, str | bool]) -> Arguments:
    return header, ("x-match", "all")


def _below(step: int, names: Names) -> str:
    return names.gate(step - 1) if step else names.exit()
