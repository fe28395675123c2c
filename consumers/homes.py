"""Where a parked message belongs, and what it looks like when it is sent there."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from delayctl.consumers.again import COPIES, history_with
from delayctl.consumers.deaths import Delays, death_at_home
from delayctl.consumers.inbox import Delivery
from delayctl.consumers.message import Message
from delayctl.consumers.sighting import Sighting
from delayctl.publishers.contract import ATTEMPT, FAILED_IN, HISTORY, ORIGIN, REASON, without_deaths, without_steps
from delayctl.publishers.frames import Headers, Properties
from delayctl.topology import routing
from delayctl.topology.expand import expand
from delayctl.topology.names import Names
from delayctl.topology.routing import DEFAULT_EXCHANGE, Network
from delayctl.topology.spec import Spec
from delayctl.topology.wording import quoted, shorten

_DEFAULT = "the default exchange"


@dataclass(frozen=True, slots=True)
class Onward:
    """A message to be published instead of the one that is there; `to` is what people call the place."""

    exchange: str
    key: str
    to: str
    properties: Properties


@dataclass(frozen=True, slots=True)
class Stays:
    """A message that is left where it is, and what would help it."""

    why: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """All that a topology says about where its parked messages come from."""

    exit: str
    unrouted: str  # The queue of what has no way out.
    parks: Mapping[str, tuple[str, ...]]  # Parking queue to the queues whose failures it holds.
    ways_back: Mapping[str, str]  # Queue to the key that leads to it alone, from the exit.
    delays: Delays

    @classmethod
    def of(cls, spec: Spec) -> "Known":
        """What a file says."""
        names, topology = Names(spec.prefix), expand(spec)
        parks: dict[str, tuple[str, ...]] = {}
        for retry in spec.retries:
            parks[retry.park] = (*parks.get(retry.park, ()), retry.queue)
        in_levels = [retry.queue for retry in spec.retries if retry.by_broker is None]
        ways_back = {queue: names.retry_key(queue) for queue in in_levels}
        return cls(names.exit(), names.unrouted_queue(), parks, ways_back, Delays.of(topology))


@dataclass(frozen=True, slots=True)
class Homes:
    """Finds the home of each message of a parking queue."""

    known: Known
    network: Network | None = None  # What is on the broker, for what had no route.
    to: str | None = None  # A queue that all of them shall go to.
    by_origin: bool = False  # To the exchange, and with the key, that each first came by.
    keep_attempts: bool = False

    def of(self, came: Delivery, seen: Sighting, now_ms: int) -> Onward | Stays:
        """Say where a message goes, or why it stays."""
        if self.to is None and came.queue == self.known.unrouted:
            return self._once_more(came, seen, now_ms)
        if self.by_origin:
            return self._to_its_origin(came, seen, now_ms)
        queue = self.to or self._failed_in(came.queue, seen)
        if queue is None:
            return Stays("nothing says where it belongs", "name the queue with --to")
        if queue == came.queue:
            return Stays("it would go where it is", "name another queue with --to")
        return self._to_queue(queue, came, seen, now_ms)

    def _failed_in(self, parking: str, seen: Sighting) -> str | None:
        said = seen.headers.get(FAILED_IN)
        if isinstance(said, str):
            return said
        if death := death_at_home(seen.headers, self.known.delays):
            return str(death.get("queue"))
        parked_here = self.known.parks.get(parking, ())
        return parked_here[0] if len(parked_here) == 1 else None

    def _to_queue(self, queue: str, came: Delivery, seen: Sighting, now_ms: int) -> Onward:
        back = self.known.ways_back.get(queue)
        exchange, key = (DEFAULT_EXCHANGE, queue) if back is None else (self.known.exit, back)
        headers = self._stamped(came.queue, seen, now_ms)
        for name in COPIES:  # Keys that would lead it to other queues, too.
            headers.pop(name, None)
        headers.setdefault(ORIGIN, {"exchange": seen.exchange, "key": seen.key})
        return Onward(exchange, key, queue, _properties(came, headers))

    def _to_its_origin(self, came: Delivery, seen: Sighting, now_ms: int) -> Onward | Stays:
        if not isinstance(seen.headers.get(ORIGIN), dict) and not death_at_home(seen.headers, self.known.delays):
            return Stays("nothing says where it came from", "name the queue with --to")
        exchange, key = seen.exchange, seen.key
        headers = self._stamped(came.queue, seen, now_ms)
        origin = headers.pop(ORIGIN, None)
        if isinstance(origin, dict) and origin.get("cc"):
            headers["CC"] = origin["cc"]
        return Onward(exchange, key, f"{exchange or _DEFAULT} with key {shorten(key)}", _properties(came, headers))

    def _once_more(self, came: Delivery, seen: Sighting, now_ms: int) -> Onward | Stays:
        """The same way again, if it leads anywhere by now: mandatory says nothing behind an alternate exchange."""
        assert self.network is not None
        message = routing.Message(came.key, seen.headers)
        queues = set(routing.route(self.network, came.exchange, message).queues) - {came.queue}
        if not queues:
            why = f"no route for key {quoted(came.key)} at {came.exchange or _DEFAULT}"
            return Stays(why, "add the route to the file and apply it, or name a queue with --to")
        headers = self._stamped(came.queue, seen, now_ms)
        return Onward(came.exchange, came.key, ", ".join(sorted(queues)), _properties(came, headers))

    def _stamped(self, parking: str, seen: Sighting, now_ms: int) -> dict[str, Any]:
        headers = without_steps(without_deaths(seen.headers))
        for name in (REASON, FAILED_IN, *(() if self.keep_attempts else (ATTEMPT,))):
            headers.pop(name, None)
        headers[HISTORY] = history_with(headers, seen.attempt, now_ms, f"redriven from {parking}")
        return headers


def _properties(came: Delivery, headers: Headers) -> Properties:
    # Its own expiration would throw it away; another's user id would not be taken from us.
    return replace(Message.of(came).properties, expiration=None, user_id=None, headers=headers)
