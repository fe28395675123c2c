"""Levels that are spread over several queues, each as the one that it is to its users."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from delayctl.topology.figures import Age, Early, Figures, Rates, Samples
from delayctl.topology.model import Settings, Sharded
from delayctl.topology.status import LevelStatus

_NOTHING_SAID = ""


def wholes(levels: Iterable[LevelStatus]) -> tuple[tuple[LevelStatus, tuple[LevelStatus, ...]], ...]:
    """Every level together with its shards, which are summed up in it; without any where it has one queue."""
    found: list[tuple[LevelStatus, tuple[LevelStatus, ...]]] = []
    for level, group in groupby(levels, key=lambda each: each.shard_of):
        parts = tuple(group)
        found += [(each, ()) for each in parts] if level is None else [(joined(level, parts), parts)]
    return tuple(found)


def joined(level: Sharded, parts: Sequence[LevelStatus]) -> LevelStatus:
    """All queues of a level as one: their messages, rates and limits together, and the oldest of all."""
    wanted = [part.wanted for part in parts if part.wanted]
    return LevelStatus(
        level.name,
        level.queue,
        is_there=all(part.is_there for part in parts),
        wanted=_settings(wanted) if len(wanted) == len(parts) else None,
        settings=_settings([part.settings for part in parts]),
        policies=tuple(dict.fromkeys(policy for part in parts for policy in part.policies)),
        figures=_figures([part.figures for part in parts]),
        rates=_rates([part.rates for part in parts]),
        oldest=_oldest([part.oldest for part in parts if part.oldest]),
        early=_early([part.early for part in parts]),
        is_own=True,
        exit_is_missing=any(part.exit_is_missing for part in parts),
    )


def _settings(parts: Sequence[Settings]) -> Settings:
    """What the first says, but the limits of all."""
    return replace(
        parts[0],
        max_length=_sum([part.max_length for part in parts]),
        max_bytes=_sum([part.max_bytes for part in parts]),
    )


def _figures(parts: Sequence[Figures]) -> Figures:
    states = {part.state for part in parts}
    return Figures(
        ready=_sum([part.ready for part in parts]),
        unacknowledged=_sum([part.unacknowledged for part in parts]),
        dead_lettering=sum(part.dead_lettering for part in parts),
        size=_sum([part.size for part in parts]),
        consumers=_sum([part.consumers for part in parts]),
        lengths=_lengths([part.lengths for part in parts]),
        # What is out of order with one of them is out of order with the level.
        state=next((state for state in sorted(states) if state not in ("running", "idle", _NOTHING_SAID)), min(states)),
    )


def _lengths(parts: Sequence[Samples]) -> Samples:
    """How long all were together, whenever something is known of one: the others count as they were before."""
    last: dict[int, int] = {}
    sums: dict[int, int] = {}
    for at, number, length in sorted((at, number, length) for number, part in enumerate(parts) for at, length in part):
        last[number] = length
        if len(last) == len(parts):
            sums[at] = sum(last.values())
    return tuple(sums.items())


def _sum(numbers: Sequence[int | None]) -> int | None:
    """All together; not known, or without a limit, where one of them is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _rates(parts: Sequence[Rates | None]) -> Rates | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return Rates(sum(part.into for part in known), sum(part.out_of for part in known))


def _oldest(ages: Sequence[Age]) -> Age | None:
    return max(ages, key=lambda age: (age.at_least_ms, age.at_most_ms or 0), default=None)


def _early(parts: Sequence[Early | None]) -> Early | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return Early(sum(part.at_least for part in known), known[0].window)
