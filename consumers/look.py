"""A look into a queue: what its first messages say of themselves. They are held for a moment and put back in their places."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from delayctl.consumers.blocks import FIRST, next_size
from delayctl.consumers.deaths import Delays
from delayctl.consumers.pull import Pull
from delayctl.consumers.sighting import Body, Sighting, Unreadable, is_worn, sighted
from delayctl.topology.access import Access

_AT_ONCE = 200
_UNKNOWN = Sighting(None, "?", "", 0, reason="its headers can't be read")


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, and what it cost: for how long the messages were held, so that they could not expire."""

    queue: str
    ready: int
    seen: tuple[Sighting, ...] = ()
    held_ms: int = 0
    is_worn: bool = False  # One was given back so often that no more were taken.
    bodies: tuple[Body, ...] = ()  # Of each that was seen, where they were asked for.


def look(
    access: Access,
    queue: str,
    most: int,
    most_returns: int | None,
    delays: Delays,
    *,
    preview: int | None = None,
    name: str = "delayctl pending",
) -> Look:
    """Look at the first messages of a queue; with `most` 0 they are counted only. `preview` bytes of each body are kept."""
    with Pull(access, queue, name=name) as pull:
        if not most or not pull.ready:
            return Look(queue, pull.ready)
        started = time.monotonic()
        bodies: list[Body] = []
        keep = None if preview is None else lambda body: bodies.append(Body(body[:preview], len(body)))
        found, was_worn = _hold(pull, min(most, pull.ready), most_returns, delays, keep)
        pull.give_back()
    # Closed by now: the broker has put them back.
    held_ms = round((time.monotonic() - started) * 1000)
    return Look(queue, pull.ready, tuple(found), held_ms, was_worn, tuple(bodies))


def _hold(
    pull: Pull, most: int, limit: int | None, delays: Delays, keep: Callable[[bytes], object] | None
) -> tuple[list[Sighting], bool]:
    """What the messages say; of their bodies no more is kept than is asked for, since a sample may be large."""
    found: list[Sighting] = []
    size = FIRST
    while len(found) < most and (block := pull.take(min(size, most - len(found)))):
        was_worn = any(is_worn(delivery, limit) for delivery in block)
        for delivery in block:
            if keep is not None:
                keep(delivery.body)
            try:
                found.append(replace(sighted(delivery, delays), headers={}))
            except Unreadable:
                found.append(_UNKNOWN)
        if was_worn:
            return found, True
        size = next_size(size, block, _AT_ONCE)
    return found, False
