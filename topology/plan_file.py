"""A plan on disk: saved by `plan --out`, applied later, refused when damaged or of another version."""

import dataclasses
import hashlib
import json
import re
from typing import Any

from delayctl.topology.duration import Duration
from delayctl.topology.errors import PlanUnreadable
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Reference, Settings, Table
from delayctl.topology.moves import Move, Settle, Toggle, Way
from delayctl.topology.plan import Create, Delete, Difference, Plan, Refusal, Replace, Update, Wait
from delayctl.topology.record import Record

FORMAT = "delayctl plan 4"
_BEGINNING = re.compile(r'\s*\{\s*"format":\s*"delayctl plan')
_CLASSES = {
    cls.__name__: cls
    for cls in (
        Binding, Create, Delete, Difference, Duration, Exchange, Move, Plan, Policy, Queue, Record, Reference, Refusal, Replace, Settings, Settle, Table, Toggle, Update, Wait, Way,
    )
}  # fmt: skip


def dump_plan(plan: Plan) -> str:
    """Write a plan as JSON."""
    body = _encode(plan)
    return json.dumps({"format": FORMAT, "digest": _digest(body), "plan": body}, indent=1, ensure_ascii=False) + "\n"


def looks_like_plan(beginning: str) -> bool:
    """Say whether a file that begins so was written by `dump_plan`, of whatever version."""
    return _BEGINNING.match(beginning) is not None


def load_plan(text: str, *, file: str) -> Plan:
    """Read a plan, or raise PlanUnreadable."""
    fix = "make it anew: delayctl plan topology.yaml --out FILE"
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise PlanUnreadable(f"the plan is of another format: {content['format']!r}", where=file, fix=fix)
        if content["digest"] != _digest(content["plan"]):
            raise PlanUnreadable("the plan was changed or damaged after it was made", where=file, fix=fix)
        plan = _decode(content["plan"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PlanUnreadable("the file is not a saved plan", where=file, fix=fix) from error
    if not isinstance(plan, Plan):
        raise PlanUnreadable("the file is not a saved plan", where=file, fix=fix)
    return plan


def _digest(body: object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _encode(value: object) -> Any:
    if isinstance(value, Binding):
        return {"is": "Binding", **{name: _encode(item) for name, item in value._asdict().items()}}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"is": type(value).__name__, **fields}
    if isinstance(value, frozenset):
        return {"is": "set", "items": sorted(map(_encode, value), key=json.dumps)}
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_decode, value))
    if not isinstance(value, dict):
        return value
    fields = {name: _decode(item) for name, item in value.items() if name != "is"}
    return frozenset(fields["items"]) if value["is"] == "set" else _CLASSES[value["is"]](**fields)
