"""What the broker says of the levels of a backfill: how much they hold, whether they wait as the file says, which keys come out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from delayctl.cli.host import Host
from delayctl.cli.status import gather
from delayctl.publishers.choice import Ways
from delayctl.topology.amqp import AmqpSession
from delayctl.topology.errors import DelayctlError, ManagementUnavailable, NotPermitted, Refused
from delayctl.topology.model import Topology
from delayctl.topology.names import Names
from delayctl.topology.routing import Message, Network, route
from delayctl.topology.status import LevelStatus, Status, status_of
from delayctl.topology.status_shards import wholes
from delayctl.topology.wording import argument, quoted

if TYPE_CHECKING:
    from delayctl.spark.estimate import Room
    from delayctl.spark.taken_keys import Routes

_NOT_KNOWN = "how much the levels hold, and whether they wait as the file says, is not known"


def rooms_and_network(host: Host, desired: Topology, topology: str) -> "tuple[tuple[Room, ...], Network | None]":
    """What waits in the levels as of now, what they hold, and where keys lead; None where the management API is silent."""
    from delayctl.spark.estimate import Room  # noqa: PLC0415 (Spark need not be there)

    waiting = _waiting(host, desired, topology)
    try:
        facts = gather(host, desired, ())
    except (ManagementUnavailable, NotPermitted) as error:
        click.echo(f"Warning: {_NOT_KNOWN}: {error.what}", err=True)
        return tuple(Room(level.name, waiting[level.name]) for level in desired.wholes), None
    status = status_of(facts)
    check_waits(status, topology)
    found = {level.name: level for level, _ in wholes(status.levels) if level.is_own}
    rooms = tuple(_room(found[level.name], waiting[level.name]) for level in desired.wholes)
    return rooms, Network.of_live(facts.live)


def _room(level: LevelStatus, waiting: int) -> "Room":
    from delayctl.spark.estimate import Room  # noqa: PLC0415 (see above)

    size, settings = level.figures.size or 0, level.settings
    return Room(level.name, waiting, settings.max_length, level.rejects, size, settings.max_bytes)


def check_waits(status: Status, topology: str) -> None:
    """Raise DelayctlError where what is sent would come out at another time than the file says, or nowhere."""
    faults = [fault for level in status.levels if level.is_own for fault in _faults(level)]
    if faults:
        raise DelayctlError(
            f"the levels do not wait as the file says: {'; '.join(faults)}; nothing was sent",
            fix=f"delayctl plan {argument(topology)} shows what differs, and what can be done about it",
        )


def _faults(level: LevelStatus) -> Iterator[str]:
    wanted, found = level.wanted, level.settings
    if wanted is None or not level.is_there:
        return  # Of a change that is under way, or told already.
    why = f" ({', '.join(level.policies)})" if level.policies else ""
    if found.ttl is None:
        yield f"{level.queue} never lets messages out, which it should after {wanted.ttl}{why}"
    elif found.ttl != wanted.ttl:
        yield f"{level.queue} lets messages out after {found.ttl}, not after {wanted.ttl}{why}"
    if found.dead_letter_exchange != wanted.dead_letter_exchange:
        yield f"{level.queue} lets them out to {found.dead_letter_exchange or 'nowhere'}, not to {wanted.dead_letter_exchange}{why}"
    elif level.exit_is_missing:
        yield f"{level.queue} lets them out to {found.dead_letter_exchange}, which is not there"


def routes_from(desired: Topology, live: Network | None) -> "Routes | None":
    """What is bound to the exit, on the broker or else by the file; None where that is no exchange whose keys are looked at."""
    from delayctl.spark.taken_keys import Routes  # noqa: PLC0415 (Spark need not be there)

    network = live if live is not None and desired.exit in live.exchanges else Network.of_topology(desired)
    exit = network.exchanges.get(desired.exit)
    if exit is None or exit.type != "topic":
        return None
    patterns = sorted({binding.key for binding in network.bindings_from.get(desired.exit, ())})
    return Routes(tuple(patterns), Names(desired.prefix).unrouted_queue())


def check_key(key: str, desired: Topology, live: Network | None, topology: str) -> None:
    """Raise DelayctlError where no route on the broker takes the key that all messages come out with."""
    if live is None or desired.exit not in live.exchanges:
        return  # The look at the rows warns, by the file.
    parking = Names(desired.prefix).unrouted_queue()
    if parking not in route(live, desired.exit, Message(key)).queues:
        return
    is_in_file = parking not in route(Network.of_topology(desired), desired.exit, Message(key)).queues
    fix = f"correct --routing-key, or add a route for it to {topology} and apply that"
    raise DelayctlError(
        f"no route takes the routing key {quoted(key)}: every message would be parked in {parking}; nothing was sent",
        fix=f"delayctl apply {argument(topology)}: the file has a route for it" if is_in_file else fix,
    )


def _waiting(host: Host, desired: Topology, topology: str) -> dict[str, int]:
    """How many messages wait in each level; the whole way has to be there before anything is sent."""
    with AmqpSession(host.access) as session:
        try:
            for exchange in (*Ways.of(desired).exchanges, *(rung.entrance for rung in desired.rungs)):
                session.check("exchange", exchange)
            return {
                level.name: sum(session.count(queue).messages for queue in level.queues) for level in desired.wholes
            }
        except Refused as error:
            raise DelayctlError(
                f"the broker is not as the file says: {error.what}", fix=f"delayctl apply {argument(topology)}"
            ) from error
