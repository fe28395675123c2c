"""Topologies for a doctor: one that is well, and what can be wrong with it, as values."""

from collections.abc import Mapping
from dataclasses import replace

from delayctl.topology.clients import Clients
from delayctl.topology.diagnosis import Diagnosis, diagnose
from delayctl.topology.diff import diff
from delayctl.topology.doctor import CHECKS
from delayctl.topology.duration import Duration
from delayctl.topology.examination import UNNAMED_FILE, Examination, Look
from delayctl.topology.figures import Figures, Node, Samples, Statistics
from delayctl.topology.findings import Finding
from delayctl.topology.live import Live
from delayctl.topology.model import Topology
from delayctl.topology.status import Facts, Status, status_of

from tests.support.examples import live_of, shop

NOW = 1_700_000_000_000
SHOP = shop("1m 5m")
IDLE = Figures(ready=0, unacknowledged=0, consumers=0, state="running")
ALONE = (Node("rabbit@a"),)


def steady(per_second: int, waiting: int) -> tuple[Samples, Samples]:
    """Ten minutes of what was published, and of what waited."""
    moments = [(NOW - ago * 1000, per_second * (1000 - ago)) for ago in range(600, -1, -5)]
    return tuple(moments), tuple((at, waiting) for at, _ in moments)


def busy(per_second: int, waiting: int) -> Figures:
    """A queue at work."""
    published, lengths = steady(per_second, waiting)
    return replace(IDLE, ready=waiting, published=published, lengths=lengths)


def status(
    desired: Topology = SHOP,
    live: Live | None = None,
    *,
    figures: Mapping[str, Figures] | None = None,
    nodes: tuple[Node, ...] | None = ALONE,
    parks: tuple[str, ...] = (),
) -> Status:
    """The status after a clean apply, but for what is said."""
    live = live or live_of(desired)
    return status_of(Facts(desired, parks, diff(desired, live), live, Statistics(_known(live, figures), nodes)))


def _known(live: Live, figures: Mapping[str, Figures] | None) -> dict[str, Figures]:
    return {**dict.fromkeys(live.queues, IDLE), "orders.queue": replace(IDLE, consumers=1), **(figures or {})}


def examination(
    desired: Topology = SHOP,
    live: Live | None = None,
    *,
    figures: Mapping[str, Figures] | None = None,
    nodes: tuple[Node, ...] | None = ALONE,
    parks: tuple[str, ...] = (),
    file: str | None = UNNAMED_FILE,
    earlier: Status | None = None,
    lint: tuple[Finding, ...] = (),
    clients: Clients | None = None,
    looks: Mapping[str, Look] | None = None,
    statistics_are_off: bool = False,
) -> Examination:
    """What a doctor finds after a clean apply, but for what is said."""
    live = live or live_of(desired)
    found = status(desired, live, figures=figures, nodes=nodes, parks=parks)
    return Examination(
        desired,
        live,
        diff(desired, live),
        found,
        _known(live, figures),
        file,
        earlier,
        Duration.parse("10s") if earlier else None,
        lint,
        clients or Clients(),
        looks or {},
        statistics_are_off,
    )


def found(examined: Examination, code: str) -> list[Diagnosis]:
    """The findings with this code."""
    return [diagnosis for diagnosis in diagnose(CHECKS, examined) if diagnosis.code == code]


def codes(examined: Examination) -> list[str]:
    """Everything that was found."""
    return [diagnosis.code for diagnosis in diagnose(CHECKS, examined)]
