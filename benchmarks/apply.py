"""apply against definitions import, plan against a bare read of the definitions, and how both grow."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import urllib3
from delayctl.topology.access import Access, access_from
from delayctl.topology.execute import Done, execute
from delayctl.topology.expand import expand
from delayctl.topology.management import Management
from delayctl.topology.parse import read_spec
from delayctl.topology.rabbit import RabbitBroker
from delayctl.topology.survey import make_plan

from testbed import RunningBroker

_FIXED_OBJECTS = 13  # Exit, parking and three levels.
_TEMPLATE = """\
version: 1
delay: {levels: [1m, 5m, 15m]}
routes:
{% for i in range(routes) %}
  - {from: service{{ i }}.exchange, key: order.{{ i }}, delay: 15m, to: service{{ i }}.queue}
{% endfor %}
"""
_POOL = urllib3.PoolManager(timeout=600, retries=False)


@dataclass(frozen=True)
class Row:
    """One size: seconds for delayctl and for what it is compared with."""

    objects: int
    apply_s: float
    import_s: float
    apply_ratio: float
    plan_s: float
    read_s: float
    plan_ratio: float


def measure_apply(broker: RunningBroker, *, sizes: list[int], rounds: int) -> str:
    """Measure every size and write the tables."""
    rows = [_measure(broker, size, rounds) for size in sizes]
    lines = [
        "### First apply, against importing the same definitions (bar: ≥ 1.0 ×)\n",
        "| objects | apply | import | apply's speed, import = 1 | objects/s |",
        "|---:|---:|---:|---:|---:|",
        *(
            f"| {r.objects:,} | {r.apply_s:.2f} s | {r.import_s:.2f} s | {r.apply_ratio:.2f} × | {r.objects / r.apply_s:,.0f} |"
            for r in rows
        ),
        "\n### Plan with nothing to do, against reading and decoding the definitions (bar: ≤ 3 ×)\n",
        "From the file's text to the empty plan: render, parse, expand, read, compare.\n",
        "| objects | plan | read | plan's time, read = 1 |",
        "|---:|---:|---:|---:|",
        *(
            f"| {r.objects:,} | {r.plan_s * 1000:.0f} ms | {r.read_s * 1000:.0f} ms | {r.plan_ratio:.2f} × |"
            for r in rows
        ),
        "",
        f"From {rows[0].objects:,} to {rows[-1].objects:,} objects ({rows[-1].objects / rows[0].objects:.0f} ×): "
        f"apply takes {rows[-1].apply_s / rows[0].apply_s:.0f} × as long (import {rows[-1].import_s / rows[0].import_s:.0f} ×), "
        f"plan {rows[-1].plan_s / rows[0].plan_s:.0f} × (read {rows[-1].read_s / rows[0].read_s:.0f} ×).\n",
    ]
    return "\n".join(lines)


def _measure(broker: RunningBroker, size: int, rounds: int) -> Row:
    text = _TEMPLATE.replace("routes)", f"{max(1, (size - _FIXED_OBJECTS) // 4)})")
    access = access_from(broker.url, management_url=broker.management_url)
    definitions = _definitions(access, text)
    objects = sum(map(len, definitions.values()))
    times = [_round(access, text, definitions, apply_first=bool(turn % 2)) for turn in range(rounds)]
    applied, imported, planned, read = zip(*times, strict=True)
    return Row(
        objects,
        median(applied),
        median(imported),
        median(i / a for a, i in zip(applied, imported, strict=True)),
        median(planned),
        median(read),
        median(p / r for p, r in zip(planned, read, strict=True)),
    )


def _definitions(access: Access, text: str) -> dict[str, Any]:
    """What an apply of the text leaves on the broker, ready to be imported."""
    with _Vhost(access, "bench-apply") as vhost:
        _apply(vhost, text)
        exported = vhost.read()
    return {key: exported[key] for key in ("exchanges", "queues", "bindings")}


def _round(access: Access, text: str, definitions: Any, *, apply_first: bool) -> tuple[float, float, float, float]:
    """Seconds for apply, import, plan and read; whoever goes first meets a colder broker, so they take turns."""
    with _Vhost(access, "bench-apply") as ours, _Vhost(access, "bench-import") as theirs:
        if apply_first:
            applied = _timed(lambda: _apply(ours, text))
        imported = _timed(lambda: theirs.import_definitions(definitions))
        if not apply_first:
            applied = _timed(lambda: _apply(ours, text))
        pairs = [(_timed(lambda: _plan(ours, text)), _timed(ours.read)) for _ in range(5)]
    planned, read = (median(side) for side in zip(*pairs, strict=True))
    print(
        f"bench: apply {applied:.2f} s, import {imported:.2f} s, plan {planned:.3f} s, read {read:.3f} s",
        file=sys.stderr,
    )
    return applied, imported, planned, read


def _apply(vhost: "_Vhost", text: str) -> None:
    """What the command does: understand the file, read, compare, carry out."""
    management = Management(vhost.access, vhost.name)
    with RabbitBroker(vhost.access, management) as broker:
        plan, _ = make_plan(expand(read_spec(text, {}, file="bench")), management, broker, vhost=vhost.name)
        outcomes = list(execute(plan, broker))
    assert all(isinstance(outcome, Done) for outcome in outcomes), [o for o in outcomes if not isinstance(o, Done)][:3]


def _plan(vhost: "_Vhost", text: str) -> None:
    management = Management(vhost.access, vhost.name)
    with RabbitBroker(vhost.access, management) as broker:
        plan, _ = make_plan(expand(read_spec(text, {}, file="bench")), management, broker, vhost=vhost.name)
    assert plan.is_empty, plan.changes[:3]


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


class _Vhost:
    """A virtual host that is empty at first and gone at the end."""

    def __init__(self, access: Access, name: str) -> None:
        self.access, self.name = access.at(name), name
        credentials = access.management_credentials
        login = urllib3.make_headers(basic_auth=f"{credentials.username}:{credentials.password}")
        self._headers = {**login, "content-type": "application/json"}
        assert urlsplit(access.management_url).scheme == "http"

    def __enter__(self) -> "_Vhost":
        self._call("DELETE", f"vhosts/{self.name}")
        self._call("PUT", f"vhosts/{self.name}")
        return self

    def __exit__(self, *_: object) -> None:
        self._call("DELETE", f"vhosts/{self.name}")
        self._call("DELETE", f"global-parameters/delayctl%3A{self.name}%3A")

    def read(self) -> Any:
        """Read and decode the definitions over a connection of its own, as a command would: the yardstick of plan."""
        with urllib3.PoolManager(timeout=60, retries=False) as pool:
            url = f"{self.access.management_url}/api/definitions/{self.name}"
            return json.loads(pool.request("GET", url, headers=self._headers).data)

    def import_definitions(self, definitions: Any) -> None:
        """The yardstick of apply."""
        self._call("POST", f"definitions/{self.name}", json.dumps(definitions).encode())

    def _call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        response = _POOL.request(method, f"{self.access.management_url}/api/{path}", headers=self._headers, body=body)
        assert response.status < 300 or response.status == 404, (method, path, response.status, response.data)
        return response.data
