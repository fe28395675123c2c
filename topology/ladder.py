"""Any delay as a sum of waits of one unit, two, four and so on: the arithmetic of the ladder.

A message carries a header for each step that it waits at, and one that names the longest of these: by it the door of the
ladder sends it there. What has waited comes to the gate below, which sends it in where its header is there, and past
where it is not. So a ladder that grows or shrinks never has two ways for a message, and one that is too short has none.
"""

import re

from delayctl.topology.duration import MAX_TTL_MS, Duration

DEFAULT_UNIT = Duration(1_000)
DEFAULT_STEPS = 28

TOP = "delay-top"

_HEADER = re.compile(rf"delay-[0-9]+|{TOP}")


def units_for(wait_ms: int, unit: Duration) -> int:
    """How many units a wait takes: the last one counts whole, so that nothing is early."""
    return -(-max(wait_ms, 0) // unit.ms)


def steps_of(units: int) -> tuple[int, ...]:
    """The steps that add up to so many units, the longest first."""
    return tuple(step for step in range(units.bit_length() - 1, -1, -1) if units >> step & 1)


def steps_needed(units: int) -> int:
    """How many steps a ladder has that can wait so many units."""
    return units.bit_length()


def most_units(steps: int) -> int:
    """How many units all steps of a ladder wait together."""
    return (1 << steps) - 1


def wait_of(step: int, unit: Duration) -> Duration:
    """How long one step waits."""
    return Duration(unit.ms << step)


def most_steps(unit: Duration) -> int:
    """How many steps a ladder can have: the broker takes no longer TTL for the last of them."""
    return (MAX_TTL_MS // unit.ms).bit_length()


def step_header(step: int) -> str:
    """The header that makes a message wait at a step."""
    return f"delay-{step}"  # Not x-delay: a headers exchange does not look at what begins with x-.


def top_value(step: int) -> str:
    """How the longest step is named; as text, since a headers exchange tells numbers of one size from those of another."""
    return str(step)


def headers_for(units: int) -> dict[str, str | bool]:
    """What a message carries that waits so many units, which is one at least."""
    steps = steps_of(units)
    return {TOP: top_value(steps[0]), **{step_header(step): True for step in steps}}


def is_step_header(name: str) -> bool:
    """Say whether a header belongs to a wait at the ladder: to be left out when its message is sent on."""
    return _HEADER.fullmatch(name) is not None
