"""The command that proves a live topology by canaries."""

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.host import Host, check_same_broker, host_for
from delayctl.cli.inputs import refuse_inputs
from delayctl.cli.options import (
    connection_from,
    connection_options,
    duration_value,
    output_option,
    spec_from,
    template_options,
    topology_argument,
)
from delayctl.cli.output import replace_file
from delayctl.cli.verify_bar import Bar
from delayctl.cli.verify_metrics import Tally, Way, added_up, tallies_in, verify_exposition
from delayctl.cli.verify_views import Report, report_json, report_text
from delayctl.cli.views import to_json_text
from delayctl.consumers.canaries import Flock, Progress
from delayctl.consumers.catcher import Catcher, stays_for
from delayctl.topology.canary import Observed, Probe, Proof, Task
from delayctl.topology.canary_verdict import prove, why_missing
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.figures import INTERVAL_MS, Figures
from delayctl.topology.management import Management
from delayctl.topology.model import Topology
from delayctl.topology.names import Names
from delayctl.topology.spec import Spec
from delayctl.topology.verify_look import look, read_figures
from delayctl.topology.verify_plan import BODY, Effort, tasks_for
from delayctl.topology.verify_probes import longest_wait, probes_at, probes_of
from delayctl.topology.verify_ways import Seen, unproved_waits

_MOST = 1_000
_AFTER_LATE = Duration(1_000)
_LOOK_AGAIN_S = 0.5


