"""Reads all that a doctor looks at: by the file, or by the broker's own record of what was applied."""

import time
from dataclasses import dataclass
from typing import Any

from delayctl.cli.host import Host, host_for
from delayctl.cli.options import Connection, spec_from
from delayctl.cli.seen import seen_of
from delayctl.cli.status import gather
from delayctl.consumers.deaths import Delays
from delayctl.publishers.known import recorded_ladder, recorded_levels
from delayctl.topology import rules_live
from delayctl.topology.adopt import own_prefixes
from delayctl.topology.clients import Clients
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError, NotPermitted, Refused
from delayctl.topology.examination import Examination, Look
from delayctl.topology.expand import expand
from delayctl.topology.facts import read_facts
from delayctl.topology.figures import Figures
from delayctl.topology.findings import Finding
from delayctl.topology.lint import RULES, lint
from delayctl.topology.live import Live
from delayctl.topology.model import Topology
from delayctl.topology.recorded import recorded_parks, recorded_spec, recorded_topology
from delayctl.topology.spec import Spec
from delayctl.topology.statistics import are_off, read_clients
from delayctl.topology.status import Facts, Status, status_of
from delayctl.topology.wording import quoted

_MOST_PEEKED = 100


@dataclass(frozen=True)
class Bedside:
    """A topology on its broker, to be looked at as often as need be."""

    host: Host
    spec: Spec
    desired: Topology
    parks: tuple[str, ...]  # Where retries end.
    file: str | None

    def status(self) -> Status:
        """How it is doing, and no more than that."""
        return status_of(self._facts())

    def examine(
        self,
        *,
        peeks: bool,
        earlier: Status | None = None,
        watched: Duration | None = None,
        why_not: str = "--no-peek was given",
    ) -> Examination:
        """Read everything; `why_not` is said of what was not looked into."""
        management = self.host.management
        assert management is not None
        facts = self._facts()
        status = status_of(facts)
        consumed = [level.queue for level in status.levels if level.figures.consumers]
        is_silent = are_off(management)  # Then it refuses to list channels.
        return Examination(
            self.desired,
            facts.live,
            facts.plan,
            status,
            facts.statistics.queues,
            self.file,
            earlier,
            watched,
            self._lint(facts.live),
            Clients() if is_silent else read_clients(management, consumed),
            self._looks(status, facts) if peeks else _not_asked_for(status, why_not),
            is_silent,
        )

    def _facts(self) -> Facts:
        return gather(self.host, self.desired, self.parks)

    def _lint(self, live: Live) -> tuple[Finding, ...]:
        """What lint says that it would not say without a broker; the rest is for validate to say."""
        management = self.host.management
        assert management is not None
        # Of a file the record knows too little for other rules than those that look at a broker.
        rules = rules_live.RULES if self.file is None else RULES
        facts = read_facts(management.get, management.vhost)
        known = {*lint(self.spec, self.desired, rules=rules).findings}
        found = lint(self.spec, self.desired, live=live, facts=facts, rules=rules).findings
        return tuple(finding for finding in found if finding not in known)

    def _looks(self, status: Status, facts: Facts) -> dict[str, Look]:
        return {
            parked.queue: self._peeked(parked.queue, facts)
            for parked in status.parked
            if parked.messages and parked.queue in facts.live.queues
        }

    def _peeked(self, queue: str, facts: Facts) -> Look:
        figures = facts.statistics.queues.get(queue, Figures())
        if figures.members or facts.live.queues[queue].settings.type == "quorum":
            return Look(
                obstacle="a quorum queue counts every look as a delivery, and gives up what was delivered too often"
            )
        if figures.consumers:
            return Look(obstacle="somebody consumes from it")
        try:
            with self.host.broker() as broker:
                peeked = broker.peek(queue, _MOST_PEEKED)
        except (NotPermitted, Refused) as error:
            return Look(obstacle=error.what)
        delays = Delays.of(self.desired)
        now_ms = time.time_ns() // 1_000_000
        return Look(tuple(seen_of(found.exchange, found.key, found.headers, delays, now_ms) for found in peeked))


def by_file(file: str, connection: Connection, options: dict[str, Any]) -> Bedside:
    """What a file describes."""
    spec = spec_from(file, options)
    return Bedside(
        host_for(connection, connection.vhost_for(spec)),
        spec,
        expand(spec),
        tuple(retry.park for retry in spec.retries),
        file,
    )


def by_record(prefix: str, connection: Connection) -> Bedside:
    """What the broker remembers to have been applied."""
    vhost = connection.vhost_for(Spec(()))
    host = host_for(connection, vhost)
    assert host.management is not None
    live = host.management.read(prefix)
    if live.record is None:
        raise _nothing_recorded(live, vhost, prefix)
    levels, ladder = recorded_levels(live, prefix), recorded_ladder(live, prefix)
    desired = recorded_topology(live, live.record, prefix=prefix, levels=levels, ladder=ladder)
    return Bedside(host, recorded_spec(desired), desired, recorded_parks(desired), None)


def _nothing_recorded(live: Live, vhost: str, prefix: str) -> DelayctlError:
    begun = f" with prefix {quoted(prefix)}" if prefix else ""
    others = [f"--prefix {each}" for each in own_prefixes(live) if each and each != prefix]
    fix = "name the file (delayctl doctor topology.yaml); one for what was made by hand is written by delayctl import"
    if others:
        fix = f"there are others: {', '.join(others)}; or name the file"
    return DelayctlError(f"nothing was applied to virtual host {quoted(vhost)}{begun}", fix=fix)


def _not_asked_for(status: Status, why_not: str) -> dict[str, Look]:
    return {parked.queue: Look(obstacle=why_not) for parked in status.parked}
