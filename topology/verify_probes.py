"""What there is to prove of a topology: its exit, its levels, the rungs of its ladder, and its routes."""

from collections.abc import Iterator, Sequence

from delayctl.topology.canary import Probe
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.ladder import headers_for, most_units, step_header
from delayctl.topology.model import Ladder, Level, Sharded, Topology
from delayctl.topology.names import ANY, Names
from delayctl.topology.samples import Sample, samples_of
from delayctl.topology.scene import Scene
from delayctl.topology.spec import Spec
from delayctl.topology.wording import did_you_mean, quoted

_AT_ONCE = Duration(0)


def probes_of(spec: Spec, desired: Topology, *, run: str, up_to: Duration) -> tuple[Probe, ...]:
    """All ways of a file: the delays, by keys that belong to this run alone, and the routes, by their own."""
    return (*_delay_probes(desired, run, up_to), *_route_probes(Scene(spec, desired)))


def probes_at(levels: Sequence[str], probes: Sequence[Probe], desired: Topology) -> tuple[Probe, ...]:
    """The exit and what waits at these levels or rungs; all where none is named."""
    queues = {wait.name: {*wait.queues} for wait in (*desired.wholes, *desired.waits)}
    for name in levels:
        if name not in queues:
            guess = did_you_mean(name, queues)
            fix = f"name one of {', '.join(queues)}" if queues else "leave out --level: the file has none"
            raise BadOption(f"there is no level {quoted(name)}{guess}", fix=fix)
    wanted = {queue for name in levels for queue in queues[name]}
    return tuple(probe for probe in probes if not wanted or probe.kind == "exit" or wanted & set(probe.queues))


def longest_wait(desired: Topology) -> Duration:
    """How long a canary can wait: at the longest level, or at all steps of the ladder."""
    ladder = desired.ladder
    climbs = [_sum(ladder, len(ladder.rungs))] if ladder else []
    return max((*climbs, *(wait.ttl for wait in desired.waits)), default=_AT_ONCE)


def _delay_probes(desired: Topology, run: str, up_to: Duration) -> Iterator[Probe]:
    """The exit, every level, every shard and every rung; also a sum of rungs, as clients without delayctl send it."""
    if not desired.waits:
        return
    names = Names(desired.prefix)
    keys = (names.verify_key(run, number) for number in range(len(desired.waits) + len(desired.sharded) + 2))
    yield Probe("exit", desired.exit, desired.exit, next(keys), _AT_ONCE)
    for level in desired.levels:
        is_spread = isinstance(level, Sharded)
        yield Probe("level", level.name, level.entrance, next(keys), level.ttl, level.queues[:1], is_spread=is_spread)
        # Each by its own entrance: which of them a message waits in that comes by the level's is not ours to choose.
        for shard in level.parts if is_spread else ():
            yield Probe("shard", shard.name, shard.entrance, next(keys), shard.ttl, (shard.queue,))
    for step, rung in enumerate(desired.rungs):
        yield Probe("rung", rung.name, rung.gate, next(keys), rung.ttl, (rung.queue,), {step_header(step): True})
    if desired.ladder and (steps := _steps_within(desired.ladder, up_to)) > 1:  # A single rung is proved by itself.
        yield _sum_of_rungs(desired.ladder, steps, next(keys))


def _steps_within(ladder: Ladder, up_to: Duration) -> int:
    """How many of the shortest rungs wait no longer than this together."""
    fitting = (steps for steps in range(len(ladder.rungs), 0, -1) if _sum(ladder, steps) <= up_to)
    return next(fitting, 0)


def _sum(ladder: Ladder, steps: int) -> Duration:
    return Duration(most_units(steps) * ladder.unit.ms)


def _sum_of_rungs(ladder: Ladder, steps: int, key: str) -> Probe:
    rungs = ladder.rungs[:steps]
    # The longest first: that is the order in which it waits.
    queues = tuple(rung.queue for rung in reversed(rungs))
    headers = dict[str, object](headers_for(most_units(steps)))
    name = f"{rungs[-1].name} down to {rungs[0].name}"
    return Probe("ladder", name, ladder.entrance, key, _sum(ladder, steps), queues, headers)


def _route_probes(scene: Scene) -> Iterator[Probe]:
    """Every route of the file with a sample of its keys, the ways of retries, and those to where messages are parked."""
    for sample in samples_of(scene):
        if sample.route is not None or sample.retried is not None or sample.parked is not None:
            yield _route_probe(scene, sample)


def _route_probe(scene: Scene, sample: Sample) -> Probe:
    level = _wait_of(scene, sample)
    return Probe(
        "route",
        _name(sample),
        sample.exchange,
        sample.message.key,
        level.ttl if level else _AT_ONCE,
        level.queues[:1] if level else (),
        sample.message.headers,
        _targets(sample),
        is_parking=sample.parked is not None,
    )


def _wait_of(scene: Scene, sample: Sample) -> Level | None:
    """Where a sample waits; one that may wait any delay waits at the last step of the ladder."""
    if sample.route is not None and sample.route.level == ANY:
        return scene.topology.rungs[0]
    return next((level for level in scene.topology.levels if level.entrance == _entrance(scene, sample)), None)


def _entrance(scene: Scene, sample: Sample) -> str:
    if sample.route is not None and sample.route.level is not None:
        return scene.names.entrance(sample.route.level)
    return sample.exchange


def _name(sample: Sample) -> str:
    if sample.retried is not None:
        return f"retries of {sample.retried}"
    if sample.parked is not None:
        return f"parking in {sample.parked}"
    return f"{sample.exchange} {sample.shown} to {', '.join(_targets(sample))}"


def _targets(sample: Sample) -> tuple[str, ...]:
    if sample.route is not None:
        return tuple(target.name for target in sample.route.targets)
    return tuple(name for name in (sample.retried, sample.parked) if name is not None)
