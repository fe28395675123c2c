"""What canaries have found, for a monitoring system; counts go on from run to run. Pure.

A textfile holds only what the last run wrote, and a counter that begins anew every time tells nothing. So the file
carries its counts along in a comment, and the next run adds to them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any

from delayctl.cli.verify_views import Report
from delayctl.topology.canary import Proof
from delayctl.topology.errors import DelayctlError
from delayctl.topology.exposition import Family, Histogram, Metric, Sample, exposition
from delayctl.topology.lateness import BOUNDS_S, Counts, joined

LATENESS = Metric("delayctl_verify_lateness_seconds", "histogram", "How much later than due canaries came out.")
SENT = Metric("delayctl_verify_canaries_sent_total", "counter", "Canaries that were sent.")
ARRIVED = Metric("delayctl_verify_canaries_arrived_total", "counter", "Canaries that came out in time to be seen.")
PROVED = Metric("delayctl_verify_proved", "gauge", "Whether the last run has proved the way: 1, or 0.")
TRIED_AT = Metric("delayctl_verify_timestamp_seconds", "gauge", "When the way was last tried, as a Unix time.")
METRICS = (LATENESS, SENT, ARRIVED, PROVED, TRIED_AT)

_MARK = "# delayctl verify 1 "

Way = tuple[str, str]  # Its kind, and its name.


@dataclass(frozen=True, slots=True)
class Tally:
    """All that is known of one way, of this run and those before."""

    sent: int
    arrived: int
    is_proved: bool
    tried_ms: int
    late: Histogram


def tallies_in(text: str, *, file: str) -> dict[Way, Tally]:
    """What earlier runs have left in a file, or raise DelayctlError where it is somebody else's."""
    line = next((line for line in text.split("\n") if line.startswith(_MARK)), None)
    try:
        if line is None:
            raise ValueError("no counts")
        left = json.loads(line.removeprefix(_MARK))
        return {(kind, way): _tally(left["bounds"], figures) for kind, way, *figures in left["ways"]}
    except (ValueError, TypeError, KeyError) as error:
        raise DelayctlError(
            "the file is there already, and not by verify --metrics-file",
            where=file,
            fix="name another file, or remove this one; then counts begin anew",
        ) from error


def _tally(bounds: list[float], figures: list[Any]) -> Tally:
    sent, arrived, proved, tried_ms, late, total = figures
    # Another version may have counted within other bounds: then these begin anew, as after a restart.
    is_same = tuple(bounds) == BOUNDS_S and len(late) == len(BOUNDS_S) + 1
    counted = Histogram(BOUNDS_S, tuple(late), total) if is_same else Counts().histogram()
    return Tally(sent, arrived, proved, tried_ms, counted)


def added_up(before: Mapping[Way, Tally], report: Report, *, at_ms: int, known: frozenset[Way]) -> dict[Way, Tally]:
    """The tallies after a run; ways that the file does not know any more are forgotten."""
    tallies = {way: tally for way, tally in before.items() if way in known}
    failed = {_way(proof) for proof in report.proofs if not proof.is_proved}
    for proof in report.proofs:
        way = _way(proof)  # Several routes may be called the same: then one that fails speaks for them.
        tallies[way] = _after(tallies.get(way), proof, is_proved=way not in failed, at_ms=at_ms)
    return tallies


def _way(proof: Proof) -> Way:
    return proof.probe.kind, proof.probe.name


def _after(before: Tally | None, proof: Proof, *, is_proved: bool, at_ms: int) -> Tally:
    counts = Counts()
    for late_ms in proof.lateness:
        counts.add(late_ms)
    late = counts.histogram()
    sent, arrived = proof.observed.sent, len(proof.observed.sightings)
    if before is None:
        return Tally(sent, arrived, is_proved, at_ms, late)
    return Tally(before.sent + sent, before.arrived + arrived, is_proved, at_ms, joined(before.late, late))


def verify_exposition(tallies: Mapping[Way, Tally], *, topology: str, vhost: str) -> str:
    """The tallies as Prometheus reads them, and as the next run does."""
    named = [
        ({"topology": topology, "vhost": vhost, "kind": kind, "way": name}, tally)
        for (kind, name), tally in sorted(tallies.items())
    ]
    ways = [(*way, *astuple(tally)[:-1], tally.late.counts, tally.late.total) for way, tally in tallies.items()]
    return f"{exposition(_families(named))}{_MARK}{json.dumps({'bounds': BOUNDS_S, 'ways': ways})}\n"


def _families(named: list[tuple[dict[str, str], Tally]]) -> Iterator[Family]:
    timed = [(own, tally) for own, tally in named if tally.late.counts[-1]]
    sent = [(own, tally) for own, tally in named if tally.sent]
    yield Family(LATENESS, tuple(sample for own, tally in timed for sample in tally.late.samples(own)))
    yield Family(SENT, tuple(Sample(own, tally.sent) for own, tally in sent))
    yield Family(ARRIVED, tuple(Sample(own, tally.arrived) for own, tally in sent))
    yield Family(PROVED, tuple(Sample(own, tally.is_proved) for own, tally in named))
    yield Family(TRIED_AT, tuple(Sample(own, tally.tried_ms / 1000) for own, tally in named))