@click.command(
    short_help="Prove by canaries that messages wait and arrive.",
    epilog="""\b
Examples:
  delayctl verify topology.yaml
  delayctl verify topology.yaml --up-to 15m                 # wait for levels of up to 15 minutes
  delayctl verify topology.yaml --up-to 5s --max-lateness 250ms --level 5s
  delayctl verify topology.yaml --through-routes            # consumers get canaries, too
  delayctl verify topology.yaml --metrics-file /var/lib/prometheus/node-exporter/delayctl-verify.prom
  delayctl verify topology.yaml --output json | jq '.ways[] | select(.proved | not)'

\b
Exit code: 0 when every way is proved, 1 when one is not or could not be tried.
""",
)
@topology_argument
@click.option(
    "--up-to",
    default="1m",
    show_default=True,
    metavar="DURATION",
    callback=duration_value,
    help="Wait for canaries in levels of up to this; in longer ones they are hastened.",
)
@click.option(
    "--hasten/--no-hasten",
    default=True,
    show_default=True,
    help="Send canaries through longer levels that leave by an expiration of their own, or look at the objects alone.",
)
@click.option(
    "--max-lateness",
    default="1s",
    show_default=True,
    metavar="DURATION",
    callback=duration_value,
    help="How late a canary may come.",
)
@click.option(
    "--count", type=click.IntRange(1, _MOST), default=2, show_default=True, help="Canaries for each way, all at once."
)
@click.option("--level", "levels", multiple=True, metavar="LEVEL", help="This level only; may be repeated.")
@click.option(
    "--through-routes", is_flag=True, help="Send canaries to where routes lead; their consumers must know them."
)
@click.option(
    "--metrics-file",
    metavar="FILE",
    help="Also write figures for node_exporter's textfile collector; they add up from run to run.",
)
@output_option
@template_options
@connection_options
def verify(topology: str, *, levels: tuple[str, ...], metrics_file: str | None, output: str, **options: Any) -> int:
    """Send canaries through every delay of TOPOLOGY and prove that they arrive: in time, once, with key and headers.

    Routes are proved by the objects on the broker, so that no consumer gets a canary, unless --through-routes is given.
    """
    refuse_inputs("--metrics-file", metrics_file, topology, options["values_files"])
    count, up_to, most = (options.pop(name) for name in ("count", "up_to", "max_lateness"))
    hasten, through_routes = options.pop("hasten"), options.pop("through_routes")
    connection, spec = connection_from(options), spec_from(topology, options)
    host = host_for(connection, connection.vhost_for(spec))
    effort = Effort(count, up_to, most, patience_of(host, most), hasten, through_routes)
    before = {} if metrics_file is None else _tallies(metrics_file)
    report = prove_all(host, spec, effort, file=topology, levels=levels)
    click.echo(to_json_text(report_json(report)) if output == "json" else report_text(report))
    if metrics_file is not None:
        ways = probes_of(spec, expand(spec), run=report.run, up_to=up_to)
        known = frozenset((probe.kind, probe.name) for probe in ways)
        _write_metrics(metrics_file, added_up(before, report, at_ms=time.time_ns() // 1_000_000, known=known), report)
    return exit_codes.DONE if report.is_proved else exit_codes.FAILED


def _tallies(file: str) -> dict[Way, Tally]:
    """What earlier runs have counted; read before anything is sent, so that a wrong file costs nothing."""
    try:
        return tallies_in(Path(file).read_text(encoding="utf-8", errors="replace"), file=file)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DelayctlError(
            f"the metrics can't be read: {error.strerror}", where=file, fix="name a file that can be read and written"
        ) from error


def _write_metrics(file: str, tallies: Mapping[Way, Tally], report: Report) -> None:
    text = verify_exposition(tallies, topology=Path(report.file).name, vhost=report.vhost)
    replace_file(file, text, what="the metrics")


def patience_of(host: Host, max_lateness: Duration) -> Duration:
    """How long after it was due a canary is given up."""
    return Duration(max(round(host.access.timeout_s * 1000), max_lateness.ms + _AFTER_LATE.ms))


def prove_all(
    host: Host, spec: Spec, effort: Effort, *, file: str, levels: tuple[str, ...] = (), show: Progress | None = None
) -> Report:
    """Send canaries and say what came of it; `show` is told how they do, instead of a bar on stderr."""
    desired, run, begun = expand(spec), os.urandom(4).hex(), time.monotonic()
    probes = probes_at(levels, probes_of(spec, desired, run=run, up_to=effort.up_to), desired)
    proofs, seen = _Trial(host, desired, run, effort, file, show).run_all(probes)
    took = Duration(round((time.monotonic() - begun) * 1000))
    catcher, unproved = Names(spec.prefix).verify_queue(), () if levels else tuple(unproved_waits(seen, desired))
    stays = _stays_for(catcher, seen, desired)
    return Report(file, host.vhost, seen.live.version, run, catcher, took, tuple(proofs), unproved, stays)


def _stays_for(catcher: str, seen: Seen, desired: Topology) -> Duration | None:
    """How long the catcher outlives its last use: one that was there before stays as it was declared."""
    there = seen.live.queues.get(catcher)
    return there.settings.expires if there else stays_for(longest_wait(desired))


@dataclass(frozen=True)
class _Trial:
    """One run on one broker."""

    host: Host
    desired: Topology
    run: str
    effort: Effort
    file: str
    show: Progress | None

    def run_all(self, probes: Sequence[Probe]) -> tuple[list[Proof], Seen]:
        """Prove what can be proved; also gives the broker as it was looked at."""
        management = self.host.management
        assert management is not None
        seen = look(management, self.desired.prefix)
        tasks = tasks_for(probes, seen, self.effort, desired=self.desired, run=self.run, file=self.file)
        observed = self._observe(tasks, seen)
        missed = [probe for number, probe in enumerate(probes) if number in observed and observed[number].missing]
        figures = _figures_that_tell(management, missed, self.file) if missed else seen.figures
        judged = partial(prove, run=self.run, max_lateness=self.effort.max_lateness, figures=figures, file=self.file)
        return [judged(task, observed.get(number)) for number, task in enumerate(tasks)], seen

    def _observe(self, tasks: Sequence[Task], seen: Seen) -> dict[int, Observed]:
        """Send what is to be sent, and see what becomes of it; by the number of the task."""
        flights = {number: task.flight for number, task in enumerate(tasks) if task.flight is not None}
        if not flights:
            return {}
        name, longest = Names(self.desired.prefix).verify_queue(), longest_wait(self.desired)
        catcher, at_large = Catcher(self.host.access, self.desired.prefix, file=self.file, longest=longest), True
        try:
            check_same_broker(self.host, name)
            with Bar() as bar:
                flock = Flock(
                    catcher,
                    run=self.run,
                    body=BODY,
                    patience_s=self.effort.patience.ms / 1000,
                    show=self.show or bar.show,
                )
                with _unlogged():
                    observed = flock.fly(self.host.access, self.desired.exit, list(flights.values()))
            at_large = any(each.at_large for each in observed)
        except KeyboardInterrupt as stop:
            raise _stopped(name, _stays_for(name, seen, self.desired)) from stop
        finally:
            # Whatever is still on its way is caught by the queue, and leaves the broker with it.
            catcher.close(keep=at_large)
        return dict(zip(flights, observed, strict=True))


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep what a publisher logs off stderr: the report tells it, and a monitor may read both together."""
    log = logging.getLogger("delayctl.publisher")
    was_disabled, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was_disabled


def _stopped(catcher: str, stays: Duration | None) -> DelayctlError:
    what = f"stopped: canaries may still come out, and {catcher} stays to catch them"
    ending = f"it removes itself when unused for {stays}" if stays else "it is deleted by whoever declared it"
    return DelayctlError(what, fix=f"leave it there: {ending}")


def _figures_that_tell(management: Management, missed: Sequence[Probe], file: str) -> Mapping[str, Figures]:
    """How queues are doing whose canaries are missing: read until it tells why, or all figures are new."""
    until = time.monotonic() + 1.5 * INTERVAL_MS / 1000
    while True:
        figures = read_figures(management)
        if all(why_missing(probe, figures, file) for probe in missed) or time.monotonic() > until:
            return figures
        time.sleep(_LOOK_AGAIN_S)
