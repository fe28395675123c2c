"""How far up the ladder on a broker can be entered, while it is made shorter or longer."""

from dataclasses import replace

from delayctl.cli.forecast import show_notes
from delayctl.publishers.choice import Ways
from delayctl.topology.access import Access
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BrokerError
from delayctl.topology.expand_ladder import rung_bindings
from delayctl.topology.ladder import most_units
from delayctl.topology.management import Management
from delayctl.topology.model import Ladder, Topology

_LOOK_S = 2.0  # What the management API may take, which publishing can do without.


def open_ways(access: Access, desired: Topology) -> Ways:
    """The ways of the file, with its ladder as far up as the door on the broker leads.

    A ladder that is being made shorter still has all of its gates, but what is sent to a closed step is parked.
    """
    ladder = desired.ladder
    if ladder is None:
        return Ways.of(desired)
    try:
        look = replace(access, timeout_s=min(access.timeout_s, _LOOK_S))
        found = Management(look, access.vhost or "/", is_patient=False).bindings_of(ladder.entrance)
    except BrokerError:
        return Ways.of(desired)  # Nobody tells: publishing works without.
    rungs = tuple(
        rung
        for step, rung in enumerate(ladder.rungs)
        if any(binding in found for binding in rung_bindings(step, rung, ladder.entrance))
    )
    if not rungs or rungs == ladder.rungs or rungs != ladder.rungs[: len(rungs)]:
        return Ways.of(desired)
    longest = Duration(ladder.unit.ms * most_units(len(rungs)))
    show_notes((f"the ladder on the broker takes delays up to {longest} now, that of the file is longer",))
    return Ways(desired.exit, desired.levels, Ladder(ladder.unit, rungs, ladder.entrance))
