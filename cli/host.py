"""One virtual host of one broker, as the commands see it: plan it, lock it, look at it again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import click
from delayctl.cli.options import Connection
from delayctl.topology.access import Access
from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BrokerError, DelayctlError, ManagementUnavailable, NotPermitted
from delayctl.topology.former import telltales
from delayctl.topology.live import Live
from delayctl.topology.lock import hold_lock
from delayctl.topology.management import IF_IT_RUNS, Management
from delayctl.topology.model import Reference, Topology
from delayctl.topology.names import Names
from delayctl.topology.plan import Plan
from delayctl.topology.rabbit import RabbitBroker
from delayctl.topology.survey import check_fresh, make_plan
from delayctl.topology.wording import quoted, shorten


@dataclass(frozen=True, slots=True)
class Host:
    """One virtual host of one broker, and what is known of it without reading it."""

    access: Access
    vhost: str
    management: Management | None

    def broker(self) -> RabbitBroker:
        """The broker to act on; its connections are closed by `with`."""
        return RabbitBroker(self.access, self.management)

    def read(self, prefix: str, *, unseen: str) -> Live:
        """What is on the broker; nothing where it can't be read, and then it is said what stays `unseen`."""
        assert self.management is not None
        try:
            return self.management.read(prefix)
        except (ManagementUnavailable, NotPermitted) as error:
            click.echo(f"Warning: {error.what}; {unseen}", err=True)
            return Live()

    def plan(self, desired: Topology, accept_loss: tuple[str, ...] = ()) -> tuple[Plan, str]:
        """Read the broker and compare; also says which version it is."""
        with self.broker() as broker:
            if self.management is None:
                return self._blind_plan(desired, broker), ""
            made, live = make_plan(desired, self.management, broker, vhost=self.vhost, accept_loss=accept_loss)
        return made, live.version

    def _blind_plan(self, desired: Topology, broker: RabbitBroker) -> Plan:
        """Everything is declared and nothing removed: over AMQP alone nothing can be looked at."""
        if desired.policies:
            raise ManagementUnavailable(
                "settings: policy needs the management API, since AMQP knows no policies",
                fix="give --management-url, or write settings: arguments",
            )
        if desired.replaced:
            raise ManagementUnavailable(
                "replaces: needs the management API: over AMQP alone nobody can see which ways are there",
                fix="give --management-url",
            )
        for level in desired.levels:
            for former in telltales(level, desired.prefix):
                if broker.has(former):
                    raise ManagementUnavailable(
                        f"{former.kind} {former.name} is on the broker: level {level.name} has another number of queues there, and"
                        " over AMQP alone the former ones would stay bound: messages would come twice, or wait where none shall",
                        fix="give --management-url",
                    )
        for reference in desired.existing:
            broker.check(reference)
        return diff(replace(desired, existing=()), Live(broker.version()), vhost=self.vhost)

    def check_fresh(self, plan: Plan) -> None:
        """Raise StalePlan where the broker is no longer as it was planned for."""
        if self.management is not None:
            with self.broker() as broker:
                check_fresh(plan, self.management, broker)


def host_for(
    connection: Connection, vhost: str, *, use_management: bool = True, without: str = "", is_patient: bool = True
) -> Host:
    """The virtual host that a command is about; `without` is what to advise where there is no management API."""
    access = connection.access.at(vhost)
    management = Management(access, vhost, without=without, is_patient=is_patient) if use_management else None
    return Host(access, vhost, management)


def with_what_answers(host: Host, desired: Topology) -> Host:
    """The host without its management API where that is off or closed to this user, and there is nothing that apply had to see."""
    assert host.management is not None
    try:
        host.management.read_record(desired.prefix)
    except (ManagementUnavailable, NotPermitted) as error:
        if isinstance(error, ManagementUnavailable) and not error.is_off:
            raise
        _refuse_blindness(host, desired, error)
        click.echo(f"Warning: {error.what}", err=True)
        return replace(host, management=None)
    return host


def _refuse_blindness(host: Host, desired: Topology, error: BrokerError) -> None:
    """Raise DelayctlError where an earlier apply may have left what this one has to remove."""
    with host.broker() as broker:
        found = next((sign for sign in _signs(desired) if broker.has(sign)), None)
    if found is not None:
        raise DelayctlError(
            "without the management API apply can't see what has to be removed, such as the old way of a route that moved:"
            f" {error.what}",
            where=f"virtual host {quoted(host.vhost)}, where {found.kind} {shorten(found.name)} shows that it was applied before",
            fix=(error.fix or "").removeprefix(IF_IT_RUNS),  # The broker has just answered: to start it is no advice.
        )


def _signs(desired: Topology) -> tuple[Reference, ...]:
    """What tells that a topology was applied before: its exit, or where nothing waits, anything of it."""
    exit = Reference("exchange", desired.exit)
    if desired.waits:
        return (exit,)
    exchanges = (Reference("exchange", exchange.name) for exchange in desired.exchanges)
    return (exit, *exchanges, *(Reference("queue", queue.name) for queue in desired.queues))


@contextmanager
def locked(host: Host, prefix: str, wait: Duration) -> Iterator[Callable[[], None]]:
    """Hold the lock of a topology, waiting for it this long; yields what keeps it."""

    def on_wait() -> None:
        click.echo("Another delayctl is changing this topology; waiting for it …", err=True)

    with hold_lock(host.access, prefix, wait_s=wait.ms / 1000, on_wait=on_wait) as keep_lock:
        check_same_broker(host, Names(prefix).lock())
        yield keep_lock


def check_same_broker(host: Host, queue: str) -> None:
    """Raise DelayctlError where the management API does not know a queue that was declared over AMQP."""
    if host.management is not None and not host.management.has_queue(queue):
        raise DelayctlError(
            "--url and --management-url lead to different brokers",
            where=f"{host.access.address} and {host.access.management_url}",
            fix="correct one of them; DELAYCTL_URL and DELAYCTL_MANAGEMENT_URL count too",
        )
