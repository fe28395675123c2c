"""The field `any` of the `delay` section: the ladder, and how its queues keep what waits."""

from dataclasses import replace

from delayctl.topology.duration import MAX_TTL_MS, Duration
from delayctl.topology.ladder import DEFAULT_STEPS, DEFAULT_UNIT, most_steps, wait_of
from delayctl.topology.parse_levels import WAIT_KEYS, wait_from
from delayctl.topology.reader import Reader, describe, is_nothing
from delayctl.topology.source import MapNode, Node, ScalarNode
from delayctl.topology.spec import LadderSpec, WaitSpec

# Not expected_rate: how many wait at a step depends on how long each message waits. And a step is one queue.
LADDER_KEYS = ("unit", "steps", *(key for key in WAIT_KEYS if key not in ("expected_rate", "shards")))
_WHAT = "delay.any"
_MOST_STEPS = most_steps(Duration(1))


def read_ladder(reader: Reader, node: Node, default_wait: WaitSpec) -> LadderSpec | None:
    """Read a ladder: true or an empty mapping means the usual one, false means none."""
    line = reader.line_of(node)
    default_wait = replace(default_wait, expected_rate=None, shards=1)
    if isinstance(node, ScalarNode) and isinstance(node.value, bool):
        return LadderSpec(wait=default_wait, line=line) if node.value else None
    if not isinstance(node, MapNode) and not is_nothing(node):
        message = f"{_WHAT} must be true or a mapping, not {describe(node)}"
        reader.problem(node, message, fix=f"write any: true, or any: {{unit: {DEFAULT_UNIT}, steps: {DEFAULT_STEPS}}}")
        return LadderSpec(wait=default_wait, line=line)  # So that routes that wait there need not be reported as well.
    fields = reader.fields(node, _WHAT, LADDER_KEYS)
    unit = reader.duration(fields["unit"], f"unit of {_WHAT}") if "unit" in fields else DEFAULT_UNIT
    steps = _read_steps(reader, node, fields.get("steps"), unit or DEFAULT_UNIT)
    wait = wait_from(reader, node, fields, _WHAT, default_wait)
    return LadderSpec(unit or DEFAULT_UNIT, steps, wait, line)


def _read_steps(reader: Reader, node: Node, written: Node | None, unit: Duration) -> int:
    steps = reader.integer(written, f"steps of {_WHAT}", least=1, most=_MOST_STEPS) if written else DEFAULT_STEPS
    if steps is None:
        return DEFAULT_STEPS
    most = most_steps(unit)
    if steps > most:
        last, longest = wait_of(steps - 1, unit), Duration(MAX_TTL_MS)
        message = f"the last of {steps} steps would wait {last}, and RabbitMQ takes no TTL above {longest}"
        reader.problem(written or node, message, fix=f"write steps: {most}, or a shorter unit than {unit}")
        return most
    return steps
