"""What a publisher or consumer is told of brokers and topology: by URL, by file, by value, or by the broker's own record."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from delayctl.publishers.choice import Ways
from delayctl.topology.access import Access, access_from
from delayctl.topology.effective import effective
from delayctl.topology.errors import BadOption, DelayctlError, InvalidTopology, Location, ManagementUnavailable, Problem
from delayctl.topology.expand import expand
from delayctl.topology.live import Live
from delayctl.topology.management import Management
from delayctl.topology.model import Level, Topology
from delayctl.topology.names import Names
from delayctl.topology.parse import read_spec
from delayctl.topology.spec import Spec

Urls = str | Access | Sequence[str | Access]


def brokers_at(urls: Urls, *, management_url: str | None = None) -> list[Access]:
    """The brokers that are named, any of which will do."""
    named = [urls] if isinstance(urls, str | Access) else list(urls)
    if not named:
        raise BadOption("no broker is named", fix="give at least one URL")
    return [each if isinstance(each, Access) else access_from(each, management_url=management_url) for each in named]


def read_topology(file: str | Path, values: Mapping[str, object]) -> Spec:
    """Read a topology file."""
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        fix = "check the path, or start with: delayctl init"
        raise InvalidTopology([Problem(f"the file can't be read: {reason}", Location(str(file)), fix)]) from error
    return read_spec(text, values, file=str(file))


def known_ways(
    topology: str | Path | Spec | Topology | None, values: Mapping[str, object], prefix: str, brokers: Sequence[Access]
) -> tuple[str, Ways]:
    """The virtual host and the ways of a topology, wherever it is described."""
    vhost = brokers[0].vhost or "/"
    if topology is None:
        live = _read_live(brokers, prefix)
        return vhost, Ways(Names(prefix).exit(), recorded_levels(live, prefix))
    if isinstance(topology, Topology):
        return vhost, Ways(topology.exit, topology.levels)
    spec = topology if isinstance(topology, Spec) else read_topology(topology, values)
    found = expand(spec)
    return brokers[0].vhost or spec.vhost or "/", Ways(found.exit, found.levels)


def _read_live(brokers: Sequence[Access], prefix: str) -> Live:
    """What the first of them says that answers."""
    *others, last = brokers
    for access in others:
        try:
            return Management(access, access.vhost or "/").read(prefix)
        except ManagementUnavailable:
            continue
    return Management(last, last.vhost or "/").read(prefix)


def recorded_levels(live: Live, prefix: str) -> tuple[Level, ...]:
    """The levels that were applied, as they are on the broker now."""
    names = Names(prefix)
    if live.record is None:
        raise DelayctlError(
            "the broker has no record of a topology" + (f" with prefix '{prefix}'" if prefix else ""),
            fix="apply one (delayctl apply topology.yaml), or give topology=",
        )
    head, tail = names.delay_queue("\0").split("\0")
    levels = []
    for queue in sorted(live.record.queues & live.queues.keys()):
        name = queue.removeprefix(head).removesuffix(tail)
        ttl = effective(live.queues[queue], live.policies, live.operator_policies).settings.ttl
        if queue == names.delay_queue(name) and ttl is not None and names.entrance(name) in live.exchanges:
            levels.append(Level(name, ttl, names.entrance(name), queue))
    return tuple(levels)
