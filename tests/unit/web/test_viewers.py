"""What viewers are pushed, fast ones and slow ones."""

import asyncio
import json
from dataclasses import replace

from delayctl.web.stage import Snapshot
from delayctl.web.viewers import MOST, Viewers

from tests.support.stage import ToldStage

FIRST = Snapshot(1, ToldStage().observe(), 1, {"delay.1m.queue": 3}, None, 1)
SOON_S = 30


class Room:
    """Viewers of a snapshot that a test sets."""

    def __init__(self) -> None:
        self.latest, self.is_over = FIRST, False
        self.viewers = Viewers(lambda: self.latest, lambda: self.is_over)
        self.viewers.open()

    def show(self, snapshot: Snapshot) -> None:
        """Set it, and tell everybody from another thread's point of view."""
        self.latest = snapshot
        self.viewers.tell()


def seen(event: bytes) -> tuple[str, int]:
    """The name of an event, and the time or the number that it has."""
    name, value = event.decode().splitlines()[:2]
    found = json.loads(value.removeprefix("data: "))
    return name.removeprefix("event: "), found.get("at", found["version"])


def test_a_beat_for_every_snapshot_and_the_state_when_it_changes() -> None:
    """The first thing that a viewer gets is the whole."""

    async def look() -> list[tuple[str, int]]:
        room = Room()
        stream = room.viewers.stream()
        events = [await anext(stream), await anext(stream)]
        room.show(replace(FIRST, at_ms=2))
        events.append(await asyncio.wait_for(anext(stream), SOON_S))
        room.show(replace(FIRST, at_ms=3, version=2))
        events += [await asyncio.wait_for(anext(stream), SOON_S) for _ in range(2)]
        return [seen(event) for event in events]

    assert asyncio.run(look()) == [("state", 1), ("beat", 1), ("beat", 2), ("state", 2), ("beat", 3)]


def test_who_is_slow_gets_the_newest_alone() -> None:
    """Nothing piles up for them."""

    async def look() -> list[tuple[str, int]]:
        room = Room()
        stream = room.viewers.stream()
        events = [await anext(stream), await anext(stream)]
        for at in range(2, 50):
            room.show(replace(FIRST, at_ms=at))
        await asyncio.sleep(0)
        events.append(await asyncio.wait_for(anext(stream), SOON_S))
        return [seen(event) for event in events]

    assert asyncio.run(look()) == [("state", 1), ("beat", 1), ("beat", 49)]


def test_the_end_of_the_server_ends_every_stream() -> None:
    """So nobody keeps it from ending; and who has gone is forgotten."""

    async def look() -> tuple[bool, bool, int]:
        room = Room()
        streams = [room.viewers.stream() for _ in range(MOST)]
        for stream in streams:
            await anext(stream)
        are_many = room.viewers.are_many
        room.is_over = True
        left = [event for stream in streams async for event in stream]
        return are_many, room.viewers.are_many, len(left)

    assert asyncio.run(look()) == (True, False, MOST)


def test_nobody_looks_any_more() -> None:
    """The thread that looks at the broker may be about to tell while the server ends."""

    async def open_() -> Room:
        return Room()

    room = asyncio.run(open_())

    room.show(replace(FIRST, at_ms=2))

    assert room.latest.at_ms == 2
