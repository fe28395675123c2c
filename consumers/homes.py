"""Where a parked message belongs, and what it looks like when it is sent there."""

from collections.abc import Callable, Mapping
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
from delayctl.topology.way_out import NoWay, Stranded, way_out
from delayctl.topology.wording import did_you_mean, quoted, shorten

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

    names: Names
    parks: Mapping[str, tuple[str, ...]]  # Parking queue to the queues whose failures it holds.
    ways_back: Mapping[str, str]  # Queue to the key that leads to it alone, from the exit.
    delays: Delays

    @classmethod
    def of(cls, spec: Spec) -> "Known":
        """What a file says."""
        names, parks = Names(spec.prefix), dict[str, tuple[str, ...]]()
        for retry in spec.retries:
            parks[retry.park] = (*parks.get(retry.park, ()), retry.queue)
        in_levels = [retry.queue for retry in spec.retries if retry.by_broker is None]
        ways_back = {queue: names.retry_key(queue) for queue in in_levels}
        return cls(names, parks, ways_back, Delays.of(expand(spec)))

    @property
    def exit(self) -> str:
        """Where what has waited comes out."""
        return self.names.exit()

    @property
    def unrouted(self) -> str:
        """The queue of what has no way out."""
        return self.names.unrouted_queue()


@dataclass(frozen=True, slots=True)
class Homes:
    """Finds the home of each message of a parking queue."""

    known: Known
    network: Network | None = None  # What is on the broker; without it nothing is said of what had no route.
    to: str | None = None  # A queue that all of them shall go to.
    by_origin: bool = False  # To the exchange, and with the key, that each first came by.
    keep_attempts: bool = False
    is_there: Callable[[str], bool] = lambda _: True  # Asked of queues that the default exchange alone leads to.

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
        if self.to is None and queue == seen.headers.get(FAILED_IN) and self.known.delays.has(queue):
            return Stays(
                f"its header {FAILED_IN} names {shorten(queue)}, a delay queue, from which it would go astray",
                "name the queue behind the delay with --to",
            )
        return self._to_queue(queue, came, seen, now_ms)

    def _failed_in(self, parking: str, seen: Sighting) -> str | None:
        said = seen.headers.get(FAILED_IN)
        if isinstance(said, str):
            return said
        if death := death_at_home(seen.headers, self.known.delays):
            return str(death.get("queue"))
        parked_here = self.known.parks.get(parking, ())
        return parked_here[0] if len(parked_here) == 1 else None

    def _to_queue(self, queue: str, came: Delivery, seen: Sighting, now_ms: int) -> Onward | Stays:
        back = self.known.ways_back.get(queue)
        exchange, key = (DEFAULT_EXCHANGE, queue) if back is None else (self.known.exit, back)
        headers = self._stamped(
            came.queue, without_steps(seen.headers), seen, now_ms, stays_parked=queue in self.known.parks
        )
        for name in COPIES:  # Keys that would lead it to other queues, too.
            headers.pop(name, None)
        headers.setdefault(ORIGIN, {"exchange": seen.exchange, "key": seen.key})
        queues = self._queues_behind(exchange, key, headers)
        if queues is not None and queue not in queues:
            return self._gone(queue, key)
        if exchange == DEFAULT_EXCHANGE and not self.is_there(queue):
            return self._unknown(queue)
        return Onward(exchange, key, queue, _properties(came, headers))

    def _queues_behind(self, exchange: str, key: str, headers: Mapping[str, Any]) -> frozenset[str] | None:
        """Where a message would come to rest; None where that is for the broker to say.

        Mandatory says nothing of exchanges with an alternate, such as the exit: what has no way there is parked once
        more, confirmed and all. The default exchange has none, and knows queues that no list shows.
        """
        if self.network is None or exchange == DEFAULT_EXCHANGE:
            return None
        routed = routing.route(self.network, exchange, routing.Message(key, headers))
        return None if any(hop.is_unknown for hop in routed.hops) else frozenset(routed.queues)

    def _gone(self, queue: str, key: str) -> Stays:
        assert self.network is not None
        fix = "run delayctl apply, which puts it back, and redrive again"
        if queue not in self.network.queues:
            return Stays(f"{queue} is not there", fix)
        return Stays(f"{queue} is not bound to {self.known.exit} by the key {shorten(key)}", fix)

    def _unknown(self, queue: str) -> Stays:
        guess = did_you_mean(queue, self.network.queues if self.network else ())
        return Stays(f"there is no queue {quoted(queue)}{guess}", "name one that is there with --to, or declare it")

    def _to_its_origin(self, came: Delivery, seen: Sighting, now_ms: int) -> Onward | Stays:
        if not isinstance(seen.headers.get(ORIGIN), dict) and not death_at_home(seen.headers, self.known.delays):
            return Stays("nothing says where it came from", "name the queue with --to")
        headers = self._stamped(came.queue, without_steps(seen.headers), seen, now_ms)
        origin = headers.pop(ORIGIN, None)
        if isinstance(origin, dict) and origin.get("cc"):
            headers["CC"] = origin["cc"]
        return self._no_origin(came.queue, seen, headers) or Onward(
            seen.exchange,
            seen.key,
            f"{seen.exchange or _DEFAULT} with key {shorten(seen.key)}",
            _properties(came, headers),
        )

    def _no_origin(self, parking: str, seen: Sighting, headers: Mapping[str, Any]) -> Stays | None:
        """What is wrong with the way by which a message came, as far as that can be told before it is sent."""
        if seen.exchange == DEFAULT_EXCHANGE and self.known.delays.has(seen.key):
            return Stays(
                f"{shorten(seen.key)} is a delay queue, from which it would go astray", "name a queue with --to"
            )
        queues = self._queues_behind(seen.exchange, seen.key, headers)
        if self.network is None or queues is None:
            return None
        if seen.exchange not in self.network.exchanges:
            return Stays(f"{shorten(seen.exchange)} is not there", "leave out --origin, or name a queue with --to")
        if parking in queues:
            return Stays("it would come back to where it is", "leave out --origin, or name a queue with --to")
        if queues <= {self.known.unrouted}:
            why = f"no route for key {quoted(seen.key)} at {shorten(seen.exchange)}"
            return Stays(
                why, "run delayctl apply, if the file has one; or leave out --origin, or name a queue with --to"
            )
        return None

    def _once_more(self, came: Delivery, seen: Sighting, now_ms: int) -> Onward | Stays:
        """The same way again, if it leads anywhere by now: mandatory says nothing behind an alternate exchange."""
        assert self.network is not None
        is_due = seen.due_ms is not None and seen.due_ms <= now_ms
        lost = Stranded(came.queue, came.exchange, came.key, without_deaths(seen.headers), is_due)
        found = way_out(self.network, self.known.names, lost)
        if isinstance(found, NoWay):
            return Stays(found.why, found.fix)
        stays_parked = not self.known.parks.keys().isdisjoint(found.queues)
        headers = self._stamped(came.queue, found.headers, seen, now_ms, stays_parked=stays_parked)
        return Onward(found.exchange, came.key, ", ".join(sorted(found.queues)), _properties(came, headers))

    def _stamped(
        self, parking: str, given: Mapping[str, Any], seen: Sighting, now_ms: int, *, stays_parked: bool = False
    ) -> dict[str, Any]:
        """The headers to send on, with what has become of the message; why it was given up goes only with what is tried again."""
        headers = without_deaths(given)
        if stays_parked:
            headers = {**self._parked_by_broker(seen), **headers}
        else:
            for name in (REASON, FAILED_IN, *(() if self.keep_attempts else (ATTEMPT,))):
                headers.pop(name, None)
        headers[HISTORY] = history_with(headers, seen.attempt, now_ms, f"redriven from {parking}")
        return headers

    def _parked_by_broker(self, seen: Sighting) -> dict[str, Any]:
        """What only x-death tells, which is not sent on: why a message was given up, where, and how it had come there."""
        death = death_at_home(seen.headers, self.known.delays)
        if not death or seen.reason is None:
            return {}
        origin = {"exchange": seen.exchange, "key": seen.key}
        return {REASON: seen.reason, FAILED_IN: str(death["queue"]), ORIGIN: origin}


def _properties(came: Delivery, headers: Headers) -> Properties:
    # Its own expiration would throw it away; another's user id would not be taken from us.
    return replace(Message.of(came).properties, expiration=None, user_id=None, headers=headers)
