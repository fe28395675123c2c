"""What a publisher or consumer is told of brokers and topology: by URL, by file, by value, or by the broker's own record."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from delayctl.publishers.choice import Ways
from delayctl.topology.access import Access, access_from
from delayctl.topology.effective import effective
from delayctl.topology.errors import BadOption, DelayctlError, InvalidTopology, Location, ManagementUnavailable, Problem
from delayctl.topology.expand import expand
from delayctl.topology.expand_ladder import rung_bindings
from delayctl.topology.ladder import wait_of
from delayctl.topology.live import Live
from delayctl.topology.management import Management
from delayctl.topology.model import Binding, Ladder, Level, Rung, Sharded, Topology
from delayctl.topology.names import ANY, Names, rung_name
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
    topology: str | Path | Spec | Topology | Ways | None,
    values: Mapping[str, object],
    prefix: str,
    brokers: Sequence[Access],
) -> tuple[str, Ways]:
    """The virtual host and the ways of a topology, wherever it is described."""
    vhost = brokers[0].vhost or "/"
    if topology is None:
        live = _read_live(brokers, prefix)
        return vhost, Ways(Names(prefix).exit(), recorded_levels(live, prefix), recorded_ladder(live, prefix))
    if isinstance(topology, Ways):
        return vhost, topology
    if isinstance(topology, Topology):
        return vhost, Ways.of(topology)
    spec = topology if isinstance(topology, Spec) else read_topology(topology, values)
    return brokers[0].vhost or spec.vhost or "/", Ways.of(expand(spec))


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
    found = (queue.removeprefix(head).removesuffix(tail) for queue in sorted(live.record.queues))
    # No level has a dot in its name; the rungs of the ladder do, and what stands in for a queue while it is changed.
    alone = [level for name in found if "." not in name and (level := _recorded(name, live, names))]
    spread = [level for exchange in live.record.exchanges if (level := _recorded_spread(exchange, live, names))]
    # A level that is about to be spread over several queues, or was, may still have messages in its former ones.
    by_name = {level.name: level for level in (*alone, *spread)}
    return tuple(by_name[name] for name in sorted(by_name))


def _recorded_spread(exchange: str, live: Live, names: Names) -> Level | None:
    """The level that an exchange spreads over several queues, if messages reach it and it knows where to put them."""
    level = names.spread_level(exchange)
    if level is None or Binding(names.entrance(level), "exchange", exchange) not in live.bindings:
        return None
    ways = sorted(b.destination for b in live.bindings_at("exchange", exchange) if b.source == exchange)
    head, tail = names.entrance("\0").split("\0")
    shards = tuple(
        shard
        for entrance in ways
        if (shard := _recorded(entrance.removeprefix(head).removesuffix(tail), live, names)) is not None
    )
    if not shards:
        return None
    return Sharded(level, shards[0].ttl, names.entrance(level), names.shard_queues(level), exchange, shards)


def recorded_ladder(live: Live, prefix: str) -> Ladder | None:
    """The ladder that was applied, as far up as it is whole on the broker now; None where there is none."""
    names = Names(prefix)
    rungs: list[Rung] = []
    while rung := _recorded_rung(len(rungs), live, names):
        if rung.ttl != wait_of(len(rungs), (rungs or [rung])[0].ttl):
            break
        rungs.append(rung)
    return Ladder(rungs[0].ttl, tuple(rungs), names.entrance(ANY)) if rungs else None


def _recorded_rung(step: int, live: Live, names: Names) -> Rung | None:
    """A step of the ladder, if both ways to it are there: that from the door is made last."""
    wait = _recorded(rung_name(step), live, names)
    if wait is None:
        return None
    rung = Rung(wait.name, wait.ttl, wait.entrance, wait.queue, names.gate(step))
    return rung if live.bindings.issuperset(rung_bindings(step, rung, names.entrance(ANY))) else None


def _recorded(name: str, live: Live, names: Names) -> Level | None:
    """A wait of this name, if it is there and ours."""
    queue, entrance = names.delay_queue(name), names.entrance(name)
    # While a queue is changed there may be none for a moment: messages wait in the next one then.
    found = live.queues.get(queue) or live.queues.get(names.next(name).queue)
    if live.record is None or queue not in live.record.queues or found is None:
        return None
    ttl = effective(found, live.policies, live.operator_policies).settings.ttl
    return Level(name, ttl, entrance, queue) if ttl is not None and entrance in live.exchanges else None
