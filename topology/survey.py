"""Looking at a broker: read it, count what is at stake, compare."""

from collections.abc import Iterable
from dataclasses import replace

from delayctl.topology.changes import Comparison
from delayctl.topology.diff import at_stake, fingerprint, judge
from delayctl.topology.errors import StalePlan
from delayctl.topology.live import Live
from delayctl.topology.management import Management
from delayctl.topology.model import Exchange, Reference, Topology
from delayctl.topology.plan import Change, Delete, Plan, Replace
from delayctl.topology.rabbit import RabbitBroker
from delayctl.topology.wording import plural


def make_plan(
    desired: Topology, management: Management, broker: RabbitBroker, *, vhost: str, accept_loss: Iterable[str] = ()
) -> tuple[Plan, Live]:
    """Read the virtual host and plan what turns it into `desired`."""
    live = _read(management, desired.prefix, (exchange.name for exchange in desired.exchanges), desired.existing)
    if desired.sharded:
        live = replace(live, nodes=management.running_nodes(), exchange_types=management.exchange_types())
    insisted = frozenset(accept_loss)
    both = Comparison(desired, live, insisted)
    if going := _exchanges_that_go(both.changes):
        # Bindings to exclusive queues are in no definitions, and go with their exchange.
        live = replace(live, bindings=live.bindings.union(*map(management.bindings_of, going)))
        both = Comparison(desired, live, insisted)
    if names := at_stake(both) | _waited_for(both):
        live = replace(live, backlog={name: broker.backlog(name) for name in sorted(names)})
        both = Comparison(desired, live, insisted)
    return judge(both, vhost=vhost), live


def _waited_for(both: Comparison) -> frozenset[str]:
    """The queues that empty before the rest is done: what they hold decides nothing, but is told."""
    return frozenset(wait.queue for wait in both.course.waits) & both.live.queues.keys()


def check_fresh(plan: Plan, management: Management, broker: RabbitBroker) -> None:
    """Raise StalePlan where the broker is no longer as it was planned for, in its objects or in what waits."""
    if not plan.writes:
        return
    live = _read(management, plan.prefix, plan.intent.exchanges, plan.existing)
    if fingerprint(plan.intent, plan.existing, live) != plan.fingerprint:
        raise StalePlan("the broker has changed since the plan was made", fix="plan again, and look at it again")
    for name in sorted(plan.counted_on_empty & live.queues.keys()):
        if count := broker.backlog(name).messages:
            raise StalePlan(
                f"{plural(count, 'message')} came into {name} since the plan was made",
                fix="plan again, and look at it again",
            )


def _read(management: Management, prefix: str, exchanges: Iterable[str], existing: tuple[Reference, ...]) -> Live:
    referred = (reference.name for reference in existing if reference.kind == "exchange")
    return management.read(prefix, {*exchanges, *referred})


def _exchanges_that_go(changes: Iterable[Change]) -> list[str]:
    """The exchanges that are deleted, be it to be declared anew."""
    gone = (c.before if isinstance(c, Replace) else c.resource for c in changes if isinstance(c, Replace | Delete))
    return [resource.name for resource in gone if isinstance(resource, Exchange)]
