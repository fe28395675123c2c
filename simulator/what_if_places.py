"""Where messages of a stream come to stand, one queue after the other: `journey` turned into places to be counted in."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from delayctl.topology.journey import Fate, Journey, journey
from delayctl.topology.routing import Message, Network


@dataclass(frozen=True)
class Ways:
    """What one routing makes of a message: a copy in every place, and what became of those that reached no queue."""

    places: tuple["Place", ...] = ()
    ends: tuple[Fate, ...] = ()


@dataclass(frozen=True, eq=False)
class Place:
    """A copy in a queue; `passed` are the queues that it was in, this one included."""

    queue: str
    message: Message
    passed: frozenset[str]
    router: "Router"
    way: Journey
    number: int | None  # Of the passage that it leaves by when its time is up.

    @cached_property
    def onward(self) -> Ways:
        """Where it goes when its time is up, or when it has to make room."""
        if self.number is None:
            return self.router.pushed_out(self)
        return self.router.ways(self.way, self.number, self.passed)


@dataclass(frozen=True, eq=False)
class Router:
    """The network that messages go through; in `parking` queues they stay."""

    network: Network
    parking: Collection[str] = ()

    def published(self, exchange: str, message: Message) -> Ways:
        """Where a message goes that is published."""
        return self.ways(journey(self.network, exchange, message, parking=self.parking), 0, frozenset())

    def ways(self, way: Journey, number: int, passed: frozenset[str]) -> Ways:
        """Where one passage of a journey leads; what comes back to a queue is dropped, as the broker does."""
        passage = way.passages[number]
        places = tuple(
            Place(stay.queue, passage.message, passed | {stay.queue}, self, way, stay.onward)
            for stay in passage.stays
            if stay.queue not in passed
        )
        dropped: list[Fate] = ["dropped" for stay in passage.stays if stay.queue in passed]
        return Ways(places, (*(end.fate for end in passage.ends), *dropped))

    def pushed_out(self, place: Place) -> Ways:
        """Where a message goes that has to leave a queue whose time is never up."""
        settings = self.network.queues[place.queue].settings
        if settings.dead_letter_exchange is None:
            return Ways(ends=("lost",))
        message = place.message if settings.dead_letter_key is None else Message(settings.dead_letter_key)
        found = journey(self.network, settings.dead_letter_exchange, message, parking=self.parking)
        ways = self.ways(found, 0, place.passed)
        # Nobody is there whom it could be returned to.
        ends: list[Fate] = ["lost" if fate in ("returned", "refused") else fate for fate in ways.ends]
        return Ways(ways.places, tuple(ends))
